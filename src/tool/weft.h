/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the commands of weft. */
#ifndef WEFT_TOOL_WEFT_H
#define WEFT_TOOL_WEFT_H

#include "core/opt.h"
#include "study/study.h"
#include "tool/tool.h"

/* A command. main gets the command's name as argv[0]; it returns 0, a negative status with its
 * sentence, or the exit code. */
struct command {
    const char *name;
    const char *usage;      /* the arguments, after the name */
    const char *what;       /* one line */
    const char *more;       /* lines above the options, or NULL */
    unsigned takes;         /* which of the rows */
    const struct opt *rows; /* NULL: weft_rows */
    int (*main)(const struct command *command, int argc, char **argv);
};

int info_command(const struct command *command, int argc, char **argv);
int compare_command(const struct command *command, int argc, char **argv);
int repeat_command(const struct command *command, int argc, char **argv);
int keygen_command(const struct command *command, int argc, char **argv);
int report_command(const struct command *command, int argc, char **argv);
int map_command(const struct command *command, int argc, char **argv);
int help_command(const struct command *command, int argc, char **argv);
int serve_command(const struct command *command, int argc, char **argv);

/* All of them. */
const struct command *weft_commands(size_t *count);

/* Options of all commands; the bits say which commands take a row. */
enum {
    WEFT_COMPARE = 1,
    WEFT_REPEAT = 2,
    WEFT_REPORT = 4,
    WEFT_INFO = 8,
    WEFT_KEYGEN = 16,
    WEFT_HELP = 32
};
enum { WEFT_PATH = 4096, WEFT_LIST = 256 };
struct weft_options {
    char output[WEFT_PATH], json[WEFT_PATH], junit[WEFT_PATH];
    char percentiles[WEFT_LIST], min_effect[32], title[WEFT_LIST];
    bool force, across_fabrics, markdown, verbose, help;
    bool effect_given, percentiles_given; /* not the default */
};
extern const struct opt weft_rows[], map_rows[], serve_rows[];

/* Fills the options; other arguments go to places, which has room for argc. Returns 1 after
 * printing the help, which ends the command. */
int weft_parse(const struct command *command, int argc, char **argv, struct weft_options *options,
               const char **places, int *given);

/* The same for a command with rows of its own; help is the field of its --help. */
int weft_parse_rows(const struct command *command, int argc, char **argv, struct opt_set *set,
                    const bool *help, const char **places, int *given);

/* Writes a file whole, also if a signal comes meanwhile. */
int weft_save(const char *path, const char *bytes, size_t length);

/* Converts --percentiles, --min-effect and --force. */
int weft_terms(const struct weft_options *options, struct study_terms *terms);

/* Can --json and --junit be written, as far as can be checked before? */
int compare_check(const struct weft_options *options);

/* Compares two sets and prints the comparison or writes it as JSON. Returns the same as a command's
 * main. */
int compare_sets(const struct study_set *a, const struct study_set *b,
                 const struct weft_options *options);

/* The same for two maps; if neither is one, *maps is false and nothing is done. */
int compare_maps(const char *a, const char *b, const struct weft_options *options, bool *maps);

/* Prints the spread of the runs of one set. */
int spread_set(const struct study_set *set, const struct weft_options *options);

/* What network devices counted as errors in the runs of a set, called by its name: a line each; in
 * a document, as a list. */
int errors_print(const char *name, const struct study_set *set);
void errors_write(struct json *j, const struct study_set *set);

#endif
