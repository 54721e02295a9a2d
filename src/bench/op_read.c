/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided read: the server's bytes into the client's memory. The server takes no part but to
 * lay out new data for --verify, asked over the control connection. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int read_prepare(struct run *run, size_t size)
{
    run->xfer = (struct xfer){
        .local = &run->buffer, .remote = &run->remote, .length = size, .how = run_hints(run, size)};
    return 0;
}

static int read_once(struct run *run)
{
    return run_do(run, VERB_READ, run->fabric->read, &run->xfer);
}

static int read_before(struct run *run, uint64_t number)
{
    struct msg ask, answer;
    int status = msg_print(&ask, "fill=%" PRIu64 "\n", number);
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && strcmp(answer.bytes, "filled=1\n") != 0)
        status = fail(-EPROTO, "the server's answer to --verify cannot be read");
    return status;
}

static int read_after(struct run *run, uint64_t number)
{
    return pattern_check(run, number, 0, run->size);
}

static int answer_fill(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    int status = msg_number(ask, "fill", &number);
    if (!status)
        status = pattern_fill(run, number, 0, run->size);
    return status ? status : msg_print(answer, "filled=1\n");
}

static int read_serve(struct run *run, size_t size)
{
    run->size = size;
    return run_serve(run, answer_fill);
}

const struct op op_read = {.name = "read",
                           .help = {"Read", "reads"},
                           .many = "Reads",
                           .number = "ReadNum",
                           .size = "RDMA Size[B]",
                           .size_width = 12,
                           .verb = VERB_READ,
                           .verbs = VERB(READ),
                           .hints = HINT(LL) | HINT(RESTRICTED),
                           .legs = 1,
                           .prepare = read_prepare,
                           .once = read_once,
                           .before = read_before,
                           .after = read_after,
                           .serve = read_serve};
