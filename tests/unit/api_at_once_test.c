/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with one end's parameters ends both at once, and that end alone too. The timeout is
 * so long that a wait for the other end would be seen. */
#include "support/ends.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SILENCE_MS = 60000, AT_ONCE_S = 20 };

static struct weft_params patient(void)
{
    struct weft_params params = small("write", "stream", NULL);
    params.timeout_ms = SILENCE_MS;
    return params;
}

/* Each is wrong by itself, whatever the other end has. */
static const struct wrong {
    const char *words;
    int status;
    size_t at;
    uint64_t value;
    const char *text;
} wrongs[] = {
    {"size is out of range: \"0\"", -EINVAL, offsetof(struct weft_params, size), 0, NULL},
    {"begin with weft_params_init", -EINVAL, offsetof(struct weft_params, bytes), 3, NULL},
    {"op is not known: \"put\"", -EINVAL, offsetof(struct weft_params, op), 0, "put"},
    {"outstanding is out of range", -EINVAL, offsetof(struct weft_params, outstanding), 0, NULL},
    {"no kind of memory \"paper\"", -EINVAL, offsetof(struct weft_params, memory), 0, "paper"},
    {"no device \"sofft\"", -ENODEV, offsetof(struct weft_params, device), 0, "sofft"},
};

static void make_wrong(struct weft_params *params, const struct wrong *wrong)
{
    char *at = (char *)params + wrong->at;
    if (wrong->text)
        memcpy(at, &wrong->text, sizeof wrong->text);
    else
        memcpy(at, &wrong->value, sizeof wrong->value);
}

static void expect_at_once(struct end *end, const struct wrong *wrong)
{
    double begin = seconds();
    run_end(end);
    if (end->status != wrong->status)
        fail_msg("%d instead of %d: %s", end->status, wrong->status, end->reason);
    assert_contains(end->reason, wrong->words);
    assert_null(strstr(end->reason, "--"));
    assert_true(seconds() - begin < AT_ONCE_S);
}

/* ---- nobody else is there ---- */

static void alone(const struct weft_bootstrap pair[2])
{
    const struct weft_params good = small("write", "stream", NULL);
    for (int index = 0; index < 2; index++)
        for (size_t i = 0; i < LENGTH(wrongs); i++) {
            struct end ends[2];
            const struct weft_params params = patient();
            prepare(ends, &params, pair);
            make_wrong(&ends[index].params, &wrongs[i]);
            expect_at_once(&ends[index], &wrongs[i]);
            /* The other comes later, and is told. */
            expect_at_once(&ends[1 - index], &wrongs[i]);
            expect_good(&good, pair);
        }
}

static void wrong_parameters_are_refused_at_once_where_nobody_else_is_there_yet(void **state)
{
    (void)state;
    with_threads(alone);
}

static void both(const struct weft_bootstrap pair[2])
{
    const struct weft_params good = small("write", "stream", NULL);
    for (int first = 0; first < 2; first++)
        for (size_t i = 0; i + 1 < LENGTH(wrongs); i++) {
            struct end ends[2];
            const struct weft_params params = patient();
            prepare(ends, &params, pair);
            make_wrong(&ends[first].params, &wrongs[i]);
            make_wrong(&ends[1 - first].params, &wrongs[i + 1]);
            expect_at_once(&ends[first], &wrongs[i]);
            expect_at_once(&ends[1 - first], &wrongs[i + 1]);
            expect_good(&good, pair);
        }
}

static void two_ends_that_are_both_wrong_each_say_so_at_once_and_can_go_on(void **state)
{
    (void)state;
    with_threads(both);
}

static int into_nothing(void *arg, const void *bytes, size_t length)
{
    (void)arg;
    (void)bytes;
    (void)length;
    return 0;
}

static int out_of_nothing(void *arg, void *bytes, size_t room, size_t *length)
{
    (void)arg;
    (void)bytes;
    (void)room;
    *length = 0;
    return 0;
}

static void a_bootstrap_of_the_callers_own_is_not_waited_for_either(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 2; index++) {
        struct weft_bootstrap nobody = {
            .size = 2, .index = index, .publish = into_nothing, .receive = out_of_nothing};
        struct end end = {.params = patient(), .bootstrap = &nobody};
        make_wrong(&end.params, &wrongs[0]);
        expect_at_once(&end, &wrongs[0]);
    }
}

/* ---- both are there ---- */

static void expect_both(struct end ends[2], const char *words)
{
    double begin = seconds();
    expect_refused(ends, -EINVAL, words);
    assert_true(seconds() - begin < AT_ONCE_S);
}

static void in_threads(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = patient();
    for (int index = 0; index < 2; index++) {
        struct end ends[2];
        prepare(ends, &params, pair);
        ends[index].params.size = 16;
        expect_both(ends, "size is");
        prepare(ends, &params, pair);
        ends[index].params.size = 0;
        expect_both(ends, "size is out of range");
    }
}

static void another_size_at_one_end_ends_two_threads_at_once(void **state)
{
    (void)state;
    with_threads(in_threads);
}

/* The reason of the other process comes back through a pipe. */
static void in_processes(const struct weft_bootstrap pair[2], int index, uint64_t size)
{
    const struct weft_params params = patient();
    struct end ends[2];
    int pipes[2], how;
    double begin = seconds();
    prepare(ends, &params, pair);
    ends[index].params.size = size;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (!child) {
        run_end(&ends[1]);
        _exit(write(pipes[1], ends[1].reason, sizeof ends[1].reason) < 0 ? 99 : -ends[1].status);
    }
    assert_true(child > 0);
    run_end(&ends[0]);
    assert_true(read(pipes[0], ends[1].reason, sizeof ends[1].reason) > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == EINVAL);
    assert_int_equal(ends[0].status, -EINVAL);
    assert_contains(ends[0].reason, "size");
    assert_string_equal(ends[0].reason, ends[1].reason);
    assert_true(seconds() - begin < AT_ONCE_S);
    close(pipes[0]);
    close(pipes[1]);
}

static void another_size_at_one_end_ends_two_processes_at_once(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++)
        for (uint64_t size = 0; size <= 16; size += 16) {
            struct weft_bootstrap pair[2];
            assert_int_equal(weft_threads(pair), 0);
            in_processes(pair, index, size);
            weft_close(&pair[0]);
            weft_close(&pair[1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_size_at_one_end_ends_two_processes_at_once),
        cmocka_unit_test(another_size_at_one_end_ends_two_threads_at_once),
        cmocka_unit_test(wrong_parameters_are_refused_at_once_where_nobody_else_is_there_yet),
        cmocka_unit_test(two_ends_that_are_both_wrong_each_say_so_at_once_and_can_go_on),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_is_not_waited_for_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
