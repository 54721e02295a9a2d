/* SPDX-License-Identifier: BSD-3-Clause */
/* The one error idiom: a status travels up, its sentence waits here, one a thread. */
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char reason[1024];
static void (*warn_sink)(const char *sentence);

int fail(int status, const char *format, ...)
{
    /* A sentence may quote the one before it. */
    char sentence[sizeof reason];
    va_list words;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    memcpy(reason, sentence, sizeof reason);
    return status;
}

const char *fail_reason(void)
{
    return reason;
}

void warn(const char *format, ...)
{
    char sentence[sizeof reason];
    if (!warn_sink)
        return;
    va_list words;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    warn_sink(sentence);
}

void warn_to(void (*sink)(const char *sentence))
{
    warn_sink = sink;
}
