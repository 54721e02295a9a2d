/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two ends tell each other after a size. */
#include "bench/run.h"

#include <inttypes.h>
#include <math.h>

/* CPU time per operation: of an end that only answers, per operation of the other. */
static double cpu_per_op(uint64_t cpu_ns, uint64_t own, uint64_t other)
{
    uint64_t ops = own ? own : other;
    return ops ? (double)cpu_ns / (double)ops : NAN;
}

/* How the other end fared: what it used, and where it measured too, what came of it. */
int run_swap_figures(struct run *run, bool initiates, uint64_t cpu_ns)
{
    struct msg mine, theirs;
    uint64_t count = 0, elapsed_ps = 0, their_cpu_ns = 0, ops = 0;
    uint64_t own = initiates ? run->flight.number : 0;
    int rank = run->session->peer->rank;
    bool measured = run->spec->both_ways || run->method->lists;
    struct result *r = &run->out.result;
    if (!initiates)
        *r = (struct result){.size = run->size, .elapsed_s = NAN, .final = true};
    int status =
        msg_print(&mine,
                  "iterations=%" PRIu64 "\nelapsed_ps=%" PRIu64 "\ncpu_ns=%" PRIu64
                  "\noperations=%" PRIu64 "\n",
                  run->meter.done, clock_to_ps(&run->meter.clock, run->meter.elapsed), cpu_ns, own);
    if (!status)
        status = peer_send(run->session->peer, &mine);
    /* The other end may still have something under way that needs this one. */
    if (!status)
        status = peer_recv(run->session->peer, &theirs, run_progress(run), run);
    if (!status &&
        (msg_number(&theirs, "iterations", &count) ||
         msg_number(&theirs, "elapsed_ps", &elapsed_ps) ||
         msg_number(&theirs, "cpu_ns", &their_cpu_ns) || msg_number(&theirs, "operations", &ops)))
        status = fail(-EPROTO, "the %s's figures cannot be read", run->session->peer->other);
    if (status)
        return status;
    r->interference.cpu_ns[rank] = cpu_per_op(cpu_ns, own, ops);
    r->interference.cpu_ns[!rank] = cpu_per_op(their_cpu_ns, ops, own);
    if (!measured)
        return 0;
    r->reverse_count = count;
    r->reverse_elapsed_s = elapsed_ps ? (double)elapsed_ps / 1e12 : NAN;
    r->sums = run->out.sums;
    return 0;
}
