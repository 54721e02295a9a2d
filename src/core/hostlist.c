/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts as Slurm and others write them: "n[08-10,12],other". Numbers keep their zeros. */
#include "core/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 9 };

/* One item: before, a range's number if there are brackets, after. */
struct item {
    const char *at;    /* of the item */
    size_t length;     /* of all of it */
    const char *open;  /* its bracket; NULL: it has none */
    const char *close; /* and where that ends */
};

static int bad(const char *list)
{
    return fail(-EINVAL, "\"%.200s\" is not a list of hosts such as n[0-15],other", list);
}

static int read_item(const char *list, const char *at, struct item *item)
{
    *item = (struct item){.at = at};
    const char *p = at;
    for (; *p && (*p != ',' || (item->open && !item->close)); p++) {
        if (*p == '[') {
            if (item->open)
                return bad(list);
            item->open = p;
        } else if (*p == ']') {
            if (!item->open || item->close || p == item->open + 1)
                return bad(list);
            item->close = p;
        }
    }
    item->length = (size_t)(p - at);
    return !item->length || (item->open && !item->close) ? bad(list) : 0;
}

/* A number and how many digits it has. */
static int read_digits(const char **at, unsigned long *number, int *digits)
{
    size_t length = strspn(*at, "0123456789");
    char text[DIGITS_MAX + 1] = "";
    if (!length || length > DIGITS_MAX)
        return -EINVAL;
    memcpy(text, *at, length);
    *number = strtoul(text, NULL, 10);
    *digits = (int)length;
    *at += length;
    return 0;
}

/* Takes *left names off; 1 with the name if it is among those of this item, 0 if it is not. */
static int in_item(const char *list, const struct item *item, uint64_t *left, char *name,
                   size_t room)
{
    int length = -1;
    if (!item->open) {
        if ((*left)-- > 0)
            return 0;
        length = snprintf(name, room, "%.*s", (int)item->length, item->at);
    }
    for (const char *p = item->open ? item->open + 1 : NULL; length < 0 && p;) {
        unsigned long from = 0, to = 0;
        int digits = 0, more = 0;
        if (read_digits(&p, &from, &digits))
            return bad(list);
        to = from;
        if (*p == '-' && (p++, read_digits(&p, &to, &more)))
            return bad(list);
        if (to < from || (*p != ',' && p != item->close))
            return bad(list);
        if (*left <= to - from) {
            length = snprintf(name, room, "%.*s%0*lu%.*s", (int)(item->open - item->at), item->at,
                              digits, from + *left,
                              (int)(item->at + item->length - item->close - 1), item->close + 1);
            break;
        }
        *left -= to - from + 1;
        p = p == item->close ? NULL : p + 1;
    }
    if (length < 0)
        return 0;
    return (size_t)length < room ? 1 : fail(-EINVAL, "a host's name is too long: %.60s", name);
}

int hostlist_name(const char *list, uint32_t number, char *name, size_t room)
{
    uint64_t left = number;
    struct item item;
    for (const char *at = list;; at += item.length + 1) {
        int status = read_item(list, at, &item);
        if (!status)
            status = in_item(list, &item, &left, name, room);
        if (status)
            return status < 0 ? status : 0;
        if (!at[item.length])
            return -ENOENT;
    }
}

int hostlist_count(const char *list, uint32_t most, uint32_t *count)
{
    char name[256];
    int status = 0;
    for (*count = 0; *count <= most && !(status = hostlist_name(list, *count, name, sizeof name));)
        ++*count;
    if (*count > most)
        return fail(-EINVAL, "\"%.200s\" has more than %u hosts", list, most);
    return status == -ENOENT ? 0 : status;
}
