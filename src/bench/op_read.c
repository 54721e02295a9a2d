/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided read: the target's bytes into the initiator's memory. The target takes no part, except
 * that it writes new data for --verify, asked over the control connection. */
#include "bench/run.h"

#include <string.h>

static int read_prepare(struct run *run)
{
    run->verb = run->fabric->read;
    run->xfer = (struct xfer){.local = &run->session->buffer,
                              .at = run->receive_at,
                              .remote = &run->session->remote,
                              .length = run->size,
                              .how = run_hints(run)};
    return run->verify ? pattern_fill(run, 0, 0, run->size) : 0;
}

/* Where both ends read, neither can be asked for new data: instead, what was read before is painted
 * over. */
static int read_before(struct run *run, uint64_t number)
{
    struct msg answer;
    if (run->spec->both_ways)
        return pattern_fill(run, number + 1, run->receive_at, run->size);
    return run_ask(run, "fill", number, "filled=1\n", &answer);
}

static int read_after(struct run *run, uint64_t number)
{
    return (run->spec->both_ways ? pattern_check_first : pattern_check)(run, number,
                                                                        run->receive_at, run->size);
}

static int read_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    if (msg_number(ask, "fill", &number))
        return fail(-EPROTO, "a question that cannot be read");
    int status = pattern_fill(run, number, 0, run->size);
    return status ? status : msg_print(answer, "filled=1\n");
}

static int read_check(const struct spec *spec)
{
    return spec->data.layout - 1 == LAYOUT_SHORT
               ? fail(-EINVAL, "data layout short is not for %s: it has bcopy and zcopy",
                      op_called(spec))
               : 0;
}

static const struct op_words words = {.help = {"Read", "reads"},
                                      .many = "Reads",
                                      .number = "ReadNum",
                                      .size = "RDMA Size[B]",
                                      .size_width = 12};

const struct op op_read = {.name = "read",
                           .alias = "get",
                           .words = &words,
                           .verb = VERB_READ,
                           .verbs = VERB(READ),
                           .hints = HINT(LL) | HINT(RESTRICTED),
                           .traits = OP_STREAMS | OP_RETURNS,
                           .legs = 1,
                           .check = read_check,
                           .prepare = read_prepare,
                           .target = {.answer = read_answer},
                           .verify = {.before = read_before, .after = read_after}};
