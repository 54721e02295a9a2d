/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion for bash, zsh and fish, from option rows. It is made when Weft is built. Device names
 * are asked of the tool itself, with --list. */
#include "tool/cxi.h"
#include "tool/perftest.h"
#include "tool/shell.h"
#include "tool/tool.h"
#include "tool/weft.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A tool, or one of weft's commands. */
struct complete_set {
    const char *command, *what; /* one line */
    struct opt_set rows;
    struct opt_words words;
    bool files; /* arguments are files; otherwise they are hosts */
};

/* What stands after an option. */
enum value { VALUE_NONE, VALUE_ANY, VALUE_CHOICE, VALUE_DEVICE, VALUE_FILE };

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static enum value value_of(const struct opt *row)
{
    static const char *const files[] = {"FILE", "PAGE", "DIR", "PATH", "<batchfile>", NULL};
    if (row->type == OPT_FLAG)
        return VALUE_NONE;
    if (row->choices)
        return VALUE_CHOICE;
    if (strcmp(row->name, "device") == 0)
        return VALUE_DEVICE;
    return row->word && is_one_of(row->word, files) ? VALUE_FILE : VALUE_ANY;
}

/* The end of the help's first sentence: a full stop, unless a default stands after it, or where a
 * line begins with a capitalized word. */
static const char *sentence_end(const char *help)
{
    const char *at = help;
    for (; *at; at++) {
        if (*at == '.' && (!at[1] || at[1] == '\n' || (at[1] == ' ' && at[2] != '(')))
            return at + 1;
        if (*at == '\n' && isupper((unsigned char)at[1]) && islower((unsigned char)at[2]))
            return at;
    }
    return at;
}

/* The first sentence of the help, as shells quote it: '...', with what they mark escaped. */
static void put_help(const struct complete_set *set, const struct opt *row, const char *special)
{
    char help[1024];
    opt_expand(row, row->help, &set->words, help, sizeof help);
    const char *end = sentence_end(help);
    for (const char *at = help; at < end; at++) {
        if (*at == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *at))
            putchar('\\');
        putchar(*at == '\n' ? ' ' : *at);
    }
}

static void put_choices(const struct opt *row, const char *between)
{
    for (int i = 0; row->choices[i]; i++)
        printf("%s%s", i ? between : "", row->choices[i]);
}

/* A shell: what comes before the options of a tool, each option, what comes after those of one set,
 * and after all. */
struct shell {
    const char *name;
    void (*begin)(const char *called, const struct complete_set *sets, size_t count);
    void (*set)(const char *called, const struct complete_set *set);
    void (*end)(const char *called, const struct complete_set *sets, size_t count);
};

/* The rows that help shows, whole. */
static const struct opt *next_shown(const struct complete_set *set, const struct opt *row,
                                    struct opt *whole)
{
    do
        row = opt_next(&set->rows, row);
    while (row && (!row->name || !row->help));
    if (row)
        *whole = opt_whole(row);
    return row;
}

/* Options of weft itself. */
static const char *const weft_own[] = {"-h", "--help", "-V", "--version", "--list", NULL};

static void put_words(const char *const *words)
{
    for (int i = 0; words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
}

static void put_commands(const struct complete_set *sets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", sets[i].command);
}

/* ---- bash ---- */

/* The line is taken as typed: COMP_WORDS is split at = and : too. */
static void bash_begin(const char *called, const struct complete_set *sets, size_t count)
{
    printf(
        "# bash completion for %s\n"
        "_weft_complete_%s()\n"
        "{\n"
        "    local line=${COMP_LINE:0:COMP_POINT} typed=${COMP_WORDS[COMP_CWORD]} word prev found\n"
        "    local options= words= kind=\n"
        "    word=${line##*[[:space:]]}\n"
        "    line=${line%%\"$word\"}\n"
        "    line=${line%%\"${line##*[^[:space:]]}\"}\n"
        "    prev=${line##*[[:space:]]}\n"
        "    case $word in --*=*) prev=${word%%%%=*} word=${word#*=} kind=value ;; esac\n"
        "    case ${COMP_WORDS[1]} in\n",
        called, called);
    if (!sets->command)
        return;
    printf("    help) words='");
    put_commands(sets, count);
    printf("' ;;\n");
}

static void bash_value(const struct opt *row)
{
    enum value value = value_of(row);
    if (value == VALUE_NONE || row->bare)
        return;
    printf("        ");
    if (row->letter)
        printf("-%c | ", row->letter);
    printf("--%s) kind=", row->name);
    if (value == VALUE_CHOICE) {
        printf("value words='");
        put_choices(row, " ");
        printf("'");
    } else {
        fputs(value == VALUE_DEVICE ? "devices" : value == VALUE_FILE ? "files" : "value", stdout);
    }
    printf(" ;;\n");
}

static void bash_set(const char *called, const struct complete_set *set)
{
    struct opt whole;
    const struct opt *row;
    (void)called;
    printf("    %s)\n        [ -n \"$kind\" ] || kind=%s\n        options='",
           set->command ? set->command : "*", set->files ? "names" : "hosts");
    for (row = next_shown(set, NULL, &whole); row; row = next_shown(set, row, &whole)) {
        if (whole.letter)
            printf("-%c ", whole.letter);
        printf("--%s%s ", whole.name, value_of(&whole) == VALUE_NONE || whole.bare ? "" : "=");
    }
    printf("'\n        case $prev in\n");
    for (row = next_shown(set, NULL, &whole); row; row = next_shown(set, row, &whole))
        bash_value(&whole);
    printf("        esac\n        ;;\n");
}

/* What readline has taken already, up to the last = or :, is not repeated. */
static void bash_end(const char *called, const struct complete_set *sets, size_t count)
{
    if (sets->command) {
        printf("    *) kind=value words='");
        put_commands(sets, count);
        printf("'; options='");
        put_words(weft_own);
        printf("' ;;\n");
    }
    printf("    esac\n"
           "    case $kind in\n"
           "    devices) words=$(\"${COMP_WORDS[0]}\" --list 2>/dev/null | while read -r device "
           "rest; do echo \"$device\"; "
           "done) ;;\n"
           "    esac\n"
           "    case $kind,$word in\n"
           "    names,-* | hosts,-* | value,-*) words=$options ;;\n"
           "    esac\n"
           "    case $kind,$word in\n"
           "    files,* | names,[!-]* | names,) compopt -o filenames 2>/dev/null\n"
           "        COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
           "    hosts,[!-]* | hosts,) COMPREPLY=($(compgen -A hostname -- \"$word\")) ;;\n"
           "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
           "    esac\n"
           "    case $typed in = | :) typed= ;; esac\n"
           "    found=${word%%\"$typed\"}\n"
           "    COMPREPLY=(\"${COMPREPLY[@]#\"$found\"}\")\n"
           "    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
           "}\n"
           "complete -F _weft_complete_%s %s\n",
           called, called);
}

/* ---- zsh ---- */

static void zsh_begin(const char *called, const struct complete_set *sets, size_t count)
{
    printf("#compdef %s\n"
           "_weft_devices() {\n"
           "  local -a devices\n"
           "  devices=(${${(f)\"$(_call_program devices ${(q)service} --list "
           "2>/dev/null)\"}%%%%[[:space:]]*})\n"
           "  compadd -a devices\n"
           "}\n",
           called);
    if (!sets->command)
        return;
    printf("local -a commands\ncommands=(\n");
    for (size_t i = 0; i < count; i++)
        printf("  '%s:%s'\n", sets[i].command, sets[i].what);
    printf(")\n"
           "if (( CURRENT == 2 )); then\n"
           "  _describe command commands\n"
           "  compadd -- ");
    put_words(weft_own);
    printf("\n  return\nfi\n"
           "shift words\n"
           "(( CURRENT-- ))\n"
           "case $words[1] in\n"
           "help) _describe command commands ;;\n");
}

static void zsh_option(const struct complete_set *set, const struct opt *row)
{
    enum value value = value_of(row);
    const char *equals = value == VALUE_NONE || row->bare ? "" : "=";
    if (row->letter)
        printf("  '(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name, row->letter, row->name,
               equals);
    else
        printf("  '--%s%s[", row->name, equals);
    put_help(set, row, "[]:");
    printf("]");
    if (*equals) {
        printf(":%s:", row->word ? row->word : "value");
        if (value == VALUE_CHOICE) {
            printf("(");
            put_choices(row, " ");
            printf(")");
        }
        fputs(value == VALUE_DEVICE ? "_weft_devices"
              : value == VALUE_FILE ? "_files"
                                    : "",
              stdout);
    }
    printf("' \\\n");
}

static void zsh_set(const char *called, const struct complete_set *set)
{
    struct opt whole;
    (void)called;
    if (set->command && strcmp(set->command, "help") == 0)
        return;
    if (set->command)
        printf("%s)\n", set->command);
    printf("_arguments \\\n");
    for (const struct opt *row = next_shown(set, NULL, &whole); row;
         row = next_shown(set, row, &whole))
        zsh_option(set, &whole);
    printf("  '*:%s'\n", set->files ? "file:_files" : "host:_hosts");
    if (set->command)
        printf(";;\n");
}

static void zsh_end(const char *called, const struct complete_set *sets, size_t count)
{
    (void)called;
    (void)count;
    if (sets->command)
        printf("esac\n");
}

/* ---- fish ---- */

static void fish_begin(const char *called, const struct complete_set *sets, size_t count)
{
    printf("# fish completion for %s\n", called);
    if (!sets->command) {
        printf("complete -c %s -f -a '(__fish_print_hostnames)'\n", called);
        return;
    }
    for (size_t i = 0; i < count; i++)
        printf("complete -c %s -n __fish_use_subcommand -f -a %s -d '%s'\n", called,
               sets[i].command, sets[i].what);
    for (int i = 0; weft_own[i]; i++)
        if (weft_own[i][1] == '-')
            printf("complete -c %s -n __fish_use_subcommand -f -l %s\n", called, weft_own[i] + 2);
    printf("complete -c %s -n '__fish_seen_subcommand_from help' -f -a '", called);
    put_commands(sets, count);
    printf("'\n");
}

static void fish_option(const char *called, const struct complete_set *set, const struct opt *row)
{
    enum value value = value_of(row);
    printf("complete -c %s", called);
    if (set->command)
        printf(" -n '__fish_seen_subcommand_from %s'", set->command);
    if (row->letter)
        printf(" -s %c", row->letter);
    printf(" -l %s", row->name);
    if (value == VALUE_FILE)
        printf(" -r -F");
    else if (value != VALUE_NONE && !row->bare)
        printf(" -x");
    if (value == VALUE_DEVICE)
        printf(" -a '(%s --list 2>/dev/null | string replace -r \" .*\" \"\")'", called);
    if (value == VALUE_CHOICE) {
        printf(" -a '");
        put_choices(row, " ");
        printf("'");
    }
    printf(" -d '");
    put_help(set, row, "\\");
    printf("'\n");
}

static void fish_set(const char *called, const struct complete_set *set)
{
    struct opt whole;
    for (const struct opt *row = next_shown(set, NULL, &whole); row;
         row = next_shown(set, row, &whole))
        fish_option(called, set, &whole);
}

static void fish_end(const char *called, const struct complete_set *sets, size_t count)
{
    (void)called;
    (void)sets;
    (void)count;
}

static const struct shell shells[] = {{"bash", bash_begin, bash_set, bash_end},
                                      {"zsh", zsh_begin, zsh_set, zsh_end},
                                      {"fish", fish_begin, fish_set, fish_end}};

/* ---- tools ---- */

enum { SETS = 32 };

static size_t sets_of_weft(struct complete_set sets[SETS])
{
    size_t count;
    const struct command *commands = weft_commands(&count);
    for (size_t i = 0; i < count && i < SETS; i++)
        sets[i] =
            (struct complete_set){.command = commands[i].name,
                                  .what = commands[i].what,
                                  .rows = {.rows = commands[i].rows ? commands[i].rows : weft_rows,
                                           .takes = commands[i].takes},
                                  .files = true};
    return count < SETS ? count : SETS;
}

static size_t sets_of(const char *tool, struct complete_set sets[SETS])
{
    const struct cxi_tool *cxi = cxi_tool_find(tool);
    memset(sets, 0, SETS * sizeof *sets);
    if (cxi) {
        struct spec spec;
        sets->words = cxi_tool_rows(cxi, &spec, &sets->rows)->words->help;
        return 1;
    }
    if (strcmp(tool, "weft") == 0)
        return sets_of_weft(sets);
    sets->rows.rows = perf_rows;
    return strcmp(tool, "ucx_perftest") == 0;
}

static int print_completion(const char *shell, const char *tool, const char *called)
{
    static struct complete_set sets[SETS];
    size_t count = sets_of(tool, sets);
    if (!count)
        return fail(-EINVAL, "no tool is called %s", tool);
    for (size_t i = 0; i < LENGTH(shells); i++) {
        if (strcmp(shells[i].name, shell) != 0)
            continue;
        shells[i].begin(called, sets, count);
        for (size_t j = 0; j < count; j++)
            shells[i].set(called, &sets[j]);
        shells[i].end(called, sets, count);
        return shell_flush("the completion");
    }
    return fail(-EINVAL, "no completion for \"%s\" (accepted: bash, zsh, fish)", shell);
}

int complete_main(int argc, char **argv)
{
    shell_open(argc, argv);
    int status = argc == 4 ? print_completion(argv[1], argv[2], argv[3])
                           : fail(-EINVAL, "usage: SHELL TOOL CALLED");
    if (status)
        shell_say(fail_reason());
    return shell_exit_code(status);
}
