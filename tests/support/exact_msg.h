/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEFT_TEST_EXACT_MSG_H
#define WEFT_TEST_EXACT_MSG_H

#include "core/core.h"
#include "support/unit.h"

#include <stdlib.h>

/* A msg that ends where its length says, so that the sanitizer sees a step beyond. */
static inline struct msg *exact_msg(const void *bytes, size_t length)
{
    char *msg = malloc(offsetof(struct msg, bytes) + length);
    assert_non_null(msg);
    memcpy(msg + offsetof(struct msg, length), &length, sizeof length);
    memcpy(msg + offsetof(struct msg, bytes), bytes, length);
    return (struct msg *)(void *)msg;
}

#endif
