/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of round trips that follow each other, and where the clock is read for them. Before a
 * sending no sample is shorter than the truth, but the reading is part of what is measured: a tenth
 * of half a microsecond. So short round trips are timed from the end of one sending to the end of
 * the next, while the message is on its way. */
#include "bench/run.h"

/* What is usual rises slowly, so that one long sample does not count. */
static uint64_t follow(uint64_t usual, uint64_t sample)
{
    uint64_t more = usual + usual / 16 + 1;
    if (sample < usual)
        return usual - (usual - sample) / 2;
    return usual && sample > more ? more : sample;
}

static void put_held(struct roundtrips *r)
{
    if (!r->holds)
        return;
    if (r->buckets)
        r->buckets[stats_bucket(r->held)]++;
    r->usual = follow(r->usual, r->held);
    r->holds = false;
}

/* An interrupt between a sending and the clock makes a sample, or the first sending, longer and the
 * next sample shorter, by as much: that is moved back. */
static uint64_t move_back(struct roundtrips *r, uint64_t sample)
{
    uint64_t usual = r->usual, part = usual / 16, lacks = usual - sample;
    if (sample >= usual - part)
        return sample;
    if (!r->holds && r->lead > lacks) {
        r->lead -= lacks;
        return usual;
    }
    if (r->holds && r->held > usual + part) {
        sample += r->held - usual;
        r->held = usual;
    }
    return sample;
}

static void put(struct roundtrips *r, uint64_t sample)
{
    if (r->after)
        sample = move_back(r, sample);
    else
        r->row = sample < r->below ? r->row + 1 : 0;
    put_held(r);
    r->held = sample;
    r->holds = true;
}

void roundtrip_before(struct roundtrips *r, uint64_t now)
{
    if (r->sent)
        put(r, now - r->sent);
    r->sent = now;
}

void roundtrip_after(struct roundtrips *r, uint64_t now)
{
    if (r->after) {
        put(r, now - r->sent);
    } else {
        put_held(r);
        r->lead = now - r->sent;
    }
    r->sent = now;
    r->after = true;
}

void roundtrip_end(struct roundtrips *r, uint64_t now)
{
    if (r->sent)
        put(r, now - r->sent + r->lead);
    put_held(r);
    r->sent = r->lead = 0;
    r->after = false;
}
