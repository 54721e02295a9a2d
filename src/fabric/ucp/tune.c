/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of this fabric's own, and operations that are not as usual: in pieces, on a GPU, with
 * the handle of their memory, or with the name of the protocol that UCX has chosen for them. */
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char weft_ucp_tune_names[] = "errors registered nonblock protocols";

/* ---- which ---- */

static int set_one(struct weft_ucp *u, const char *tune)
{
    struct weft_ucp_tunes *t = &u->tunes;
    const struct {
        const char *text;
        bool *set;
    } known[] = {{"errors=none", &t->errors_none},
                 {"errors=peer", &t->errors_peer},
                 {"registered", &t->registered},
                 {"nonblock", &t->nonblock},
                 {"protocols", &t->protocols}};
    for (size_t i = 0; i < LENGTH(known); i++)
        if (strcmp(tune, known[i].text) == 0) {
            *known[i].set = true;
            return 0;
        }
    if (strcmp(tune, "errors=failover") == 0)
        return weft_ucp_host->fail(-ENOTSUP, "ucp: UCX %s has no error handling by failover",
                                   ucp_get_version_string());
    return weft_ucp_host->fail(-EINVAL,
                               "ucp: no setting \"%s\"; there are: errors=none, errors=peer, "
                               "registered, nonblock, protocols",
                               tune);
}

int weft_ucp_tune(struct weft_ucp *u, const char *tunes)
{
    int status = 0;
    for (const char *at = tunes; *at && !status; at += *at == ',') {
        char tune[64];
        snprintf(tune, sizeof tune, "%.*s", (int)strcspn(at, ","), at);
        status = set_one(u, tune);
        at += strcspn(at, ",");
    }
    u->tuned = u->tunes.registered || u->tunes.protocols;
    return status;
}

/* ---- operations ---- */

static void use_pieces(struct weft_ucp_bytes *bytes, ucp_request_param_t *own,
                       const struct weft_ucp_slot *slot, const struct xfer *x)
{
    ucp_dt_iov_t *iov = slot->ucp->iov[slot - slot->ucp->slots];
    for (unsigned i = 0; i < x->pieces->count; i++) {
        iov[i].buffer = x->local->address + x->at + x->pieces->list[i].at;
        iov[i].length = x->pieces->list[i].length;
    }
    own->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    own->datatype = ucp_dt_make_iov();
    bytes->at = iov;
    bytes->count = x->pieces->count;
}

/* What UCX takes if nothing is said. But UCX 1.18 looks at what is said of a stream's bytes, said
 * or not, when the call may not complete at once. */
static void use_bytes(ucp_request_param_t *own)
{
    if (own->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE)
        return;
    own->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    own->datatype = ucp_dt_make_contig(1);
}

/* A handle is of one buffer: not for pieces. */
static void use_handle(ucp_request_param_t *own, const struct weft_ucp *u, const struct xfer *x)
{
    for (const struct weft_ucp_exposed *e = u->exposed; e < u->exposed + WEFT_UCP_ENTRIES; e++)
        if (e->region == x->local) {
            own->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
            own->memh = e->memh;
            return;
        }
}

/* The first of a verb and length; the other way they are the same. */
static bool is_new(struct weft_ucp_tunes *t, uint32_t verb, uint64_t length)
{
    uint64_t kind = 1 + (length * VERBS + verb);
    bool first = kind != t->shown;
    t->shown = kind;
    return first;
}

/* Of a message, the request is looked at when it completes, and so it must be one. */
static bool is_message(uint32_t verb)
{
    return verb == VERB_TSEND || verb == VERB_SEND || verb == VERB_AM || verb == VERB_STREAM_SEND;
}

struct weft_ucp_bytes weft_ucp_tuned(struct weft_ucp_slot *slot, enum verb verb,
                                     const struct xfer *x, ucp_request_param_t *own)
{
    struct weft_ucp *u = slot->ucp;
    struct weft_ucp_bytes bytes = {
        .at = x->local->address + x->at, .count = x->length, .param = own};
    if (x->length)
        own->memory_type = weft_ucp_type(&u->port, x->local);
    if (x->pieces)
        use_pieces(&bytes, own, slot, x);
    else if (u->tunes.registered)
        use_handle(own, u, x);
    /* Acknowledgements are not what is measured. */
    bool payload = verb != VERB_AM || x->length || !x->header_bytes;
    if (!u->tunes.protocols || !is_message(verb) || !payload || !is_new(&u->tunes, verb, x->length))
        return bytes;
    own->op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    use_bytes(own);
    weft_ucp_slot_take(slot, verb, x);
    slot->shows = bytes.taken = true;
    return bytes;
}

/* ---- protocols ---- */

static void first_lane(void *arg, const char *name)
{
    char *lane = arg;
    if (!*lane)
        snprintf(lane, 40, "%.*s", (int)strcspn(name, "."), name);
}

/* Newer releases say it in words, after the length, with an estimate behind: "eager short
 * posix/memory 164.7 MB/s 0.05 us". Older ones name the function that goes on with it. */
static void read_words(const char *words, char *text, size_t room)
{
    const char *length = strstr(words, " length "), *end;
    const char *from = length ? length + strlen(" length ") : words;
    char lane[40] = "", line[600];
    from += strspn(from, "0123456789 ");
    const char *first = strstr(words, "lane[");
    if (!first) {
        end = strstr(from, " MB/s");
        while (end && end > from && end[-1] != ' ')
            end--;
        snprintf(text, room, "%.*s", (int)(end && end > from ? end - 1 - from : (int)strlen(from)),
                 from);
        return;
    }
    snprintf(line, sizeof line, " %s\n", first);
    weft_ucp_each(line, first_lane, lane);
    int name = (int)strcspn(from, "(");
    bool known = strncmp(from, "ucp_", 4) == 0;
    snprintf(text, room, "%s %s%s%.*s%s", strstr(from, "rndv") ? "rendezvous" : "eager", lane,
             known ? " (" : "", known ? name : 0, from, known ? ")" : "");
}

void weft_ucp_show(struct weft_ucp *u, void *request)
{
    char words[512] = "";
    ucp_request_attr_t attr = {.field_mask = UCP_REQUEST_ATTR_FIELD_INFO_STRING |
                                             UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE,
                               .debug_string = words,
                               .debug_string_size = sizeof words};
    u->facts->protocol[0] = '\0';
    if (!request)
        snprintf(u->facts->protocol, sizeof u->facts->protocol, "completed at once");
    else if (ucp_request_query(request, &attr) == UCS_OK && strstr(words, " length "))
        read_words(words, u->facts->protocol, sizeof u->facts->protocol);
}

/* UCX 1.18 crashes when it is asked about an atomic that it makes by messages. */
void weft_ucp_show_once(struct weft_ucp *u, enum verb verb, size_t length, void *request)
{
    if (!u->tunes.protocols || !is_new(&u->tunes, verb, length))
        return;
    if (request && verb == VERB_ATOMIC)
        u->facts->protocol[0] = '\0';
    else
        weft_ucp_show(u, request);
}
