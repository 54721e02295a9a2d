/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters as the other end sends them. */
#include "bench/run.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void what_is_sent_is_received(void **state)
{
    static struct counters sent, got;
    struct msg text;
    (void)state;
    snprintf(sent.device, sizeof sent.device, "mlx5_0:1");
    sent.count = COUNTERS_MOST;
    for (unsigned i = 0; i < COUNTERS_MOST; i++) {
        struct counter *c = &sent.list[i];
        /* As long as a name can be, and as large as a value. */
        snprintf(c->name, sizeof c->name, "%02u%061d", i, 0);
        c->known = i % 7;
        c->value = c->known ? UINT64_MAX - i : 0;
    }
    memset(sent.why, 'w', sizeof sent.why - 1);
    assert_int_equal(counters_write(&sent, &text), 0);
    assert_int_equal(counters_parse(&got, &text), 0);
    assert_string_equal(got.device, sent.device);
    assert_string_equal(got.why, sent.why);
    assert_int_equal(got.count, COUNTERS_MOST);
    for (unsigned i = 0; i < COUNTERS_MOST; i++) {
        assert_string_equal(got.list[i].name, sent.list[i].name);
        assert_int_equal(got.list[i].known, sent.list[i].known);
        assert_true(got.list[i].value == sent.list[i].value);
    }
}

static int parse(const char *text, size_t length)
{
    static struct counters got;
    struct msg msg = {.length = length};
    memcpy(msg.bytes, text, length);
    msg.bytes[length] = '\0';
    memset(&got, 0xff, sizeof got);
    int status = counters_parse(&got, &msg);
    assert_true(!status || (!got.count && !*got.device && !*got.why));
    return status;
}

static void an_end_without_counters_says_why(void **state)
{
    static const char some[] = "device=\nwhy=fabric soft uses no network device\n";
    (void)state;
    assert_int_equal(parse(some, strlen(some)), 0);
    assert_int_equal(parse("device=\nwhy=\n", 13), -EPROTO);
}

static void anything_else_is_refused(void **state)
{
#define ONE "device=lo\nwhy=\nc.a=1\n"
    static const char *const bad[] = {"",
                                      "\n",
                                      "c.a=1\n",
                                      "device=lo\nc.a=1\n",
                                      "why=\nc.a=1\n",
                                      "device=/etc\nwhy=\nc.a=1\n",
                                      "device=..\nwhy=\nc.a=1\n",
                                      "device=a\033[2J\nwhy=\nc.a=1\n",
                                      ONE "\nc.b=1\n",
                                      ONE "x=1\n",
                                      ONE "c.a=2\n",
                                      ONE "c.=2\n",
                                      ONE "c.b\n",
                                      ONE "c.b=\n",
                                      ONE "c.b=-1\n",
                                      ONE "c.b=--\n",
                                      ONE "c.b= 1\n",
                                      ONE "c.b=1 \n",
                                      ONE "c.b=0x1\n",
                                      ONE "c.b=18446744073709551616\n",
                                      ONE "c.b=1e3\n",
                                      ONE "counter.\"b\"=1\n",
                                      ONE "c.b c=1\n",
                                      ONE "c.../b=1\n"};
    char text[MSG_MAX];
    (void)state;
    assert_int_equal(parse(ONE, strlen(ONE)), 0);
    for (size_t i = 0; i < LENGTH(bad); i++)
        if (parse(bad[i], strlen(bad[i])) != -EPROTO)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(parse(ONE "\0c.b=1\n", strlen(ONE) + 7), -EPROTO);
    int n = snprintf(text, sizeof text, ONE "c.%064d=1\n", 0);
    assert_int_equal(parse(text, (size_t)n), -EPROTO);
    n = snprintf(text, sizeof text, "device=%064d\nwhy=\nc.a=1\n", 0);
    assert_int_equal(parse(text, (size_t)n), -EPROTO);
    n = snprintf(text, sizeof text, "device=lo\nwhy=\n");
    for (int i = 0; i <= COUNTERS_MOST; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "c.c%d=1\n", i);
    assert_int_equal(parse(text, (size_t)n), -EPROTO);
}

static void a_reason_cannot_talk_to_a_terminal(void **state)
{
    static struct counters got;
    struct msg text;
    (void)state;
    assert_int_equal(msg_print(&text, "device=\nwhy=a\033[2Jb\n"), 0);
    assert_int_equal(counters_parse(&got, &text), 0);
    assert_string_equal(got.why, "a?[2Jb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_received),
        cmocka_unit_test(an_end_without_counters_says_why),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(a_reason_cannot_talk_to_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
