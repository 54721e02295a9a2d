/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations of ucp and the flushes that settle them, with UCX replaced: it says what
 * each test wants it to. */
#include "support/unit.h"

#include <errno.h>
#include <string.h>

/* NOLINTNEXTLINE(bugprone-suspicious-include): what it calls is replaced. */
#include "../../src/fabric/ucp/verbs.c"

/* ---- UCX ---- */

static struct {
    bool put_later, flush_later;
    int puts, flushes;
    ucp_request_param_t last_flush;
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

void ucp_request_free(void *one)
{
    (void)one;
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
    (void)own;
    fail_msg("an operation that is not as usual");
    return (struct weft_ucp_bytes){.at = NULL};
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
static char bytes[64];
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
    ucp.waiting_last = &ucp.waiting;
    for (int i = 0; i < WEFT_UCP_SLOTS; i++) {
        ucp.slots[i].ucp = &ucp;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_whose_flush_is_complete_at_once_is_done),
        cmocka_unit_test(writes_posted_during_a_flush_are_settled_by_the_next),
        cmocka_unit_test(the_next_flush_may_be_complete_at_once),
        cmocka_unit_test(a_write_is_not_complete_before_its_own_call_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
