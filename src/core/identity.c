/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifiers: of this machine and of its network namespace, equal for two processes on one
 * machine; and random digits, different in every run. */
#include "core/core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void host_id(char *id, size_t room)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    id[0] = '\0';
    if (!file)
        return;
    if (!fgets(id, (int)room, file))
        id[0] = '\0';
    fclose(file);
    id[strcspn(id, "\n")] = '\0';
}

void host_network(char *id, size_t room)
{
    ssize_t length = readlink("/proc/self/ns/net", id, room - 1);
    id[length > 0 ? length : 0] = '\0';
}

int random_digits(char *text, size_t room)
{
    unsigned char bytes[64];
    size_t wanted = (room - 1) / 2 < sizeof bytes ? (room - 1) / 2 : sizeof bytes;
    if (getrandom(bytes, wanted, 0) != (ssize_t)wanted)
        return fail(-errno, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < wanted; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int random_word(uint64_t *word)
{
    do {
        if (getrandom(word, sizeof *word, 0) != sizeof *word)
            return fail(-errno, "no random bytes: %s", strerror(errno));
    } while (!*word);
    return 0;
}

/* splitmix64. */
uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}
