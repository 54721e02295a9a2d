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
    return run->verify ? slots_fill(run, 0, 0) : 0;
}

/* Where both ends read, neither can be asked for new data: instead, what was read before is painted
 * over. */
static int read_before(struct run *run, uint64_t number)
{
    struct msg answer;
    if (run->spec->both_ways)
        return slots_fill(run, number + 1, run->receive_at);
    return run_ask(run, "fill", number, "filled=1\n", &answer);
}

static int read_after(struct run *run, uint64_t number)
{
    return (run->spec->both_ways ? slots_check_first : slots_check)(run, number, run->receive_at);
}

static int read_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    if (msg_number(ask, "fill", &number))
        return fail(-EPROTO, "a question that cannot be read");
    int status = slots_fill(run, number, 0);
    return status ? status : msg_print(answer, "filled=1\n");
}

static int read_check(const struct spec *spec)
{
    return spec->data.layout - 1 == LAYOUT_SHORT
               ? fail(-EINVAL, "data layout short is not for %s: it has bcopy and zcopy",
                      op_called(spec))
               : 0;
}

static const struct op_words words = {.help = {.Op = "Read", .ops = "reads"},
                                      .ucx = "get",
                                      .many = "Reads",
                                      .number = "ReadNum",
                                      .size = "RDMA Size[B]",
                                      .size_width = 12};

static const struct op op_read_list;

#define READ                                                                                       \
    .name = "read", .words = &words, .verb = VERB_READ, .verbs = VERB(READ),                       \
    .traits = OP_STREAMS | OP_RETURNS, .legs = 1, .check = read_check, .prepare = read_prepare,    \
    .target = {.answer = read_answer}, .list = {.form = &op_read_list},                            \
    .verify = {.before = read_before, .after = read_after}

static const struct op op_read_list = {READ, .hints = HINT(RESTRICTED)};
const struct op op_read = {READ, .hints = HINT(LL) | HINT(RESTRICTED)};
