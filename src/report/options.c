/* SPDX-License-Identifier: BSD-3-Clause */
/* Options in a document: an object by name, each with a typed value and what decided it. */
#include "core/opt.h"
#include "report/report.h"

#include <string.h>

enum { VALUE = 4096 };

static void add_value(struct json *j, const struct opt *row, const char *text)
{
    enum opt_type type = opt_whole(row).type;
    bool counts =
        type == OPT_NUMBER || type == OPT_AMOUNT || type == OPT_AMOUNTS || type == OPT_INDEX;
    uint64_t number;
    if (type == OPT_FLAG)
        json_bool(j, "value", *text == '1');
    else if (counts && !unit_number(text, &number))
        json_count(j, "value", number);
    else
        json_text(j, "value", *text ? text : NULL);
}

static void add_option(struct json *j, const struct opt_set *set, const struct opt *row,
                       const char *value, bool batch)
{
    static const char *const origins[] = {[OPT_BY_DEFAULT] = "default",
                                          [OPT_BY_USER] = "user",
                                          [OPT_BY_PEER] = "peer",
                                          [OPT_BY_OPTION] = "resolved"};
    enum opt_origin origin = opt_origin(set, row);
    json_open(j, row->name, '{');
    add_value(j, row, value);
    json_text(j, "origin", batch && origin != OPT_BY_OPTION ? "batch" : origins[origin]);
    if (origin == OPT_BY_OPTION)
        json_text(j, "by", set->cause[row - set->rows]);
    json_close(j, '}');
}

void options_write(struct json *j, const struct opt_set *set, const struct opt_set *but)
{
    json_open(j, "options", '{');
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char value[VALUE], other[VALUE];
        if (row->type == OPT_LINE || row->flags & OPT_ACTION)
            continue;
        opt_format(row, set->base, value, sizeof value);
        if (but)
            opt_format(row, but->base, other, sizeof other);
        if (!but || strcmp(value, other) != 0)
            add_option(j, set, row, value, but);
    }
    json_close(j, '}');
}
