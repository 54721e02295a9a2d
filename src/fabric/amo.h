/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of fabric: atomics, their types, and which exist. */
#ifndef WEFT_AMO_H
#define WEFT_AMO_H

#include "core/core.h"

enum amo_op {
    AMO_MIN,
    AMO_MAX,
    AMO_SUM,
    AMO_LOR,
    AMO_LAND,
    AMO_BOR,
    AMO_BAND,
    AMO_LXOR,
    AMO_BXOR,
    AMO_SWAP,
    AMO_CSWAP, /* if (compare REL target) target = operand */
    AMO_AXOR,  /* target = (target & ~compare) ^ operand */
    AMO_OPS
};
enum amo_compare { AMO_EQ, AMO_NE, AMO_LE, AMO_LT, AMO_GE, AMO_GT, AMO_COMPARES };
enum amo_type {
    AMO_INT8,
    AMO_UINT8,
    AMO_INT16,
    AMO_UINT16,
    AMO_INT32,
    AMO_UINT32,
    AMO_INT64,
    AMO_UINT64,
    AMO_FLOAT,
    AMO_DOUBLE,
    AMO_FLOAT_COMPLEX,
    AMO_DOUBLE_COMPLEX,
    AMO_UINT128,
    AMO_TYPES
};
enum { AMO_MAX_BYTES = 16 };

/* Names as they are typed; each list ends with NULL. */
extern const char *const amo_op_names[], *const amo_compare_names[], *const amo_type_names[];

/* A type's size, and which ops and compares exist for it, as bits. */
struct amo_facts {
    uint16_t size, ops, compares;
};
extern const struct amo_facts amo_types[AMO_TYPES];

static inline size_t amo_size(enum amo_type type)
{
    return amo_types[type].size;
}

/* Does the op exist for the type? compare counts for AMO_CSWAP alone. */
static inline bool amo_valid(enum amo_op op, enum amo_type type, enum amo_compare compare)
{
    return op < AMO_OPS && type < AMO_TYPES && amo_types[type].ops & 1U << op &&
           (op != AMO_CSWAP ||
            (compare < AMO_COMPARES && amo_types[type].compares & 1U << compare));
}

/* "SUM, SWAP, CSWAP EQ/NE": what a type takes, for a sentence. */
void amo_list_ops(enum amo_type type, char *text, size_t room);

#endif
