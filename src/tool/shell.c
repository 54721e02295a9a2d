/* SPDX-License-Identifier: BSD-3-Clause */
/* The only place that prints sentences and chooses exit codes. */
#include "tool/shell.h"
#include "core/opt.h"
#include "tool/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_S = 2, SENTENCE = 2048 };

volatile sig_atomic_t shell_stop;
const char *shell_program = "weft";

/* What is said before anybody listens is kept, a sentence per line. */
static struct {
    void (*hear)(void *arg, const char *sentence);
    void *arg;
    char early[8192];
} listener;

void shell_listen(void (*hear)(void *arg, const char *sentence), void *arg)
{
    char *rest = listener.early, *sentence;
    listener.hear = hear;
    listener.arg = arg;
    while (hear && *rest && (sentence = strsep(&rest, "\n")))
        hear(arg, sentence);
    *listener.early = '\0';
}

static void keep_early(const char *sentence)
{
    size_t used = strlen(listener.early);
    if (used + strlen(sentence) + 2 <= sizeof listener.early)
        snprintf(listener.early + used, sizeof listener.early - used, "%s\n", sentence);
}

static void put(const char *sentence, char clean[SENTENCE])
{
    snprintf(clean, SENTENCE, "%s", sentence);
    text_clean(clean);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", shell_program, clean);
}

void shell_note(const char *sentence)
{
    char clean[SENTENCE];
    put(sentence, clean);
}

void shell_say(const char *sentence)
{
    char clean[SENTENCE];
    put(sentence, clean);
    if (listener.hear)
        listener.hear(listener.arg, clean);
    else
        keep_early(clean);
}

int shell_flush(const char *what)
{
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    return fail(-EIO, "writing %s: %s", what, strerror(errno));
}

int shell_exit_code(int status)
{
    /* Whatever a signal has made fail. */
    if (status && shell_stop)
        return EXIT_SIGNAL + shell_stop;
    switch (status) {
    case 0:
        return EXIT_DONE;
    case -EINVAL:
        return EXIT_WRONG;
    case -EINTR:
        return EXIT_SIGNAL + SIGINT;
    case -ETIMEDOUT:
    case -ECONNREFUSED:
    case -ECONNRESET:
        return EXIT_NO_PEER;
    default:
        return EXIT_FAILED;
    }
}

/* Every wait of ours ends by itself, but one in a vendor's library may not: a second
 * signal after a while ends the tool. One at once does not: timeout(1) sends two. */
static void on_signal(int number)
{
    static time_t first;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!shell_stop) {
        first = now.tv_sec;
    } else if (now.tv_sec - first >= AGAIN_S) {
        signal(number, SIG_DFL);
        raise(number);
    }
    shell_stop = number;
}

/* What the parent wants ignored stays ignored. */
void shell_catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < LENGTH(signals); i++) {
        struct sigaction was;
        struct sigaction mine = {.sa_handler = on_signal};
        if (!sigaction(signals[i], NULL, &was) && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &mine, NULL);
    }
}

/* Were one of the three closed, the next socket would take its place, and our output its way. */
static void keep_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

void shell_open(int argc, char **argv)
{
    if (argc > 0)
        shell_program = basename(argv[0]);
    warn_to(shell_say);
    keep_standard();
    /* A file that may not grow fails to be written, and that has a sentence. */
    signal(SIGXFSZ, SIG_IGN);
}

void shell_overridden(const struct opt *row, const char *was, const char *now)
{
    if (opt_whole(row).type == OPT_FLAG)
        warn("--%s is the client's to say, and it %s", row->name,
             *now == '1' ? "gave it" : "did not");
    else
        warn("--%s %s is the client's to say: %s", row->name, was, *now ? now : "not given");
}
