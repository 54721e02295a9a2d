/* SPDX-License-Identifier: BSD-3-Clause */
/* Which options a tool of the CXI family has, and its help text. */
#include "tool/cxi.h"
#include "tool/shell.h"

#include <stdio.h>
#include <string.h>

/* Names of a list, in lines that fit. */
static int help_names(const char *title, const char *const *names, struct msg *text)
{
    int status = msg_add(text, "%s:\n ", title), column = 1;
    for (int i = 0; names[i] && !status; i++) {
        int width = (int)strlen(names[i]) + 2;
        if (column + width > 80) {
            status = msg_add(text, "\n ");
            column = 1;
        }
        if (!status)
            status = msg_add(text, " %s%s", names[i], names[i + 1] ? "," : "\n");
        column += width;
    }
    return status;
}

static int help_atomics(struct msg *text)
{
    int status = msg_add(text, "\n");
    if (!status)
        status = help_names("Atomic Ops", amo_op_names, text);
    if (!status)
        status = help_names("CSWAP Ops", amo_compare_names, text);
    return status ? status : help_names("Atomic Types", amo_type_names, text);
}

/* Where the text of options begins. */
enum { USUAL_COLUMN = 26, LIST_COLUMN = 25 };

static int help_pair(int column, struct msg *text)
{
    return msg_print(text,
                     "Usage:\n"
                     "  %s [-d DEV] [-p PORT]\n"
                     "%*sStart a server and wait for connection\n"
                     "  %s ADDR [OPTIONS]\n"
                     "%*sConnect to server with address ADDR\n"
                     "\n"
                     "Options:\n",
                     shell_program, column, "", shell_program, column, "");
}

static int help_alone(struct msg *text)
{
    return msg_print(text,
                     "Usage:\n"
                     "  %s [OPTIONS]\n"
                     "\n"
                     "Options:\n",
                     shell_program);
}

static int choice_of(const char *const *names, const char *name)
{
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return names[i] ? i + 1 : 0;
}

const struct op *cxi_tool_rows(const struct cxi_tool *tool, struct spec *spec, struct opt_set *set)
{
    spec->op = choice_of(op_names, tool->op);
    spec->method = choice_of(method_names, tool->method);
    *set = (struct opt_set){.rows = cxi_rows,
                            .takes =
                                tool->alone ? CXI_ALONE : cxi_takes(op_of(spec), method_of(spec))};
    return op_of(spec);
}

int cxi_help(const struct cxi_tool *tool, const struct op *op, const struct opt_set *set)
{
    struct opt_words words = op->words->help;
    struct msg text;
    words.column = set->takes & (CXI_BW | CXI_LOOPBACK) ? LIST_COLUMN : USUAL_COLUMN;
    int status = tool->alone ? help_alone(&text) : help_pair(words.column, &text);
    if (!status)
        status = opt_help(set, &words, 0, &text);
    if (!status && set->takes & CXI_AMO)
        status = help_atomics(&text);
    if (!status)
        status = msg_add(&text, "\nWeft options:\n");
    if (!status)
        status = opt_help(set, &words, OPT_OURS, &text);
    if (status)
        return status;
    fputs(text.bytes, stdout);
    return shell_flush("the help text");
}
