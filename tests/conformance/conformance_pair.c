/* SPDX-License-Identifier: BSD-3-Clause */
/* The two processes of the conformance suite: opening and connecting an end, forking the target,
 * asking it, and the small functions every topic needs. */
#include "conformance.h"
#include "core/clock.h"
#include "doubles/gpu_double.h"
#include "fabric/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Noreturn void target_main(struct peer *peer, struct peer *second);

struct fabric_choice choice;
const struct memory_ops *memory_kinds[2] = {&memory_host, &memory_host};
static int rank = PEER_CLIENT;
static bool asleep;

/* ---- one end ---- */

/* What is left where memory of a GPU takes part, at whichever end. */
static void trim(struct fabric_facts *facts)
{
    static const char why[] = "the memory is a GPU's";
    if (!memory_kinds[0]->gpu && !memory_kinds[1]->gpu)
        return;
    facts->verbs &= facts->gpu_verbs;
    facts->honours &= ~(HINT(INLINE) | HINT(SHORT));
    facts->why_not[HINT_INLINE] = facts->why_not[HINT_SHORT] = why;
    facts->max_inline = 0;
    for (int i = 0; i < VERBS; i++)
        facts->layout_max[i][LAYOUT_SHORT] = 0;
}

static int place_region(struct end *end, const struct end *share, size_t length)
{
    const struct memory_ops *kind = memory_kinds[rank];
    if (share) {
        end->region = share->region;
        end->guest = true;
        return 0;
    }
    if (end->facts.own_memory && !kind->gpu) {
        end->region = (struct region){.kind = &memory_host, .length = length, .fd = -1};
        return 0;
    }
    int status = kind->alloc(&end->region, length, kind);
    return status ? status : kind->populate(&end->region, 0, length);
}

static int end_expose(struct end *end)
{
    int status = choice.ops->expose(end->handle, &end->region, &end->key);
    if (!status)
        end->bytes = end->region.gpu ? gpu_view(end->region.address) : end->region.address;
    return status;
}

static void free_region(struct end *end)
{
    if ((end->region.fd >= 0 || end->region.gpu) && !end->guest)
        end->region.kind->free(&end->region);
}

int end_resize(struct end *end, size_t length)
{
    choice.ops->withdraw(end->handle, &end->region);
    free_region(end);
    end->region = (struct region){.fd = -1};
    return place_region(end, NULL, length);
}

int end_open(struct end *end, struct peer *peer, const struct end *share)
{
    struct fabric_want want = {.device = choice.device,
                               .here = "127.0.0.1",
                               .service = 1,
                               .verbs = (1U << VERBS) - 1,
                               .hints = (1U << HINTS) - 1,
                               .looks = true,
                               .events = asleep};
    *end = (struct end){.peer = peer, .verbs = (1U << VERBS) - 1, .region = {.fd = -1}};
    int status = choice.ops->open(&end->handle, &want, &end->facts);
    trim(&end->facts);
    if (!status)
        status = place_region(end, share, REGION_BYTES);
    return status ? status : end_expose(end);
}

int end_connect(struct end *end)
{
    struct msg mine, theirs, their_key;
    char digits[33], nonce[33] = "";
    const struct fabric_meeting meeting = {
        .nonce = nonce, .address = &theirs, .keys = &their_key, .count = 1};
    struct backoff backoff = {0};
    uint64_t since_ms = clock_ms();
    int status = random_digits(digits, sizeof digits);
    if (!status)
        status = msg_print(&mine, "nonce=%s\n", digits);
    if (!status)
        status = peer_swap(end->peer, &mine, &theirs);
    if (!status)
        status = msg_value(end->peer->rank == PEER_CLIENT ? &mine : &theirs, "nonce", nonce,
                           sizeof nonce);
    /* The key of a region is asked for again for every meeting. */
    if (!status)
        status = end_expose(end);
    if (!status)
        status = choice.ops->address(end->handle, &mine);
    if (!status)
        status = peer_swap(end->peer, &mine, &theirs);
    if (!status)
        status = peer_swap(end->peer, &end->key, &their_key);
    while (!status) {
        status = choice.ops->connect(end->handle, &meeting, &end->remote);
        if (!status)
            give_way(&backoff);
        if (!status && clock_ms() - since_ms > WAIT_MS)
            status = fail(-ETIMEDOUT, "connect went on for %d ms", WAIT_MS);
    }
    return status == DONE ? 0 : status;
}

void end_close(struct end *end)
{
    if (end->handle) {
        choice.ops->withdraw(end->handle, &end->region);
        choice.ops->close(end->handle);
    }
    free_region(end);
}

/* ---- the pair ---- */

static const struct peer_terms terms = {.timeout_ms = SILENCE_MS};

/* A target that has not begun. A library may have threads by the time a test wants another one, and
 * no process is to be forked then: what they hold at that moment is held in the child for good. */
static struct {
    struct pair pair;
    int gate; /* a byte begins it, the end of the line ends it */
} spare;

/* The child of a later fork must not hold what keeps it waiting. */
static void close_spare(void)
{
    if (!spare.pair.target)
        return;
    close(spare.gate);
    peer_close(spare.pair.peers[PEER_CLIENT]);
}

/* With second, the target waits for another initiator too. */
static int start(struct pair *pair, struct peer *second[2])
{
    if (peer_threads(pair->peers, &terms))
        return -1;
    fflush(NULL);
    pair->target = fork();
    if (pair->target == 0) {
        peer_close(pair->peers[PEER_CLIENT]);
        if (second)
            peer_close(second[PEER_CLIENT]);
        close_spare();
        rank = PEER_SERVER;
        target_main(pair->peers[PEER_SERVER], second ? second[PEER_SERVER] : NULL);
    }
    /* The child's end must close with the child. */
    peer_close(pair->peers[PEER_SERVER]);
    return 0;
}

static int join(struct pair *pair)
{
    int status = end_open(&pair->end, pair->peers[PEER_CLIENT], NULL);
    if (!status)
        status = end_connect(&pair->end);
    if (status)
        print_message("# %s\n", fail_reason());
    return status;
}

static int make_spare(void)
{
    int line[2];
    char byte;
    if (peer_threads(spare.pair.peers, &terms) || pipe(line))
        return -1;
    fflush(NULL);
    spare.pair.target = fork();
    if (spare.pair.target == 0) {
        close(line[1]);
        peer_close(spare.pair.peers[PEER_CLIENT]);
        if (read(line[0], &byte, 1) != 1)
            _exit(0);
        rank = PEER_SERVER;
        target_main(spare.pair.peers[PEER_SERVER], NULL);
    }
    close(line[0]);
    peer_close(spare.pair.peers[PEER_SERVER]);
    spare.gate = line[1];
    return 0;
}

int pair_open(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    *state = pair;
    return pair && !make_spare() && !start(pair, NULL) ? join(pair) : -1;
}

int pair_open_asleep(void **state)
{
    asleep = true;
    int status = pair_open(state);
    asleep = false;
    return status;
}

int pair_target(struct pair *pair)
{
    *pair = spare.pair;
    bool begun = pair->target && write(spare.gate, "", 1) == 1;
    close(spare.gate);
    spare.pair.target = 0;
    return begun ? 0 : -1;
}

/* Ends the target; its exit status says whether it was content. */
static void pair_leave(struct pair *pair)
{
    struct msg go;
    int how;
    if (!pair->target)
        return;
    msg_print(&go, "go=1\n");
    peer_send(pair->end.peer, &go);
    end_close(&pair->end);
    peer_close(pair->end.peer);
    kill(pair->target, SIGCONT);
    waitpid(pair->target, &how, 0);
    pair->target = 0;
}

int pair_close(void **state)
{
    struct pair *pair = *state;
    pair_leave(pair);
    close_spare();
    if (spare.pair.target)
        waitpid(spare.pair.target, NULL, 0);
    spare.pair.target = 0;
    if (pair->second) {
        kill(pair->second, SIGKILL);
        waitpid(pair->second, NULL, 0);
    }
    free(pair);
    return 0;
}

static _Noreturn void second_main(struct peer *peer, int (*add)(struct end *end), int go)
{
    struct end end;
    char byte;
    int status = end_open(&end, peer, NULL);
    if (!status)
        status = end_connect(&end);
    if (!status && read(go, &byte, 1) != 1)
        status = -EPIPE;
    if (!status)
        status = add(&end);
    if (status)
        fprintf(stderr, "the second initiator: %s (%s)\n", fail_reason(), strerror(-status));
    end_close(&end);
    peer_close(peer);
    _exit(status ? 1 : 0);
}

int crowd_open(struct pair *pair, int (*add)(struct end *end), int *go)
{
    struct peer *second[2];
    int line[2];
    pair_leave(pair);
    if (peer_threads(second, &terms) || pipe(line))
        return -1;
    if (start(pair, second))
        return -1;
    peer_close(second[PEER_SERVER]);
    fflush(NULL);
    pair->second = fork();
    if (pair->second == 0) {
        close(line[1]);
        peer_close(pair->peers[PEER_CLIENT]);
        second_main(second[PEER_CLIENT], add, line[0]);
    }
    peer_close(second[PEER_CLIENT]);
    close(line[0]);
    *go = line[1];
    return join(pair);
}

/* ---- questions ---- */

struct answer ask_all(struct pair *pair, const char *what, uint64_t at, uint64_t length,
                      uint64_t value)
{
    struct msg question, text;
    struct answer answer = {0};
    uint64_t status = 0, verb = 0;
    assert_int_equal(msg_print(&question,
                               "%s=1\nat=%" PRIu64 "\nlength=%" PRIu64 "\nvalue=%" PRIu64 "\n",
                               what, at, length, value),
                     0);
    assert_int_equal(peer_send(pair->end.peer, &question), 0);
    assert_int_equal(peer_recv(pair->end.peer, &text, NULL, NULL), 0);
    assert_int_equal(msg_number(&text, "digest", &answer.digest), 0);
    assert_int_equal(msg_number(&text, "id", &answer.id), 0);
    assert_int_equal(msg_number(&text, "length", &answer.length), 0);
    assert_int_equal(msg_number(&text, "error", &status), 0);
    assert_int_equal(msg_number(&text, "verb", &verb), 0);
    answer.status = -(int)status;
    answer.verb = (int)verb;
    return answer;
}

uint64_t ask(struct pair *pair, const char *what, size_t at, size_t length, int value)
{
    return ask_all(pair, what, at, length, (uint64_t)value).digest;
}

void pair_meet(struct pair *pair, size_t bytes)
{
    struct msg question, answer;
    uint64_t error = 0;
    /* It answers when it is connected: an end that is left sooner may fail to connect. */
    ask(pair, "look", 0, 0, 0);
    assert_int_equal(msg_print(&question, "meet=%zu\n", bytes), 0);
    assert_int_equal(peer_send(pair->end.peer, &question), 0);
    choice.ops->leave(pair->end.handle);
    if (bytes)
        assert_int_equal(end_resize(&pair->end, bytes), 0);
    int status = end_connect(&pair->end);
    if (status)
        print_message("# %s\n", fail_reason());
    assert_int_equal(status, 0);
    assert_int_equal(peer_recv(pair->end.peer, &answer, NULL, NULL), 0);
    assert_int_equal(msg_number(&answer, "error", &error), 0);
    assert_int_equal(error, 0);
}

void exchange_both(struct pair *pair, const struct exchange *x)
{
    struct msg question, text;
    uint64_t error = 0;
    char why[512] = "";
    assert_int_equal(msg_print(&question,
                               "exchange=1\nout=%" PRIu64 "\nin=%" PRIu64 "\nseed=%" PRIu64
                               "\nlongest=%" PRIu64 "\nhow=%u\nwindow=%" PRIu64 "\nam=%d\n",
                               x->in, x->out, x->seed + 1, x->longest, x->how, x->window, x->am),
                     0);
    assert_int_equal(peer_send(pair->end.peer, &question), 0);
    /* Until it has heard, the target would take active messages for something else. */
    if (x->am)
        assert_int_equal(peer_recv(pair->end.peer, &text, NULL, NULL), 0);
    int status = x->am ? am_exchange_run(&pair->end, x) : exchange_run(&pair->end, x);
    if (status)
        print_message("# here: %s\n", fail_reason());
    assert_int_equal(peer_recv(pair->end.peer, &text, NULL, NULL), 0);
    assert_int_equal(msg_number(&text, "error", &error), 0);
    msg_value(&text, "why", why, sizeof why);
    if (error)
        print_message("# at the target: %s\n", why);
    assert_int_equal(status, 0);
    assert_int_equal(error, 0);
}

/* ---- what both ends compute alike ---- */

uint64_t digest(const char *bytes, size_t length)
{
    uint64_t sum = 14695981039346656037U;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211U;
    return sum;
}

uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

void pattern(char *bytes, size_t length, uint64_t value)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 31 + (i >> 8) + value * 7);
}

/* ---- verbs ---- */

verb_function *verb_of(enum verb verb)
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
    case VERB_TSEND:
        return choice.ops->tsend;
    case VERB_TRECV:
        return choice.ops->trecv;
    case VERB_STREAM_SEND:
        return choice.ops->stream_send;
    case VERB_STREAM_RECV:
        return choice.ops->stream_recv;
    default:
        return NULL;
    }
}

/* Time in which we did not run, because the machine did not, does not count. */
bool patient(struct backoff *backoff)
{
    enum { STEP_MS = 20 };
    uint64_t now_ms = clock_ms(), step_ms = now_ms - backoff->last_ms;
    if (backoff->last_ms)
        backoff->spent_ms += step_ms < STEP_MS ? step_ms : STEP_MS;
    backoff->last_ms = now_ms;
    return backoff->spent_ms < WAIT_MS;
}

void give_way(struct backoff *backoff)
{
    enum { POLLS = 100, REST_NS = 50000 };
    const struct timespec rest = {.tv_nsec = REST_NS};
    if (++backoff->turns < POLLS)
        sched_yield();
    else
        nanosleep(&rest, NULL);
}

int next_completion(struct end *end, struct completion *completion)
{
    struct backoff backoff = {0};
    int got = 0;
    while (!(got = choice.ops->poll(end->handle, completion, 1)) && patient(&backoff))
        give_way(&backoff);
    return got < 0 ? got : got ? 0 : -ETIMEDOUT;
}

int post(struct end *end, enum verb verb, const struct xfer *xfer)
{
    struct backoff backoff = {0};
    struct completion completion;
    int got = verb_of(verb)(end->handle, xfer);
    while (got == -EAGAIN && patient(&backoff)) {
        int lost = choice.ops->poll(end->handle, &completion, 0);
        if (lost < 0)
            return lost;
        give_way(&backoff);
        got = verb_of(verb)(end->handle, xfer);
    }
    return got;
}

int perform(struct end *end, enum verb verb, const struct xfer *xfer)
{
    struct completion completion = {0};
    int got = post(end, verb, xfer);
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

void perform_many(struct pair *pair, enum verb verb)
{
    struct end *end = &pair->end;
    unsigned total = end->facts.depth * 3 + 5, done = 0;
    unsigned char *seen = calloc(total, 1);
    assert_non_null(seen);
    struct backoff backoff = {0};
    for (unsigned posted = 0; done < total && patient(&backoff);) {
        struct completion completion;
        struct xfer xfer = xfer_of(end, (size_t)(posted % 1024) * 8, 8);
        xfer.id = posted;
        xfer.how = honoured(end, HINT(RESTRICTED), 8);
        int got = posted < total ? verb_of(verb)(end->handle, &xfer) : -EAGAIN;
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
            assert_int_equal(completion.verb, verb);
            seen[completion.id]++;
            done++;
        }
    }
    assert_int_equal(done, total);
    for (unsigned i = 0; i < total; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
}

unsigned honoured(const struct end *end, unsigned combination, size_t length)
{
    unsigned how = combination & end->facts.honours & (HINT(INLINE) | HINT(LL) | HINT(RESTRICTED));
    return length > end->facts.max_inline ? how & ~HINT(INLINE) : how;
}

void in_every_layout(struct pair *pair, enum verb verb,
                     void (*once)(struct pair *pair, size_t at, size_t length, unsigned how))
{
    static const size_t lengths[] = {1, 7, 8, 64, 92, 256, 4096, 8192, 65536, 300001};
    struct end *end = &pair->end;
    bool any = false;
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        size_t limit = end->facts.layout_max[verb][layout];
        any |= limit > 0;
        for (size_t i = 0; i < LENGTH(lengths); i++)
            if (lengths[i] <= limit)
                once(pair, 4096 + i, lengths[i], LAYOUT_HINT(layout));
        if (!limit || limit > REGION_BYTES / 2)
            continue;
        once(pair, 4096, limit - 1, LAYOUT_HINT(layout));
        once(pair, 4096, limit, LAYOUT_HINT(layout));
        struct xfer xfer = xfer_of(end, 0, limit + 1);
        xfer.how = LAYOUT_HINT(layout);
        assert_int_equal(verb_of(verb)(end->handle, &xfer), -EMSGSIZE);
    }
    if (!any) {
        print_message("# %s has no layouts of a %s\n", choice.ops->name, fabric_verb_name(verb));
        skip();
    }
}

void needs(struct pair *pair, enum verb verb, bool bytes)
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

void needs_hint(struct pair *pair, enum hint hint, const char *name)
{
    if (pair->end.facts.honours & 1U << hint)
        return;
    print_message("# no %s: %s\n", name, pair->end.facts.why_not[hint]);
    skip();
}

bool is_slow(void)
{
    return !getenv("WEFT_CONFORMANCE_FULL") &&
           (strcmp(choice.ops->name, "cxi") == 0 || strcmp(choice.ops->name, "ucp") == 0 ||
            strstr(choice.device, "tcp"));
}

uint64_t many(uint64_t count)
{
    return is_slow() ? count / 10 : count;
}

void needs_early(struct pair *pair)
{
    (void)pair;
    if (!memory_kinds[0]->gpu && !memory_kinds[1]->gpu)
        return;
    print_message("# a message from a GPU waits for its receive\n");
    skip();
}

struct xfer xfer_of(struct end *end, size_t at, size_t length)
{
    return (struct xfer){.local = &end->region,
                         .at = at,
                         .remote = &end->remote,
                         .remote_at = at,
                         .length = length,
                         .how = honoured(end, ~0U, length),
                         .id = at + length};
}
