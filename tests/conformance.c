/* SPDX-License-Identifier: BSD-3-Clause */
/* One suite for every fabric: conformance DEVICE. What fabric.h promises is checked between two
 * real processes: this one initiates, a child is the target and looks into its own memory when
 * asked. What a fabric says it cannot do is skipped by name, never passed. */
#include "fabric/fabric.h"
#include "peer/peer.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not cmocka's */

enum { REGION_BYTES = 1 << 20, PATIENCE_MS = 10000, SILENCE_MS = 20000 };

static const char *device;
static struct fabric_choice choice;

/* ---- one end ---- */

struct end {
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    struct blob key;
    struct remote remote;
    struct peer *peer;
};

static int end_open(struct end *end, struct peer *peer)
{
    struct fabric_want want = {.device = choice.device,
                               .here = "127.0.0.1",
                               .nonce = "0123456789abcdef0123456789abcdef",
                               .service = 1,
                               .verbs = (1U << VERBS) - 1,
                               .hints = (1U << HINTS) - 1};
    *end = (struct end){.peer = peer, .region = {.fd = -1}};
    int status = choice.ops->open(&end->handle, &want, &end->facts);
    if (status)
        return status;
    if (end->facts.own_memory) {
        end->region = (struct region){.kind = &memory_host, .length = REGION_BYTES, .fd = -1};
        status = 0;
    } else if (!(status = memory_host.alloc(&end->region, REGION_BYTES, &memory_host))) {
        status = memory_host.populate(&end->region, 0, REGION_BYTES);
    }
    return status ? status : choice.ops->expose(end->handle, &end->region, &end->key);
}

static int end_connect(struct end *end)
{
    struct blob mine, theirs, their_key;
    uint64_t since_ms = clock_ms();
    int status = choice.ops->address(end->handle, &mine);
    if (!status)
        status = peer_swap(end->peer, &mine, &theirs);
    if (!status)
        status = peer_swap(end->peer, &end->key, &their_key);
    while (!status) {
        status = choice.ops->connect(end->handle, &theirs, &their_key, 1, &end->remote);
        if (!status && clock_ms() - since_ms > PATIENCE_MS)
            status = fail(-ETIMEDOUT, "connect went on for %d ms", PATIENCE_MS);
    }
    return status == DONE ? 0 : status;
}

static void end_close(struct end *end)
{
    if (end->handle) {
        choice.ops->withdraw(end->handle, &end->region);
        choice.ops->close(end->handle);
    }
    if (end->region.fd >= 0)
        memory_host.free(&end->region);
}

/* ---- the target, in its own process ---- */

static int target_progress(void *arg)
{
    struct end *end = arg;
    struct completion completion;
    int got = choice.ops->poll(end->handle, &completion, 1);
    return got < 0 ? got : 0;
}

static uint64_t digest(const char *bytes, size_t length)
{
    uint64_t sum = 14695981039346656037U;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211U;
    return sum;
}

/* Answers questions about its memory until told to go. */
static int target_serve(struct end *end)
{
    struct blob ask, answer;
    for (;;) {
        uint64_t at = 0, length = 0, value = 0;
        bool polls = end->facts.target_polls;
        int status = peer_hear(end->peer, &ask, polls ? target_progress : NULL, end);
        if (status)
            return status;
        if (strncmp(ask.bytes, "go=", 3) == 0)
            return 0;
        status = blob_number(&ask, "at", &at);
        if (!status)
            status = blob_number(&ask, "length", &length);
        if (!status)
            status = blob_number(&ask, "value", &value);
        if (status)
            return status;
        if (strncmp(ask.bytes, "withdraw=", 9) == 0)
            choice.ops->withdraw(end->handle, &end->region);
        else if (strncmp(ask.bytes, "fill=", 5) == 0)
            memset(end->region.address + at, (int)value, length);
        status = blob_print(&answer, "digest=%" PRIu64 "\n",
                            end->region.address ? digest(end->region.address + at, length) : 0);
        if (!status)
            status = peer_tell(end->peer, &answer);
        if (status)
            return status;
    }
}

static _Noreturn void target_main(struct peer *peer)
{
    struct end end;
    int status = end_open(&end, peer);
    if (!status)
        status = end_connect(&end);
    if (!status)
        status = target_serve(&end);
    if (status)
        peer_end(peer, status, fail_reason());
    else
        end_close(&end);
    _exit(status ? 1 : 0);
}

/* ---- the pair ---- */

struct pair {
    struct end end;
    pid_t target;
    struct peer *peers[2];
};

static int pair_open(void **state)
{
    static const struct peer_terms terms = {.timeout_ms = SILENCE_MS};
    struct pair *pair = calloc(1, sizeof *pair);
    *state = pair;
    if (!pair || peer_threads(pair->peers, &terms))
        return -1;
    fflush(NULL);
    pair->target = fork();
    if (pair->target == 0) {
        peer_close(pair->peers[PEER_CLIENT]);
        target_main(pair->peers[PEER_SERVER]);
    }
    /* The child's end must close with the child. */
    peer_close(pair->peers[PEER_SERVER]);
    int status = end_open(&pair->end, pair->peers[PEER_CLIENT]);
    if (!status)
        status = end_connect(&pair->end);
    if (status)
        print_message("# %s\n", fail_reason());
    return status;
}

static int pair_close(void **state)
{
    struct pair *pair = *state;
    struct blob go;
    int how;
    blob_print(&go, "go=1\n");
    peer_tell(pair->end.peer, &go);
    end_close(&pair->end);
    peer_close(pair->end.peer);
    kill(pair->target, SIGCONT);
    waitpid(pair->target, &how, 0);
    free(pair);
    return 0;
}

static uint64_t ask(struct pair *pair, const char *what, size_t at, size_t length, int value)
{
    struct blob question, answer;
    uint64_t sum = 0;
    assert_int_equal(
        blob_print(&question, "%s=1\nat=%zu\nlength=%zu\nvalue=%d\n", what, at, length, value), 0);
    assert_int_equal(peer_tell(pair->end.peer, &question), 0);
    assert_int_equal(peer_hear(pair->end.peer, &answer, NULL, NULL), 0);
    assert_int_equal(blob_number(&answer, "digest", &sum), 0);
    return sum;
}

typedef int verb_function(struct fabric *fabric, const struct xfer *xfer);

static verb_function *verb_of(enum verb verb)
{
    switch (verb) {
    case VERB_WRITE:
        return choice.ops->write;
    case VERB_READ:
        return choice.ops->read;
    case VERB_SEND:
        return choice.ops->send;
    case VERB_RECV:
        return choice.ops->recv;
    case VERB_ATOMIC:
        return choice.ops->atomic;
    case VERB_AM:
        return choice.ops->am;
    default:
        return NULL;
    }
}

/* The next completion, or -ETIMEDOUT. */
static int next_completion(struct end *end, struct completion *completion)
{
    uint64_t since_ms = clock_ms();
    int got;
    do {
        got = choice.ops->poll(end->handle, completion, 1);
    } while (!got && clock_ms() - since_ms < PATIENCE_MS);
    return got < 0 ? got : got ? 0 : -ETIMEDOUT;
}

/* Posts and completes one operation; its status. */
static int perform(struct end *end, enum verb verb, const struct xfer *xfer)
{
    uint64_t since_ms = clock_ms();
    struct completion completion = {0};
    int got = verb_of(verb)(end->handle, xfer);
    while (got == -EAGAIN && clock_ms() - since_ms < PATIENCE_MS) {
        choice.ops->poll(end->handle, &completion, 0);
        got = verb_of(verb)(end->handle, xfer);
    }
    if (got == DONE)
        return 0;
    if (got != LATER)
        return got;
    int status = next_completion(end, &completion);
    if (status)
        return status;
    assert_int_equal(completion.id, xfer->id);
    assert_int_equal(completion.verb, verb);
    return completion.status;
}

/* Every combination of the hints that are honoured for a write of this length. */
static unsigned honoured(const struct end *end, unsigned combination, size_t length)
{
    unsigned how = combination & end->facts.honours & (HINT(INLINE) | HINT(LL) | HINT(RESTRICTED));
    return length > end->facts.max_inline ? how & ~HINT(INLINE) : how;
}

static void needs(struct pair *pair, enum verb verb, bool bytes)
{
    if (!(pair->end.facts.verbs & 1U << verb)) {
        print_message("# %s cannot %s\n", choice.ops->name, fabric_verb_name(verb));
        skip();
    }
    if (bytes && pair->end.facts.alone) {
        print_message("# %s moves no bytes\n", choice.ops->name);
        skip();
    }
}

static struct xfer write_of(struct end *end, size_t at, size_t length)
{
    return (struct xfer){.local = &end->region,
                         .at = at,
                         .remote = &end->remote,
                         .remote_at = at,
                         .length = length,
                         .how = honoured(end, ~0U, length),
                         .id = at + length};
}

/* ---- without a connection ---- */

static void every_table_entry_that_is_not_a_verb_is_there(void **state)
{
    (void)state;
    const struct fabric_ops *ops = choice.ops;
    assert_int_equal(ops->abi, FABRIC_ABI);
    assert_non_null(ops->name);
    assert_non_null(ops->what);
    assert_true(ops->list && ops->open && ops->close && ops->expose && ops->withdraw);
    assert_true(ops->address && ops->connect && ops->poll);
}

static void an_unknown_device_is_refused_in_a_sentence(void **state)
{
    (void)state;
    struct fabric *handle;
    struct fabric_facts facts;
    struct fabric_want want = {.device = "no-such-device", .here = "", .nonce = "", .service = 1};
    fail(0, "%s", "");
    int status = choice.ops->open(&handle, &want, &facts);
    assert_true(status < 0);
    assert_non_null(strstr(fail_reason(), "no-such-device"));
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
    assert_int_equal(end_open(&end, NULL), 0);
    end_close(&end);
    int before = open_descriptors();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(end_open(&end, NULL), 0);
        end_close(&end);
    }
    assert_int_equal(open_descriptors(), before);
}

static void connect_does_not_wait_for_an_end_that_is_not_there(void **state)
{
    (void)state;
    struct end mine, other;
    struct blob address;
    struct remote remote;
    assert_int_equal(end_open(&mine, NULL), 0);
    assert_int_equal(end_open(&other, NULL), 0);
    assert_int_equal(choice.ops->address(other.handle, &address), 0);
    uint64_t since_ms = clock_ms();
    int status = 0;
    for (int i = 0; i < 3 && status == LATER; i++)
        status = choice.ops->connect(mine.handle, &address, &other.key, 1, &remote);
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
    struct blob nonsense;
    struct remote remote = {0};
    assert_int_equal(end_open(&end, NULL), 0);
    if (end.facts.alone) {
        end_close(&end);
        skip();
    }
    assert_int_equal(blob_print(&nonsense, "%s", "\x7f\x01 not an address\n\n=\n"), 0);
    assert_true(choice.ops->connect(end.handle, &nonsense, &nonsense, 1, &remote) != DONE);
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
    assert_true(facts->depth >= 1);
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

/* ---- write ---- */

static void write_and_compare(struct pair *pair, size_t at, size_t length, unsigned combination)
{
    enum { MARGIN = 64 };
    struct end *end = &pair->end;
    struct xfer xfer = write_of(end, at, length);
    char expected[MARGIN];
    xfer.how = honoured(end, combination, length);
    xfer.id = combination * UINT64_C(1000003) + length;
    for (size_t i = 0; i < length; i++)
        end->region.address[at + i] = (char)(i * 31 + length + combination);
    ask(pair, "fill", at - MARGIN, length + (size_t)2 * MARGIN, 0x5a);
    assert_int_equal(perform(end, VERB_WRITE, &xfer), 0);
    /* At the moment of completion the bytes are there, and none beside them. */
    assert_int_equal(ask(pair, "look", at, length, 0), digest(end->region.address + at, length));
    memset(expected, 0x5a, sizeof expected);
    assert_int_equal(ask(pair, "look", at - MARGIN, MARGIN, 0), digest(expected, MARGIN));
    assert_int_equal(ask(pair, "look", at + length, MARGIN, 0), digest(expected, MARGIN));
}

static void writes_land_whole_with_every_combination_of_hints(void **state)
{
    struct pair *pair = *state;
    static const size_t lengths[] = {1,  2,   3,   4,   7,   8,    9,    16,   31,    64,    65,
                                     92, 223, 224, 225, 256, 4095, 4096, 4097, 65536, 300001};
    needs(pair, VERB_WRITE, true);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 8; how++)
            write_and_compare(pair, 4096 + i, lengths[i], how);
}

static void a_write_of_no_bytes_changes_nothing(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    struct xfer xfer = write_of(&pair->end, 128, 0);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void the_whole_region_can_be_written_at_once(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    for (size_t i = 0; i < REGION_BYTES; i++)
        pair->end.region.address[i] = (char)(i * 7 + (i >> 9));
    struct xfer xfer = write_of(&pair->end, 0, REGION_BYTES);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0),
                     digest(pair->end.region.address, REGION_BYTES));
}

static void the_source_may_change_once_a_write_is_complete(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    for (unsigned how = 0; how < 8; how++) {
        struct xfer xfer = write_of(&pair->end, 512, 200);
        xfer.how = honoured(&pair->end, how, 200);
        memset(pair->end.region.address + 512, (int)how + 1, 200);
        uint64_t sent = digest(pair->end.region.address + 512, 200);
        assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
        memset(pair->end.region.address + 512, 0, 200);
        assert_int_equal(ask(pair, "look", 512, 200, 0), sent);
    }
}

/* More than the depth: room runs out as -EAGAIN, and every id comes back once. */
static void every_operation_completes_once_however_many_are_posted(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_WRITE, false);
    unsigned total = end->facts.depth * 3 + 5, done = 0;
    unsigned char *seen = calloc(total, 1);
    assert_non_null(seen);
    uint64_t since_ms = clock_ms();
    for (unsigned posted = 0; done < total && clock_ms() - since_ms < PATIENCE_MS;) {
        struct completion completion;
        struct xfer xfer = write_of(end, (size_t)(posted % 1024) * 8, 8);
        xfer.id = posted;
        xfer.how = honoured(end, HINT(RESTRICTED), 8);
        int got = posted < total ? choice.ops->write(end->handle, &xfer) : -EAGAIN;
        if (got == DONE) {
            seen[posted]++;
            done++;
        }
        if (got >= 0) {
            posted++;
            continue;
        }
        assert_int_equal(got, -EAGAIN);
        if (choice.ops->poll(end->handle, &completion, 1) == 1) {
            assert_true(completion.id < total);
            assert_int_equal(completion.status, 0);
            seen[completion.id]++;
            done++;
        }
    }
    assert_int_equal(done, total);
    for (unsigned i = 0; i < total; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
}

/* Two writes to one place: with order asked for, the second one is what stays. */
static void unrestricted_writes_keep_their_order(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_WRITE, true);
    if (!(end->facts.honours & HINT(RESTRICTED))) {
        print_message("# order: %s\n", end->facts.why_not[HINT_RESTRICTED]);
        skip();
    }
    for (int round = 0; round < 50; round++) {
        struct completion completion;
        struct xfer first = write_of(end, 0, 64), second = write_of(end, 64, 64);
        int later = 0;
        first.how = 0;
        second.how = HINT(LL) & end->facts.honours;
        second.remote_at = 0;
        memset(end->region.address, round, 64);
        memset(end->region.address + 64, round + 100, 64);
        int got = choice.ops->write(end->handle, &first);
        assert_true(got >= 0);
        later += got == LATER;
        got = choice.ops->write(end->handle, &second);
        assert_true(got >= 0);
        later += got == LATER;
        while (later-- > 0)
            assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(ask(pair, "look", 0, 64, 0), digest(end->region.address + 64, 64));
    }
}

static void closing_with_operations_under_way_is_safe(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, false);
    for (unsigned i = 0; i < pair->end.facts.depth; i++) {
        struct xfer xfer = write_of(&pair->end, 0, 64);
        xfer.how = 0;
        if (choice.ops->write(pair->end.handle, &xfer) == -EAGAIN)
            break;
    }
    choice.ops->withdraw(pair->end.handle, &pair->end.region);
    choice.ops->close(pair->end.handle);
    pair->end.handle = NULL;
}

/* ---- refusals: each on a connection of its own, which they may cost ---- */

static void a_write_beyond_the_targets_entry_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    const struct {
        size_t at, length;
    } bad[] = {{REGION_BYTES, 1}, {REGION_BYTES - 7, 8}, {SIZE_MAX - 3, 8}, {0, REGION_BYTES + 1}};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = write_of(&pair->end, 0, bad[i].length);
        xfer.remote_at = bad[i].at;
        assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
        assert_true(*fail_reason());
    }
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void a_write_with_a_wrong_key_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    struct xfer xfer = write_of(&pair->end, 0, 8);
    pair->end.remote.key ^= 0x10;
    assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
}

static void a_write_to_a_withdrawn_region_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    struct xfer xfer = write_of(&pair->end, 0, 8);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    ask(pair, "withdraw", 0, 0, 0);
    assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
}

static void immediate_data_beyond_the_limit_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    if (!(pair->end.facts.honours & HINT(INLINE)))
        skip();
    struct xfer xfer = write_of(&pair->end, 0, pair->end.facts.max_inline + 1);
    xfer.how |= HINT(INLINE);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), -EMSGSIZE);
}

/* What the fabric says of a dead peer is its own affair; that it comes back is not. */
static void verbs_and_poll_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 100; i++) {
        struct completion completion;
        struct xfer xfer = write_of(&pair->end, 0, 64);
        choice.ops->write(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < PATIENCE_MS);
}

/* ---- verbs of fabrics that move nothing ---- */

static void reads_and_atomics_complete_where_nothing_moves(void **state)
{
    struct pair *pair = *state;
    if (!pair->end.facts.alone)
        skip();
    needs(pair, VERB_READ, false);
    struct xfer xfer = write_of(&pair->end, 0, 8);
    assert_int_equal(perform(&pair->end, VERB_READ, &xfer), 0);
    needs(pair, VERB_ATOMIC, false);
    assert_int_equal(perform(&pair->end, VERB_ATOMIC, &xfer), 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, pair_open, pair_close)

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: conformance DEVICE\n");
        return 2;
    }
    device = argv[1];
    if (fabric_choose(device, &choice)) {
        fprintf(stderr, "conformance: %s\n", fail_reason());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_entry_that_is_not_a_verb_is_there),
        cmocka_unit_test(an_unknown_device_is_refused_in_a_sentence),
        cmocka_unit_test(a_listed_device_can_be_chosen),
        cmocka_unit_test(opening_and_closing_leaves_no_descriptor_behind),
        cmocka_unit_test(connect_does_not_wait_for_an_end_that_is_not_there),
        cmocka_unit_test(connect_to_nonsense_is_an_error_or_goes_on),
        WITH_PAIR(facts_agree_with_the_table),
        WITH_PAIR(every_hint_is_honoured_or_has_its_reason),
        WITH_PAIR(polling_with_nothing_under_way_yields_nothing),
        WITH_PAIR(writes_land_whole_with_every_combination_of_hints),
        WITH_PAIR(a_write_of_no_bytes_changes_nothing),
        WITH_PAIR(the_whole_region_can_be_written_at_once),
        WITH_PAIR(the_source_may_change_once_a_write_is_complete),
        WITH_PAIR(every_operation_completes_once_however_many_are_posted),
        WITH_PAIR(unrestricted_writes_keep_their_order),
        WITH_PAIR(closing_with_operations_under_way_is_safe),
        WITH_PAIR(a_write_beyond_the_targets_entry_is_refused),
        WITH_PAIR(a_write_with_a_wrong_key_is_refused),
        WITH_PAIR(a_write_to_a_withdrawn_region_is_refused),
        WITH_PAIR(immediate_data_beyond_the_limit_is_refused),
        WITH_PAIR(verbs_and_poll_return_when_the_target_is_dead),
        WITH_PAIR(reads_and_atomics_complete_where_nothing_moves),
    };
    return cmocka_run_group_tests_name(device, tests, NULL, NULL);
}
