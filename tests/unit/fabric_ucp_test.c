/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations of ucp and the flushes that settle them, and tagged messages, with UCX
 * replaced: it says what each test wants it to. */
#include "support/unit.h"

#include <errno.h>
#include <string.h>

/* NOLINTBEGIN(bugprone-suspicious-include): what they call is replaced. */
#include "../../src/fabric/ucp/tag.c"
#include "../../src/fabric/ucp/verbs.c"
/* NOLINTEND(bugprone-suspicious-include) */

/* ---- UCX ---- */

static struct {
    bool put_later, flush_later;
    int puts, flushes;
    ucp_request_param_t last_flush;
    void *sent;                      /* what the next call that sends returns */
    ucp_request_param_t receives[3]; /* what was posted */
    int received;
} ucx;
static char request[64];

void *ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    (void)ep;
    (void)buffer;
    (void)count;
    (void)address;
    (void)rkey;
    (void)param;
    ucx.puts++;
    return ucx.put_later ? request : NULL;
}

void *ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    return ucp_put_nbx(ep, buffer, count, address, rkey, param);
}

void *ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void)ep;
    ucx.flushes++;
    ucx.last_flush = *param;
    return ucx.flush_later ? request : NULL;
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    (void)ep;
    (void)buffer;
    (void)count;
    (void)tag;
    (void)param;
    return ucx.sent;
}

ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t *param)
{
    return ucp_tag_send_nbx(ep, buffer, count, tag, param);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t mask, const ucp_request_param_t *param)
{
    (void)worker;
    (void)buffer;
    (void)count;
    (void)tag;
    (void)mask;
    ucx.receives[ucx.received++] = *param;
    return param->request;
}

ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t mask, int remove,
                                   ucp_tag_recv_info_t *info)
{
    (void)worker;
    (void)tag;
    (void)mask;
    (void)remove;
    (void)info;
    return NULL;
}

/* What receives and fetching atomics bring is ours. */
void ucp_request_free(void *one)
{
    assert_ptr_equal(one, request);
}

const char *ucs_status_string(ucs_status_t status)
{
    return status == UCS_OK ? "Success" : "Error";
}

/* ---- the files beside it ---- */

static const struct fabric_host host = {.fail = fail};
const struct fabric_host *weft_ucp_host = &host;

int weft_ucp_not_connected(const struct weft_ucp *u)
{
    (void)u;
    return fail(-ENOTCONN, "ucp: not connected");
}

int weft_ucp_refuse(const struct weft_ucp *u, const char *what, ucs_status_t status)
{
    (void)u;
    return fail(-EIO, "ucp: %s: %d", what, status);
}

/* Nothing is tuned here. */
struct weft_ucp_bytes weft_ucp_tuned(struct weft_ucp_slot *slot, enum verb verb,
                                     const struct xfer *x, ucp_request_param_t *own)
{
    (void)slot;
    (void)verb;
    (void)x;
    fail_msg("an operation that is not as usual");
    return (struct weft_ucp_bytes){.param = own};
}

void weft_ucp_show(struct weft_ucp *u, void *request)
{
    (void)u;
    (void)request;
    fail_msg("a protocol is shown");
}

void weft_ucp_show_once(struct weft_ucp *u, enum verb verb, size_t length, void *request)
{
    (void)u;
    (void)verb;
    (void)length;
    (void)request;
    fail_msg("a protocol is shown");
}

void weft_ucp_lose(struct weft_ucp *u, ucs_status_t status, const char *reason)
{
    (void)status;
    (void)reason;
    u->todo |= TODO_LOST;
}

int weft_ucp_survive_verb(struct weft_ucp *u,
                          int (*verb)(struct fabric *fabric, const struct xfer *x),
                          const struct xfer *x)
{
    (void)u;
    (void)verb;
    (void)x;
    fail_msg("a call is to be survived");
    return DONE;
}

int weft_ucp_tell(struct weft_ucp *u, enum news what, uint64_t word)
{
    (void)u;
    (void)what;
    (void)word;
    fail_msg("the other end is told something");
    return DONE;
}

struct completion *weft_ucp_event_queued(struct weft_ucp *u)
{
    assert_true(u->count < u->room);
    return &u->events[u->count++];
}

/* ---- an end ---- */

enum { EVENTS = 16 };
static struct weft_ucp ucp;
static struct completion events[EVENTS];
static struct weft_ucp_remote theirs;
static uint64_t key = 7;
static char bytes[64], requests[WEFT_UCP_SLOTS];
static struct region region = {.address = bytes, .length = sizeof bytes};
static struct remote remote = {.key = 7, .length = sizeof bytes, .own = &theirs};

static void begin(void)
{
    memset(&ucx, 0, sizeof ucx);
    memset(&ucp, 0, sizeof ucp);
    theirs = (struct weft_ucp_remote){.alive = &key, .key = key, .length = sizeof bytes};
    ucp.events = events;
    ucp.room = EVENTS;
    ucp.connected = true;
    ucp.receive = weft_ucp_receive;
    ucp.waiting_last = &ucp.waiting;
    ucp.mail.last = &ucp.mail.first;
    for (int i = 0; i < WEFT_UCP_SLOTS; i++) {
        ucp.slots[i].ucp = &ucp;
        ucp.slots[i].request = &requests[i];
        weft_ucp_slot_give(&ucp.slots[i]);
    }
    ucp.taken = 0;
}

static int post(uint64_t id)
{
    struct xfer xfer = {.local = &region, .remote = &remote, .length = 8, .id = id};
    return weft_ucp_write(&ucp.fabric, &xfer);
}

static void flush_completes(void)
{
    ucx.last_flush.cb.send(request, UCS_OK, ucx.last_flush.user_data);
}

static int post_tagged(int (*verb)(struct fabric *fabric, const struct xfer *x), uint64_t id)
{
    struct xfer xfer = {.local = &region, .length = 8, .id = id};
    return verb(&ucp.fabric, &xfer);
}

static void message_comes(int receive, ucs_status_t status, size_t length)
{
    const ucp_request_param_t *param = &ucx.receives[receive];
    const ucp_tag_recv_info_t info = {.sender_tag = 5, .length = length};
    param->cb.recv(param->request, status, &info, param->user_data);
}

/* ---- tests ---- */

static void a_write_whose_flush_is_complete_at_once_is_done(void **state)
{
    (void)state;
    begin();
    assert_int_equal(post(1), DONE);
    assert_int_equal(ucp.taken, 0);
    assert_int_equal(ucp.count, 0);
}

static void writes_posted_during_a_flush_are_settled_by_the_next(void **state)
{
    (void)state;
    begin();
    ucx.flush_later = true;
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(post(id), LATER);
    assert_int_equal(ucx.flushes, 1);
    flush_completes();
    assert_int_equal(ucp.count, 1);
    assert_int_equal(events[0].id, 1);
    assert_true(ucp.todo & TODO_FLUSH);
    weft_ucp_flush_start(&ucp);
    assert_int_equal(ucx.flushes, 2);
    flush_completes();
    assert_int_equal(ucp.count, 3);
    assert_int_equal(ucp.taken, 0);
}

static void the_next_flush_may_be_complete_at_once(void **state)
{
    (void)state;
    begin();
    ucx.flush_later = true;
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(post(id), LATER);
    flush_completes();
    ucx.flush_later = false;
    weft_ucp_flush_start(&ucp);
    assert_int_equal(ucp.count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(events[i].id, i + 1);
    assert_int_equal(ucp.taken, 0);
    assert_null(ucp.waiting);
}

static void a_write_is_not_complete_before_its_own_call_is(void **state)
{
    (void)state;
    begin();
    ucx.put_later = true;
    assert_int_equal(post(1), LATER);
    assert_int_equal(ucp.count, 0);
    weft_ucp_slot_done(request, UCS_OK, ucp.waiting);
    assert_int_equal(ucp.count, 1);
    assert_int_equal(ucp.taken, 0);
}

/* The plain way and the other one must agree. */
static void both_ways(void (*check)(void))
{
    for (int plain = 0; plain < 2; plain++) {
        begin();
        ucp.plain = plain;
        check();
    }
}

static void check_refusals(void)
{
    ucx.sent = UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    for (int i = 0; i < 2 * WEFT_UCP_WINDOW; i++)
        assert_int_equal(post_tagged(weft_ucp_tsend, 1), -EIO);
    assert_int_equal(ucp.flow.sent, 0);
    assert_int_equal(ucp.taken, 0);
    ucx.sent = NULL;
    assert_int_equal(post_tagged(weft_ucp_tsend, 1), DONE);
    ucx.sent = request;
    assert_int_equal(post_tagged(weft_ucp_send, 1), LATER);
    assert_int_equal(ucp.flow.sent, 2);
    assert_int_equal(ucp.taken, 1);
}

static void a_send_that_ucx_refuses_leaves_the_window_and_the_slots_as_they_were(void **state)
{
    (void)state;
    both_ways(check_refusals);
}

static void check_receives(void)
{
    for (int again = 0; again < 2 * WEFT_UCP_SLOTS; again++) {
        ucx.received = 0;
        assert_int_equal(post_tagged(weft_ucp_trecv, 1), LATER);
        assert_int_equal(post_tagged(weft_ucp_trecv, 2), LATER);
        assert_ptr_not_equal(ucx.receives[0].request, ucx.receives[1].request);
        ucp.count = 0;
        message_comes(1, UCS_OK, 8);
        message_comes(0, UCS_ERR_MESSAGE_TRUNCATED, 9);
        assert_int_equal(ucp.count, 2);
        assert_int_equal(events[0].id, 2);
        assert_int_equal(events[0].status, 0);
        assert_int_equal(events[0].tag, 5);
        assert_int_equal(events[1].id, 1);
        assert_int_equal(events[1].status, -EMSGSIZE);
        assert_int_equal(events[1].length, 9);
        assert_int_equal(ucp.taken, 0);
        assert_int_equal(ucp.receives, 0);
        ucp.flow.told = ucp.flow.taken;
    }
}

static void receives_under_way_have_a_request_each_and_give_it_back(void **state)
{
    (void)state;
    both_ways(check_receives);
}

static void check_window(void)
{
    for (unsigned i = 0; i < WEFT_UCP_WINDOW; i++)
        assert_int_equal(post_tagged(weft_ucp_tsend, 1), DONE);
    assert_int_equal(post_tagged(weft_ucp_tsend, 1), -EAGAIN);
    weft_ucp_flow_acked(&ucp, 1);
    assert_int_equal(post_tagged(weft_ucp_tsend, 1), DONE);
    assert_int_equal(post_tagged(weft_ucp_tsend, 1), -EAGAIN);
}

static void no_more_is_sent_than_the_other_end_has_room_for(void **state)
{
    (void)state;
    both_ways(check_window);
}

static void check_bounds(void)
{
    struct xfer outside[] = {{.local = &region, .length = sizeof bytes + 1},
                             {.local = &region, .length = 8, .at = sizeof bytes - 7},
                             {.local = &region, .length = 8, .at = SIZE_MAX - 3}};
    for (size_t i = 0; i < LENGTH(outside); i++) {
        assert_int_equal(weft_ucp_tsend(&ucp.fabric, &outside[i]), -ERANGE);
        assert_int_equal(weft_ucp_trecv(&ucp.fabric, &outside[i]), -ERANGE);
    }
    struct xfer tag = {.local = &region, .length = 8, .tag = UINT64_C(1) << 63};
    assert_int_equal(weft_ucp_tsend(&ucp.fabric, &tag), -EINVAL);
    assert_int_equal(ucp.taken, 0);
}

static void what_does_not_lie_in_its_buffer_is_refused(void **state)
{
    (void)state;
    both_ways(check_bounds);
}

static void messages_in_order_are_handed_over_in_order(void **state)
{
    (void)state;
    begin();
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(post_tagged(weft_ucp_recv, id), LATER);
    message_comes(1, UCS_OK, 8);
    assert_int_equal(ucp.count, 0);
    message_comes(0, UCS_OK, 8);
    assert_int_equal(ucp.count, 2);
    assert_int_equal(post_tagged(weft_ucp_tsend, 1), DONE);
    message_comes(2, UCS_OK, 8);
    assert_int_equal(ucp.count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(events[i].id, i + 1);
    assert_null(ucp.mail.first);
    assert_int_equal(ucp.taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_whose_flush_is_complete_at_once_is_done),
        cmocka_unit_test(writes_posted_during_a_flush_are_settled_by_the_next),
        cmocka_unit_test(the_next_flush_may_be_complete_at_once),
        cmocka_unit_test(a_write_is_not_complete_before_its_own_call_is),
        cmocka_unit_test(a_send_that_ucx_refuses_leaves_the_window_and_the_slots_as_they_were),
        cmocka_unit_test(receives_under_way_have_a_request_each_and_give_it_back),
        cmocka_unit_test(no_more_is_sent_than_the_other_end_has_room_for),
        cmocka_unit_test(what_does_not_lie_in_its_buffer_is_refused),
        cmocka_unit_test(messages_in_order_are_handed_over_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
