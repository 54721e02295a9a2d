/* SPDX-License-Identifier: BSD-3-Clause */
/* The one error idiom: the status is returned, its message is kept here, one per thread. */
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char reason[1024];
static void (*warn_sink)(const char *sentence);

/* Text from the other end or the command line must not reach a terminal as control sequences. */
static void disarm(char *sentence)
{
    for (char *at = sentence; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
}

int fail(int status, const char *format, ...)
{
    /* A message may quote the previous one. */
    char sentence[sizeof reason];
    va_list words;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    disarm(sentence);
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
    disarm(sentence);
    warn_sink(sentence);
}

void warn_to(void (*sink)(const char *sentence))
{
    warn_sink = sink;
}
