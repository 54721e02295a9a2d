/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of one process use each other's memory in place. That they are of one process is known
 * from a list in this process's memory, never from the socket between them: a process id may be
 * used again, or mean another process in another namespace. */
#include "fabric/soft/soft.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_own *first;

void soft_own_list(const struct soft *soft, const char *nonce)
{
    struct soft_own *own = soft->own;
    snprintf(own->nonce, sizeof own->nonce, "%s", nonce);
    own->name = soft->nic.name;
    own->other = soft->link.theirs;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (soft->keys[i]) {
            own->entries[i].key = soft->keys[i];
            own->entries[i].region = *soft->exposed[i];
        }
    pthread_mutex_lock(&lock);
    own->next = first;
    first = own;
    pthread_mutex_unlock(&lock);
}

struct soft_own *soft_own_find(const struct soft *soft, const char *nonce)
{
    pthread_mutex_lock(&lock);
    struct soft_own *own = first;
    while (own &&
           (soft_name_order(&own->name, &soft->link.theirs) != 0 ||
            soft_name_order(&own->other, &soft->nic.name) != 0 || strcmp(own->nonce, nonce) != 0))
        own = own->next;
    if (own)
        own->holders++;
    pthread_mutex_unlock(&lock);
    return own;
}

const struct region *soft_own_region(const struct soft_own *own, uint64_t key)
{
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (key && own->entries[i].key == key)
            return &own->entries[i].region;
    return NULL;
}

void soft_own_unlist(struct soft_own *own)
{
    pthread_mutex_lock(&lock);
    for (struct soft_own **at = &first; *at; at = &(*at)->next)
        if (*at == own) {
            *at = own->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void soft_own_release(struct soft_own *own)
{
    pthread_mutex_lock(&lock);
    bool last = --own->holders == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    memory_host.free(&own->portal);
    free(own);
}
