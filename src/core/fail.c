/* SPDX-License-Identifier: BSD-3-Clause */
/* The one error idiom: the status is returned, its message is kept here, one per thread. */
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char reason[1024];
static void (*warn_sink)(const char *sentence);
static _Thread_local bool muted;

int fail(int status, const char *format, ...)
{
    /* A message may quote the previous one. */
    char sentence[sizeof reason];
    va_list words;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    text_clean(sentence);
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
    if (!warn_sink || muted)
        return;
    va_list words;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    text_clean(sentence);
    warn_sink(sentence);
}

void warn_mute(void)
{
    muted = true;
}

void warn_to(void (*sink)(const char *sentence))
{
    warn_sink = sink;
}
