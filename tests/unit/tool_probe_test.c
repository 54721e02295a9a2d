/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in a child process that may hang, die or go on for ever. */
#include "core/clock.h"
#include "support/unit.h"
#include "tool/child.h"
#include "tool/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void work_well(const void *arg, FILE *out)
{
    fprintf(out, "%s\n", (const char *)arg);
    printf("noise\n");
    fflush(stdout);
}

static void work_forever(const void *arg, FILE *out)
{
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    fprintf(out, "first\n");
    for (;;)
        pause();
}

static void work_badly(const void *arg, FILE *out)
{
    fprintf(out, "first\n");
    if (*(const char *)arg == 'x')
        _exit(3);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void a_child_that_works_is_heard_and_its_noise_kept_apart(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_well, "a word", 10000), 0);
    assert_string_equal(probe.text, "a word\n");
    assert_string_equal(probe.said, "noise\n");
    probe_free(&probe);
}

static void a_child_that_hangs_is_given_up(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_forever, NULL, 200), -ETIMEDOUT);
    assert_string_equal(probe.text, "first\n");
    assert_non_null(strstr(fail_reason(), "no answer within 0.2 s"));
    probe_free(&probe);
}

static void a_child_that_dies_says_how(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_badly, "s", 10000), -ECHILD);
    assert_string_equal(probe.text, "first\n");
    assert_non_null(strstr(fail_reason(), "it crashed (Segmentation fault)"));
    probe_free(&probe);
    assert_int_equal(probe_run(&probe, work_badly, "x", 10000), -ECHILD);
    assert_non_null(strstr(fail_reason(), "exit code 3"));
    probe_free(&probe);
}

static void a_child_that_does_not_end_is_not_waited_for(void **state)
{
    pid_t child = fork();
    (void)state;
    if (child == 0)
        for (;;)
            pause();
    assert_true(child > 0);
    assert_int_equal(child_wait(child, 20), -1);
    kill(child, SIGKILL);
    int how = child_wait(child, 10000);
    assert_true(how != -1 && WIFSIGNALED(how));
    assert_int_equal(child_wait(child, 10000), -1); /* there is none any more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_works_is_heard_and_its_noise_kept_apart),
        cmocka_unit_test(a_child_that_hangs_is_given_up),
        cmocka_unit_test(a_child_that_dies_says_how),
        cmocka_unit_test(a_child_that_does_not_end_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
