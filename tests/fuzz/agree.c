/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes how two ends agree on a run: a server reads a proposal, a client the answer. What fits is
 * opened, on the fabrics that are built in, and closed again. */
#include "fuzz/agree.h"
#include "fuzz/meeting.h"

unsigned fuzz_accepted;

enum { BUFFER_MAX = 1 << 20 }; /* to place more would only take time */

static bool is_large(const struct spec *spec, const struct msg *text)
{
    struct spec asked = *spec;
    return !spec_decode(&asked, text) && run_buffer_bytes(&asked) > BUFFER_MAX;
}

/* What everything after an agreement relies on. */
static void check(const struct session *s, const struct spec *spec)
{
    if (!s->handle || !s->fabric || !op_of(spec) || !method_of(spec) ||
        s->buffer.length < run_buffer_bytes(spec))
        abort();
}

static void serve(unsigned what, const struct msg *proposal)
{
    struct session session;
    struct offer offer;
    struct spec spec;
    struct msg answer = {0};
    spec_defaults(&spec);
    if (is_large(&spec, proposal) || agree_open(&session, &offer, what))
        return;
    if (!session_accept(&session, &offer, proposal, &spec, what & SAME, &answer)) {
        fuzz_accepted++;
        check(&session, &spec);
    }
    agree_close(&session);
}

/* What the client has asked for comes first. */
static void join(unsigned what, const struct msg *asked, const struct msg *answer)
{
    struct session session;
    struct offer offer;
    struct spec spec;
    spec_defaults(&spec);
    if (is_large(&spec, asked) || spec_decode(&spec, asked) || agree_open(&session, &offer, what))
        return;
    if (!session_join(&session, &offer, &spec, answer)) {
        fuzz_accepted++;
        check(&session, &spec);
    }
    agree_close(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct msg first, second;
    unsigned what = next_byte(&feed);
    next_msg(&feed, &first);
    next_msg(&feed, &second);
    if (what & AS_CLIENT)
        join(what, &first, &second);
    else
        serve(what, &first);
    return 0;
}
