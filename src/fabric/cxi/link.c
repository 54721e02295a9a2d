/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and meetings: regions and their keys, addresses as text, and one word each way before two
 * ends count as connected. Every meeting has indices of its own: what an end of an older one still
 * sends reaches nothing. */
#include "fabric/cxi/cxi.h"

#include <inttypes.h>
#include <unistd.h>

enum { NID_BITS = 20, OFFSET_BITS = 56, DRAIN_MS = 50, OWN_MS = 2000 };

/* Restricted packets carry no initiator; bit 0 of ignore_bits lets their last part arrive in any
 * order too, as HPE's own tools have it. */
enum { RELAXED_RESTRICTED = 1 };

static const uint32_t anybody = UINT32_MAX;

/* ---- memory ---- */

static int open_portals(struct weft_cxi *cxi, struct weft_cxi_exposed *e)
{
    struct weft_cxi_grant grant = {.md = e->md,
                                   .address = e->region->address,
                                   .length = e->region->length,
                                   .put = true,
                                   .get = true,
                                   .relaxed = true,
                                   .ignore_bits = RELAXED_RESTRICTED};
    int status = weft_cxi_portal_open(cxi, &e->plain, false, WEFT_CXI_PUTS_AND_GETS);
    if (!status)
        status = weft_cxi_append_now(cxi, &e->plain, &grant);
    if (!status)
        status = weft_cxi_portal_open(cxi, &e->matching, true, WEFT_CXI_PUTS);
    /* Who and which bits are checked by the index here: both are of this meeting alone. */
    grant.match_id = anybody;
    grant.match_bits = 1;
    grant.ignore_bits = 0;
    return status ? status : weft_cxi_append_now(cxi, &e->matching, &grant);
}

static void unexpose(struct weft_cxi *cxi, struct weft_cxi_exposed *e)
{
    if (e->pulled)
        weft_cxi_portal_close(cxi, &cxi->pulls);
    weft_cxi_portal_close(cxi, &e->plain);
    weft_cxi_portal_close(cxi, &e->matching);
    if (e->md)
        cxi->calls->cxil_unmap(e->md);
    *e = (struct weft_cxi_exposed){0};
}

/* A GPU's memory by its dma-buf. Where its library gives none, or the driver does not take it, the
 * driver asks the GPU's own for the pages, as HPE's tools have it. */
static int map_region(struct weft_cxi *cxi, const struct region *region, struct weft_cxi_md **md)
{
    const struct cassini_calls *c = cxi->calls;
    const uint32_t flags = WEFT_CXI_MAP_PIN | WEFT_CXI_MAP_READ | WEFT_CXI_MAP_WRITE |
                           (region->gpu ? WEFT_CXI_MAP_DEVICE : 0);
    struct weft_cxi_md_hints hints = {.dmabuf_valid = true};
    int status = -ENOTSUP;
    if (region->gpu && !region->kind->dmabuf(region, &hints.dmabuf_fd, &hints.dmabuf_offset)) {
        status = c->cxil_map(cxi->lni, region->address, region->mapped, flags, &hints, md);
        close(hints.dmabuf_fd);
    }
    if (status)
        status = c->cxil_map(cxi->lni, region->address, region->mapped, flags, NULL, md);
    return status ? weft_cxi_host->fail(weft_cxi_status(status),
                                        "cxi: %zu bytes%s cannot be mapped on %s: %s",
                                        region->mapped, region->gpu ? " of a GPU" : "",
                                        cxi->dev->info.device_name, strerror(-status))
                  : 0;
}

static int begin(struct weft_cxi *cxi, struct region *region, struct weft_cxi_exposed *e)
{
    e->region = region;
    int status = map_region(cxi, region, &e->md);
    if (!status)
        status = open_portals(cxi, e);
    if (status)
        unexpose(cxi, e);
    return status;
}

/* The key that is good for this meeting, at indices of its own. */
static int give_key(struct weft_cxi *cxi, struct weft_cxi_exposed *e, struct msg *key)
{
    int status = 0;
    if (!e->key) {
        status = weft_cxi_host->random_word(&e->key);
        if (!status)
            status = weft_cxi_portal_move(cxi, &e->plain);
        if (!status)
            status = weft_cxi_portal_move(cxi, &e->matching);
    }
    return status ? status
                  : weft_cxi_host->msg_print(
                        key, "key=0x%" PRIx64 "\nlength=%zu\nput=%u\nget=%u\nmatching=%u\n", e->key,
                        e->region->length, e->plain.put_index, e->plain.get_index,
                        e->matching.put_index);
}

int weft_cxi_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    struct weft_cxi_exposed *e = weft_cxi_find(cxi, region);
    if (e)
        return give_key(cxi, e, key);
    e = weft_cxi_find(cxi, NULL);
    if (!e)
        return weft_cxi_host->fail(-ENOSPC, "cxi: more than %d regions", WEFT_CXI_ENTRIES);
    int status = begin(cxi, region, e);
    return status ? status : give_key(cxi, e, key);
}

static bool idle(struct weft_cxi_cq *cq)
{
    weft_cxi_look(cq);
    return cq->rp32 == cq->hw_wp32;
}

/* What the NIC has in hand is soon done, whatever the other end does. */
static void drain(struct weft_cxi *cxi)
{
    uint64_t since = weft_cxi_now_ms();
    weft_cxi_ring(cxi->data.cq);
    while ((cxi->taken || cxi->batch.busy) && weft_cxi_now_ms() - since < DRAIN_MS)
        weft_cxi_progress(cxi);
    /* Commands of the target are about portals that may go now. */
    while (!idle(cxi->target) && weft_cxi_now_ms() - since < OWN_MS)
        weft_cxi_progress(cxi);
}

/* Messages that wait for the other end and lie there are dropped. */
static void drop_messages(struct weft_cxi *cxi, const struct weft_cxi_exposed *e)
{
    struct weft_cxi_mail *m = &cxi->mail;
    uint64_t kept = m->out_tail;
    for (uint64_t i = m->out_tail; i != m->out_head; i++)
        if (m->out[i % WEFT_CXI_SENDS].from != e)
            m->out[kept++ % WEFT_CXI_SENDS] = m->out[i % WEFT_CXI_SENDS];
    m->out_head = kept;
}

/* The other end's NIC pulls from here what it matched a rendezvous of ours for. */
static int offer_pulls(struct weft_cxi *cxi)
{
    int status = 0;
    for (int i = 0; i < WEFT_CXI_ENTRIES && !status; i++) {
        struct weft_cxi_exposed *e = &cxi->exposed[i];
        struct weft_cxi_grant grant = {
            .md = e->md,
            .get = true,
            .events = true,
            .buffer_id = (unsigned)i,
            .match_id = cassini_match_id(cxi->nid, WEFT_C_PID_ANY, cxi->dev->info.pid_bits),
            .match_bits = (uint64_t)i << 48,
            .ignore_bits = 0xfff};
        if (!e->region)
            continue;
        grant.address = e->region->address;
        grant.length = e->region->length;
        status = weft_cxi_append_now(cxi, &cxi->pulls, &grant);
        e->pulled = !status;
    }
    return status;
}

void weft_cxi_withdraw(struct fabric *fabric, struct region *region)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    struct weft_cxi_exposed *e = region ? weft_cxi_find(cxi, region) : NULL;
    if (!e)
        return;
    drop_messages(cxi, e);
    drain(cxi);
    bool pulled = e->pulled;
    unexpose(cxi, e);
    /* The regions that are left are offered anew. */
    if (pulled &&
        (weft_cxi_portal_open(cxi, &cxi->pulls, true, WEFT_CXI_PULLS) || offer_pulls(cxi)))
        weft_cxi_lose(cxi, -EIO, "the regions that are left cannot be offered for rendezvous");
}

/* ---- meetings ---- */

static int open_meeting(struct weft_cxi *cxi)
{
    struct weft_cxi_arena *a = cxi->arena;
    struct weft_cxi_grant words = {.md = cxi->arena_md,
                                   .address = &a->words,
                                   .length = sizeof a->words,
                                   .put = true,
                                   .events = cxi->wait}; /* a word wakes who waits for it */
    struct weft_cxi_grant ams = {
        .md = cxi->arena_md, .address = a->in, .length = sizeof a->in, .put = true, .events = true};
    memset(&a->words, 0, sizeof a->words);
    int status = weft_cxi_portal_open(cxi, &cxi->words, false, WEFT_CXI_PUTS);
    if (!status)
        status = weft_cxi_append_now(cxi, &cxi->words, &words);
    if (!status)
        status = weft_cxi_portal_open(cxi, &cxi->ams, false, WEFT_CXI_PUTS);
    if (!status)
        status = weft_cxi_append_now(cxi, &cxi->ams, &ams);
    if (!status)
        status = weft_cxi_portal_open(cxi, &cxi->messages, true, WEFT_CXI_PUTS);
    if (!status)
        status = weft_cxi_portal_open(cxi, &cxi->pulls, true, WEFT_CXI_PULLS);
    return status;
}

static void close_meeting(struct weft_cxi *cxi)
{
    weft_cxi_portal_close(cxi, &cxi->pulls);
    weft_cxi_portal_close(cxi, &cxi->messages);
    weft_cxi_portal_close(cxi, &cxi->ams);
    weft_cxi_portal_close(cxi, &cxi->words);
    cxi->met = false;
}

int weft_cxi_address(struct fabric *fabric, struct msg *mine)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    int status = cxi->met ? 0 : open_meeting(cxi);
    if (status) {
        close_meeting(cxi);
        return status;
    }
    cxi->met = true;
    return weft_cxi_host->msg_print(
        mine, "nic=0x%x\npid=%u\nvni=%u\nwords=%u\nmessages=%u\nams=%u\nno_hrp=0x%x\n",
        cxi->dev->info.nid, cxi->domain->pid, cxi->domain->vni, cxi->words.put_index,
        cxi->messages.put_index, cxi->ams.put_index, (unsigned)weft_cxi_no_hrp(cxi));
}

/* A number from first on and below a limit, or -EPROTO. */
static int number(const struct msg *text, const char *name, uint64_t first, uint64_t limit,
                  uint64_t *value)
{
    if (weft_cxi_host->msg_number(text, name, value) || *value < first || *value >= limit)
        return weft_cxi_host->fail(-EPROTO, "cxi: what the other end gave has no good %s", name);
    return 0;
}

/* An index of the half for puts, or of the other: see struct weft_cxi_portal. */
static int index_of(const struct weft_cxi *cxi, const struct msg *text, const char *name, bool gets,
                    unsigned *index)
{
    uint64_t value = 0, half = cxi->dev->info.pid_granule / 2;
    int status = number(text, name, gets ? half : 0, gets ? 2 * half : half, &value);
    *index = (unsigned)value;
    return status;
}

static int read_address(struct weft_cxi *cxi, const struct msg *text)
{
    uint64_t nid = 0, pid = 0, vni = 0, no_hrp = 0;
    int status = number(text, "nic", 0, 1 << NID_BITS, &nid);
    if (!status)
        status = number(text, "pid", 0, UINT64_C(1) << cxi->dev->info.pid_bits, &pid);
    if (!status)
        status = number(text, "vni", 0, UINT16_MAX + 1, &vni);
    if (!status && vni != cxi->domain->vni)
        return weft_cxi_host->fail(
            -EHOSTUNREACH,
            "cxi: the other end is in VNI %u, this one in VNI %u: give both the "
            "same service",
            (unsigned)vni, cxi->domain->vni);
    if (!status)
        status = number(text, "no_hrp", 0, 1 << AMO_TYPES, &no_hrp);
    cxi->facts->amo_no_hrp = (uint16_t)(weft_cxi_no_hrp(cxi) | no_hrp);
    cxi->nid = (uint32_t)nid;
    cxi->pid = (uint32_t)pid;
    if (!status)
        status = index_of(cxi, text, "words", false, &cxi->their_words);
    if (!status)
        status = index_of(cxi, text, "messages", false, &cxi->their_messages);
    return status ? status : index_of(cxi, text, "ams", false, &cxi->their_ams);
}

static int read_key(const struct weft_cxi *cxi, const struct msg *text, struct weft_cxi_remote *r)
{
    uint64_t length = 0;
    int status = number(text, "key", 0, UINT64_MAX, &r->key);
    if (!status)
        status = number(text, "length", 0, UINT64_C(1) << OFFSET_BITS, &length);
    r->length = length;
    if (!status)
        status = index_of(cxi, text, "put", false, &r->put);
    if (!status)
        status = index_of(cxi, text, "get", true, &r->get);
    return status ? status : index_of(cxi, text, "matching", false, &r->matching);
}

static int read_keys(struct weft_cxi *cxi, const struct fabric_meeting *meeting,
                     struct remote *remote)
{
    if (meeting->count > WEFT_CXI_ENTRIES)
        return weft_cxi_host->fail(-EPROTO, "cxi: the other end has %d regions", meeting->count);
    for (int i = 0; i < meeting->count; i++) {
        struct weft_cxi_remote *r = &cxi->remotes[i];
        int status = read_key(cxi, &meeting->keys[i], r);
        if (status)
            return status;
        remote[i] = (struct remote){.length = r->length, .key = r->key, .own = r};
    }
    return 0;
}

static int say_hello(struct weft_cxi *cxi, uint64_t word)
{
    const struct weft_cxi_idc_put put = {.index = cxi->their_words,
                                         .quiet = true,
                                         .user_ptr = weft_cxi_nobody(cxi),
                                         .offset = offsetof(struct weft_cxi_words, hello),
                                         .bytes = &word,
                                         .length = sizeof word};
    if (!weft_cxi_emit_idc(cxi, &cxi->talk, &put))
        return weft_cxi_host->fail(-ENOSPC, "cxi: no room in the command queue");
    weft_cxi_ring(cxi->talk.cq);
    return 0;
}

int weft_cxi_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    uint64_t word = fabric_nonce_word(meeting->nonce);
    if (!cxi->hello_sent) {
        int status = read_address(cxi, meeting->address);
        if (!status)
            status = read_keys(cxi, meeting, remote);
        if (!status && !cxi->met)
            status = weft_cxi_host->fail(-EINVAL, "cxi: connect before address");
        if (!status)
            status = offer_pulls(cxi);
        if (!status)
            status = say_hello(cxi, word);
        if (status)
            return status;
        cxi->hello_sent = true;
    }
    weft_cxi_progress(cxi);
    if (cxi->lost)
        return weft_cxi_host->fail(cxi->lost, "cxi: %s", cxi->reason);
    cxi->connected = __atomic_load_n(&cxi->arena->words.hello, __ATOMIC_ACQUIRE) == word;
    return cxi->connected ? DONE : LATER;
}

void weft_cxi_leave(struct fabric *fabric)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    cxi->connected = cxi->hello_sent = false;
    cxi->mail.out_head = cxi->mail.out_tail;
    drain(cxi);
    close_meeting(cxi);
    weft_cxi_progress(cxi);
    /* What did not come back in time is nobody's any more. */
    for (int i = 0; i < WEFT_CXI_SLOTS; i++)
        cxi->slots[i].verb = VERBS;
    cxi->batch.verb = VERBS;
    cxi->batch.result = NULL;
    for (struct weft_cxi_exposed *e = cxi->exposed; e < cxi->exposed + WEFT_CXI_ENTRIES; e++) {
        e->key = 0;
        e->pulled = false;
        weft_cxi_portal_hide(cxi, &e->plain);
        weft_cxi_portal_hide(cxi, &e->matching);
    }
    memset(&cxi->mail, 0, sizeof cxi->mail);
    memset(&cxi->arena->words, 0, sizeof cxi->arena->words);
    cxi->done_head = cxi->done_tail = 0;
    cxi->meeting++;
    cxi->lost = 0;
    /* What dropped events would have said of is never heard of again. While there are slots enough
     * for the next meeting, that is forgiven. */
    if (cxi->taken < WEFT_CXI_SLOTS / 2 && weft_cxi_dropped(cxi->eq))
        weft_cxi_forgive(cxi->eq);
}
