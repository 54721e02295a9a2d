/* SPDX-License-Identifier: BSD-3-Clause */
/* Specs for unit tests. */
#ifndef WEFT_TEST_SPECS_H
#define WEFT_TEST_SPECS_H

#include "bench/bench.h"
#include "support/unit.h"

/* The defaults, for this op and method. */
static inline struct spec spec_of(const char *op, const char *method)
{
    struct spec spec;
    spec_defaults(&spec);
    spec.op = choice_named(op_names, op);
    spec.method = choice_named(method_names, method);
    spec_settle(&spec);
    return spec;
}

#endif
