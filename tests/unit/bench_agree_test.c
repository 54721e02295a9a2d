/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends that agree on a run: what each says of the other's version. */
#include "bench/session.h"
#include "support/specs.h"

#include <errno.h>
#include <stdio.h>

static char warned[1024];
static unsigned warnings;

static void hear(const char *sentence)
{
    snprintf(warned, sizeof warned, "%s", sentence);
    warnings++;
}

struct ends {
    struct peer *peers[2];
    struct session sessions[2];
    struct offer offer;
    struct spec spec;
};

static void open_ends(struct ends *e)
{
    const struct peer_terms terms = {.timeout_ms = 10000};
    *e = (struct ends){.offer = {.device = "null", .given = true, .service = 1}};
    assert_int_equal(peer_threads(e->peers, &terms), 0);
    for (int i = 0; i < 2; i++) {
        session_init(&e->sessions[i]);
        e->sessions[i].peer = e->peers[i];
    }
    e->spec = spec_of("read", "stream");
    warned[0] = '\0';
    warnings = 0;
    warn_to(hear);
}

static void close_ends(struct ends *e)
{
    warn_to(NULL);
    for (int i = 0; i < 2; i++) {
        session_close(&e->sessions[i], 0);
        peer_close(e->peers[i]);
    }
}

/* The text as an end of version 9.9 would have written it. */
static void make_newer(struct msg *text)
{
    struct msg changed = {0};
    char line[64];
    snprintf(line, sizeof line, ".weft=%s\n", core_version());
    const char *at = strstr(text->bytes, line);
    assert_non_null(at);
    assert_int_equal(msg_print(&changed, "%.*s.weft=9.9\n%s", (int)(at - text->bytes), text->bytes,
                               at + strlen(line)),
                     0);
    *text = changed;
}

static void ends_of_two_versions_both_say_so_and_only_once(void **state)
{
    struct ends e;
    struct msg proposal = {0}, answer = {0};
    char expected[96];
    (void)state;
    open_ends(&e);
    assert_int_equal(session_propose(&e.sessions[0], &e.offer, &e.spec, &proposal), 0);
    make_newer(&proposal);
    assert_int_equal(session_accept(&e.sessions[1], &e.offer, &proposal, &e.spec, false, &answer),
                     0);
    snprintf(expected, sizeof expected, "the client is Weft 9.9, this end is Weft %s",
             core_version());
    assert_string_equal(warned, expected);
    make_newer(&answer);
    assert_int_equal(session_join(&e.sessions[0], &e.offer, &e.spec, &answer), 0);
    snprintf(expected, sizeof expected, "the server is Weft 9.9, this end is Weft %s",
             core_version());
    assert_string_equal(warned, expected);
    assert_int_equal(warnings, 2);
    e.peers[1]->runs = 2;
    answer = (struct msg){0};
    session_accept(&e.sessions[1], &e.offer, &proposal, &e.spec, false, &answer);
    assert_int_equal(warnings, 2);
    close_ends(&e);
}

static void ends_of_one_version_say_nothing(void **state)
{
    struct ends e;
    struct msg proposal = {0}, answer = {0};
    (void)state;
    open_ends(&e);
    assert_int_equal(session_propose(&e.sessions[0], &e.offer, &e.spec, &proposal), 0);
    assert_int_equal(session_accept(&e.sessions[1], &e.offer, &proposal, &e.spec, false, &answer),
                     0);
    assert_int_equal(session_join(&e.sessions[0], &e.offer, &e.spec, &answer), 0);
    assert_int_equal(warnings, 0);
    close_ends(&e);
}

static void what_an_older_end_does_not_know_is_refused_with_both_versions(void **state)
{
    struct ends e;
    struct msg proposal = {0}, answer = {0};
    (void)state;
    open_ends(&e);
    assert_int_equal(session_propose(&e.sessions[0], &e.offer, &e.spec, &proposal), 0);
    make_newer(&proposal);
    assert_int_equal(msg_add(&proposal, "colour=red\n"), 0);
    assert_int_equal(session_accept(&e.sessions[1], &e.offer, &proposal, &e.spec, false, &answer),
                     -EINVAL);
    assert_contains(fail_reason(), "colour is not known here");
    assert_contains(fail_reason(), "the client is Weft 9.9, the server Weft ");
    close_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_two_versions_both_say_so_and_only_once),
        cmocka_unit_test(ends_of_one_version_say_nothing),
        cmocka_unit_test(what_an_older_end_does_not_know_is_refused_with_both_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
