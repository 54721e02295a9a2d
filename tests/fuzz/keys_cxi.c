/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the addresses and keys that cxi gets from the other end. This is the file itself; libcxi,
 * and the files beside it, are replaced: no device is opened. The first byte says how a PID is
 * divided. */
#include "fuzz/meeting.h"

#include "../../src/fabric/cxi/link.c"

unsigned fuzz_accepted;

static struct weft_cxi cxi;

/* ---- the files beside it ---- */

const struct fabric_host *weft_cxi_host = &fuzz_host;

uint64_t weft_cxi_now_ms(void)
{
    return 0;
}

uint16_t weft_cxi_no_hrp(const struct weft_cxi *c)
{
    (void)c;
    return 0;
}

void weft_cxi_lose(struct weft_cxi *lost, int status, const char *format, ...)
{
    (void)format;
    lost->lost = status;
}

int weft_cxi_portal_open(struct weft_cxi *c, struct weft_cxi_portal *portal, bool matching,
                         enum weft_cxi_use use)
{
    (void)c;
    (void)matching;
    portal->use = use;
    return 0;
}

void weft_cxi_portal_close(struct weft_cxi *c, struct weft_cxi_portal *portal)
{
    (void)c;
    (void)portal;
}

void weft_cxi_portal_hide(struct weft_cxi *c, struct weft_cxi_portal *portal)
{
    weft_cxi_portal_close(c, portal);
}

int weft_cxi_portal_move(struct weft_cxi *c, struct weft_cxi_portal *portal)
{
    weft_cxi_portal_close(c, portal);
    return 0;
}

int weft_cxi_append_now(struct weft_cxi *c, const struct weft_cxi_portal *portal,
                        const struct weft_cxi_grant *grant)
{
    (void)c;
    (void)portal;
    (void)grant;
    return 0;
}

void weft_cxi_progress(struct weft_cxi *c)
{
    (void)c;
}

void weft_cxi_ring(struct weft_cxi_cq *cq)
{
    (void)cq;
}

bool weft_cxi_dropped(const struct weft_cxi_eq *eq)
{
    (void)eq;
    return false;
}

void weft_cxi_forgive(struct weft_cxi_eq *eq)
{
    (void)eq;
}

/* What is sent must fit into a command; and the other end answers at once. */
bool weft_cxi_emit_idc(struct weft_cxi *c, struct weft_cxi_tx *tx,
                       const struct weft_cxi_idc_put *put)
{
    (void)tx;
    if (put->index >= c->dev->info.pid_granule / 2 || put->length != sizeof c->arena->words.hello)
        abort();
    memcpy(&c->arena->words.hello, put->bytes, put->length);
    return true;
}

/* ---- */

static void make_end(unsigned what)
{
    static struct weft_cxi_arena arena;
    static struct fabric_facts facts;
    static struct weft_cxil_dev dev;
    static struct weft_cxil_domain domain = {.vni = 10, .pid = 3};
    static struct weft_cxi_cq cq;
    memset(&cxi, 0, sizeof cxi);
    arena.words.hello = 0;
    dev.info = (struct weft_cxil_devinfo){.nid = 0x1a20,
                                          .pid_bits = what % 2 ? 11 : 9,
                                          .pid_granule = what % 2 ? 64 : 256,
                                          .rdzv_get_idx = what % 2 ? 63 : 255};
    cxi.facts = &facts;
    cxi.dev = &dev;
    cxi.domain = &domain;
    cxi.arena = &arena;
    cxi.data.cq = cxi.talk.cq = cxi.target = &cq;
    cxi.met = true;
}

/* What is put into commands is no longer than its fields. */
static void check_fields(int count)
{
    const struct weft_cxil_devinfo *info = &cxi.dev->info;
    unsigned half = info->pid_granule / 2;
    if (cxi.nid >> 20 || cxi.pid >> info->pid_bits || cxi.their_words >= half ||
        cxi.their_messages >= half || cxi.their_ams >= half || cxi.facts->amo_no_hrp >> AMO_TYPES)
        abort();
    for (int i = 0; i < count; i++) {
        const struct weft_cxi_remote *r = &cxi.remotes[i];
        if (r->put >= half || r->matching >= half || r->get < half || r->get >= 2 * half ||
            (uint64_t)r->length >> 56)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct remote remotes[MEETING_KEYS] = {{.address = NULL}};
    make_end(next_byte(&feed));
    struct fabric_meeting meeting = next_meeting(&feed);
    if (weft_cxi_connect(&cxi.fabric, &meeting, remotes) != DONE)
        return 0;
    check_remotes(remotes, meeting.count);
    check_fields(meeting.count);
    fuzz_accepted++;
    return 0;
}
