/* SPDX-License-Identifier: BSD-3-Clause */
/* One suite for every fabric: conformance [--if-there] DEVICE [KIND KIND], with the initiator's and
 * the target's kind of memory. What fabric.h promises is checked between two real processes: this
 * one initiates, a child is the target and looks into its own memory when asked. What a fabric says
 * it cannot do is skipped by name, never passed. WEFT_CONFORMANCE="*_key_*" runs some of the tests.
 */
#include "conformance.h"
#include "core/clock.h"
#include "fabric/choose.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- without a connection ---- */

static void every_table_entry_that_is_not_a_verb_is_there(void **state)
{
    (void)state;
    const struct fabric_ops *ops = choice.ops;
    assert_int_equal(ops->abi, FABRIC_ABI);
    assert_non_null(ops->name);
    assert_non_null(ops->what);
    assert_true(ops->list && ops->open && ops->close && ops->expose && ops->withdraw);
    assert_true(ops->address && ops->connect && ops->leave && ops->poll);
}

static void an_unknown_device_is_refused_in_a_sentence(void **state)
{
    (void)state;
    struct fabric *handle;
    struct fabric_facts facts;
    struct fabric_want want = {.device = "no-such-device", .here = "", .service = 1};
    fail(0, "%s", "");
    int status = choice.ops->open(&handle, &want, &facts);
    assert_true(status < 0);
    assert_non_null(strstr(fail_reason(), "no-such-device"));
}

/* A fabric without settings need not look at them: its caller refuses them. */
static void a_setting_is_taken_or_refused_in_a_sentence(void **state)
{
    (void)state;
    struct fabric *handle;
    struct fabric_facts facts;
    struct end end;
    assert_int_equal(end_open(&end, NULL, NULL), 0);
    const char *names = end.facts.tunes;
    end_close(&end);
    if (!names) {
        print_message("# %s has no settings\n", choice.ops->name);
        skip();
    }
    struct fabric_want want = {.device = choice.device, .here = "", .tunes = "no_such=1"};
    assert_true(choice.ops->open(&handle, &want, &facts) < 0);
    assert_non_null(strstr(fail_reason(), "no_such=1"));
    for (const char *at = names; at && *at; at += strcspn(at, " "), at += *at == ' ') {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        want.tunes = name;
        int status = choice.ops->open(&handle, &want, &facts);
        if (status)
            assert_non_null(strstr(fail_reason(), name));
        else
            choice.ops->close(handle);
    }
}

static void note_device(void *arg, const char *name, const char *what)
{
    char *first = arg;
    assert_true(*name && *what);
    if (!*first)
        snprintf(first, FABRIC_DEVICE_MAX, "%s", name);
}

static void a_listed_device_can_be_chosen(void **state)
{
    (void)state;
    char first[FABRIC_DEVICE_MAX] = "", text[FABRIC_DEVICE_MAX + 40];
    struct fabric_choice again;
    assert_int_equal(choice.ops->list(note_device, first), 0);
    if (!*first) {
        print_message("# %s has no device here\n", choice.ops->name);
        skip();
    }
    /* A fabric of one device may be called by its own name. */
    if (strcmp(first, choice.ops->name) == 0)
        snprintf(text, sizeof text, "%s", first);
    else
        snprintf(text, sizeof text, "%s:%s", choice.ops->name, first);
    assert_int_equal(fabric_choose(text, &again), 0);
    assert_ptr_equal(again.ops, choice.ops);
}

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void opening_and_closing_leaves_no_descriptor_behind(void **state)
{
    (void)state;
    struct end end;
    assert_int_equal(end_open(&end, NULL, NULL), 0);
    end_close(&end);
    int before = open_descriptors();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(end_open(&end, NULL, NULL), 0);
        end_close(&end);
    }
    assert_int_equal(open_descriptors(), before);
}

static void connect_does_not_wait_for_an_end_that_is_not_there(void **state)
{
    (void)state;
    struct end mine, other;
    struct msg address;
    struct remote remote;
    const struct fabric_meeting meeting = {
        .nonce = "00ff", .address = &address, .keys = &other.key, .count = 1};
    assert_int_equal(end_open(&mine, NULL, NULL), 0);
    assert_int_equal(end_open(&other, NULL, NULL), 0);
    assert_int_equal(choice.ops->address(other.handle, &address), 0);
    uint64_t since_ms = clock_ms();
    int status = 0;
    for (int i = 0; i < 3 && status == LATER; i++)
        status = choice.ops->connect(mine.handle, &meeting, &remote);
    if (mine.facts.alone)
        assert_int_equal(status, DONE);
    else
        assert_true(status != DONE);
    assert_true(clock_ms() - since_ms < 5000);
    end_close(&other);
    end_close(&mine);
}

static void connect_to_nonsense_is_an_error_or_goes_on(void **state)
{
    (void)state;
    struct end end;
    struct msg nonsense;
    struct remote remote = {0};
    const struct fabric_meeting meeting = {
        .nonce = "00ff", .address = &nonsense, .keys = &nonsense, .count = 1};
    assert_int_equal(end_open(&end, NULL, NULL), 0);
    if (end.facts.alone) {
        end_close(&end);
        skip();
    }
    assert_int_equal(msg_print(&nonsense, "%s", "\x7f\x01 not an address\n\n=\n"), 0);
    assert_true(choice.ops->connect(end.handle, &meeting, &remote) != DONE);
    end_close(&end);
}

/* ---- facts ---- */

static void facts_agree_with_the_table(void **state)
{
    struct pair *pair = *state;
    const struct fabric_facts *facts = &pair->end.facts;
    for (unsigned verb = 0; verb < VERBS; verb++) {
        if (!(facts->verbs & 1U << verb))
            continue;
        assert_non_null(verb_of((enum verb)verb));
        assert_true(facts->proves[verb] && *facts->proves[verb]);
    }
    assert_true(*facts->form && *facts->self);
    assert_true(!facts->why_no_service || *facts->why_no_service);
    assert_true(facts->depth >= 1);
}

/* What has two sides has both, and says what the caller must know of it. */
static void tags_streams_and_events_are_whole(void **state)
{
    struct pair *pair = *state;
    const struct fabric_facts *facts = &pair->end.facts;
    const struct fabric_ops *ops = choice.ops;
    unsigned tags = VERB(TSEND) | VERB(TRECV), streams = VERB(STREAM_SEND) | VERB(STREAM_RECV);
    assert_true(!(facts->verbs & tags) || (facts->verbs & tags) == tags);
    assert_true(!(facts->verbs & streams) || (facts->verbs & streams) == streams);
    if (facts->verbs & tags) {
        assert_true(facts->tag_bits && facts->max_unexpected);
        assert_true(facts->why_no_probe ? *facts->why_no_probe : ops->tprobe != NULL);
    }
    assert_true(facts->why_no_events ? *facts->why_no_events : ops->event_fd && ops->arm);
}

static void every_hint_is_honoured_or_has_its_reason(void **state)
{
    struct pair *pair = *state;
    const struct fabric_facts *facts = &pair->end.facts;
    for (unsigned hint = 0; hint < HINTS; hint++)
        if (!(facts->honours & 1U << hint))
            assert_true(facts->why_not[hint] && *facts->why_not[hint]);
    if (facts->honours & HINT(INLINE))
        assert_true(facts->max_inline > 0);
}

static void polling_with_nothing_under_way_yields_nothing(void **state)
{
    struct pair *pair = *state;
    struct completion completion;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(choice.ops->poll(pair->end.handle, &completion, 1), 0);
}

static const struct CMUnitTest general_tests[] = {
    cmocka_unit_test(every_table_entry_that_is_not_a_verb_is_there),
    cmocka_unit_test(an_unknown_device_is_refused_in_a_sentence),
    cmocka_unit_test(a_setting_is_taken_or_refused_in_a_sentence),
    cmocka_unit_test(a_listed_device_can_be_chosen),
    cmocka_unit_test(opening_and_closing_leaves_no_descriptor_behind),
    cmocka_unit_test(connect_does_not_wait_for_an_end_that_is_not_there),
    cmocka_unit_test(connect_to_nonsense_is_an_error_or_goes_on),
    WITH_PAIR(facts_agree_with_the_table),
    WITH_PAIR(tags_streams_and_events_are_whole),
    WITH_PAIR(every_hint_is_honoured_or_has_its_reason),
    WITH_PAIR(polling_with_nothing_under_way_yields_nothing),
};
static const struct topic general_topic = {general_tests, LENGTH(general_tests)};

/* Does this machine have the device, and memory of both kinds for each end? */
static bool is_there(void)
{
    struct fabric_facts facts;
    struct region regions[4] = {0};
    bool there = fabric_try(&choice, 1, 0, &facts) != -ENODEV;
    for (size_t i = 0; there && i < LENGTH(regions); i++) {
        const struct memory_ops *kind = memory_kinds[i % 2];
        there = !kind->alloc(&regions[i], REGION_BYTES, kind);
    }
    for (size_t i = 0; i < LENGTH(regions); i++)
        if (regions[i].kind)
            regions[i].kind->free(&regions[i]);
    return there;
}

/* ---- the run ---- */

/* What a process has that runs tests, and the next one goes on from. */
struct course {
    struct CMUnitTest tests[256];
    size_t count, next;
    bool looked;  /* whether the device is there */
    bool running; /* a test */
};

static void add_topics(struct course *course, const char *filter)
{
    const struct topic *const topics[] = {&general_topic, &write_topic,  &read_topic, &send_topic,
                                          &stream_topic,  &atomic_topic, &am_topic,   &leave_topic,
                                          &list_topic,    &event_topic,  &tag_topic,  &pieces_topic,
                                          &bytes_topic};
    for (size_t i = 0; i < LENGTH(topics); i++)
        for (size_t k = 0; k < topics[i]->count; k++) {
            assert(course->count < LENGTH(course->tests));
            if (!filter || !fnmatch(filter, topics[i]->tests[k].name, 0))
                course->tests[course->count++] = topics[i]->tests[k];
        }
}

static bool has_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int n = 0;
    if (!folder)
        return false;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n > 3; /* with . and .. */
}

/* Tests fork. A fabric's library may have threads for good once it was used, and what these hold at
 * that moment would be held in the child for ever: then, and after a failure, another process goes
 * on. */
static int run_some(struct course *course, bool if_there, const char *device)
{
    if (if_there && !course->looked && !is_there()) {
        printf("1..0 # SKIP %s\n", fail_reason());
        course->next = course->count;
        return 0;
    }
    course->looked = true;
    int failed = 0;
    do {
        course->running = true;
        failed = _cmocka_run_group_tests(device, &course->tests[course->next], 1, NULL, NULL);
        course->running = false;
        course->next++;
    } while (course->next < course->count && !failed && !has_threads());
    return failed != 0;
}

static int run_all(struct course *course, bool if_there, const char *device)
{
    int how, failed = 0;
    while (course->next < course->count) {
        size_t before = course->next;
        fflush(NULL);
        pid_t worker = fork();
        if (!worker)
            exit(run_some(course, if_there, device));
        if (worker < 0 || waitpid(worker, &how, 0) != worker)
            return 1;
        failed |= how != 0;
        if (course->running || (how && course->next == before)) {
            printf("not ok 1 - %s: its process ended with status 0x%x\n",
                   course->tests[course->next++].name, (unsigned)how);
            course->running = false;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    bool if_there = argc > 1 && strcmp(argv[1], "--if-there") == 0;
    int given = argc - 2 - if_there;
    for (int i = 0; i < 2 && given == 2; i++)
        memory_kinds[i] = memory_find(argv[argc - 2 + i]);
    if ((given && given != 2) || !memory_kinds[0] || !memory_kinds[1]) {
        fprintf(stderr, "usage: conformance [--if-there] DEVICE [MEMORY MEMORY]\n");
        return 2;
    }
    const char *device = argv[1 + if_there];
    if (fabric_choose(device, &choice)) {
        fprintf(stderr, "conformance: %s\n", fail_reason());
        return 1;
    }
    struct course *course =
        mmap(NULL, sizeof *course, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (course == MAP_FAILED)
        return 1;
    add_topics(course, getenv("WEFT_CONFORMANCE"));
    return run_all(course, if_there, device);
}
