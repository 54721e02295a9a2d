/* SPDX-License-Identifier: BSD-3-Clause */
/* Option rows from a command line, and from the tail of a device name. */
#include "core/core.h"
#include "core/opt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void unknown(const struct opt_set *set, const char *name)
{
    const struct opt *nearest = NULL;
    unsigned best = 3;
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        if (!row->name)
            continue;
        unsigned far = word_distance(name, row->name, 2);
        if (far < best) {
            best = far;
            nearest = row;
        }
    }
    if (nearest)
        fail(-EINVAL, "unknown option: --%s (did you mean --%s? --help lists all)", name,
             nearest->name);
    else
        fail(-EINVAL, "unknown option: --%s (--help lists all)", name);
}

/* The row of that name, or the only one whose name begins so; NULL and a sentence if there is none.
 * One letter is no beginning: --n is -n mistyped, and must not become --numeric. */
static const struct opt *find_long(const struct opt_set *set, const char *name)
{
    bool whole = name[0] && name[1];
    const struct opt *row = whole ? opt_find(set, name) : NULL, *found = NULL;
    char all[400] = "";
    size_t used = 0;
    unsigned count = 0;
    if (row)
        return row;
    for (row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        if (!whole || !row->name || strncmp(row->name, name, strlen(name)) != 0)
            continue;
        found = row;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s--%s", count ? ", " : "",
                                     row->name);
        count++;
    }
    if (count > 1)
        fail(-EINVAL, "--%s may be %s: write more of it", name, all);
    else if (!count)
        unknown(set, name);
    return count == 1 ? found : NULL;
}

static int long_option(struct opt_set *set, const char *word, const char *next, int *used)
{
    char name[64];
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    if (length >= sizeof name)
        length = sizeof name - 1;
    memcpy(name, word, length);
    name[length] = '\0';
    const struct opt *row = find_long(set, name);
    if (!row)
        return -EINVAL;
    if (opt_whole(row).type == OPT_FLAG) {
        if (value)
            return fail(-EINVAL, "--%s takes no value: \"%s\"", row->name, value + 1);
        return opt_assign(set, row, "1", OPT_BY_USER);
    }
    if (row->bare && (!value || !value[1]))
        return opt_assign(set, row, row->bare, OPT_BY_USER);
    if (value)
        return opt_assign(set, row, value + 1, OPT_BY_USER);
    if (!next)
        return fail(-EINVAL, "--%s needs a value: %s", row->name, row->word);
    *used = 1;
    return opt_assign(set, row, next, OPT_BY_USER);
}

/* -n5, -n 5, and flags together: -hV. */
static int short_options(struct opt_set *set, const char *word, const char *next, int *used)
{
    for (; *word; word++) {
        char letter[2] = {*word, '\0'};
        const struct opt *row = opt_find(set, letter);
        if (!row)
            return fail(-EINVAL, "unknown option: -%s (--help lists all)", letter);
        if (opt_whole(row).type == OPT_FLAG) {
            int status = opt_assign(set, row, "1", OPT_BY_USER);
            if (status)
                return status;
            continue;
        }
        if (word[1])
            return opt_assign(set, row, word + 1, OPT_BY_USER);
        if (row->bare)
            return opt_assign(set, row, row->bare, OPT_BY_USER);
        if (!next)
            return fail(-EINVAL, "-%s (--%s) needs a value: %s", letter, row->name, row->word);
        *used = 1;
        return opt_assign(set, row, next, OPT_BY_USER);
    }
    return 0;
}

int opt_parse(struct opt_set *set, int argc, char *const *argv, const char **places, int room,
              int *given)
{
    bool options = true;
    const char *extra = NULL;
    *given = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        int status = 0, used = 0;
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && strncmp(word, "--", 2) == 0) {
            status = long_option(set, word + 2, next, &used);
        } else if (options && word[0] == '-' && word[1]) {
            status = short_options(set, word + 1, next, &used);
        } else if (*given == room) {
            extra = extra ? extra : word;
        } else {
            places[(*given)++] = word;
        }
        if (status)
            return status;
        i += used;
    }
    if (extra && room)
        return fail(-EINVAL, "Unexpected argument: %s (\"%s\" was given before)", extra,
                    places[room - 1]);
    return extra ? fail(-EINVAL, "Unexpected argument: %s", extra) : 0;
}

int opt_parse_list(struct opt_set *set, const char *text)
{
    char copy[256], *rest = NULL;
    if (strlen(text) >= sizeof copy)
        return fail(-EINVAL, "a list of settings of more than %zu characters", sizeof copy - 1);
    memcpy(copy, text, strlen(text) + 1);
    if (strstr(text, ",,") || *text == ',' || (*text && text[strlen(text) - 1] == ','))
        return fail(-EINVAL, "an empty setting: \"%s\"", text);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (value)
            *value++ = '\0';
        const struct opt *row = item[0] && item[1] ? opt_find(set, item) : NULL;
        if (!row)
            return fail(-EINVAL, "unknown setting: \"%s\"", item);
        int status = opt_assign(set, row, value ? value : "", OPT_BY_USER);
        if (status)
            return status;
    }
    return 0;
}
