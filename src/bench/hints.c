/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the NIC: which were made, and which hold for operations of a size. Operations,
 * headers and documents all come to the same answer here. */
#include "bench/session.h"

#include <stdio.h>

enum { HRP_BYTES = 2048 };

const char *const hint_names[] = {"idc", "ll", "restricted", "matching", "rendezvous", "hrp"};

static bool asked_for(const struct spec_hints *asked, enum hint hint)
{
    switch (hint) {
    case HINT_INLINE:
        return !asked->no_idc;
    case HINT_LL:
        return !asked->no_ll;
    case HINT_RESTRICTED:
        return !asked->unrestricted;
    case HINT_MATCHING:
        return asked->matching;
    case HINT_RENDEZVOUS:
        return asked->rendezvous;
    case HINT_HRP:
        return !asked->no_hrp;
    default:
        return false;
    }
}

/* The request that rules this one out; only one that holds itself does. */
static const char *barred_by(const struct hint_question *q, enum hint hint, unsigned has)
{
    const struct spec_hints *asked = &q->spec->hints;
    bool matching = asked->matching && has & HINT(MATCHING);
    bool rendezvous = asked->rendezvous && has & HINT(RENDEZVOUS);
    if (matching && (hint == HINT_INLINE || hint == HINT_RESTRICTED || hint == HINT_HRP))
        return "not with matching list entries";
    if (hint == HINT_HRP && asked->unrestricted)
        return "not unrestricted";
    if (hint == HINT_HRP && q->spec->amo.fetching)
        return "not for what fetches";
    if (hint == HINT_HRP && q->op->verbs & VERB(ATOMIC) &&
        q->facts->amo_no_hrp >> spec_amo_type(q->spec) & 1)
        return "the NIC has none on this type";
    return rendezvous && hint == HINT_INLINE ? "not by rendezvous" : NULL;
}

/* Payload inside a command: one that keeps the order has less room, as the bandwidth tools know. */
static size_t longest_inline(const struct hint_question *q)
{
    bool ordered = !(q->op->hints & HINT(RESTRICTED)) || q->spec->hints.unrestricted;
    return q->lists && ordered && q->facts->max_inline_ordered ? q->facts->max_inline_ordered
                                                               : q->facts->max_inline;
}

/* The longest operation it holds for; 0: any. Of a rendezvous, only the request is issued. */
static size_t longest(const struct hint_question *q, enum hint hint, unsigned has)
{
    bool pulled = q->spec->hints.rendezvous && has & HINT(RENDEZVOUS);
    return hint == HINT_INLINE          ? longest_inline(q)
           : hint == HINT_HRP           ? HRP_BYTES
           : hint == HINT_LL && !pulled ? q->facts->max_ll
                                        : 0;
}

void hint_judge(const struct hint_question *q, enum hint hint, struct hint_state *state)
{
    unsigned has = q->op->hints & q->facts->honours;
    const char *bar = barred_by(q, hint, has);
    size_t most = longest(q, hint, has);
    *state = (struct hint_state){
        .has = has & 1U << hint, .asked = asked_for(&q->spec->hints, hint), .barred = bar};
    if (!state->has)
        snprintf(state->why, sizeof state->why, "%s",
                 q->facts->why_not[hint] ? q->facts->why_not[hint] : "");
    else if (bar)
        snprintf(state->why, sizeof state->why, "%s", bar);
    else if (most && q->size > most)
        snprintf(state->why, sizeof state->why, "over %zu bytes", most);
    else if (hint == HINT_INLINE && q->gpu)
        snprintf(state->why, sizeof state->why, "from a GPU");
    else
        state->holds = state->asked;
}
