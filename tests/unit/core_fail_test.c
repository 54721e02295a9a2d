/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences of failure: kept per thread, cut, quoted, and disarmed. */
#include "core/core.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char warned[256];

static void sink(const char *sentence)
{
    snprintf(warned, sizeof warned, "%s", sentence);
}

static void fail_returns_the_status_and_keeps_the_sentence(void **state)
{
    (void)state;
    assert_int_equal(fail(-EMSGSIZE, "%s: %d bytes", "cxi0", 9), -EMSGSIZE);
    assert_string_equal(fail_reason(), "cxi0: 9 bytes");
    assert_int_equal(fail(-EINTR, "again"), -EINTR);
    assert_string_equal(fail_reason(), "again");
}

/* Words of the other end do not reach a terminal as commands to it. */
static void fail_and_warn_disarm_control_characters(void **state)
{
    (void)state;
    fail(-EIO, "a%sb\n", "\033[2J\177\x9b");
    assert_string_equal(fail_reason(), "a?[2J??b ");
    warn_to(sink);
    warn("%s", "x\ty\xc2\x9bz\xc3\xbc");
    warn_to(NULL);
    assert_string_equal(warned, "x y??z\xc3\xbc");
}

static void fail_may_quote_the_sentence_before(void **state)
{
    (void)state;
    fail(-ENOMEM, "no memory");
    assert_int_equal(fail(-ENOMEM, "--report-all: %s (%s)", fail_reason(), fail_reason()), -ENOMEM);
    assert_string_equal(fail_reason(), "--report-all: no memory (no memory)");
}

static void fail_cuts_a_sentence_that_is_too_long(void **state)
{
    char word[3000];
    (void)state;
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(fail(-EIO, "%s", word), -EIO);
    assert_in_range(strlen(fail_reason()), 500, sizeof word - 2);
    assert_memory_equal(fail_reason(), word, strlen(fail_reason()));
}

struct two_reasons {
    char first[64], own[64];
};

static void *fail_elsewhere(void *arg)
{
    struct two_reasons *seen = arg;
    snprintf(seen->first, sizeof seen->first, "%s", fail_reason());
    fail(-EIO, "theirs");
    snprintf(seen->own, sizeof seen->own, "%s", fail_reason());
    return NULL;
}

static void fail_reason_belongs_to_its_thread(void **state)
{
    struct two_reasons seen = {"?", "?"};
    pthread_t thread;
    (void)state;
    fail(-EIO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    pthread_join(thread, NULL);
    assert_string_equal(seen.first, "");
    assert_string_equal(seen.own, "theirs");
    assert_string_equal(fail_reason(), "mine");
}

static void warn_goes_to_the_sink_and_without_one_nowhere(void **state)
{
    (void)state;
    fail(-EIO, "kept");
    warn_to(sink);
    warn("%d of %s", 3, "them");
    assert_string_equal(warned, "3 of them");
    warn_to(NULL);
    warn("unheard");
    assert_string_equal(warned, "3 of them");
    assert_string_equal(fail_reason(), "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_returns_the_status_and_keeps_the_sentence),
        cmocka_unit_test(fail_and_warn_disarm_control_characters),
        cmocka_unit_test(fail_may_quote_the_sentence_before),
        cmocka_unit_test(fail_cuts_a_sentence_that_is_too_long),
        cmocka_unit_test(fail_reason_belongs_to_its_thread),
        cmocka_unit_test(warn_goes_to_the_sink_and_without_one_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
