/* SPDX-License-Identifier: BSD-3-Clause */
/* Option rows as help text. */
#include "core/core.h"
#include "core/opt.h"

#include <stdio.h>
#include <string.h>

void opt_expand(const struct opt *row, const char *template, const struct opt_words *words,
                char *text, size_t room)
{
    const struct {
        const char *mark, *text;
    } marks[] = {{"{default}", row->fallback},
                 {"{Op}", words ? words->Op : ""},
                 {"{ops}", words ? words->ops : ""}};
    size_t used = 0;
    while (*template && used + 1 < room) {
        size_t i = 0;
        while (i < LENGTH(marks) && strncmp(template, marks[i].mark, strlen(marks[i].mark)) != 0)
            i++;
        if (i == LENGTH(marks)) {
            text[used++] = *template ++;
            continue;
        }
        template += strlen(marks[i].mark);
        for (const char *at = marks[i].text ? marks[i].text : ""; *at && used + 1 < room; at++)
            text[used++] = *at;
    }
    text[used] = '\0';
}

enum { HELP_COLUMN = 26 };

static int help_row(const struct opt *row, const struct opt_words *words, struct msg *text)
{
    char left[64], help[1024], letter[8] = "    ";
    int column = words && words->column ? words->column : HELP_COLUMN;
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    bool word = row->word && !(row->flags & OPT_BARE);
    snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, row->name,
             row->bare ? "[="
             : word    ? "="
                       : "",
             word ? row->word : "", row->bare ? "]" : "");
    opt_expand(row, row->help, words, help, sizeof help);
    /* A left part that is too long gets a line of its own. */
    bool beside = strlen(left) + 1 < (size_t)column;
    int status =
        beside ? msg_add(text, "%-*s", column, left) : msg_add(text, "%s\n%*s", left, column, "");
    char *rest = NULL;
    for (char *line = strtok_r(help, "\n", &rest); line && !status;) {
        status = msg_add(text, "%s\n", line);
        line = strtok_r(NULL, "\n", &rest);
        if (line && !status)
            status = msg_add(text, "%*s", column, "");
    }
    return status;
}

int opt_help(const struct opt_set *set, const struct opt_words *words, unsigned ours,
             struct msg *text)
{
    int status = 0;
    for (const struct opt *row = opt_next(set, NULL); row && !status; row = opt_next(set, row))
        if (row->help && (row->flags & OPT_OURS) == ours)
            status = help_row(row, words, text);
    return status;
}
