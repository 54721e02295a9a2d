/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port can do, from the attributes of its interface, in words and as facts. */
#include "fabric/link.h"
#include "fabric/uct/uct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- how transports differ where their attributes do not say so ---- */

static const struct manner {
    const char *transport;
    enum settle settle;
    bool polls; /* a write needs the target's polling */
} manners[] = {
    {"posix", SETTLE_FENCE, false}, {"sysv", SETTLE_FENCE, false}, {"self", SETTLE_FENCE, false},
    {"xpmem", SETTLE_FENCE, false}, {"cma", SETTLE_SELF, false},   {"knem", SETTLE_SELF, false},
    {"tcp", SETTLE_SELF, true},
};
static const struct manner other_manner = {"", SETTLE_FLUSH, false};

static const struct manner *manner_of(const struct weft_uct_port *port)
{
    for (size_t i = 0; i < LENGTH(manners); i++)
        if (strcmp(manners[i].transport, port->place.transport) == 0)
            return &manners[i];
    return &other_manner;
}

enum settle weft_uct_settle(const struct weft_uct_port *port)
{
    return manner_of(port)->settle;
}

/* ---- in words ---- */

struct family {
    const char *name;
    uint64_t flags[LAYOUTS];
};
static const struct family families[] = {
    {"am", {UCT_IFACE_FLAG_AM_SHORT, UCT_IFACE_FLAG_AM_BCOPY, UCT_IFACE_FLAG_AM_ZCOPY}},
    {"put", {UCT_IFACE_FLAG_PUT_SHORT, UCT_IFACE_FLAG_PUT_BCOPY, UCT_IFACE_FLAG_PUT_ZCOPY}},
    {"get", {UCT_IFACE_FLAG_GET_SHORT, UCT_IFACE_FLAG_GET_BCOPY, UCT_IFACE_FLAG_GET_ZCOPY}},
};
enum { AM, PUT, GET };

static void add_words(char *text, size_t room, const char *words)
{
    size_t used = strlen(text);
    if (used < room)
        snprintf(text + used, room - used, "%s", words);
}

void weft_uct_describe(const struct weft_uct_port *port, char *text, size_t room)
{
    static const char *const layouts[LAYOUTS] = {" short", " bcopy", " zcopy"};
    const uct_iface_attr_t *attr = &port->attr;
    *text = '\0';
    for (size_t i = 0; i < LENGTH(families); i++) {
        bool any = false;
        for (unsigned k = 0; k < LAYOUTS; k++) {
            if (!(attr->cap.flags & families[i].flags[k]))
                continue;
            if (!any) {
                add_words(text, room, *text ? ", " : "");
                add_words(text, room, families[i].name);
            }
            add_words(text, room, layouts[k]);
            any = true;
        }
    }
    if (attr->cap.atomic32.op_flags | attr->cap.atomic64.op_flags | attr->cap.atomic32.fop_flags |
        attr->cap.atomic64.fop_flags) {
        add_words(text, room, ", atomics");
        add_words(text, room,
                  attr->cap.atomic32.fop_flags | attr->cap.atomic32.op_flags ? " 32" : "");
        add_words(text, room,
                  attr->cap.atomic64.fop_flags | attr->cap.atomic64.op_flags ? " 64" : "");
    }
    if (port->place.type == UCT_DEVICE_TYPE_SELF)
        add_words(text, room, ", one process with itself only");
}

/* ---- as facts ---- */

static void layouts(const uct_iface_attr_t *attr, size_t max[VERBS][LAYOUTS])
{
    const size_t most[][LAYOUTS] = {
        {attr->cap.am.max_short, attr->cap.am.max_bcopy, attr->cap.am.max_zcopy},
        {attr->cap.put.max_short, attr->cap.put.max_bcopy, attr->cap.put.max_zcopy},
        {attr->cap.get.max_short, attr->cap.get.max_bcopy, attr->cap.get.max_zcopy}};
    static const enum verb verbs[] = {[AM] = VERB_AM, [PUT] = VERB_WRITE, [GET] = VERB_READ};
    for (size_t i = 0; i < LENGTH(families); i++)
        for (unsigned k = 0; k < LAYOUTS; k++) {
            size_t limit = attr->cap.flags & families[i].flags[k] ? most[i][k] : 0;
            /* Short calls take an unsigned length. */
            if (k == LAYOUT_SHORT && limit > UINT32_MAX)
                limit = UINT32_MAX;
            max[verbs[i]][k] = limit;
        }
}

static void atomics(const uct_iface_attr_t *attr, struct fabric_facts *facts)
{
    static const struct {
        enum amo_op op;
        uct_atomic_op_t theirs;
    } pairs[] = {{AMO_SUM, UCT_ATOMIC_OP_ADD},   {AMO_BOR, UCT_ATOMIC_OP_OR},
                 {AMO_BAND, UCT_ATOMIC_OP_AND},  {AMO_BXOR, UCT_ATOMIC_OP_XOR},
                 {AMO_SWAP, UCT_ATOMIC_OP_SWAP}, {AMO_CSWAP, UCT_ATOMIC_OP_CSWAP}};
    const struct {
        uint64_t flags[2];
        uint16_t types;
    } widths[] = {{{attr->cap.atomic32.op_flags, attr->cap.atomic32.fop_flags},
                   1U << AMO_INT32 | 1U << AMO_UINT32},
                  {{attr->cap.atomic64.op_flags, attr->cap.atomic64.fop_flags},
                   1U << AMO_INT64 | 1U << AMO_UINT64}};
    for (size_t w = 0; w < LENGTH(widths); w++)
        for (size_t i = 0; i < LENGTH(pairs); i++)
            for (int fetch = 0; fetch < 2; fetch++) {
                /* There is no posting either kind of swap. */
                bool posts = fetch || pairs[i].op < AMO_SWAP;
                if (posts && widths[w].flags[fetch] & UCS_BIT(pairs[i].theirs))
                    facts->amo[fetch][pairs[i].op] |= widths[w].types;
            }
    facts->cswap[AMO_EQ] = facts->amo[1][AMO_CSWAP];
}

static bool any(const size_t max[LAYOUTS])
{
    return max[LAYOUT_SHORT] || max[LAYOUT_BCOPY] || max[LAYOUT_ZCOPY];
}

static void verbs(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    bool has_amo = false;
    for (int i = 0; i < AMO_OPS; i++)
        has_amo |= facts->amo[0][i] || facts->amo[1][i];
    if (any(facts->layout_max[VERB_WRITE]))
        facts->verbs |= VERB(WRITE);
    if (any(facts->layout_max[VERB_READ]))
        facts->verbs |= VERB(READ);
    if (any(facts->layout_max[VERB_AM]))
        facts->verbs |= VERB(AM);
    /* Messages need packets that are copied: everything else has its limits. */
    if (facts->layout_max[VERB_AM][LAYOUT_BCOPY])
        facts->verbs |= VERB(SEND) | VERB(RECV);
    if (has_amo)
        facts->verbs |= VERB(ATOMIC);
    facts->target_polls = (VERB(SEND) | VERB(RECV) | VERB(AM)) & facts->verbs;
    if (manner_of(port)->polls)
        facts->target_polls |= VERB(WRITE) & facts->verbs;
}

static void proofs(enum settle settle, struct fabric_facts *facts)
{
    static const char *const writes[] = {
        [SETTLE_FENCE] = "the bytes were copied into the target's memory",
        [SETTLE_SELF] = "the target's memory has the bytes: the transport's own completion says so",
        [SETTLE_FLUSH] = "the bytes are in the target's memory: a flush has completed"};
    facts->proves[VERB_WRITE] = writes[settle];
    facts->proves[VERB_READ] = "the target's bytes are in our memory";
    facts->proves[VERB_SEND] = "our buffer may be used again; by rendezvous: the target has pulled";
    facts->proves[VERB_RECV] = "a whole message is in the posted buffer";
    facts->proves[VERB_ATOMIC] = "it is applied at the target; fetching: the old value is here";
    facts->proves[VERB_AM] = "our buffer may be used again";
}

static void hints(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    static const unsigned moving[] = {VERB_WRITE, VERB_READ, VERB_AM};
    static const char *const lacks[LAYOUTS] = {"the transport has no short operations",
                                               "the transport has no bcopy operations",
                                               "the transport has no zcopy operations"};
    for (unsigned k = 0; k < LAYOUTS; k++) {
        for (size_t i = 0; i < LENGTH(moving); i++)
            if (facts->layout_max[moving[i]][k])
                facts->honours |= LAYOUT_HINT(k);
        facts->why_not[HINT_SHORT + k] = lacks[k];
    }
    if (port->domain_attr.cap.flags & UCT_MD_FLAG_RKEY_PTR && facts->verbs & VERB(SEND) &&
        facts->layout_max[VERB_READ][LAYOUT_BCOPY])
        facts->honours |= HINT(RENDEZVOUS);
    facts->why_not[HINT_INLINE] = "UCT chooses short, bcopy or zcopy by size";
    facts->why_not[HINT_LL] = "UCT issues at once";
    facts->why_not[HINT_MORE] = "UCT batches by itself";
    facts->why_not[HINT_HRP] = "UCT has no high-rate puts";
    facts->why_not[HINT_RESTRICTED] = "UCT has one order of operations";
    facts->why_not[HINT_SYNC] = "UCT has no tagged messages: fabric ucp has";
    facts->why_not[HINT_LOCAL] = "UCT's completions are told apart by the transport";
    facts->why_not[HINT_LEND] = "UCT has no streams of bytes: fabric ucp has";
    facts->why_not[HINT_MATCHING] = "UCT names memory by its key";
    facts->why_not[HINT_RENDEZVOUS] = facts->verbs & VERB(SEND)
                                          ? "the target pulls in shared memory only"
                                          : "the transport has no active messages";
}

/* Only from where it lies, and only what the domain registers. */
static void gpus(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    static const unsigned moving[] = {VERB_WRITE, VERB_READ, VERB_AM};
    uint64_t types = port->domain_attr.cap.reg_mem_types;
    facts->why_no_gpu = "its memory domain does not register it";
    facts->gpus = (types & UCS_BIT(UCS_MEMORY_TYPE_CUDA) ? 1U << MEMORY_NVIDIA : 0) |
                  (types & UCS_BIT(UCS_MEMORY_TYPE_ROCM) ? 1U << MEMORY_AMD : 0);
    facts->gpu_layouts = 1U << LAYOUT_ZCOPY;
    for (size_t i = 0; i < LENGTH(moving); i++)
        if (facts->layout_max[moving[i]][LAYOUT_ZCOPY])
            facts->gpu_verbs |= 1U << moving[i];
}

/* What the target has to poll for comes as a message, and that is an event. */
static void events(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    const uint64_t needed = UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_RECV;
    facts->wakes = facts->target_polls;
    if ((port->attr.cap.event_flags & needed) != needed)
        facts->why_no_events = "the transport has no event descriptor";
}

/* The version that was loaded, which UCP knows; without UCP, the one this was built with. UCT has
 * no call for it. */
static void name_library(char *text, size_t room)
{
    void *ucp = dlopen("libucp.so.0", RTLD_LAZY);
    void *symbol = ucp ? dlsym(ucp, "ucp_get_version_string") : NULL;
    const char *(*version)(void);
    memcpy(&version, &symbol, sizeof version);
    snprintf(text, room, "UCX %.32s", version ? version() : UCT_VERNO_STRING);
}

void weft_uct_facts(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    const struct weft_uct_place *place = &port->place;
    *facts = (struct fabric_facts){.depth = WEFT_UCT_SLOTS, .max_send = SIZE_MAX};
    layouts(&port->attr, facts->layout_max);
    facts->max_header = facts->layout_max[VERB_AM][LAYOUT_ZCOPY] ? port->attr.cap.am.max_hdr : 0;
    atomics(&port->attr, facts);
    verbs(port, facts);
    proofs(weft_uct_settle(port), facts);
    hints(port, facts);
    gpus(port, facts);
    facts->follows_here = port->follows_here;
    if (place->type == UCT_DEVICE_TYPE_NET) {
        facts->link_bits_per_s = link_bits_per_s("", place->device);
        snprintf(facts->device, sizeof facts->device, "%.63s", place->device);
    }
    facts->why_no_service = "UCT has no services";
    events(port, facts);
    name_library(facts->library, sizeof facts->library);
    facts->own_memory = !(port->domain_attr.cap.flags & UCT_MD_FLAG_REG);
    snprintf(facts->form, sizeof facts->form, "uct %s/%s (UCX %d.%d)", place->transport,
             place->device, UCT_VERNO_MAJOR, UCT_VERNO_MINOR);
    snprintf(facts->self, sizeof facts->self, "%s/%s PID %d", place->transport, place->device,
             (int)getpid());
}
