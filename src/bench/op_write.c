/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided write: the client's bytes into the server's memory. The server takes no part but to
 * answer --verify over the control connection. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int write_prepare(struct run *run, size_t size)
{
    run->xfer = (struct xfer){
        .local = &run->buffer, .remote = &run->remote, .length = size, .how = run_hints(run, size)};
    return 0;
}

static int write_once(struct run *run)
{
    return run_do(run, VERB_WRITE, run->fabric->write, &run->xfer);
}

static int write_before(struct run *run, uint64_t number)
{
    return pattern_fill(run, number, 0, run->size);
}

/* The server looks into its own memory: what it sees is what was written. */
static int write_after(struct run *run, uint64_t number)
{
    struct msg ask, answer;
    int status = msg_print(&ask, "check=%" PRIu64 "\n", number);
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && strcmp(answer.bytes, "good=1\n") != 0)
        status = fail(-EPROTO, "the server's answer to --verify cannot be read");
    return status;
}

static int answer_check(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    int status = msg_number(ask, "check", &number);
    if (!status)
        status = pattern_check(run, number, 0, run->size);
    return status ? status : msg_print(answer, "good=1\n");
}

static int write_serve(struct run *run, size_t size)
{
    run->size = size;
    return run_serve(run, answer_check);
}

const struct op op_write = {.name = "write",
                            .help = {"Write", "writes"},
                            .many = "Writes",
                            .number = "WriteNum",
                            .size = "RDMA Size[B]",
                            .size_width = 12,
                            .verb = VERB_WRITE,
                            .verbs = VERB(WRITE),
                            .hints = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED),
                            .legs = 1,
                            .prepare = write_prepare,
                            .once = write_once,
                            .before = write_before,
                            .after = write_after,
                            .serve = write_serve};
