/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided write: the client's bytes into the server's memory. The server takes no part but to
 * answer --verify over the control connection. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int write_prepare(struct run *run, size_t size)
{
    run->xfer = (struct xfer){.local = &run->buffer,
                              .remote = &run->remote,
                              .length = size,
                              .how = run_hints(run->plan, run->op, &run->facts, size)};
    return 0;
}

static int write_once(struct run *run)
{
    return run_do(run, run->fabric->write);
}

static int write_mark(struct run *run, uint64_t number)
{
    return pattern_fill(run, number, run->size);
}

/* The server looks into its own memory: what it sees is what was written. */
static int write_check(struct run *run, uint64_t number)
{
    struct blob ask, answer;
    int status = blob_print(&ask, "check=%" PRIu64 "\n", number);
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && strcmp(answer.bytes, "good=1\n") != 0)
        status = fail(-EPROTO, "the server's answer to --verify cannot be read");
    return status;
}

static int progress(void *arg)
{
    struct run *run = arg;
    struct completion completion;
    int got = run->fabric->poll(run->handle, &completion, 1);
    return got < 0 ? got : 0;
}

static int write_serve(struct run *run, size_t size)
{
    bool polls = run->facts.target_polls & VERB(WRITE);
    for (;;) {
        struct blob ask, answer;
        uint64_t number;
        int status = peer_hear(run->peer, &ask, polls ? progress : NULL, run);
        if (status)
            return status;
        if (strcmp(ask.bytes, "done=1\n") == 0)
            return 0;
        if ((status = blob_number(&ask, "check", &number)) ||
            (status = pattern_check(run, number, size)) ||
            (status = blob_print(&answer, "good=1\n")) || (status = peer_tell(run->peer, &answer)))
            return status;
    }
}

const struct op op_write = {.name = "write",
                            .help = {"Write", "writes"},
                            .many = "Writes",
                            .number = "WriteNum",
                            .size = "RDMA Size[B]",
                            .size_width = 12,
                            .verb = VERB_WRITE,
                            .hints = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED),
                            .legs = 1,
                            .prepare = write_prepare,
                            .once = write_once,
                            .mark = write_mark,
                            .check = write_check,
                            .serve = write_serve};
