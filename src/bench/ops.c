/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of operations and methods, from ops.def and methods.def. */
#include "bench/bench.h"

#define OP(name) extern const struct op op_##name;
#include "bench/ops.def"
#undef OP
#define METHOD(name, words) extern const struct method method_##name;
#include "bench/methods.def"
#undef METHOD

#define OP(name) &op_##name,
static const struct op *const ops[] = {
#include "bench/ops.def"
};
#undef OP

#define OP(name) #name,
const char *const op_names[] = {
#include "bench/ops.def"
    NULL};
#undef OP

#define METHOD(name, words) &method_##name,
static const struct method *const methods[] = {
#include "bench/methods.def"
};
#undef METHOD

#define METHOD(name, words) words,
const char *const method_names[] = {
#include "bench/methods.def"
    NULL};
#undef METHOD

const struct op *op_of(const struct spec *spec)
{
    const struct method *method = method_of(spec);
    if (spec->op <= 0 || (size_t)spec->op > LENGTH(ops))
        return NULL;
    const struct op *op = ops[spec->op - 1];
    return method && method->lists && op->list.form ? op->list.form : op;
}

const struct method *method_of(const struct spec *spec)
{
    return spec->method > 0 && (size_t)spec->method <= LENGTH(methods) ? methods[spec->method - 1]
                                                                       : NULL;
}

const char *op_called(const struct spec *spec)
{
    const struct op *op = op_of(spec);
    if (!spec->local.ucx_words)
        return op->name;
    if (op->called)
        return op->called(spec);
    return op->words && op->words->ucx ? op->words->ucx : op->name;
}

unsigned spec_legs(const struct spec *spec)
{
    const struct method *method = method_of(spec);
    return method->legs ? method->legs : op_of(spec)->legs;
}
