/* SPDX-License-Identifier: BSD-3-Clause */
/* The atomic unit, in the NIC's numbers of ops and types. It is one for all LNIs of a process: they
 * may share memory. */
#include "nic.h"

#include <complex.h>

enum { WIDEST = 16 };

unsigned amo_bytes(unsigned type)
{
    static const uint8_t bytes[16] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16};
    return type < 16 ? bytes[type] : 0;
}

#define RELATES(relation, a, b)                                                                    \
    ((relation) == WEFT_C_AMO_OP_CSWAP_EQ   ? (a) == (b)                                           \
     : (relation) == WEFT_C_AMO_OP_CSWAP_NE ? (a) != (b)                                           \
     : (relation) == WEFT_C_AMO_OP_CSWAP_LE ? (a) <= (b)                                           \
     : (relation) == WEFT_C_AMO_OP_CSWAP_LT ? (a) < (b)                                            \
     : (relation) == WEFT_C_AMO_OP_CSWAP_GE ? (a) >= (b)                                           \
                                            : (a) > (b))

/* What all ordered types have; t is the target, a and b the operands. */
#define ORDERED(sum)                                                                               \
    case WEFT_C_AMO_OP_MIN:                                                                        \
        t = a < t ? a : t;                                                                         \
        break;                                                                                     \
    case WEFT_C_AMO_OP_MAX:                                                                        \
        t = a > t ? a : t;                                                                         \
        break;                                                                                     \
    case WEFT_C_AMO_OP_SUM:                                                                        \
        t = (sum);                                                                                 \
        break;                                                                                     \
    case WEFT_C_AMO_OP_SWAP:                                                                       \
        t = a;                                                                                     \
        break;                                                                                     \
    case WEFT_C_AMO_OP_CSWAP:                                                                      \
        t = RELATES(p->cswap_op, b, t) ? a : t;                                                    \
        break;

#define LOAD(type)                                                                                 \
    type t, a, b;                                                                                  \
    memcpy(&t, value, sizeof t);                                                                   \
    memcpy(&a, p->operands, sizeof a);                                                             \
    memcpy(&b, p->operands + WIDEST, sizeof b);

/* Sums of signed integers wrap around: they are made without a sign. */
#define INTEGER(name, type, bits)                                                                  \
    static bool name(void *value, const struct packet *p)                                          \
    {                                                                                              \
        LOAD(type)                                                                                 \
        switch (p->amo_op) {                                                                       \
            ORDERED((type)((bits)t + (bits)a))                                                     \
        case WEFT_C_AMO_OP_LOR:                                                                    \
            t = t || a;                                                                            \
            break;                                                                                 \
        case WEFT_C_AMO_OP_LAND:                                                                   \
            t = t && a;                                                                            \
            break;                                                                                 \
        case WEFT_C_AMO_OP_LXOR:                                                                   \
            t = !t != !a;                                                                          \
            break;                                                                                 \
        case WEFT_C_AMO_OP_BOR:                                                                    \
            t = (type)(t | a);                                                                     \
            break;                                                                                 \
        case WEFT_C_AMO_OP_BAND:                                                                   \
            t = (type)(t & a);                                                                     \
            break;                                                                                 \
        case WEFT_C_AMO_OP_BXOR:                                                                   \
            t = (type)(t ^ a);                                                                     \
            break;                                                                                 \
        case WEFT_C_AMO_OP_AXOR:                                                                   \
            t = (type)((t & (type)~b) ^ a);                                                        \
            break;                                                                                 \
        default:                                                                                   \
            return false;                                                                          \
        }                                                                                          \
        memcpy(value, &t, sizeof t);                                                               \
        return true;                                                                               \
    }

#define REAL(name, type)                                                                           \
    static bool name(void *value, const struct packet *p)                                          \
    {                                                                                              \
        LOAD(type)                                                                                 \
        switch (p->amo_op) {                                                                       \
            ORDERED(t + a)                                                                         \
        default:                                                                                   \
            return false;                                                                          \
        }                                                                                          \
        memcpy(value, &t, sizeof t);                                                               \
        return true;                                                                               \
    }

#define COMPLEX(name, type)                                                                        \
    static bool name(void *value, const struct packet *p)                                          \
    {                                                                                              \
        LOAD(type)                                                                                 \
        bool compare = p->amo_op == WEFT_C_AMO_OP_CSWAP, equal = b == t;                           \
        if (p->amo_op == WEFT_C_AMO_OP_SUM)                                                        \
            t = t + a;                                                                             \
        else if (p->amo_op != WEFT_C_AMO_OP_SWAP &&                                                \
                 (!compare || p->cswap_op > WEFT_C_AMO_OP_CSWAP_NE))                               \
            return false;                                                                          \
        else if (!compare || equal == (p->cswap_op == WEFT_C_AMO_OP_CSWAP_EQ))                     \
            t = a;                                                                                 \
        memcpy(value, &t, sizeof t);                                                               \
        return true;                                                                               \
    }

INTEGER(on_int8, int8_t, uint8_t)
INTEGER(on_uint8, uint8_t, uint8_t)
INTEGER(on_int16, int16_t, uint16_t)
INTEGER(on_uint16, uint16_t, uint16_t)
INTEGER(on_int32, int32_t, uint32_t)
INTEGER(on_uint32, uint32_t, uint32_t)
INTEGER(on_int64, int64_t, uint64_t)
INTEGER(on_uint64, uint64_t, uint64_t)
REAL(on_float, float)
REAL(on_double, double)
COMPLEX(on_float_complex, float complex)
COMPLEX(on_double_complex, double complex)

static bool on_wide(void *value, const struct packet *p)
{
    if (p->amo_op != WEFT_C_AMO_OP_CSWAP || p->cswap_op != WEFT_C_AMO_OP_CSWAP_EQ)
        return false;
    if (memcmp(value, p->operands + WIDEST, WIDEST) == 0)
        memcpy(value, p->operands, WIDEST);
    return true;
}

unsigned amo_apply(void *target, const struct packet *p, uint8_t old[16])
{
    static bool (*const units[])(void *value, const struct packet *p) = {
        [WEFT_C_AMO_TYPE_INT8_T] = on_int8,
        [WEFT_C_AMO_TYPE_UINT8_T] = on_uint8,
        [WEFT_C_AMO_TYPE_INT16_T] = on_int16,
        [WEFT_C_AMO_TYPE_UINT16_T] = on_uint16,
        [WEFT_C_AMO_TYPE_INT32_T] = on_int32,
        [WEFT_C_AMO_TYPE_UINT32_T] = on_uint32,
        [WEFT_C_AMO_TYPE_INT64_T] = on_int64,
        [WEFT_C_AMO_TYPE_UINT64_T] = on_uint64,
        [WEFT_C_AMO_TYPE_FLOAT_T] = on_float,
        [WEFT_C_AMO_TYPE_FLOAT_COMPLEX_T] = on_float_complex,
        [WEFT_C_AMO_TYPE_DOUBLE_T] = on_double,
        [WEFT_C_AMO_TYPE_DOUBLE_COMPLEX_T] = on_double_complex,
        [WEFT_C_AMO_TYPE_UINT128_T] = on_wide};
    static pthread_mutex_t unit = PTHREAD_MUTEX_INITIALIZER;
    unsigned bytes = amo_bytes(p->amo_type);
    uint8_t value[WIDEST] = {0};
    if (p->amo_type >= sizeof units / sizeof *units || !target)
        return WEFT_C_RC_AMO_INVAL_OP_ERROR;
    if ((uintptr_t)target % bytes)
        return WEFT_C_RC_AMO_ALIGN_ERROR;
    pthread_mutex_lock(&unit);
    memcpy(value, target, bytes);
    memcpy(old, value, bytes);
    bool exists = units[p->amo_type](value, p);
    if (exists)
        memcpy(target, value, bytes);
    pthread_mutex_unlock(&unit);
    return exists ? 0 : WEFT_C_RC_AMO_INVAL_OP_ERROR;
}
