/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside fabric, also for modules: the key of a region as the other end gets it, and the mark by
 * which memory that both ends have mapped says that its key is no longer good. */
#ifndef WEFT_FABRIC_KEY_H
#define WEFT_FABRIC_KEY_H

#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { KEY_LINE = 64 };

struct key {
    uint64_t base, length, key, entry, mark;
};

/* The mark follows the bytes that were asked for, in a line of its own. */
static inline size_t key_mark_at(size_t length)
{
    return (length + KEY_LINE - 1) / KEY_LINE * KEY_LINE;
}

/* One that was never used before, if there is none yet. */
static inline int key_renew(const struct fabric_host *host, uint64_t *key)
{
    int status = 0;
    while (!*key && !status)
        status = host->random_word(key);
    return status;
}

static inline int key_print(const struct fabric_host *host, struct msg *msg, const struct key *key)
{
    return host->msg_print(msg,
                           "base=0x%" PRIx64 "\nlength=%" PRIu64 "\nkey=0x%" PRIx64
                           "\nentry=%" PRIu64 "\nmark=%" PRIu64 "\n",
                           key->base, key->length, key->key, key->entry, key->mark);
}

/* The other end's, if it makes sense; fabric is the name of the one that asks. */
static inline int key_read(const struct fabric_host *host, const char *fabric,
                           const struct msg *msg, uint64_t entries, struct key *key)
{
    const struct {
        const char *name;
        uint64_t *number;
    } parts[] = {{"base", &key->base},
                 {"length", &key->length},
                 {"key", &key->key},
                 {"entry", &key->entry},
                 {"mark", &key->mark}};
    for (size_t i = 0; i < LENGTH(parts); i++) {
        int status = host->msg_number(msg, parts[i].name, parts[i].number);
        if (status)
            return status;
    }
    if (key->entry >= entries || !key->key || key->length > UINT64_MAX - key->base ||
        key->length > SIZE_MAX - (size_t)2 * KEY_LINE)
        return host->fail(-EPROTO, "%s: the other end's key makes no sense", fabric);
    return 0;
}

/* Reads a word where there may be none: the kernel looks, and says so. */
static inline bool key_word_at(const volatile uint64_t *address, uint64_t *word)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it came as a number, and is looked at as one. */
    bool read_it = write(ends[1], (const void *)(uintptr_t)address, sizeof *word) == sizeof *word &&
                   read(ends[0], word, sizeof *word) == sizeof *word;
    close(ends[0]);
    close(ends[1]);
    return read_it;
}

/* The mark of memory of the other end's that is mapped here. Both its ends are there, or what the
 * other end said of it is not true. */
static inline int key_find_mark(const struct fabric_host *host, const char *fabric, void *mapped,
                                const struct key *key, const volatile uint64_t **mark)
{
    uint64_t first, found = 0;
    *mark = (const volatile uint64_t *)(void *)((char *)mapped + key_mark_at((size_t)key->length));
    if (key_word_at(mapped, &first) && key_word_at(*mark, &found) && found == key->key)
        return 0;
    return host->fail(-EPROTO, "%s: the other end's memory is not what its key says", fabric);
}

#endif
