/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC and another end that does not keep to the rules. */
#include "fabric/soft/wire.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 8 };

/* One message with the same descriptor several times. */
static void send_descriptors(int socket, const char *text, size_t count, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MOST * sizeof(int))];
    } control = {0};
    struct iovec bytes = {.iov_base = (char *)text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    assert_non_null(head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(head) + i * sizeof(int), &fd, sizeof fd);
    assert_true(sendmsg(socket, &message, MSG_NOSIGNAL) >= 0);
}

/* An end that has dialled; what it hears comes from the socket returned. */
static int half_met(struct soft *soft)
{
    int ends[2];
    assert_non_null(soft);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    soft_link_open(&soft->link);
    soft->link.dialled = ends[0];
    soft->link.served = soft->link.listed = true;
    return ends[1];
}

static int next_step(struct soft *soft)
{
    struct msg address = {0}, key = {0};
    const struct fabric_meeting meeting = {
        .nonce = "00ff", .address = &address, .keys = &key, .count = 1};
    struct remote remote;
    return soft_link_step(soft, &meeting, &remote);
}

static void forget(struct soft *soft, int other)
{
    soft_link_close(soft);
    soft_portal_close(soft);
    free(soft);
    close(other);
}

/* A pipe ends when nobody has its other side any more. */
static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        int status;
    } cases[] = {{"key=1\nlength=8\n", 2, -EPROTO},
                 {"key=1\nlength=8\n", MOST, -EPROTO},
                 {"key=1\nlength=8\n", 1, -EPROTO}, /* it is no memory */
                 {"", 1, -ECONNABORTED}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct soft *soft = calloc(1, sizeof *soft);
        int other, given[2];
        char byte;
        assert_int_equal(pipe2(given, O_CLOEXEC | O_NONBLOCK), 0);
        other = half_met(soft);
        send_descriptors(other, cases[i].text, cases[i].count, given[1]);
        close(given[1]);
        assert_int_equal(next_step(soft), cases[i].status);
        assert_int_equal(read(given[0], &byte, 1), 0);
        forget(soft, other);
        close(given[0]);
    }
}

/* To map it would make all of its pages. */
static void memory_that_the_machine_does_not_have_is_refused(void **state)
{
    struct soft *soft = calloc(1, sizeof *soft);
    char text[64];
    const off_t much = (off_t)1 << 50;
    int other = half_met(soft), fd = memfd_create("much", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, much), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, SOFT_SEALS), 0);
    snprintf(text, sizeof text, "key=0\nlength=%lld\n", (long long)much);
    send_descriptors(other, text, 1, fd);
    assert_int_equal(next_step(soft), -ENOMEM);
    assert_null(strstr(fail_reason(), "mapping"));
    forget(soft, other);
    close(fd);
}

/* ---- ends of one process, which share mappings ---- */

struct one_end {
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    struct msg address, key;
    struct remote remote;
};

static void open_end_of(struct one_end *end, size_t length)
{
    static const struct fabric_want want = {
        .device = "cxi2", .here = "", .service = 1, .verbs = (1U << VERBS) - 1, .looks = true};
    *end = (struct one_end){.handle = NULL};
    assert_int_equal(fabric_soft.open(&end->handle, &want, &end->facts), 0);
    assert_int_equal(memory_host.alloc(&end->region, length, &memory_host), 0);
}

static void open_end(struct one_end *end)
{
    open_end_of(end, 4096);
}

static void close_end(struct one_end *end)
{
    fabric_soft.close(end->handle);
    memory_host.free(&end->region);
}

static void prepare(struct one_end *end)
{
    assert_int_equal(fabric_soft.expose(end->handle, &end->region, &end->key), 0);
    assert_int_equal(fabric_soft.address(end->handle, &end->address), 0);
}

static int step(struct one_end *end, const struct one_end *other, const char *nonce)
{
    const struct fabric_meeting meeting = {
        .nonce = nonce, .address = &other->address, .keys = &other->key, .count = 1};
    return fabric_soft.connect(end->handle, &meeting, &end->remote);
}

static void connect_both(struct one_end *a, struct one_end *b, const char *nonce)
{
    int here = LATER, there = LATER;
    for (int i = 0; i < 100 && (here != DONE || there != DONE); i++) {
        if (here != DONE)
            here = step(a, b, nonce);
        if (there != DONE)
            there = step(b, a, nonce);
    }
    assert_int_equal(here, DONE);
    assert_int_equal(there, DONE);
}

static void meet(struct one_end *a, struct one_end *b, const char *nonce)
{
    prepare(a);
    prepare(b);
    connect_both(a, b, nonce);
}

static int write_word(struct one_end *from, uint64_t word)
{
    struct xfer x = {
        .local = &from->region, .remote = &from->remote, .length = sizeof word, .how = HINT(LL)};
    memcpy(from->region.address, &word, sizeof word);
    return fabric_soft.write(from->handle, &x);
}

static void send_word(struct one_end *from, struct one_end *to, uint64_t id)
{
    struct completion completion;
    struct xfer out = {.local = &from->region, .length = 8, .how = HINT(LL)};
    struct xfer in = {.local = &to->region, .at = 64, .length = 8, .id = id};
    assert_int_equal(fabric_soft.recv(to->handle, &in), LATER);
    assert_int_equal(fabric_soft.send(from->handle, &out), DONE);
    assert_int_equal(fabric_soft.poll(to->handle, &completion, 1), 1);
    assert_int_equal(completion.id, id);
}

static void ends_of_one_process_leave_one_after_the_other(void **state)
{
    static const char *const nonces[] = {"01", "02", "03", "04"};
    struct one_end ends[3];
    struct completion completion;
    (void)state;
    for (int i = 0; i < 3; i++)
        open_end(&ends[i]);
    for (int round = 0; round < 4; round++) {
        /* The first leaves the second for the third; the second notices late. */
        struct one_end *a = &ends[round % 3], *b = &ends[(round + 1) % 3],
                       *c = &ends[(round + 2) % 3];
        char again[] = {'x', (char)('0' + round), '\0'};
        meet(a, b, nonces[round]);
        assert_int_equal(write_word(a, 7), DONE);
        send_word(a, b, 21);
        send_word(b, a, 22);
        fabric_soft.leave(a->handle);
        meet(a, c, again);
        assert_int_equal(write_word(b, 9), -ENOENT);
        assert_int_equal(fabric_soft.poll(b->handle, &completion, 1), 0);
        send_word(c, a, 23);
        fabric_soft.leave(b->handle);
        fabric_soft.leave(a->handle);
        fabric_soft.leave(c->handle);
    }
    for (int i = 0; i < 3; i++)
        close_end(&ends[i]);
}

/* It knows where we are from an earlier meeting, and is to be met after another one. */
static void an_end_that_dials_early_is_met_later(void **state)
{
    struct one_end a, b, c;
    (void)state;
    open_end(&a);
    open_end(&b);
    open_end(&c);
    prepare(&a);
    prepare(&c);
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(&c, &a, "later"), LATER);
    meet(&a, &b, "sooner");
    assert_int_equal(write_word(&a, 1), DONE);
    fabric_soft.leave(a.handle);
    struct msg before = a.key;
    prepare(&a);
    assert_string_not_equal(before.bytes, a.key.bytes);
    connect_both(&a, &c, "later");
    assert_int_equal(write_word(&a, 2), DONE);
    close_end(&a);
    close_end(&b);
    close_end(&c);
}

static void an_end_that_comes_after_a_crowd_is_met_at_once(void **state)
{
    enum { CROWD = SOFT_GUESTS / 2 };
    struct one_end a, b;
    int crowd[CROWD];
    (void)state;
    open_end(&a);
    open_end(&b);
    prepare(&a);
    prepare(&b);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = soft_nic_dial(&((struct soft *)a.handle)->nic.name);
        assert_true(crowd[i] >= 0);
    }
    assert_int_equal(step(&b, &a, "nonce"), LATER);
    assert_int_equal(step(&a, &b, "nonce"), LATER);
    assert_int_equal(step(&b, &a, "nonce"), DONE);
    assert_int_equal(step(&a, &b, "nonce"), DONE);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    close_end(&a);
    close_end(&b);
}

/* ---- an impostor ---- */

static void say_region(int socket, uint64_t key, size_t length, const void *address)
{
    char text[128];
    int n = snprintf(text, sizeof text, "key=%" PRIu64 "\nlength=%zu\naddress=0x%" PRIxPTR "\n",
                     key, length, (uintptr_t)address);
    assert_int_equal(send(socket, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* As one has that inherited its socket from a process whose id was used again. */
static void an_impostor_with_our_process_id_chooses_no_address(void **state)
{
    static struct soft_portal portal;
    static char victim[4096];
    struct one_end a, b;
    uint64_t key;
    (void)state;
    open_end(&a);
    open_end(&b);
    prepare(&a);
    prepare(&b);
    assert_int_equal(msg_number(&b.key, "key", &key), 0);
    atomic_store(&portal.entries[0].key, key);
    assert_int_equal(step(&a, &b, "nonce"), LATER);
    int socket = accept(((struct soft *)b.handle)->nic.listener, NULL, NULL);
    assert_true(socket >= 0);
    say_region(socket, 0, sizeof portal, &portal);
    say_region(socket, key, sizeof victim, victim);
    int status = step(&a, &b, "nonce");
    if (status >= 0)
        write_word(&a, UINT64_MAX);
    assert_int_equal(victim[0], 0);
    assert_int_equal(status, -EPROTO);
    close(socket);
    close_end(&a);
    close_end(&b);
}

static void an_end_that_gives_our_own_address_is_refused(void **state)
{
    struct one_end a;
    (void)state;
    open_end(&a);
    prepare(&a);
    assert_int_equal(step(&a, &a, "nonce"), -EPROTO);
    close_end(&a);
}

/* ---- shared memory that the other end changes ---- */

static void a_rendezvous_that_shrinks_stays_in_its_buffer(void **state)
{
    enum { LONG = SOFT_PIECE + 4096, MUCH = 2 * SOFT_PIECE + 4096 };
    struct one_end a, b;
    struct completion completion;
    (void)state;
    open_end_of(&a, MUCH);
    open_end_of(&b, MUCH);
    meet(&a, &b, "nonce");
    const struct xfer out = {
        .local = &a.region, .length = LONG, .how = HINT(LL) | HINT(RENDEZVOUS)};
    const struct xfer in = {.local = &b.region, .length = LONG};
    a.region.address[LONG - 1] = a.region.address[LONG] = 'x';
    assert_int_equal(fabric_soft.recv(b.handle, &in), LATER);
    assert_int_equal(fabric_soft.send(a.handle, &out), LATER);
    assert_int_equal(fabric_soft.poll(b.handle, &completion, 1), 0);
    const struct soft_mail *mail = &((struct soft *)a.handle)->mail;
    const uint64_t one = 1;
    memcpy(mail->channel->hot[mail->side].data, &one, sizeof one);
    assert_int_equal(fabric_soft.poll(b.handle, &completion, 1), 1);
    assert_int_equal(completion.length, LONG);
    assert_int_equal(b.region.address[LONG - 1], 'x');
    assert_int_equal(b.region.address[LONG], 0);
    close_end(&a);
    close_end(&b);
}

/* Words of a message as its sender may have written them; it is the next one of an end that has
 * posted a receive. */
static int poll_hostile(unsigned code, bool hot, const uint64_t words[3])
{
    struct one_end a, b;
    struct completion completion;
    open_end(&a);
    open_end(&b);
    meet(&a, &b, "nonce");
    const struct xfer in = {.local = &b.region, .length = 64};
    assert_int_equal(fabric_soft.recv(b.handle, &in), LATER);
    assert_int_equal(fabric_soft.trecv(b.handle, &in), LATER);
    const struct soft_mail *mail = &((struct soft *)a.handle)->mail;
    struct soft_half *half = &mail->channel->hot[mail->side];
    struct soft_line *line = &mail->channel->lines[mail->side][1];
    memcpy(hot ? half->data : line->data, words, 3 * sizeof *words);
    atomic_store(hot ? &half->head : &line->head, head_of(mail, code));
    int status = fabric_soft.poll(b.handle, &completion, 1);
    close_end(&a);
    close_end(&b);
    return status;
}

/* The first word of a tagged message: in its line, in a slot, to be pulled, or matched. */
#define TAG(kind)  (UINT64_C(kind) << 40)
#define TAG_ANSWER (UINT64_C(1) << 44)

static void what_a_message_says_is_checked(void **state)
{
    static const struct {
        unsigned code;
        bool hot;
        uint64_t words[3];
        int status;
    } cases[] = {{SOFT_HOT_BYTES, true, {0}, 1},
                 {SOFT_HOT_BYTES + 1, true, {0}, -EPROTO},
                 {SOFT_LINE_BYTES, true, {0}, -EPROTO},
                 {SOFT_LINE_BYTES, false, {0}, 1},
                 {CODE_PULL, true, {64, 4032, 0}, 1},
                 {CODE_PULL, true, {64, 4033, 0}, -EPROTO},
                 {CODE_PULL, true, {UINT64_MAX, 1, 0}, -EPROTO},
                 {CODE_PULL, true, {1, UINT64_MAX, 0}, -EPROTO},
                 {CODE_PULL, true, {0, 0, 1}, -EPROTO},
                 {CODE_PULL, true, {0, 0, SOFT_ENTRIES}, -EPROTO},
                 {CODE_AM_LINE, true, {16}, 1},
                 {CODE_AM_LINE, true, {17}, -EPROTO},
                 {CODE_AM_LINE, false, {48}, 1},
                 {CODE_AM_LINE, false, {49}, -EPROTO},
                 {CODE_AM_SLOT, true, {SOFT_SLOT_BYTES}, 1},
                 {CODE_AM_SLOT, true, {SOFT_SLOT_BYTES + 1}, -EPROTO},
                 {CODE_AM_SLOT, true, {UINT64_C(32) << 32}, -EPROTO},
                 {CODE_AM_SLOT, true, {UINT64_C(1025) << 48}, -EPROTO},
                 {CODE_AM_LENT, true, {4096, 0, UINT64_MAX << 32}, 1},
                 {CODE_AM_LENT, true, {4096, 1, 0}, -EPROTO},
                 {CODE_AM_LENT, true, {SOFT_PULL_BYTES + 1, 0, 0}, -EPROTO},
                 {CODE_TAG, true, {8, 1}, 1},
                 {CODE_TAG, true, {9, 1}, -EPROTO},
                 {CODE_TAG, false, {40, 1}, 1},
                 {CODE_TAG, false, {41, 1}, -EPROTO},
                 {CODE_TAG, true, {TAG(1) | SOFT_SLOT_BYTES, 1, SOFT_SLOTS - 1}, 1},
                 {CODE_TAG, true, {TAG(1) | (SOFT_SLOT_BYTES + 1), 1, 0}, -EPROTO},
                 {CODE_TAG, true, {TAG(1) | 8, 1, SOFT_SLOTS}, -EPROTO},
                 /* Pulled at the next poll. */
                 {CODE_TAG, true, {TAG(2) | TAG_ANSWER | 64, 1, 4032}, 0},
                 {CODE_TAG, true, {TAG(2) | TAG_ANSWER | 64, 1, 4033}, -EPROTO},
                 {CODE_TAG, true, {TAG(2) | TAG_ANSWER, 1, UINT64_C(1) << 56}, -EPROTO},
                 {CODE_TAG, true, {TAG(2) | 64, 1, 0}, -EPROTO},
                 {CODE_TAG, true, {TAG(3), 1, 0}, -EPROTO},
                 {CODE_TAG, true, {TAG(3) | (uint64_t)SOFT_QUEUE << 48, 1, 0}, -EPROTO}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++)
        if (poll_hostile(cases[i].code, cases[i].hot, cases[i].words) != cases[i].status)
            fail_msg("case %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_that_nobody_asked_for_are_closed),
        cmocka_unit_test(ends_of_one_process_leave_one_after_the_other),
        cmocka_unit_test(an_end_that_dials_early_is_met_later),
        cmocka_unit_test(an_end_that_comes_after_a_crowd_is_met_at_once),
        cmocka_unit_test(memory_that_the_machine_does_not_have_is_refused),
        cmocka_unit_test(an_impostor_with_our_process_id_chooses_no_address),
        cmocka_unit_test(an_end_that_gives_our_own_address_is_refused),
        cmocka_unit_test(a_rendezvous_that_shrinks_stays_in_its_buffer),
        cmocka_unit_test(what_a_message_says_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
