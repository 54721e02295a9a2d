/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fabric can do: everything, by UCX's own means or by active messages, and what each
 * completion proves. */
#include "fabric/link.h"
#include "fabric/ucp/ucp.h"

#include <stdio.h>
#include <unistd.h>

static void atomics(struct fabric_facts *facts)
{
    static const enum amo_op posts[] = {AMO_SUM, AMO_BOR, AMO_BAND, AMO_BXOR};
    static const enum amo_op fetches[] = {AMO_SUM,  AMO_BOR,  AMO_BAND,
                                          AMO_BXOR, AMO_SWAP, AMO_CSWAP};
    const uint16_t types = 1U << AMO_INT32 | 1U << AMO_UINT32 | 1U << AMO_INT64 | 1U << AMO_UINT64;
    for (size_t i = 0; i < LENGTH(posts); i++)
        facts->amo[0][posts[i]] = types;
    for (size_t i = 0; i < LENGTH(fetches); i++)
        facts->amo[1][fetches[i]] = types;
    facts->cswap[AMO_EQ] = types;
}

static void proofs(struct fabric_facts *facts)
{
    facts->proves[VERB_WRITE] = "the bytes are in the target's memory: a flush has completed";
    facts->proves[VERB_READ] = "the target's bytes are in our memory";
    facts->proves[VERB_ATOMIC] = "it is applied at the target; fetching: the old value is here";
    facts->proves[VERB_SEND] = facts->proves[VERB_TSEND] =
        "our buffer may be used again; synchronous: its receive has been found";
    facts->proves[VERB_RECV] = facts->proves[VERB_TRECV] =
        "a whole message is in the posted buffer";
    facts->proves[VERB_STREAM_SEND] = "our buffer may be used again";
    facts->proves[VERB_STREAM_RECV] = "bytes of the stream are here";
    facts->proves[VERB_AM] = "our buffer may be used again";
}

static void hints(struct fabric_facts *facts)
{
    facts->honours = HINT(LOCAL) | HINT(SYNC) | HINT(LEND);
    facts->why_no_layouts = "UCP chooses by size";
    for (unsigned k = 0; k < LAYOUTS; k++)
        facts->why_not[HINT_SHORT + k] = facts->why_no_layouts;
    facts->why_not[HINT_INLINE] = "UCP chooses short, bcopy or zcopy by size";
    facts->why_not[HINT_LL] = "UCP issues at once";
    facts->why_not[HINT_MORE] = "UCP batches by itself";
    facts->why_not[HINT_HRP] = "UCP has no high-rate puts";
    facts->why_not[HINT_RESTRICTED] = "UCP has one order of operations";
    facts->why_not[HINT_MATCHING] = "UCP names memory by its key";
    facts->why_not[HINT_RENDEZVOUS] = "UCP chooses eager or rendezvous by size";
}

/* There are no layouts to ask for; these are the limits of what takes any. */
static void limits(struct fabric_facts *facts)
{
    static const enum verb moving[] = {VERB_WRITE, VERB_READ, VERB_AM};
    for (size_t i = 0; i < LENGTH(moving); i++)
        for (unsigned k = 0; k < LAYOUTS; k++)
            facts->layout_max[moving[i]][k] = SIZE_MAX;
    facts->layout_max[VERB_READ][LAYOUT_SHORT] = 0;
    facts->max_header = WEFT_UCP_HEAD_MAX;
    facts->max_send = SIZE_MAX;
    facts->tag_bits = UINT64_MAX >> 1;
    facts->max_unexpected = WEFT_UCP_WINDOW;
    facts->depth = WEFT_UCP_SLOTS;
    facts->pieces = VERB(AM) | VERB(TSEND) | VERB(TRECV) | VERB(STREAM_SEND);
}

/* Where the target's CPU does the atomics, it cannot reach it: there are none. */
static void gpus(const struct weft_ucp_port *port, struct fabric_facts *facts)
{
    facts->gpus = port->gpus;
    facts->gpu_verbs = facts->verbs & ~VERB(ATOMIC);
    facts->gpu_layouts = 1U << LAYOUT_BCOPY | 1U << LAYOUT_ZCOPY;
    facts->why_no_gpu = port->why_no_gpu;
}

void weft_ucp_facts(const struct weft_ucp_port *port, const struct fabric_want *want,
                    struct fabric_facts *facts)
{
    const char *names = *port->transports ? port->transports : "automatic";
    const unsigned remote = VERB(WRITE) | VERB(READ) | (port->atomics ? VERB(ATOMIC) : 0);
    const unsigned tagged = VERB(SEND) | VERB(RECV) | VERB(TSEND) | VERB(TRECV);
    const unsigned streams = VERB(STREAM_SEND) | VERB(STREAM_RECV);
    unsigned wanted = want->verbs ? want->verbs : remote | tagged | streams;
    unsigned verbs = wanted & remote;
    verbs |= wanted & tagged ? tagged : 0;
    verbs |= wanted & streams ? streams : 0;
    *facts = (struct fabric_facts){.verbs = verbs | VERB(AM), .own_memory = port->places};
    /* A rendezvous needs both ends; on a network UCX does by messages what the transport lacks. */
    /* Newer releases of UCX make reads and atomics of messages in shared memory, too. */
    facts->target_polls = VERB(AM) | tagged | streams | remote;
    facts->wakes = port->shared ? facts->target_polls & ~remote : facts->target_polls;
    if (port->atomics)
        atomics(facts);
    proofs(facts);
    hints(facts);
    limits(facts);
    gpus(port, facts);
    facts->tunes = weft_ucp_tune_names;
    facts->follows_here = port->follows_here;
    facts->why_no_service = "UCX has no services";
    if (*port->device && !port->shared) {
        facts->link_bits_per_s = link_bits_per_s("", port->device);
        snprintf(facts->device, sizeof facts->device, "%.63s", port->device);
    }
    snprintf(facts->library, sizeof facts->library, "UCX %.32s", ucp_get_version_string());
    snprintf(facts->form, sizeof facts->form, "ucp %.60s%s%.40s (UCX %.10s)", names,
             *port->device ? "/" : "", port->device, ucp_get_version_string());
    snprintf(facts->self, sizeof facts->self, "%.40s PID %d", names, (int)getpid());
}
