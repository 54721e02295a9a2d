/* SPDX-License-Identifier: BSD-3-Clause */
/* Option rows as lines "name=value" between two ends: received values are checked like typed ones.
 * And rows that were decided elsewhere, by the other end or by another option. */
#include "core/core.h"
#include "core/opt.h"

#include <errno.h>
#include <string.h>

int opt_encode(const struct opt_set *set, struct msg *text)
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char value[512];
        if (!(row->flags & OPT_SHARED))
            continue;
        opt_format(row, set->base, value, sizeof value);
        int status = value[0] ? msg_add(text, "%s=%s\n", row->name, value) : 0;
        if (status)
            return status;
    }
    return 0;
}

/* A line without a row would be an option that is silently ignored. */
static int all_known(const struct opt_set *set, const struct msg *text)
{
    for (size_t at = 0, length; at < text->length; at += length + 1) {
        char name[64];
        const char *line = text->bytes + at;
        const char *end = memchr(line, '\n', text->length - at);
        length = end ? (size_t)(end - line) : text->length - at;
        if (!length || *line == '.')
            continue;
        const char *equals = memchr(line, '=', length);
        size_t name_length = equals ? (size_t)(equals - line) : length;
        if (name_length >= sizeof name)
            name_length = sizeof name - 1;
        memcpy(name, line, name_length);
        name[name_length] = '\0';
        const struct opt *row = name_length > 1 ? opt_find(set, name) : NULL;
        if (!row || !(row->flags & OPT_SHARED))
            return fail(-EINVAL, "%s is not known here: another version of Weft?", name);
    }
    return 0;
}

int opt_decode(struct opt_set *set, const struct msg *text)
{
    int known = memchr(text->bytes, '\0', text->length)
                    ? fail(-EINVAL, "options with a NUL in them")
                    : all_known(set, text);
    if (known)
        return known;
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char value[512];
        if (!(row->flags & OPT_SHARED))
            continue;
        int status = msg_value(text, row->name, value, sizeof value);
        /* What has a value whatever is typed always has a line. */
        if (status == -ENOENT && (row->fallback || row->type == OPT_FLAG))
            return fail(-EINVAL, "%s is missing: another version of Weft?", row->name);
        if (status == -ENOENT) {
            /* What the client left open is open here too. */
            opt_clear(set, row, OPT_BY_PEER);
        } else if (status || opt_assign(set, row, value, OPT_BY_PEER)) {
            return -EINVAL;
        }
    }
    return 0;
}

void opt_adopt(struct opt_set *set, const void *before,
               void (*overridden)(const struct opt *row, const char *was, const char *now))
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char was[512], now[512];
        if (!row->of || !(row->of->flags & OPT_SHARED))
            continue;
        opt_format(row, before, was, sizeof was);
        opt_format(row, set->base, now, sizeof now);
        if (opt_origin(set, row) == OPT_BY_USER && overridden && strcmp(was, now) != 0)
            overridden(row, was, now);
        set->origin[row - set->rows] = OPT_BY_PEER;
    }
}

void opt_resolved(struct opt_set *set, const char *name, const char *cause)
{
    const struct opt *row = opt_find(set, name);
    if (!row)
        return;
    set->origin[row - set->rows] = OPT_BY_OPTION;
    set->cause[row - set->rows] = cause;
}
