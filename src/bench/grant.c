/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server grants to a client: which fabric, on which network, how much memory, how long. A
 * client that asks for more is refused in a sentence, before anything is loaded or opened for it.
 * An end that has shown the secret, or that was started together with this one, is no stranger. */
#include "bench/run.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_SILENCE_MS = 600000, TYPED = FABRIC_DEVICE_MAX + 32 };

void bounds_fill(struct bounds *bounds)
{
    if (!bounds->timeout_ms)
        bounds->timeout_ms = LONGEST_SILENCE_MS;
    if (!bounds->memory)
        bounds->memory = memory_available() / 4;
    if (!bounds->threads)
        bounds->threads = cpu_choices("", NULL, (int64_t[CPU_CHOICES]){0}, CPU_CHOICES);
}

/* ---- the fabric ---- */

/* What names the device at this end. */
static void say_typed(const struct offer *offer, const char *device, char text[TYPED])
{
    if (offer->typed)
        offer->typed(device, text, TYPED);
    else
        snprintf(text, TYPED, "device = \"%s\"", device);
}

static int refuse_foreign(const struct session *s, const struct offer *offer, const char *device)
{
    char typed[TYPED];
    const char *here = s->peer->rank == PEER_SERVER ? "server" : "client";
    say_typed(offer, device, typed);
    return fail(-EACCES,
                "%.*s is no fabric of Weft's own: a module is loaded only for the user who names "
                "it; start the %s with %s",
                (int)strcspn(device, ":"), device, here, typed);
}

static int refuse_unguarded(const struct offer *offer, const char *device)
{
    char typed[TYPED], transport[FABRIC_DEVICE_MAX];
    snprintf(transport, sizeof transport, "%.*s", (int)strcspn(device, "/"), device);
    say_typed(offer, transport, typed);
    return fail(-EACCES,
                "%s is not known to protect the server's memory from its clients: start the server "
                "with %s, or with a secret",
                transport, typed);
}

static int refuse_network(const struct offer *offer, const char *device, const char *carrier,
                          const char *here)
{
    char typed[TYPED];
    say_typed(offer, device, typed);
    return fail(
        -EACCES,
        "the client wants %s, and has reached the server on %s (%s): leave the interface to "
        "the server, or start it with %s",
        device, *carrier ? carrier : "another interface", here, typed);
}

int grant_fabric(const struct session *s, const struct offer *offer, const char *device)
{
    const struct peer *peer = s->peer;
    char carrier[IF_NAMESIZE];
    if (offer->vouched && !s->adopted)
        return 0;
    /* What names no fabric at all is a device of soft. */
    if (!fabric_ours(device))
        return fabric_named(device) ? refuse_foreign(s, offer, device) : 0;
    if (peer->rank == PEER_CLIENT)
        return 0;
    if (!peer->trusted && !fabric_guarded(device))
        return refuse_unguarded(offer, device);
    if (s->adopted && fabric_elsewhere(device, peer->here, carrier, sizeof carrier))
        return refuse_network(offer, device, carrier, peer->here);
    return 0;
}

/* ---- amounts ---- */

/* Of this end, for a client's run: the buffer, and samples that are kept. */
static uint64_t memory_of(const struct spec *spec, const char *memory)
{
    const struct memory_ops *kind;
    unsigned gpu;
    uint64_t buffer = run_buffer_bytes(spec), kept = 0;
    if (!memory_choose(memory, &kind, &gpu) && kind->page)
        buffer = (buffer + kind->page - 1) / kind->page * kind->page;
    if (spec->both_ways && spec->local.keep_samples)
        kept = spec->count.iterations;
    kept = kept > (UINT64_MAX - buffer) / sizeof kept ? UINT64_MAX : buffer + kept * sizeof kept;
    return kept > UINT64_MAX / spec->threads ? UINT64_MAX : kept * spec->threads;
}

int grant_amounts(const struct bounds *most, const struct spec *spec, const char *memory)
{
    uint64_t bytes = memory_of(spec, memory), mib = UINT64_C(1) << 20;
    uint64_t ends = most->ends ? most->ends : 1;
    char wanted[32], allowed[32];
    if (most->timeout_ms && spec->timeout_ms > most->timeout_ms)
        return fail(-EDQUOT,
                    "the client's --timeout is %g s, and the server allows %g s: start the server "
                    "with --timeout %" PRIu64,
                    (double)spec->timeout_ms / 1000, (double)most->timeout_ms / 1000,
                    (spec->timeout_ms + 999) / 1000);
    if (most->threads && spec->threads > most->threads)
        return fail(-EDQUOT,
                    "the client wants %" PRIu64 " threads, and the server allows %" PRIu64
                    ": start it with --max-threads %" PRIu64,
                    spec->threads, most->threads, spec->threads);
    if (!most->memory || bytes <= most->memory / ends)
        return 0;
    bytes = bytes > UINT64_MAX / ends ? UINT64_MAX : bytes * ends;
    unit_bytes_text(bytes, wanted, sizeof wanted);
    unit_bytes_text(most->memory, allowed, sizeof allowed);
    return fail(-EDQUOT,
                "the client's run takes %s of the server's memory, and the server allows %s: start "
                "it with --max-memory %" PRIu64 "M",
                wanted, allowed, bytes / mib + !!(bytes % mib));
}
