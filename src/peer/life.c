/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeats, timeouts and final messages of every peer, whatever carries its messages. */
#include "peer/life.h"
#include "core/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

enum { FIRST_SPINS = 64, SPINS = 1024, LOOK_NS = 1000000, SLEEP_MS = 4 };

void life_begin(struct peer *peer, const struct peer_ops *ops, int rank,
                const struct peer_terms *terms)
{
    *peer = (struct peer){.ops = ops,
                          .rank = rank,
                          .other = rank == PEER_CLIENT ? "server" : "client",
                          .timeout_ms = terms->timeout_ms,
                          .stop = terms->stop,
                          .watch = terms->watch};
}

int life_interrupted(const struct peer *peer)
{
    if (peer->stop && *peer->stop)
        return fail(-EINTR, "interrupted");
    if (peer->until_ms && clock_ms() >= peer->until_ms)
        return fail(-ETIMEDOUT, "the server ends a session after %g s (--max-session)",
                    (double)peer->longest_ms / 1000);
    return peer->watch.look ? peer->watch.look(peer->watch.arg) : 0;
}

int life_lost(const struct peer *peer)
{
    return fail(-ECONNRESET, "lost the %s: it closed the connection", peer->other);
}

int life_silent(const struct peer *peer)
{
    return fail(-ETIMEDOUT, "lost the %s: no sign of life for %g s", peer->other,
                (double)peer->timeout_ms / 1000);
}

int life_idle(const struct peer *peer)
{
    return fail(-ETIMEDOUT, "the %s made no progress for %g s", peer->other,
                (double)peer->quiet_ms / 1000);
}

int life_fits(const struct msg *msg)
{
    return msg->length < MSG_MAX ? 0
                                 : fail(-EMSGSIZE, "a message of %zu bytes, the limit is %d",
                                        msg->length, MSG_MAX - 1);
}

int life_words(struct msg *words, int status, const char *why)
{
    return msg_print(words, "code=%d\nwhy=%.600s\n", -status, why);
}

int life_last_words(const struct peer *peer, const struct msg *words)
{
    char why[700];
    uint64_t code = 0;
    if (msg_value(words, "why", why, sizeof why) || msg_number(words, "code", &code))
        return fail(-EPROTO, "the %s left with a message that cannot be read", peer->other);
    if (code == EINTR)
        return fail(-ECONNRESET, "the %s was interrupted", peer->other);
    if (code == ETIMEDOUT || code == ECONNRESET)
        return fail(-ECONNRESET, "the %s gave up: %s", peer->other, why);
    return fail(-EREMOTEIO, "the %s says: %s", peer->other, why);
}

int life_spin(const struct peer *peer, uint64_t since_ns, int (*progress)(void *), void *arg)
{
    uint64_t begun_ns = clock_ns(), spin_ns = (begun_ns - since_ns) / 4;
    int status = 0, spins = FIRST_SPINS;
    if (spin_ns > LOOK_NS) {
        spin_ns = LOOK_NS;
        spins = SPINS;
    }
    do {
        for (int i = 0; !status && i < spins; i++)
            status = progress(arg);
    } while (!status && clock_ns() - begun_ns < spin_ns && !(peer->stop && *peer->stop));
    return status < 0 ? status : 0;
}

int life_sleep(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, SLEEP_MS) > 0;
}

struct kept life_keep(void)
{
    struct kept kept;
    snprintf(kept.sentence, sizeof kept.sentence, "%s", fail_reason());
    return kept;
}

void life_restore(const struct kept *kept)
{
    fail(0, "%s", kept->sentence);
}
