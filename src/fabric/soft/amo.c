/* SPDX-License-Identifier: BSD-3-Clause */
/* The atomic unit. What the compiler has as an atomic operation on integers is that; the rest is
 * computed and put in place by compare-and-swap, 16 bytes wide where the CPU has it, else under
 * a lock in the target's portal. MIN and MAX replace the target only where the operand compares
 * below or above it: a NaN changes nothing. */
#include "fabric/soft/soft.h"

#include <complex.h>
#include <errno.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- computing a new value ---- */

static bool holds(enum amo_compare compare, bool less, bool equal, bool greater)
{
    switch (compare) {
    case AMO_EQ:
        return equal;
    case AMO_NE:
        return !equal;
    case AMO_LE:
        return less || equal;
    case AMO_LT:
        return less;
    case AMO_GE:
        return greater || equal;
    case AMO_GT:
        return greater;
    default:
        return false;
    }
}

/* a: operand; b: compare operand, on the left of the relation. */
#define RELATION(compare, b, t) holds((compare), (b) < (t), (b) == (t), (b) > (t))

#define INTEGER(name, type)                                                                        \
    static uint64_t name(const struct soft_amo *amo, uint64_t old, uint64_t x, uint64_t y)         \
    {                                                                                              \
        type t = (type)old, a = (type)x, b = (type)y;                                              \
        switch (amo->op) {                                                                         \
        case AMO_MIN:                                                                              \
            return (uint64_t)(a < t ? a : t);                                                      \
        case AMO_MAX:                                                                              \
            return (uint64_t)(a > t ? a : t);                                                      \
        case AMO_SUM:                                                                              \
            return old + x;                                                                        \
        case AMO_LOR:                                                                              \
            return t || a;                                                                         \
        case AMO_LAND:                                                                             \
            return t && a;                                                                         \
        case AMO_LXOR:                                                                             \
            return !t != !a;                                                                       \
        case AMO_BOR:                                                                              \
            return old | x;                                                                        \
        case AMO_BAND:                                                                             \
            return old & x;                                                                        \
        case AMO_BXOR:                                                                             \
            return old ^ x;                                                                        \
        case AMO_SWAP:                                                                             \
            return x;                                                                              \
        case AMO_CSWAP:                                                                            \
            return RELATION(amo->compare, b, t) ? x : old;                                         \
        default:                                                                                   \
            return (old & ~y) ^ x;                                                                 \
        }                                                                                          \
    }

#define FLOATING(name, type)                                                                       \
    static uint64_t name(const struct soft_amo *amo, uint64_t old, uint64_t x, uint64_t y)         \
    {                                                                                              \
        type t, a, b;                                                                              \
        uint64_t result = 0;                                                                       \
        memcpy(&t, &old, sizeof t);                                                                \
        memcpy(&a, &x, sizeof a);                                                                  \
        memcpy(&b, &y, sizeof b);                                                                  \
        switch (amo->op) {                                                                         \
        case AMO_MIN:                                                                              \
            return a < t ? x : old;                                                                \
        case AMO_MAX:                                                                              \
            return a > t ? x : old;                                                                \
        case AMO_SWAP:                                                                             \
            return x;                                                                              \
        case AMO_CSWAP:                                                                            \
            return RELATION(amo->compare, b, t) ? x : old;                                         \
        default:                                                                                   \
            t += a;                                                                                \
            memcpy(&result, &t, sizeof t);                                                         \
            return result;                                                                         \
        }                                                                                          \
    }

INTEGER(compute_int8, int8_t)
INTEGER(compute_uint8, uint8_t)
INTEGER(compute_int16, int16_t)
INTEGER(compute_uint16, uint16_t)
INTEGER(compute_int32, int32_t)
INTEGER(compute_uint32, uint32_t)
INTEGER(compute_int64, int64_t)
INTEGER(compute_uint64, uint64_t)
FLOATING(compute_float, float)
FLOATING(compute_double, double)

static uint64_t compute_float_complex(const struct soft_amo *amo, uint64_t old, uint64_t x,
                                      uint64_t y)
{
    float complex t, a, b;
    memcpy(&t, &old, sizeof t);
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    if (amo->op == AMO_SWAP)
        return x;
    if (amo->op == AMO_CSWAP)
        return (b == t) == (amo->compare == AMO_EQ) ? x : old;
    t += a;
    memcpy(&old, &t, sizeof t);
    return old;
}

typedef uint64_t compute_function(const struct soft_amo *amo, uint64_t old, uint64_t x, uint64_t y);
static compute_function *const computes[AMO_TYPES] = {
    [AMO_INT8] = compute_int8,
    [AMO_UINT8] = compute_uint8,
    [AMO_INT16] = compute_int16,
    [AMO_UINT16] = compute_uint16,
    [AMO_INT32] = compute_int32,
    [AMO_UINT32] = compute_uint32,
    [AMO_INT64] = compute_int64,
    [AMO_UINT64] = compute_uint64,
    [AMO_FLOAT] = compute_float,
    [AMO_DOUBLE] = compute_double,
    [AMO_FLOAT_COMPLEX] = compute_float_complex,
};

static struct soft_wide compute_wide(const struct soft_amo *amo, struct soft_wide old)
{
    double complex t, a, b;
    struct soft_wide x = amo->operand, y = amo->compare_with;
    if (amo->op == AMO_SWAP)
        return x;
    if (amo->type == AMO_UINT128)
        return y.low == old.low && y.high == old.high ? x : old;
    memcpy(&t, &old, sizeof t);
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    if (amo->op == AMO_CSWAP)
        return (b == t) == (amo->compare == AMO_EQ) ? x : old;
    t += a;
    memcpy(&old, &t, sizeof t);
    return old;
}

/* ---- putting it in place ---- */

/* A target that changes at every try is not waited for. */
enum { TRIES = 1000 };

/* One instruction where there is one: true if so, and the old value. */
#define DIRECT(width)                                                                              \
    static bool direct_##width(uint##width##_t *target, enum amo_op op, uint64_t x, uint64_t *old) \
    {                                                                                              \
        uint##width##_t operand = (uint##width##_t)x;                                              \
        switch (op) {                                                                              \
        case AMO_SUM:                                                                              \
            *old = __atomic_fetch_add(target, operand, __ATOMIC_SEQ_CST);                          \
            return true;                                                                           \
        case AMO_BOR:                                                                              \
            *old = __atomic_fetch_or(target, operand, __ATOMIC_SEQ_CST);                           \
            return true;                                                                           \
        case AMO_BAND:                                                                             \
            *old = __atomic_fetch_and(target, operand, __ATOMIC_SEQ_CST);                          \
            return true;                                                                           \
        case AMO_BXOR:                                                                             \
            *old = __atomic_fetch_xor(target, operand, __ATOMIC_SEQ_CST);                          \
            return true;                                                                           \
        case AMO_SWAP:                                                                             \
            *old = __atomic_exchange_n(target, operand, __ATOMIC_SEQ_CST);                         \
            return true;                                                                           \
        default:                                                                                   \
            return false;                                                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static int apply_##width(uint##width##_t *target, const struct soft_amo *amo, uint64_t *old)   \
    {                                                                                              \
        compute_function *compute = computes[amo->type];                                           \
        if ((amo->op == AMO_SWAP || amo->type <= AMO_UINT64) &&                                    \
            direct_##width(target, amo->op, amo->operand.low, old))                                \
            return 0;                                                                              \
        uint##width##_t now = __atomic_load_n(target, __ATOMIC_SEQ_CST), next;                     \
        for (int i = 0; i < TRIES; i++) {                                                          \
            next = (uint##width##_t)compute(amo, now, amo->operand.low, amo->compare_with.low);    \
            *old = now;                                                                            \
            if (__atomic_compare_exchange_n(target, &now, next, false, __ATOMIC_SEQ_CST,           \
                                            __ATOMIC_SEQ_CST))                                     \
                return 0;                                                                          \
        }                                                                                          \
        return -EAGAIN;                                                                            \
    }

DIRECT(8)
DIRECT(16)
DIRECT(32)
DIRECT(64)

/* 16 bytes at once: true if *now was there and next is in place; else *now is what is there. */
#if defined(__x86_64__)
bool soft_amo_wide(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_CMPXCHG16B;
}

/* Vendors of CPUs promise it for those that have AVX. */
bool soft_store_whole(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_AVX;
}

static bool swap_wide(struct soft_wide *target, struct soft_wide *now, struct soft_wide next)
{
    bool done;
    __asm__ volatile("lock cmpxchg16b %1\n\tsetz %0"
                     : "=q"(done), "+m"(*target), "+a"(now->low), "+d"(now->high)
                     : "b"(next.low), "c"(next.high)
                     : "memory", "cc");
    return done;
}
#elif defined(__aarch64__)
bool soft_amo_wide(void)
{
    return true;
}

bool soft_store_whole(void)
{
    return false;
}

static bool swap_wide(struct soft_wide *target, struct soft_wide *now, struct soft_wide next)
{
    struct soft_wide seen, put;
    uint32_t done;
    /* In one piece: what a compiler might store in between would end the exclusive access, for
     * ever. Storing back what was read shows that both halves were read at once. */
    __asm__ volatile(
        "1:\tldaxp %[seen_low], %[seen_high], %[target]\n\t"
        "cmp %[seen_low], %[now_low]\n\t"
        "ccmp %[seen_high], %[now_high], #0, eq\n\t"
        "csel %[put_low], %[next_low], %[seen_low], eq\n\t"
        "csel %[put_high], %[next_high], %[seen_high], eq\n\t"
        "stlxp %w[done], %[put_low], %[put_high], %[target]\n\t"
        "cbnz %w[done], 1b\n\t"
        "cset %w[done], eq"
        : [seen_low] "=&r"(seen.low), [seen_high] "=&r"(seen.high), [put_low] "=&r"(put.low),
          [put_high] "=&r"(put.high), [done] "=&r"(done), [target] "+Q"(*target)
        : [now_low] "r"(now->low), [now_high] "r"(now->high), [next_low] "r"(next.low),
          [next_high] "r"(next.high)
        : "memory", "cc");
    *now = seen;
    return done;
}
#else
bool soft_amo_wide(void)
{
    return false;
}

bool soft_store_whole(void)
{
    return false;
}

static bool swap_wide(struct soft_wide *target, struct soft_wide *now, struct soft_wide next)
{
    (void)target, (void)now, (void)next;
    return false;
}
#endif

static int apply_locked(struct soft_portal *portal, struct soft_wide *target,
                        const struct soft_amo *amo, struct soft_wide *old)
{
    uint32_t open = 0;
    if (!atomic_compare_exchange_strong(&portal->amo_lock, &open, 1))
        return -EAGAIN;
    *old = *target;
    *target = compute_wide(amo, *old);
    atomic_store(&portal->amo_lock, 0);
    return 0;
}

static int apply_wide(struct soft_portal *portal, struct soft_wide *target,
                      const struct soft_amo *amo, bool wide, struct soft_wide *old)
{
    if (!wide)
        return apply_locked(portal, target, amo, old);
    for (int i = 0; i < TRIES; i++)
        if (swap_wide(target, old, compute_wide(amo, *old)))
            return 0;
    return -EAGAIN;
}

int soft_amo_apply(struct soft_portal *portal, void *target, const struct soft_amo *amo, bool wide,
                   struct soft_wide *old)
{
    *old = (struct soft_wide){0, 0};
    switch (amo_size(amo->type)) {
    case 1:
        return apply_8(target, amo, &old->low);
    case 2:
        return apply_16(target, amo, &old->low);
    case 4:
        return apply_32(target, amo, &old->low);
    case 8:
        return apply_64(target, amo, &old->low);
    default:
        return apply_wide(portal, target, amo, wide, old);
    }
}
