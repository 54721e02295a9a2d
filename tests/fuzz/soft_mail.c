/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes messages and commands on soft: ours goes on sending, receiving and polling while the other
 * end writes to the shared memory. */
#include "fuzz/soft_end.h"

#include <errno.h>

unsigned fuzz_accepted;

static bool post(struct feed *feed)
{
    size_t length = next_number(feed) % (RECEIVED + 1);
    const struct xfer x = {.local = &ours,
                           .at = next_number(feed) % (RECEIVED - length + 1),
                           .length = length,
                           .id = ids};
    int status = soft_recv(&end.fabric, &x);
    if (status == LATER)
        room_of[ids++ % 256] = length;
    return status == LATER || status == -EAGAIN;
}

static bool transmit(struct feed *feed)
{
    uint8_t what = next_byte(feed);
    size_t length = next_number(feed) % (OURS - RECEIVED + 1);
    const struct xfer x = {.local = &ours,
                           .at = RECEIVED,
                           .length = length,
                           .id = 1,
                           .how = (what & 1 ? HINT(LL) : 0) | (what & 2 ? HINT(INLINE) : 0) |
                                  (what & 4 ? HINT(RENDEZVOUS) : 0)};
    int status = soft_send(&end.fabric, &x);
    fuzz_accepted += status == DONE;
    return status >= 0 || status == -EAGAIN || length > SOFT_IDC;
}

static void command(struct feed *feed)
{
    static char operand[AMO_MAX_BYTES], result[AMO_MAX_BYTES];
    uint8_t what = next_byte(feed), type = next_byte(feed) % AMO_TYPES;
    bool writes = what & 1, atomic = what & 2;
    const struct xfer x = {.local = &ours,
                           .at = writes ? RECEIVED : 0,
                           .remote = &remote,
                           .remote_at = next_number(feed),
                           .length = atomic ? amo_size(type) : next_number(feed) % (RECEIVED + 1),
                           .how = (what & 4 ? HINT(LL) : 0) | (what & 8 ? HINT(MATCHING) : 0),
                           .amo = {.op = what >> 4,
                                   .type = type,
                                   .fetch = 1,
                                   .operand = operand,
                                   .compare = operand,
                                   .result = result}};
    int status = atomic   ? soft_atomic(&end.fabric, &x)
                 : writes ? soft_write(&end.fabric, &x)
                          : soft_read(&end.fabric, &x);
    fuzz_accepted += status == DONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    bool good = true;
    end_open(next_byte(&feed) & 1);
    for (int i = 0; i < 200 && feed.left && good; i++)
        switch (next_byte(&feed) % 8) {
        case 0:
        case 1:
            forge(&feed, next_byte(&feed) & MASK(CODE_BITS));
            break;
        case 2:
            scribble(&feed);
            break;
        case 3:
            good = post(&feed);
            break;
        case 4:
            good = transmit(&feed);
            break;
        case 5:
            command(&feed);
            break;
        default:
            good = poll_some(&feed);
        }
    end_check();
    return 0;
}
