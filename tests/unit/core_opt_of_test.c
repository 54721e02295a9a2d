/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows that stand for another row under a name of their own: what they take from it, what they have
 * themselves, and what the other end does to them. */
#include "core/opt.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What two ends share, first in what a tool fills. */
struct shared {
    uint64_t duration_ms, iterations, window, mine;
    struct opt_range size;
    int colour;
    bool verify;
};

struct options {
    struct shared shared;
    uint64_t port;
};

static const char *const colours[] = {"red", "green", "Blue", NULL};
static const char *const shades[] = {"light", "dark", "none", NULL};

enum { DURATION, ITERATIONS, WINDOW, SIZE, COLOUR, VERIFY, MINE };
#define FIELD(member) .field = offsetof(struct shared, member)
#define OF(row)       .of = (&base[row])

/* clang-format off */
static const struct opt base[] = {
    [DURATION] = {.name = "duration_ms", .type = OPT_NUMBER, FIELD(duration_ms), .max = 1000000,
     .fallback = "0", .flags = OPT_SHARED | OPT_SETTING},
    [ITERATIONS] = {.name = "iterations", .type = OPT_AMOUNT, FIELD(iterations), .max = UINT64_MAX,
     .fallback = "100", .flags = OPT_SHARED | OPT_SETTING},
    [WINDOW] = {.name = "window", .type = OPT_AMOUNT, FIELD(window), .min = 2, .max = 1024,
     .fallback = "8", .flags = OPT_SHARED | OPT_SETTING},
    [SIZE] = {.name = "size", .type = OPT_SIZES, FIELD(size), .min = 1, .max = UINT32_MAX,
     .fallback = "8", .flags = OPT_SHARED | OPT_SETTING},
    [COLOUR] = {.name = "colour", .type = OPT_CHOICE, FIELD(colour), .choices = colours,
     .flags = OPT_SHARED | OPT_SETTING},
    [VERIFY] = {.name = "verify", .type = OPT_FLAG, FIELD(verify), .flags = OPT_SHARED | OPT_SETTING},
    [MINE] = {.name = "mine", .type = OPT_NUMBER, FIELD(mine), .max = 9, .flags = OPT_SETTING},
    {0}};
static const struct opt rows[] = {
    {.letter = 'D', .name = "seconds", OF(DURATION), .scale = 1000, .min = 1, .max = 1000,
     .word = "SEC", .help = "How long"},
    {.letter = 'n', .name = "iters", OF(ITERATIONS), .type = OPT_NUMBER, .min = 1, .max = 50,
     .fallback = "5", .word = "N", .help = "How many"},
    {.letter = 'W', .name = "window", OF(WINDOW), .fallback = "16", .word = "N", .help = "At once"},
    {.name = "thousands", OF(ITERATIONS), .scale = 1000, .max = UINT64_MAX, .word = "N",
     .help = "In thousands"},
    {.letter = 's', .name = "message", OF(SIZE), .type = OPT_AMOUNT, .fallback = "64", .word = "N",
     .help = "One size"},
    {.letter = 'c', .name = "colour", OF(COLOUR), .fallback = "green", .word = "C", .help = "Which"},
    {.name = "shade", OF(COLOUR), .choices = shades, .word = "C", .help = "Which, by other names"},
    {.letter = 'v', .name = "check", OF(VERIFY), .help = "Check"},
    {.letter = 'm', .name = "mine", OF(MINE), .word = "N", .help = "Of this end"},
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, .field = offsetof(struct options, port),
     .max = 65535, .fallback = "7", .word = "N", .help = "Of this end"},
    {0}};
/* clang-format on */
OPT_FITS(base);
OPT_FITS(rows);

struct command {
    struct options options;
    struct opt_set set;
};

enum { WORDS = 8 };

static int parse(struct command *c, char *const *words)
{
    const char *place;
    int argc = 0, given;
    while (words[argc])
        argc++;
    *c = (struct command){.set = {.rows = rows, .base = &c->options}};
    opt_defaults(&c->set);
    return opt_parse(&c->set, argc, words, &place, 0, &given);
}

#define PARSE(command, ...) parse(command, (char *const[WORDS + 1]){__VA_ARGS__})

static const char *formatted(const struct command *c, const char *name)
{
    static char text[64];
    opt_format(opt_find(&c->set, name), c->set.base, text, sizeof text);
    return text;
}

/* ---- what is whose ---- */

static void a_row_takes_field_and_type_from_the_one_it_stands_for(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-v", "-c", "blue", "-W", "1K"), 0);
    assert_true(c.options.shared.verify);
    assert_int_equal(c.options.shared.colour, 3);
    assert_int_equal(c.options.shared.window, 1024);
    assert_string_equal(formatted(&c, "colour"), "Blue");
    assert_string_equal(opt_choice_name(opt_find(&c.set, "colour"), 1), "red");
    assert_int_equal(PARSE(&c, "--check=1"), -EINVAL);
    assert_contains(fail_reason(), "--check takes no value");
}

static void its_default_is_its_own(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, NULL), 0);
    assert_int_equal(c.options.shared.window, 16);
    assert_int_equal(c.options.shared.colour, 0); /* the later row of that field has none */
    assert_int_equal(c.options.shared.duration_ms, 0);
    assert_string_equal(formatted(&c, "seconds"), "");
    assert_int_equal(c.options.port, 7);
}

static void another_type_reads_the_same_field_otherwise(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-n", "1K"), -EINVAL); /* a plain number here */
    assert_contains(fail_reason(), "--iters is not a whole number");
    assert_int_equal(PARSE(&c, "-s", "8:16"), -EINVAL);
    assert_int_equal(PARSE(&c, "-s", "4K"), 0);
    assert_int_equal(c.options.shared.size.min, 4096);
    assert_string_equal(formatted(&c, "message"), "4096");
}

static void other_choices_are_other_names_of_the_same(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "--shade", "dark"), 0);
    assert_int_equal(c.options.shared.colour, 2);
    assert_int_equal(PARSE(&c, "--shade", "red"), -EINVAL);
    assert_contains(fail_reason(), "light, dark, none");
}

static void limits_are_its_own_or_those_of_the_other(void **state)
{
    static const struct {
        char *words[3];
        int status;
    } cases[] = {{{"-W", "2"}, 0},          {{"-W", "1024"}, 0},
                 {{"-W", "1"}, -EINVAL},    {{"-W", "1025"}, -EINVAL},
                 {{"-n", "1"}, 0},          {{"-n", "50"}, 0},
                 {{"-n", "0"}, -EINVAL},    {{"-n", "51"}, -EINVAL},
                 {{"-s", "4294967295"}, 0}, {{"-s", "4294967296"}, -EINVAL},
                 {{"-s", "0"}, -EINVAL}};
    struct command c;
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++)
        if (parse(&c, cases[i].words) != cases[i].status)
            fail_msg("%s %s: %s", cases[i].words[0], cases[i].words[1], fail_reason());
    assert_int_equal(PARSE(&c, "-W", "1"), -EINVAL);
    assert_contains(fail_reason(), "accepted: 2 to 1024");
}

static void a_scale_is_between_what_is_typed_and_what_is_meant(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-D", "5"), 0);
    assert_int_equal(c.options.shared.duration_ms, 5000);
    assert_string_equal(formatted(&c, "seconds"), "5");
    /* Limits are of what is typed. */
    assert_int_equal(PARSE(&c, "-D", "1000"), 0);
    assert_int_equal(c.options.shared.duration_ms, 1000000);
    assert_int_equal(PARSE(&c, "-D", "1001"), -EINVAL);
    assert_contains(fail_reason(), "accepted: 1 to 1000)");
    assert_int_equal(PARSE(&c, "-D", "0"), -EINVAL);
}

static void a_scale_does_not_overflow(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "--thousands", "18446744073709551"), 0);
    assert_int_equal(c.options.shared.iterations, UINT64_C(18446744073709551000));
    assert_int_equal(PARSE(&c, "--thousands", "18446744073709552"), -EINVAL);
    assert_contains(fail_reason(), "accepted: up to 18446744073709551");
}

/* ---- the other end ---- */

static char overrides[256];

static void overridden(const struct opt *row, const char *was, const char *now)
{
    snprintf(overrides + strlen(overrides), sizeof overrides - strlen(overrides), "[%s %s %s]",
             row->name, was, now);
}

/* The client's shared rows become the server's, as tools do it. */
static void adopt(struct command *server, const struct command *client)
{
    struct opt_set from = {.rows = base, .base = (void *)&client->options};
    struct opt_set to = {.rows = base, .base = &server->options};
    struct options before = server->options;
    struct msg text = {0};
    assert_int_equal(opt_encode(&from, &text), 0);
    assert_int_equal(opt_decode(&to, &text), 0);
    overrides[0] = '\0';
    opt_adopt(&server->set, &before, overridden);
}

static void rows_that_the_user_set_are_told_what_they_become(void **state)
{
    struct command client, server;
    (void)state;
    assert_int_equal(PARSE(&client, "-D3", "-n6", "-W4", "-m1", "-p1"), 0);
    client.options.shared.size.max = client.options.shared.size.min;
    assert_int_equal(PARSE(&server, "-D2", "-n6", "-v", "-m2", "-p2"), 0);
    adopt(&server, &client);
    /* In the words of the row; not what is the same, was a default or is this end's own. */
    assert_string_equal(overrides, "[seconds 2 3][check 1 0]");
    assert_int_equal(server.options.shared.duration_ms, 3000);
    assert_int_equal(server.options.shared.window, 4);
    assert_int_equal(server.options.shared.mine, 2);
    assert_int_equal(server.options.port, 2);
}

static void what_the_user_set_and_the_client_left_open_is_told_too(void **state)
{
    struct command client, server;
    (void)state;
    assert_int_equal(PARSE(&client, NULL), 0);
    client.options.shared.size.max = client.options.shared.size.min;
    assert_int_equal(PARSE(&server, "-D2", "-c", "red"), 0);
    adopt(&server, &client);
    assert_string_equal(overrides, "[seconds 2 ][colour red ]");
    assert_int_equal(server.options.shared.colour, 0);
}

static void rows_of_shared_rows_are_the_peers_afterwards(void **state)
{
    struct command client, server;
    (void)state;
    assert_int_equal(PARSE(&client, "-D3"), 0);
    client.options.shared.size.max = client.options.shared.size.min;
    assert_int_equal(PARSE(&server, "-D2", "-m2", "-p2"), 0);
    adopt(&server, &client);
    for (const struct opt *row = opt_next(&server.set, NULL); row;
         row = opt_next(&server.set, row)) {
        bool shared = row->of && row->of->flags & OPT_SHARED;
        if ((opt_origin(&server.set, row) == OPT_BY_PEER) != shared)
            fail_msg("--%s: %d", row->name, opt_origin(&server.set, row));
    }
    assert_int_equal(opt_origin(&server.set, opt_find(&server.set, "mine")), OPT_BY_USER);
    /* What came from a client is not the user's any more. */
    client.options.shared.duration_ms = 4000;
    adopt(&server, &client);
    assert_string_equal(overrides, "");
    assert_int_equal(server.options.shared.duration_ms, 4000);
}

static void nobody_needs_to_be_told(void **state)
{
    struct command server;
    (void)state;
    assert_int_equal(PARSE(&server, "-D2"), 0);
    struct options before = server.options;
    server.options.shared.duration_ms = 9000;
    opt_adopt(&server.set, &before, NULL);
    assert_int_equal(opt_origin(&server.set, opt_find(&server.set, "seconds")), OPT_BY_PEER);
}

static void rows_that_another_tool_has_are_left_alone(void **state)
{
    static const struct opt taken[] = {
        {.name = "seconds", OF(DURATION), .scale = 1000, .max = 1000, .takes = 1},
        {.name = "minutes", OF(DURATION), .scale = 60000, .max = 16, .takes = 2},
        {0}};
    struct options options = {0}, before = {0};
    struct opt_set set = {.rows = taken, .takes = 2, .base = &options};
    (void)state;
    assert_int_equal(opt_assign(&set, &taken[1], "2", OPT_BY_USER), 0);
    before = options;
    options.shared.duration_ms = 180000;
    overrides[0] = '\0';
    opt_adopt(&set, &before, overridden);
    assert_string_equal(overrides, "[minutes 2 3]");
    assert_int_equal(opt_origin(&set, &taken[0]), OPT_BY_DEFAULT);
}

/* ---- how many ---- */

static void as_many_rows_as_fit_have_their_origins(void **state)
{
    static struct opt many[OPT_MAX];
    OPT_FITS(many);
    static char names[OPT_MAX][8];
    bool fields[OPT_MAX] = {false};
    struct opt_set set = {.rows = many, .base = fields};
    (void)state;
    for (size_t i = 0; i + 1 < OPT_MAX; i++) {
        snprintf(names[i], sizeof names[i], "row%zu", i);
        many[i] = (struct opt){.name = names[i], .type = OPT_FLAG, .field = i * sizeof(bool)};
    }
    opt_defaults(&set);
    for (size_t i = 0; i + 1 < OPT_MAX; i++)
        assert_int_equal(opt_assign(&set, opt_find(&set, names[i]), "1", OPT_BY_USER), 0);
    for (size_t i = 0; i + 1 < OPT_MAX; i++)
        assert_true(fields[i] && opt_origin(&set, &many[i]) == OPT_BY_USER);
    assert_true(sizeof set.origin / sizeof *set.origin >= LENGTH(many));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_takes_field_and_type_from_the_one_it_stands_for),
        cmocka_unit_test(its_default_is_its_own),
        cmocka_unit_test(another_type_reads_the_same_field_otherwise),
        cmocka_unit_test(other_choices_are_other_names_of_the_same),
        cmocka_unit_test(limits_are_its_own_or_those_of_the_other),
        cmocka_unit_test(a_scale_is_between_what_is_typed_and_what_is_meant),
        cmocka_unit_test(a_scale_does_not_overflow),
        cmocka_unit_test(rows_that_the_user_set_are_told_what_they_become),
        cmocka_unit_test(what_the_user_set_and_the_client_left_open_is_told_too),
        cmocka_unit_test(rows_of_shared_rows_are_the_peers_afterwards),
        cmocka_unit_test(nobody_needs_to_be_told),
        cmocka_unit_test(rows_that_another_tool_has_are_left_alone),
        cmocka_unit_test(as_many_rows_as_fit_have_their_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
