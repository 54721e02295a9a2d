/* SPDX-License-Identifier: BSD-3-Clause */
/* weft: commands on machines and results. */
#include "tool/weft.h"
#include "core/opt.h"
#include "study/maps.h"
#include "tool/list.h"
#include "tool/shell.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct command commands[] = {
    {.name = "info",
     .usage = "[OPTION ...]",
     .what = "Show fabrics, devices, and what will distort results",
     .more = "Each warning comes with what to type to fix it. Measures noise for about 300 ms.\n",
     .takes = WEFT_INFO,
     .main = info_command},
    {.name = "report",
     .usage = "RESULT ... -o PAGE",
     .what = "Draw results on one HTML page",
     .more = "RESULT is a document written with --json of a tool, or a folder of documents, which "
             "are a\n"
             "set. Two sets are compared. If PAGE ends in .svg, only the first plot is written; if "
             "it is a\n"
             "folder or ends in /, the page and every plot as SVG.\n",
     .takes = WEFT_REPORT,
     .main = report_command},
    {.name = "compare",
     .usage = "A B | DIR",
     .what = "Tell whether B is slower than A",
     .more = "A and B are documents written with --json of a tool, or folders of documents of "
             "repeated\n"
             "runs. DIR has both as its folders a and b, as written by repeat. Two maps are "
             "compared\n"
             "by their nodes.\n"
             "Exit codes: 0 same or faster, 3 slower, 5 cannot tell.\n",
     .takes = WEFT_COMPARE,
     .main = compare_command},
    {.name = "repeat",
     .usage = "N -- TOOL [ARGUMENT ...] [-- TOOL [ARGUMENT ...]]",
     .what = "Run a tool N times, or two alternately, and compare",
     .more =
         "TOOL is searched in the folder of weft, then in PATH; --json FILE is appended to it. Of "
         "two\n"
         "tools, the second is compared to the first, with the exit codes 0, 3 and 5 of compare.\n",
     .takes = WEFT_REPEAT,
     .main = repeat_command},
    {.name = "keygen",
     .usage = "FILE",
     .what = "Make a secret for servers and their clients",
     .more =
         "FILE is new, and only its owner may read it (\"-\": standard output). Copy it to the\n"
         "other machines and give it to both ends with --secret-file or WEFT_SECRET.\n",
     .takes = WEFT_KEYGEN,
     .main = keygen_command},
    {.name = "map",
     .usage = "[OPTION ...]",
     .what = "Tell which node, pair or group of many is slow",
     .more = "Started by a launcher, with --hosts, or with --local N. Pairs of ranks measure in "
             "rounds;\n"
             "what looks slow is measured again.\n"
             "Exit codes: 0 nothing slower, 3 something is, 4 more than half of the ranks lost,\n"
             "5 cannot tell.\n",
     .rows = map_rows,
     .main = map_command},
    {.name = "serve",
     .usage = "[OPTION ...]",
     .what = "Serve clients of all tools, several at once",
     .more =
         "Each client is served by a process of its own. Clients need -p with this port if it is\n"
         "not the default of their tool. Runs until SIGINT or SIGTERM.\n",
     .rows = serve_rows,
     .main = serve_command},
    {.name = "help",
     .usage = "[COMMAND]",
     .what = "Show the commands, or the options of one",
     .takes = WEFT_HELP,
     .main = help_command},
};

#define FIELD(member) .field = offsetof(struct weft_options, member)

const struct opt weft_rows[] = {
    {.letter = 'o',
     .name = "output",
     .type = OPT_TEXT,
     FIELD(output),
     .max = WEFT_PATH,
     .word = "PAGE",
     .takes = WEFT_REPORT,
     .help = "The page to write (\"-\": standard output), or a folder"},
    {.name = "title",
     .type = OPT_TEXT,
     FIELD(title),
     .max = WEFT_LIST,
     .word = "TEXT",
     .takes = WEFT_REPORT,
     .help = "Title of the page and of every plot"},
    {.letter = 'o',
     .name = "output",
     .type = OPT_TEXT,
     FIELD(output),
     .max = WEFT_PATH,
     .word = "DIR",
     .takes = WEFT_REPEAT,
     .help = "Keep the documents in this new folder; with two tools\n"
             "in its folders a and b"},
    {.name = "percentiles",
     .type = OPT_TEXT,
     FIELD(percentiles),
     .max = WEFT_LIST,
     .fallback = "50",
     .word = "LIST",
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Percentiles to compare, such as 50,99 (default: {default})"},
    {.name = "min-effect",
     .type = OPT_TEXT,
     FIELD(min_effect),
     .max = 32,
     .fallback = "2",
     .word = "PERCENT",
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "The smallest change that counts (default: {default})"},
    {.name = "json",
     .type = OPT_TEXT,
     FIELD(json),
     .max = WEFT_PATH,
     .word = "FILE",
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Write the comparison as JSON (\"-\": standard output,\n"
             "no table)"},
    {.name = "markdown",
     .type = OPT_FLAG,
     FIELD(markdown),
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Print the comparison as Markdown"},
    {.name = "junit",
     .type = OPT_TEXT,
     FIELD(junit),
     .max = WEFT_PATH,
     .word = "FILE",
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Write the comparison as JUnit XML: a test per row"},
    {.name = "across-fabrics",
     .type = OPT_FLAG,
     FIELD(across_fabrics),
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Compare one fabric with another: all but the fabric\n"
             "must match"},
    {.name = "force",
     .type = OPT_FLAG,
     FIELD(force),
     .takes = WEFT_COMPARE | WEFT_REPEAT,
     .help = "Compare runs that are not comparable or not complete:\n"
             "only what all have in common"},
    {.name = "json",
     .type = OPT_TEXT,
     FIELD(json),
     .max = WEFT_PATH,
     .word = "FILE",
     .takes = WEFT_INFO,
     .help = "Write JSON to FILE (\"-\": standard output), no text"},
    {.letter = 'v',
     .name = "verbose",
     .type = OPT_FLAG,
     FIELD(verbose),
     .takes = WEFT_INFO,
     .help = "Also show the operation sizes and atomics of each device,\n"
             "what completion proves, and counters of CXI devices"},
    {.letter = 'v',
     .name = "verbose",
     .type = OPT_FLAG,
     FIELD(verbose),
     .takes = WEFT_REPEAT,
     .help = "Show the output of the tools"},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .help = "Print this help"},
    {0}};
OPT_FITS(weft_rows);

/* ---- shared by the commands ---- */

static int print_help(const struct command *c, const struct opt_set *set)
{
    struct msg text;
    int status = msg_print(&text, "Usage:\n  %s %s\n\n%s.\n%s\nOptions:\n", shell_program, c->usage,
                           c->what, c->more ? c->more : "");
    if (!status)
        status = opt_help(set, NULL, 0, &text);
    if (!status)
        status = opt_help(set, NULL, OPT_OURS, &text);
    if (status)
        return status;
    fputs(text.bytes, stdout);
    return shell_flush("the help text");
}

int weft_parse_rows(const struct command *command, int argc, char **argv, struct opt_set *set,
                    const bool *help, const char **places, int *given)
{
    opt_defaults(set);
    int status = opt_parse(set, argc - 1, argv + 1, places, argc, given);
    if (!status && *help)
        status = print_help(command, set);
    return status ? status : *help;
}

int weft_parse(const struct command *command, int argc, char **argv, struct weft_options *options,
               const char **places, int *given)
{
    struct opt_set set = {.rows = weft_rows, .takes = command->takes, .base = options};
    const struct opt *effect = opt_find(&set, "min-effect");
    const struct opt *percentiles = opt_find(&set, "percentiles");
    int status = weft_parse_rows(command, argc, argv, &set, &options->help, places, given);
    options->effect_given = effect && opt_origin(&set, effect) == OPT_BY_USER;
    options->percentiles_given = percentiles && opt_origin(&set, percentiles) == OPT_BY_USER;
    return status;
}

int weft_terms(const struct weft_options *options, struct study_terms *terms)
{
    const char *effect = options->min_effect;
    char *end;
    double percent = strtod(effect, &end);
    *terms = (struct study_terms){.min_effect = percent / 100,
                                  .force = options->force,
                                  .across_fabrics = options->across_fabrics};
    if (!*effect || strspn(effect, "0123456789.") != strlen(effect) || *end || !(percent <= 1000))
        return fail(-EINVAL, "--min-effect: \"%s\" is not a percentage (accepted: 0 to 1000)",
                    effect);
    return report_percentiles(options->percentiles, terms->percentiles);
}

int weft_save(const char *path, const char *bytes, size_t length)
{
    shell_catch_signals();
    return save_write(path, bytes, length);
}

/* ---- main ---- */

const struct command *weft_commands(size_t *count)
{
    *count = LENGTH(commands);
    return commands;
}

/* Without a command's name. */
static const char *weft_program = "weft";

static int print_commands(void)
{
    printf("Usage:\n  %s COMMAND ...\n\nCommands (each has --help):\n", weft_program);
    for (size_t i = 0; i < LENGTH(commands); i++)
        printf("  %s%-9s%s %s\n", text_style(stdout, TEXT_BOLD), commands[i].name,
               text_style(stdout, TEXT_PLAIN), commands[i].what);
    printf("\nOptions:\n"
           "  -h, --help              Print this help\n"
           "  -V, --version           Print version\n"
           "      --list              Print every device with its operations\n");
    return shell_flush("the help text");
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < LENGTH(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    enum { FAR = 2 };
    char all[200] = "", guess[48] = "";
    unsigned nearest = FAR + 1;
    for (size_t i = 0; i < LENGTH(commands); i++) {
        const char *name = commands[i].name;
        unsigned distance = word_distance(word, name, FAR);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", name);
        if (distance < nearest)
            snprintf(guess, sizeof guess, "did you mean %s? ", name);
        nearest = distance < nearest ? distance : nearest;
    }
    return fail(-EINVAL, "unknown command: \"%s\" (%saccepted: %s)", word, guess, all);
}

/* From now on sentences begin with its name too. */
static int call(const struct command *command, int argc, char **argv)
{
    static char name[256];
    snprintf(name, sizeof name, "%s %s", weft_program, command->name);
    shell_program = name;
    return command->main(command, argc, argv);
}

int help_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    static char ask[] = "--help";
    const char *places[argc];
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given > 1)
        return fail(-EINVAL, "help is of one command: %s", command->usage);
    if (!given)
        return print_commands();
    const struct command *other = find(places[0]);
    char *words[] = {argv[0], ask, NULL};
    return other ? call(other, 2, words) : unknown(places[0]);
}

static bool is_word(const char *word, const char *letter, const char *name)
{
    return strcmp(word, letter) == 0 || strcmp(word, name) == 0;
}

static int run_command(int argc, char **argv)
{
    if (argc < 2 || is_word(argv[1], "-h", "--help"))
        return print_commands();
    if (is_word(argv[1], "-V", "--version")) {
        printf("%s (Weft) %s\n", shell_program, core_version());
        return shell_flush("the version");
    }
    if (strcmp(argv[1], "--list") == 0)
        return list_print();
    const struct command *command = find(argv[1]);
    return command ? call(command, argc - 1, argv + 1) : unknown(argv[1]);
}

int weft_main(int argc, char **argv)
{
    shell_open(argc, argv);
    weft_program = shell_program;
    int status = run_command(argc, argv);
    if (status >= 0)
        return status;
    shell_say(fail_reason());
    return shell_exit_code(status);
}
