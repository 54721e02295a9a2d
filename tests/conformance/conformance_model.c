/* SPDX-License-Identifier: BSD-3-Clause */
/* Values for atomics, edges among them, and a plain model of what atomics do: written from the
 * specification alone, and not the one that --verify uses. */
#include "conformance.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- values ---- */

/* Edges first, then bits without meaning. */
static uint64_t whole_value(unsigned bits, unsigned which)
{
    uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t sign = UINT64_C(1) << (bits - 1), seed = which;
    const uint64_t edges[] = {0, 1, 2, 3, sign - 1, sign, sign + 1, most, most - 1};
    return which < LENGTH(edges) ? edges[which] : next_random(&seed) & most;
}

static double real_value(bool single, unsigned which)
{
    const double edges[] = {0.0,
                            -0.0,
                            1.0,
                            -1.0,
                            (double)INFINITY,
                            -(double)INFINITY,
                            (double)NAN,
                            single ? 1.4e-45 : 4.9e-324,
                            single ? -1.0e-40 : -1.0e-310,
                            single ? (double)FLT_MAX : DBL_MAX,
                            single ? -(double)FLT_MAX : -DBL_MAX,
                            single ? (double)FLT_MIN : DBL_MIN,
                            0.1,
                            16777217.25};
    return edges[which % LENGTH(edges)];
}

void cell_value(enum amo_type type, unsigned which, void *value)
{
    union value v = {.wide = {0, 0}};
    unsigned bits = (unsigned)amo_size(type) * 8;
    switch (type) {
    case AMO_FLOAT:
    case AMO_FLOAT_COMPLEX:
        v.f[0] = (float)real_value(true, which);
        v.f[1] = type == AMO_FLOAT ? 0 : (float)real_value(true, which * 5 + which / 7);
        break;
    case AMO_DOUBLE:
    case AMO_DOUBLE_COMPLEX:
        v.d[0] = real_value(false, which);
        v.d[1] = type == AMO_DOUBLE ? 0 : real_value(false, which * 5 + which / 7);
        break;
    case AMO_UINT128:
        v.wide[0] = whole_value(64, which / 2);
        v.wide[1] = whole_value(64, which % 2 ? which : 3);
        break;
    default:
        v.u64 = whole_value(bits, which);
    }
    memcpy(value, &v, amo_size(type));
}

/* Cell i has value i / CELL_VALUES; what is beside it tells where it is. */
void cells_fill(char *area, enum amo_type type)
{
    for (unsigned i = 0; i < CELLS_BYTES; i++)
        area[i] = (char)(0xa5 ^ i);
    for (unsigned i = 0; i < CELLS; i++)
        cell_value(type, i / CELL_VALUES, area + (size_t)i * CELL_BYTES + CELL_AT);
}

/* ---- the model ---- */

/* The relation of c to t, c on the left, from what is known of them. */
static bool related(enum amo_compare compare, bool below, bool same, bool above)
{
    static const struct {
        bool below, same, above, none;
    } table[AMO_COMPARES] = {[AMO_EQ] = {.same = true},
                             [AMO_NE] = {.below = true, .above = true, .none = true},
                             [AMO_LE] = {.below = true, .same = true},
                             [AMO_LT] = {.below = true},
                             [AMO_GE] = {.above = true, .same = true},
                             [AMO_GT] = {.above = true}};
    return below   ? table[compare].below
           : same  ? table[compare].same
           : above ? table[compare].above
                   : table[compare].none;
}

/* A number of up to 64 bits, taken apart: its bits, and its place in the order. */
static int64_t order_of(uint64_t bits, unsigned width, bool has_sign)
{
    uint64_t sign = UINT64_C(1) << (width - 1);
    if (has_sign)
        return (int64_t)((bits ^ sign) - sign);
    /* Unsigned numbers are put in signed order by turning the top bit over. */
    return width == 64 ? (int64_t)(bits ^ sign) : (int64_t)bits;
}

static uint64_t integer_model(enum amo_op op, enum amo_compare compare, unsigned width,
                              bool has_sign, const uint64_t v[3])
{
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t t = v[0] & mask, x = v[1] & mask, c = v[2] & mask;
    int64_t at = order_of(t, width, has_sign), ax = order_of(x, width, has_sign),
            ac = order_of(c, width, has_sign);
    switch (op) {
    case AMO_MIN:
        return ax < at ? x : t;
    case AMO_MAX:
        return ax > at ? x : t;
    case AMO_SUM:
        return (t + x) & mask;
    case AMO_LOR:
        return (t | x) != 0;
    case AMO_LAND:
        return t != 0 && x != 0;
    case AMO_LXOR:
        return (t != 0) ^ (x != 0);
    case AMO_BOR:
        return t | x;
    case AMO_BAND:
        return t & x;
    case AMO_BXOR:
        return (t | x) & ~(t & x);
    case AMO_SWAP:
        return x;
    case AMO_CSWAP:
        return related(compare, ac<at, ac == at, ac> at) ? x : t;
    default: /* AXOR */
        return ((t & ~c) ^ x) & mask;
    }
}

static bool real_replaces(enum amo_op op, enum amo_compare compare, double t, double x, double c)
{
    return op == AMO_SWAP || (op == AMO_MIN && x < t) || (op == AMO_MAX && x > t) ||
           (op == AMO_CSWAP && related(compare, c<t, c == t, c> t));
}

static void complex_model(enum amo_op op, enum amo_type type, enum amo_compare compare,
                          union value *t, const struct operands *o)
{
    bool wide = type == AMO_DOUBLE_COMPLEX;
    bool same = wide ? o->compare.d[0] == t->d[0] && o->compare.d[1] == t->d[1]
                     : o->compare.f[0] == t->f[0] && o->compare.f[1] == t->f[1];
    for (int part = 0; part < 2 && op == AMO_SUM; part++) {
        if (wide)
            t->d[part] = t->d[part] + o->operand.d[part];
        else
            t->f[part] = t->f[part] + o->operand.f[part];
    }
    if (op == AMO_SWAP || (op == AMO_CSWAP && (compare == AMO_EQ ? same : !same)))
        memcpy(t, &o->operand, amo_size(type));
}

static uint64_t bits_of(const union value *value, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, value, size);
    return bits;
}

void amo_model(enum amo_op op, enum amo_type type, enum amo_compare compare, union value *t,
               const struct operands *o)
{
    size_t size = amo_size(type);
    if (type == AMO_UINT128) {
        if (t->wide[0] == o->compare.wide[0] && t->wide[1] == o->compare.wide[1])
            *t = o->operand;
    } else if (type == AMO_FLOAT_COMPLEX || type == AMO_DOUBLE_COMPLEX) {
        complex_model(op, type, compare, t, o);
    } else if (type == AMO_FLOAT) {
        if (op == AMO_SUM)
            t->f[0] = t->f[0] + o->operand.f[0];
        else if (real_replaces(op, compare, (double)t->f[0], (double)o->operand.f[0],
                               (double)o->compare.f[0]))
            memcpy(t, &o->operand, size);
    } else if (type == AMO_DOUBLE) {
        if (op == AMO_SUM)
            t->d[0] = t->d[0] + o->operand.d[0];
        else if (real_replaces(op, compare, t->d[0], o->operand.d[0], o->compare.d[0]))
            memcpy(t, &o->operand, size);
    } else {
        const uint64_t v[3] = {bits_of(t, size), bits_of(&o->operand, size),
                               bits_of(&o->compare, size)};
        uint64_t result = integer_model(op, compare, (unsigned)size * 8, type % 2 == 0, v);
        memcpy(t, &result, size);
    }
}
