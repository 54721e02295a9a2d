/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a fabric can do what a spec asks, found out before anything is timed, in sentences. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *form_of(const struct session *s)
{
    return *s->facts.form ? s->facts.form : s->fabric->name;
}

static int can_verbs(const struct session *s, const struct spec *spec, const struct op *op)
{
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (op->verbs & 1U << verb && !(s->facts.verbs & 1U << verb))
            return fail(-ENOTSUP, "%s cannot %s", form_of(s),
                        verb == op->verb && spec->local.ucx_words
                            ? op_called(spec)
                            : fabric_verb_name((enum verb)verb));
    return 0;
}

/* Both ends' buffers, as far as they are known. */
static int can_gpu(const struct session *s, unsigned verbs, enum memory_vendor vendor)
{
    if (vendor == MEMORY_CPU)
        return 0;
    if (!(s->facts.gpus & 1U << vendor))
        return fail(-ENOTSUP, "%s does not reach memory of %s GPUs: %s", form_of(s),
                    memory_vendors[vendor - 1], s->facts.why_no_gpu);
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (verbs & 1U << verb && !(s->facts.gpu_verbs & 1U << verb))
            return fail(-ENOTSUP, "%s cannot %s on GPU memory", form_of(s),
                        fabric_verb_name((enum verb)verb));
    return 0;
}

int session_layout(const struct session *s, const struct spec *spec)
{
    const struct op *op = op_of(spec);
    struct spec candidate = *spec;
    if (spec->data.layout || !method_of(spec)->ucx || op->traits & OP_AUTOMATIC ||
        s->facts.why_no_layouts)
        return spec->data.layout;
    int usual = 0;
    for (int k = 0; k < LAYOUTS; k++) {
        candidate.data.layout = k + 1;
        if (op->check && op->check(&candidate))
            continue;
        usual = usual ? usual : k + 1;
        if (op->traits & OP_NO_LAYOUTS)
            break;
        if (session_any_gpu(s) && !(s->facts.gpu_layouts & 1U << k))
            continue;
        if (s->facts.layout_max[op->verb][k] >= spec->size.max)
            return k + 1;
    }
    /* There is none: the usual one, which is then refused. */
    return usual ? usual : 1;
}

static int can_layout(const struct session *s, const struct spec *spec, const struct op *op)
{
    const size_t *most = s->facts.layout_max[op->verb];
    int layout = spec->data.layout - 1;
    const char *name = fabric_layout_names[layout], *form = form_of(s);
    char has[64] = "";
    if (s->facts.why_no_layouts)
        return fail(-ENOTSUP, "%s takes no layout %s: %s", form, name, s->facts.why_no_layouts);
    for (int i = 0; i < LAYOUTS; i++)
        if (most[i])
            snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", *has ? ", " : "",
                     fabric_layout_names[i]);
    if (!most[layout])
        return fail(-ENOTSUP, "%s has no %s in layout %s; it has %s", form, op_called(spec), name,
                    *has ? has : "none");
    if (session_any_gpu(s) && !(s->facts.gpu_layouts & 1U << layout))
        return fail(-ENOTSUP, "%s has no layout %s for GPU memory", form, name);
    if (spec->size.max > most[layout])
        return fail(-EMSGSIZE, "%s: %s in layout %s takes at most %zu bytes, not %" PRIu64, form,
                    op_called(spec), name, most[layout], spec->size.max);
    return 0;
}

/* Sleeping needs a descriptor, and that what the other end does becomes an event here. */
static int can_sleep(const struct session *s, const struct spec *spec, const struct op *op,
                     const struct method *method)
{
    const struct fabric_facts *facts = &s->facts;
    unsigned needed = method->legs == 2 ? 1U << op->verb : facts->target_polls & op->verbs;
    if (!spec->waits.events && !spec->waits.wakeup)
        return 0;
    if (!s->fabric->event_fd || !s->fabric->arm || facts->why_no_events)
        return fail(-ENOTSUP, "%s has no events to sleep on: %s", form_of(s),
                    facts->why_no_events ? facts->why_no_events : "the fabric has none");
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (spec->waits.events && needed & ~facts->wakes & 1U << verb)
            return fail(-ENOTSUP, "%s does not wake the other end for a %s: it can only poll",
                        form_of(s),
                        verb == op->verb ? op_called(spec) : fabric_verb_name((enum verb)verb));
    return 0;
}

/* A target that makes no progress must not be needed for any. */
static int can_leave_out(const struct session *s, const struct spec *spec, const struct op *op,
                         const struct method *method)
{
    if (!spec->waits.target_out)
        return 0;
    if (method->legs == 2 || op->traits & OP_NEEDS_ACK || spec->both_ways)
        return fail(-EINVAL, "a target that takes no part has no answer to %s in %s",
                    op_called(spec), method->name);
    if (!s->facts.alone && s->facts.target_polls & op->verbs)
        return fail(-ENOTSUP, "%s: %s completes only while the target makes progress", form_of(s),
                    op_called(spec));
    return 0;
}

/* Messages in pieces: the verbs that send and receive them. */
static int can_pieces(const struct session *s, const struct spec *spec, const struct op *op)
{
    const struct spec_pieces *asked = &spec->data.pieces;
    unsigned receives = op->verbs & (VERB(TRECV) | VERB(RECV) | VERB(STREAM_RECV));
    unsigned needed = (asked->gather ? 1U << op->verb : 0) | (asked->scatter ? receives : 0);
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (needed & ~s->facts.pieces & 1U << verb)
            return fail(-ENOTSUP, "%s: %s takes a message in one piece only%s%s", form_of(s),
                        fabric_verb_name((enum verb)verb), s->facts.why_no_pieces ? ": " : "",
                        s->facts.why_no_pieces ? s->facts.why_no_pieces : "");
    if (needed && session_any_gpu(s))
        return fail(-ENOTSUP, "%s: pieces of a message are in host memory only", form_of(s));
    return 0;
}

/* Tunes are the fabric's own: each by its name, up to what it is set to. */
static int can_tune(const struct session *s, const struct spec *spec)
{
    const char *has = s->facts.tunes ? s->facts.tunes : "";
    for (const char *at = spec->tunes; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, "=,");
        const char *name = has;
        while (*name && !(strncmp(name, at, length) == 0 && strcspn(name, " ") == length)) {
            name += strcspn(name, " ");
            name += *name == ' ';
        }
        if (!*name || !length)
            return fail(-ENOTSUP, "%s has no setting \"%.*s\"%s%s", form_of(s), (int)length, at,
                        *has ? "; it has: " : "", has);
    }
    return 0;
}

int session_can(const struct session *s, const struct spec *spec)
{
    const struct op *op = op_of(spec);
    const struct method *method = method_of(spec);
    int status = can_verbs(s, spec, op);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = can_gpu(s, op->verbs, s->vendors[rank]);
    if (status)
        return status;
    if (s->facts.alone && spec->data.verify)
        return fail(-EINVAL, "fabric %s moves nothing: there is nothing to verify",
                    s->fabric->name);
    if (s->facts.alone && method->answered && method->answered(op))
        return fail(-ENOTSUP, "%s: nobody is there to answer %s in %s", form_of(s), op_called(spec),
                    method->name);
    status = can_sleep(s, spec, op, method);
    if (!status)
        status = can_tune(s, spec);
    if (!status)
        status = can_pieces(s, spec, op);
    if (!status)
        status = can_leave_out(s, spec, op, method);
    if (!status && spec->data.layout && !(op->traits & OP_NO_LAYOUTS))
        status = can_layout(s, spec, op);
    return status || !op->can ? status : op->can(spec, &s->facts, form_of(s));
}
