/* SPDX-License-Identifier: BSD-3-Clause */
/* Option rows: from text to fields and back. Every value goes through opt_assign, whether it
 * was typed, defaulted, part of a device name or sent by the other end. */
#include "core/opt.h"
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool last(const struct opt *row)
{
    return !row->name && !row->label;
}

const struct opt *opt_next(const struct opt_set *set, const struct opt *row)
{
    row = row ? row + 1 : set->rows;
    while (!last(row) && set->takes && row->takes && !(row->takes & set->takes))
        row++;
    return last(row) ? NULL : row;
}

const struct opt *opt_find(const struct opt_set *set, const char *name)
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        if (row->name && strcmp(row->name, name) == 0)
            return row;
        if (row->letter && row->letter == name[0] && name[1] == '\0')
            return row;
    }
    return NULL;
}

enum opt_origin opt_origin(const struct opt_set *set, const struct opt *row)
{
    return set->origin[row - set->rows];
}

struct opt opt_whole(const struct opt *row)
{
    struct opt whole = *row;
    const struct opt *of = row->of;
    if (!of)
        return whole;
    whole.field = of->field;
    whole.type = row->type ? row->type : of->type;
    whole.choices = row->choices ? row->choices : of->choices;
    if (!row->max) {
        whole.min = of->min;
        whole.max = of->max;
    }
    return whole;
}

/* ---- values ---- */

/* A value in the words of the tool that ours is like, and the rest. */
static int refused(const struct opt *row, const char *value, const char *rest)
{
    static const char mark[] = "{value}";
    const char *at = strstr(row->refusal, mark);
    return fail(-EINVAL, "%.*s%s%s (%s)", (int)(at - row->refusal), row->refusal, value,
                at + strlen(mark), rest);
}

/* Every error message about a bad value ends with what is accepted. */
static int bad(const struct opt *row, const char *what, const char *value, const char *format, ...)
{
    char accepted[512];
    va_list words;
    va_start(words, format);
    vsnprintf(accepted, sizeof accepted, format, words);
    va_end(words);
    if (row->refusal) {
        char rest[sizeof accepted + 64];
        snprintf(rest, sizeof rest, "--%s %s; %s", row->name, what, accepted);
        return refused(row, value, rest);
    }
    return fail(-EINVAL, "%s%s %s: \"%s\" (%s)", row->flags & OPT_SETTING ? "" : "--", row->name,
                what, value, accepted);
}

static int to_number(const struct opt *row, const char *text, uint64_t *number)
{
    bool amount = row->type == OPT_AMOUNT || row->type == OPT_AMOUNTS;
    const char *accepted =
        amount ? "accepted: %llu to %llu, with K, M or G for 1024s" : "accepted: %llu to %llu";
    if (amount ? unit_bytes(text, number) : unit_number(text, number))
        return bad(row, "is not a whole number", text, accepted, (unsigned long long)row->min,
                   (unsigned long long)row->max);
    if (*number < row->min || *number > row->max)
        return bad(row, "is out of range", text, accepted, (unsigned long long)row->min,
                   (unsigned long long)row->max);
    return 0;
}

static int to_pair(const struct opt *row, const char *text, int64_t pair[2])
{
    char part[2][24] = {"", ""};
    const char *comma = strchr(text, ',');
    size_t first = comma ? (size_t)(comma - text) : strlen(text);
    uint64_t value[2] = {0, 0};
    for (int i = 0; row->choices && row->choices[i]; i++)
        if (strcasecmp(text, row->choices[i]) == 0) {
            pair[0] = OPT_WORD - i;
            pair[1] = -1;
            return 0;
        }
    if (first >= sizeof part[0] || (comma && strlen(comma + 1) >= sizeof part[1]))
        return bad(row, "is not A or A,B", text, "whole numbers up to %llu",
                   (unsigned long long)row->max);
    memcpy(part[0], text, first);
    if (comma)
        memcpy(part[1], comma + 1, strlen(comma + 1) + 1);
    for (int i = 0; i < (comma ? 2 : 1); i++)
        if (unit_number(part[i], &value[i]) || value[i] > row->max)
            return bad(row, "is not A or A,B", text, "whole numbers up to %llu",
                       (unsigned long long)row->max);
    pair[0] = (int64_t)value[0];
    pair[1] = comma ? (int64_t)value[1] : -1;
    return 0;
}

static int to_amounts(const struct opt *row, const char *text, struct opt_amounts *amounts)
{
    struct opt_amounts found = {0};
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char part[32];
        uint64_t amount, times = 1;
        size_t length = strcspn(at, ",");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        char *colon = strchr(part, ':');
        if (colon)
            *colon++ = '\0';
        int status = to_number(row, length < sizeof part ? part : text, &amount);
        if (status)
            return status;
        if ((colon && unit_number(colon, &times)) || !times ||
            times > OPT_AMOUNTS_MOST - found.count)
            return bad(row, "has too many parts", text, "accepted: 1 to %d, as A,B or A:N",
                       OPT_AMOUNTS_MOST);
        while (times--)
            found.list[found.count++] = amount;
    }
    *amounts = found;
    return 0;
}

static bool power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

static int to_sizes(const struct opt *row, const char *text, struct opt_range *range)
{
    char low[32];
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    uint64_t min, max;
    static const char accepted[] = "accepted: %llu to %llu, with K, M or G; a range is MIN:MAX";
    if (length >= sizeof low)
        return bad(row, "is not a size", text, accepted, (unsigned long long)row->min,
                   (unsigned long long)row->max);
    memcpy(low, text, length);
    low[length] = '\0';
    if (unit_bytes(low, &min) || (max = min, colon && unit_bytes(colon + 1, &max)))
        return bad(row, "is not a size", text, accepted, (unsigned long long)row->min,
                   (unsigned long long)row->max);
    if (min < row->min || max > row->max || min > row->max)
        return bad(row, "is out of range", text, accepted, (unsigned long long)row->min,
                   (unsigned long long)row->max);
    if (min > max)
        return bad(row, "has its minimum above its maximum", text, "MIN:MAX");
    bool powers = !colon || (power_of_two(min) && power_of_two(max));
    if (!powers && row->refusal)
        return refused(row, text, "ranges must be powers of 2");
    if (!powers)
        return bad(row, "needs powers of two at both ends of a range", text, "such as 1:8192");
    *range = (struct opt_range){min, max};
    return 0;
}

static int to_choice(const struct opt *row, const char *text, int *choice)
{
    char all[400] = "";
    const char *nearest = NULL;
    unsigned best = 3;
    for (int i = 0; row->choices[i]; i++) {
        unsigned far = word_distance(text, row->choices[i], 2);
        if (far < best) {
            best = far;
            nearest = row->choices[i];
        }
        if (strcasecmp(text, row->choices[i]) == 0) {
            *choice = i + 1;
            return 0;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "",
                 row->choices[i]);
    }
    if (nearest && best)
        return bad(row, "is not known", text, "did you mean %s? accepted: %s", nearest, all);
    return bad(row, "is not known", text, "accepted: %s", all);
}

static int to_text(const struct opt *row, const char *text, char *field)
{
    size_t length = strlen(text), room = row->max;
    if (!length)
        return bad(row, "is empty", text, "accepted: a %s", row->word);
    if (length >= row->max)
        return bad(row, "is too long", text, "accepted: up to %llu characters",
                   (unsigned long long)row->max - 1);
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return bad(row, "has a control character", text, "accepted: printable text");
    if (row->flags & OPT_REPEATS && *field) {
        size_t before = strlen(field);
        if (before + 1 + length >= row->max)
            return bad(row, "is given too often", text, "accepted: %llu characters in all",
                       (unsigned long long)row->max - 1);
        field[before] = '\n';
        field += before + 1;
        room -= before + 1;
    }
    /* Two that are the same are the same to the last byte. */
    memset(field, 0, room);
    memcpy(field, text, length + 1);
    return 0;
}

static uint64_t scale_of(const struct opt *row)
{
    return row->scale ? row->scale : 1;
}

static int to_field(const struct opt *row, void *field, const char *text)
{
    uint64_t number;
    int status = 0;
    switch (row->type) {
    case OPT_FLAG:
        if (strcmp(text, "1") != 0 && strcmp(text, "0") != 0)
            return bad(row, "takes no value", text, "accepted: nothing");
        *(bool *)field = text[0] == '1';
        break;
    case OPT_NUMBER:
    case OPT_AMOUNT:
        status = to_number(row, text, &number);
        if (!status && number > UINT64_MAX / scale_of(row))
            return bad(row, "is out of range", text, "accepted: up to %llu",
                       (unsigned long long)(UINT64_MAX / scale_of(row)));
        if (!status)
            *(uint64_t *)field = number * scale_of(row);
        break;
    case OPT_INDEX:
        status = to_number(row, text, &number);
        if (!status)
            *(int64_t *)field = (int64_t)number;
        break;
    case OPT_PAIR:
        return to_pair(row, text, field);
    case OPT_SIZES:
        return to_sizes(row, text, field);
    case OPT_AMOUNTS:
        return to_amounts(row, text, field);
    case OPT_TIME:
        if (unit_time(text, &number))
            return bad(row, "is not a time", text, "such as 500ns, 2us, 1ms");
        *(uint64_t *)field = number;
        break;
    case OPT_CHOICE:
        return to_choice(row, text, field);
    case OPT_TEXT:
        return to_text(row, text, field);
    case OPT_LINE:
    case OPT_SAME:
        break;
    }
    return status;
}

int opt_assign(struct opt_set *set, const struct opt *row, const char *text, enum opt_origin origin)
{
    struct opt whole = opt_whole(row);
    int status = to_field(&whole, (char *)set->base + whole.field, text);
    if (!status)
        set->origin[row - set->rows] = (uint8_t)origin;
    return status;
}

static void to_nothing(const struct opt *row, void *field)
{
    switch (row->type) {
    case OPT_FLAG:
        *(bool *)field = false;
        break;
    case OPT_NUMBER:
    case OPT_AMOUNT:
    case OPT_TIME:
        *(uint64_t *)field = 0;
        break;
    case OPT_INDEX:
        *(int64_t *)field = -1;
        break;
    case OPT_PAIR:
        ((int64_t *)field)[0] = ((int64_t *)field)[1] = -1;
        break;
    case OPT_SIZES:
        *(struct opt_range *)field = (struct opt_range){0, 0};
        break;
    case OPT_AMOUNTS:
        *(struct opt_amounts *)field = (struct opt_amounts){0};
        break;
    case OPT_CHOICE:
        *(int *)field = 0;
        break;
    case OPT_TEXT:
        memset(field, 0, row->max);
        break;
    case OPT_LINE:
    case OPT_SAME:
        break;
    }
}

void opt_clear(struct opt_set *set, const struct opt *row, enum opt_origin origin)
{
    struct opt whole = opt_whole(row);
    to_nothing(&whole, (char *)set->base + whole.field);
    set->origin[row - set->rows] = (uint8_t)origin;
}

static void to_default(struct opt_set *set, const struct opt *row)
{
    opt_clear(set, row, OPT_BY_DEFAULT);
    if (row->fallback)
        opt_assign(set, row, row->fallback, OPT_BY_DEFAULT);
}

void opt_defaults(struct opt_set *set)
{
    for (const struct opt *row = set->rows; !last(row); row++)
        if (row->type != OPT_LINE)
            to_default(set, row);
    /* Of two rows with one field, the one that the set has counts. */
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
        if (row->type != OPT_LINE)
            to_default(set, row);
}

static void format_amounts(const struct opt_amounts *amounts, char *text, size_t room)
{
    size_t used = 0;
    for (uint64_t i = 0; i < amounts->count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%llu", i ? "," : "",
                                 (unsigned long long)amounts->list[i]);
}

void opt_format(const struct opt *given, const void *base, char *text, size_t room)
{
    struct opt whole = opt_whole(given), *row = &whole;
    const void *field = (const char *)base + row->field;
    const int64_t *pair = field;
    const struct opt_range *range = field;
    int choice;
    text[0] = '\0';
    switch (row->type) {
    case OPT_FLAG:
        snprintf(text, room, "%d", *(const bool *)field);
        break;
    case OPT_NUMBER:
    case OPT_AMOUNT:
        if (*(const uint64_t *)field || row->fallback)
            snprintf(text, room, "%llu",
                     (unsigned long long)(*(const uint64_t *)field / scale_of(row)));
        break;
    case OPT_INDEX:
        if (pair[0] >= 0)
            snprintf(text, room, "%lld", (long long)pair[0]);
        break;
    case OPT_PAIR:
        if (pair[1] >= 0)
            snprintf(text, room, "%lld,%lld", (long long)pair[0], (long long)pair[1]);
        else if (pair[0] >= 0)
            snprintf(text, room, "%lld", (long long)pair[0]);
        else if (pair[0] <= OPT_WORD)
            snprintf(text, room, "%s", row->choices[OPT_WORD - pair[0]]);
        break;
    case OPT_SIZES:
        if (range->min == range->max)
            snprintf(text, room, "%llu", (unsigned long long)range->min);
        else
            snprintf(text, room, "%llu:%llu", (unsigned long long)range->min,
                     (unsigned long long)range->max);
        break;
    case OPT_AMOUNTS:
        format_amounts(field, text, room);
        break;
    case OPT_TIME:
        snprintf(text, room, "%llups", (unsigned long long)*(const uint64_t *)field);
        break;
    case OPT_CHOICE:
        choice = *(const int *)field;
        if (choice)
            snprintf(text, room, "%s", row->choices[choice - 1]);
        break;
    case OPT_TEXT:
        snprintf(text, room, "%s", (const char *)field);
        break;
    case OPT_LINE:
    case OPT_SAME:
        break;
    }
}

const char *opt_choice_name(const struct opt *row, int choice)
{
    struct opt whole = opt_whole(row);
    return choice ? whole.choices[choice - 1] : NULL;
}
