/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of atomics: names, sizes, and which op exists for which type. */
#include "fabric/fabric.h"

#include <stdio.h>
#include <string.h>

const char *const amo_op_names[] = {"MIN",  "MAX",  "SUM",  "LOR",   "LAND", "BOR", "BAND",
                                    "LXOR", "BXOR", "SWAP", "CSWAP", "AXOR", NULL};
const char *const amo_compare_names[] = {"EQ", "NE", "LE", "LT", "GE", "GT", NULL};
const char *const amo_type_names[] = {
    "INT8",   "UINT8", "INT16",  "UINT16",        "INT32",          "UINT32",  "INT64",
    "UINT64", "FLOAT", "DOUBLE", "FLOAT_COMPLEX", "DOUBLE_COMPLEX", "UINT128", NULL};

#define OP(name) (1U << AMO_##name)
#define ORDERED  ((1U << AMO_COMPARES) - 1)
#define EQUALITY (OP(EQ) | OP(NE))

const struct amo_facts amo_types[AMO_TYPES] = {
    [AMO_INT8] = {1, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_UINT8] = {1, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_INT16] = {2, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_UINT16] = {2, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_INT32] = {4, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_UINT32] = {4, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_INT64] = {8, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_UINT64] = {8, (1U << AMO_OPS) - 1, ORDERED},
    [AMO_FLOAT] = {4, OP(MIN) | OP(MAX) | OP(SUM) | OP(SWAP) | OP(CSWAP), ORDERED},
    [AMO_DOUBLE] = {8, OP(MIN) | OP(MAX) | OP(SUM) | OP(SWAP) | OP(CSWAP), ORDERED},
    [AMO_FLOAT_COMPLEX] = {8, OP(SUM) | OP(SWAP) | OP(CSWAP), EQUALITY},
    [AMO_DOUBLE_COMPLEX] = {16, OP(SUM) | OP(SWAP) | OP(CSWAP), EQUALITY},
    [AMO_UINT128] = {16, OP(CSWAP), OP(EQ)},
};

void amo_list_ops(enum amo_type type, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned op = 0; op < AMO_OPS; op++) {
        if (!(amo_types[type].ops & 1U << op) || used >= room)
            continue;
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", amo_op_names[op]);
        if (op != AMO_CSWAP || amo_types[type].compares == ORDERED)
            continue;
        for (unsigned compare = 0, n = 0; compare < AMO_COMPARES && used < room; compare++)
            if (amo_types[type].compares & 1U << compare)
                used += (size_t)snprintf(text + used, room - used, "%s%s", n++ ? "/" : " ",
                                         amo_compare_names[compare]);
    }
}
