/* SPDX-License-Identifier: BSD-3-Clause */
/* weft repeat: runs a tool several times, each time as a new process. Two commands alternate, A B B
 * A, so that drift of the machine affects both alike. This process sleeps while a tool runs. */
#include "core/child.h"
#include "core/clock.h"
#include "tool/progress.h"
#include "tool/scratch.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS_MAX = 4096, SIDES = 2, STOP_MS = 10000 };

struct side {
    char **words; /* for exec: the command, then --json and the file */
    int count;    /* of the command alone */
    char program[PATH_MAX];
    char text[1024]; /* the command as given */
    char folder[PATH_MAX];
};

struct repeat {
    struct weft_options options;
    uint64_t runs;
    struct side sides[SIDES];
    int side_count;
    char folder[PATH_MAX];
    bool temporary; /* the folder is the scratch one, and removed at the end */
    struct scratch scratch;
    sigset_t usual; /* the signal mask while waiting for a run */
};

static const char *const side_names[SIDES] = {"a", "b"};

/* ---- the command line ---- */

#ifndef WEFT_TOOL_PREFIX
#define WEFT_TOOL_PREFIX ""
#endif

/* Is it in the folder of this program? */
static bool beside(struct side *s, const char *prefix, const char *name)
{
    ssize_t n = readlink("/proc/self/exe", s->program, PATH_MAX - 1);
    s->program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(s->program, '/');
    size_t room = slash ? (size_t)(s->program + PATH_MAX - slash - 1) : 0;
    return slash && (size_t)snprintf(slash + 1, room, "%s%s", prefix, name) < room &&
           !access(s->program, X_OK);
}

/* The tools of the same build come first, under the names they were installed with: another
 * package's may have the plain ones. */
static void find_program(struct side *s, const char *name)
{
    static const char *const prefixes[] = {"weft_", WEFT_TOOL_PREFIX, ""};
    for (size_t i = 0; i < LENGTH(prefixes) && !strchr(name, '/'); i++)
        if (beside(s, prefixes[i], name))
            return;
    snprintf(s->program, PATH_MAX, "%s", name);
}

static void add_text(struct side *s, const char *word)
{
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s%s", used ? " " : "", word);
}

static int take_side(struct repeat *r, const char **words, int count)
{
    struct side *s = &r->sides[r->side_count++];
    if (!count)
        return fail(-EINVAL, "a command is missing: N -- TOOL ... [-- TOOL ...]");
    s->words = calloc((size_t)count + 3, sizeof *s->words);
    if (!s->words)
        return fail(-ENOMEM, "no memory for a command");
    s->count = count;
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--json") == 0 || strncmp(words[i], "--json=", 7) == 0)
            return fail(-EINVAL, "%s: --json must not be given; -o DIR keeps the documents",
                        words[0]);
        s->words[i] = (char *)words[i];
        add_text(s, words[i]);
    }
    find_program(s, words[0]);
    return 0;
}

static int take_commands(struct repeat *r, const char **words, int count)
{
    int status = 0;
    for (int first = 0, i = 0; i <= count && !status; i++) {
        if (i < count && strcmp(words[i], "--") != 0)
            continue;
        if (r->side_count == SIDES)
            return fail(-EINVAL, "more than two commands given");
        status = take_side(r, words + first, i - first);
        first = i + 1;
    }
    return status;
}

static int take_words(struct repeat *r, const char **places, int given)
{
    struct study_terms terms;
    if (!given)
        return fail(-EINVAL, "the number of runs is missing: N -- TOOL ... [-- TOOL ...]");
    if (unit_bytes(places[0], &r->runs) || r->runs < 1 || r->runs > RUNS_MAX)
        return fail(-EINVAL, "N: \"%s\" is not a number of runs (accepted: 1 to %d)", places[0],
                    RUNS_MAX);
    int status = take_commands(r, places + 1, given - 1);
    const char *given_form = *r->options.json      ? "--json"
                             : *r->options.junit   ? "--junit"
                             : r->options.markdown ? "--markdown"
                                                   : NULL;
    if (!status && r->side_count < SIDES && given_form)
        status = fail(-EINVAL, "%s needs two commands to compare", given_form);
    if (!status)
        status = compare_check(&r->options);
    return status ? status : weft_terms(&r->options, &terms);
}

/* ---- the folder ---- */

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int entries = 0;
    while (folder && entries < 3 && readdir(folder))
        entries++;
    if (folder)
        closedir(folder);
    return folder && entries < 3;
}

static int make_folder(const char *path)
{
    if (!mkdir(path, 0777))
        return 0;
    if (errno == EEXIST && is_empty(path))
        return save_folder(path);
    if (errno == EEXIST)
        return fail(-EEXIST, "%s: exists and is not an empty folder", path);
    return fail(-errno, "%s: cannot create folder: %s", path, strerror(errno));
}

static int make_folders(struct repeat *r)
{
    int status = 0;
    if (*r->options.output) {
        snprintf(r->folder, sizeof r->folder, "%s", r->options.output);
        status = make_folder(r->folder);
    } else {
        status = scratch_make(&r->scratch);
        r->temporary = !status;
        snprintf(r->folder, sizeof r->folder, "%s", r->scratch.path);
    }
    for (int i = 0; i < SIDES && i < r->side_count && !status; i++) {
        struct side *s = &r->sides[i];
        int n = r->side_count == 1
                    ? snprintf(s->folder, PATH_MAX, "%s", r->folder)
                    : snprintf(s->folder, PATH_MAX, "%s/%s", r->folder, side_names[i]);
        if (n >= PATH_MAX)
            status = fail(-ENAMETOOLONG, "%s: path too long", r->folder);
        else if (r->side_count > 1)
            status = make_folder(s->folder);
    }
    return status;
}

/* ---- one run ---- */

/* In the child process. The errno of a failed exec goes into the pipe. */
static void exec_tool(const struct repeat *r, const struct side *s, int error_fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &r->usual, NULL);
    int null = r->options.verbose ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    execvp(s->program, s->words);
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

static int start(const struct repeat *r, const struct side *s, pid_t *child)
{
    int ends[2], error = 0;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC))
        return fail(-errno, "pipe: %s", strerror(errno));
    fflush(stdout);
    *child = fork();
    if (!*child)
        exec_tool(r, s, ends[1], parent);
    int status = *child < 0 ? fail(-errno, "fork: %s", strerror(errno)) : 0;
    close(ends[1]);
    if (!status && read(ends[0], &error, sizeof error) > 0) {
        waitpid(*child, NULL, 0);
        status = fail(error == EINVAL ? -ENOEXEC : -error, "%s: cannot start: %s", s->words[0],
                      strerror(error));
    }
    close(ends[0]);
    return status;
}

/* Returns the wait status. Signals are delivered only here, so that none is missed; the first one
 * is forwarded to the run. */
static int wait_run(const struct repeat *r, pid_t child)
{
    int ended = W_EXITCODE(EXIT_FAILED, 0);
    bool forwarded = false;
    uint64_t until_ms = 0;
    while (waitpid(child, &ended, WNOHANG) == 0) {
        struct timespec limit = {.tv_sec = 1};
        if (shell_stop && !forwarded) {
            kill(child, shell_stop);
            forwarded = true;
            until_ms = clock_ms() + STOP_MS;
        }
        if (forwarded && clock_ms() > until_ms) {
            kill(child, SIGKILL);
            return child_wait(child, CHILD_KILLED_MS);
        }
        ppoll(NULL, 0, &limit, &r->usual);
    }
    return ended;
}

static void on_child(int number)
{
    (void)number;
}

static void hold_signals(struct repeat *r)
{
    struct sigaction action = {.sa_handler = on_child};
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaction(SIGCHLD, &action, NULL);
    shell_catch_signals();
    sigprocmask(SIG_BLOCK, &held, &r->usual);
}

/* A run that failed ends the command, with the exit code of that run. */
static int judge_run(const char *which, int ended)
{
    if (shell_stop)
        return fail(-EINTR, "interrupted during %s", which);
    if (WIFEXITED(ended) && !WEXITSTATUS(ended))
        return 0;
    char sentence[256];
    if (WIFEXITED(ended))
        snprintf(sentence, sizeof sentence, "%s failed with exit code %d", which,
                 WEXITSTATUS(ended));
    else
        snprintf(sentence, sizeof sentence, "%s was killed by signal %d", which, WTERMSIG(ended));
    shell_say(sentence);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : EXIT_SIGNAL + WTERMSIG(ended);
}

/* Checks that the run wrote a complete document. */
static int check_document(const struct side *s, const char *which, const char *path)
{
    struct study_run run;
    if (access(path, F_OK))
        return fail(-ENOENT, "%s wrote no document: does %s support --json?", which, s->words[0]);
    int status = study_read(&run, path, true);
    if (status)
        return status;
    if (strcmp(run.state, "complete") != 0)
        status = fail(-EINVAL, "%s: the document is not complete: %s", which, run.state);
    study_free(&run);
    return status;
}

/* Renames it, so that it does not count as a run of its folder. */
static void rename_failed(const struct repeat *r, const char *which, const char *path)
{
    char failed[PATH_MAX + 48];
    snprintf(failed, sizeof failed, "%s.failed", path);
    if (!rename(path, failed) && !r->temporary)
        warn("%s is not complete: kept as %s", which, failed);
}

static int run_once(const struct repeat *r, const struct side *s, uint64_t turn)
{
    uint64_t number = turn / (uint64_t)r->side_count + 1;
    char path[PATH_MAX + 32], which[128];
    pid_t child = -1;
    snprintf(path, sizeof path, "%s/%0*" PRIu64 ".json", s->folder, r->runs > 999 ? 4 : 3, number);
    snprintf(which, sizeof which, "run %" PRIu64 " of %" PRIu64 "%s%s", number, r->runs,
             r->side_count > 1 ? " of " : "", r->side_count > 1 ? side_names[s - r->sides] : "");
    progress_step(which, turn, r->runs * (uint64_t)r->side_count);
    s->words[s->count] = (char *)"--json";
    s->words[s->count + 1] = path;
    int status = start(r, s, &child);
    s->words[s->count + 1] = NULL;
    if (status)
        return status;
    int ended = wait_run(r, child);
    progress_clear();
    int document = check_document(s, which, path);
    if (document)
        rename_failed(r, which, path);
    status = judge_run(which, ended);
    return status ? status : document;
}

/* ---- results ---- */

/* The sets. Runs in a temporary folder get names, because their files will be removed. */
struct sides {
    struct study_set sets[SIDES];
    char (*names[SIDES])[32];
};

static int name_runs(const struct repeat *r, struct sides *sides, int side)
{
    struct study_set *set = &sides->sets[side];
    set->path = r->sides[side].text;
    if (!r->temporary)
        return 0;
    sides->names[side] = calloc(set->count, sizeof *sides->names[side]);
    if (!sides->names[side])
        return fail(-ENOMEM, "no memory for %zu runs", set->count);
    for (size_t i = 0; i < set->count; i++) {
        snprintf(sides->names[side][i], sizeof sides->names[side][i], "run %zu%s", i + 1,
                 r->side_count == 1 ? ""
                 : side             ? " of B"
                                    : " of A");
        set->runs[i].path = sides->names[side][i];
    }
    return 0;
}

static int read_sides(const struct repeat *r, struct sides *sides)
{
    int status = 0;
    *sides = (struct sides){0};
    for (int i = 0; i < r->side_count && !status; i++) {
        status = study_set_read(&sides->sets[i], r->sides[i].folder);
        if (!status)
            status = name_runs(r, sides, i);
    }
    return status;
}

static void free_sides(struct sides *sides)
{
    for (int i = 0; i < SIDES; i++) {
        study_set_free(&sides->sets[i]);
        free(sides->names[i]);
    }
}

/* After the first run of each, checks that they can be compared. */
static int check_pair(const struct repeat *r)
{
    struct sides sides;
    struct study_terms terms;
    struct study_comparison c;
    int status = read_sides(r, &sides);
    if (!status)
        status = weft_terms(&r->options, &terms);
    if (!status)
        status = study_compare(&sides.sets[0], &sides.sets[1], &terms, &c);
    if (!status)
        study_comparison_free(&c);
    free_sides(&sides);
    return status;
}

static int run_all(const struct repeat *r)
{
    int status = 0;
    progress_begin();
    for (uint64_t turn = 0; turn < r->runs * (uint64_t)r->side_count && !status; turn++) {
        uint64_t round = turn / (uint64_t)r->side_count;
        bool swapped = round % 2;
        int side = (int)(turn % (uint64_t)r->side_count);
        if (r->side_count > 1 && swapped)
            side = 1 - side;
        status = run_once(r, &r->sides[side], turn);
        if (!status && r->side_count > 1 && turn == 1)
            status = check_pair(r);
    }
    return status;
}

static int conclude(const struct repeat *r)
{
    struct sides sides;
    int status = read_sides(r, &sides);
    if (!status)
        status = r->side_count > 1 ? compare_sets(&sides.sets[0], &sides.sets[1], &r->options)
                                   : spread_set(&sides.sets[0], &r->options);
    free_sides(&sides);
    return status;
}

/* After an interruption, shows the runs so far of a single command. */
static int conclude_early(const struct repeat *r, int status)
{
    char reason[512];
    if (status != -EINTR || r->side_count > 1)
        return status;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    conclude(r);
    return fail(status, "%s", reason);
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return true;
    return false;
}

static void warn_few_runs(const struct repeat *r)
{
    size_t needed = study_runs_needed(1);
    if (r->side_count > 1 && r->runs < needed)
        warn("%" PRIu64 " runs per side are too few: at least %zu needed for a verdict", r->runs,
             needed);
}

int repeat_command(const struct command *command, int argc, char **argv)
{
    static struct repeat repeat;
    struct repeat *r = &repeat;
    const char *places[argc];
    int given, status = weft_parse(command, argc, argv, &r->options, places, &given);
    if (status < 0 && given > 1 && !has_dashes(argc, argv))
        return fail(status, "-- is missing before %s: N -- TOOL ... [-- TOOL ...]", places[1]);
    if (status)
        return status < 0 ? status : 0;
    status = take_words(r, places, given);
    if (!status) {
        warn_few_runs(r);
        hold_signals(r);
        status = make_folders(r);
    }
    if (!status)
        status = run_all(r);
    status = status ? conclude_early(r, status) : conclude(r);
    if (r->temporary)
        scratch_remove(&r->scratch);
    for (int i = 0; i < r->side_count; i++)
        free(r->sides[i].words);
    return status;
}
