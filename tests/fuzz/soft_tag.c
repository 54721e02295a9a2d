/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes tagged messages on soft: ours goes on sending, receiving, probing and polling while the
 * other end writes to the lines and slots. */
#include "fabric/soft/tag.h"
#include "fuzz/soft_end.h"

#include <errno.h>

unsigned fuzz_accepted;

static struct xfer tagged(struct feed *feed, size_t at, size_t most)
{
    uint8_t what = next_byte(feed);
    return (struct xfer){.local = &ours,
                         .at = at,
                         .length = next_number(feed) % (most + 1),
                         .how = what & 1 ? HINT(SYNC) : 0,
                         .tag = what >> 4,
                         .mask = what & 2 ? UINT64_MAX : what & 12,
                         .id = ids};
}

static bool post(struct feed *feed)
{
    const struct xfer x = tagged(feed, 0, RECEIVED);
    int status = soft_trecv(&end.fabric, &x);
    if (status == LATER)
        room_of[ids++ % 256] = x.length;
    return status == LATER || status == -EAGAIN;
}

static bool transmit(struct feed *feed)
{
    const struct xfer x = tagged(feed, RECEIVED, OURS - RECEIVED);
    int status = soft_tsend(&end.fabric, &x);
    fuzz_accepted += status == DONE;
    return status >= 0 || status == -EAGAIN;
}

static bool probe(struct feed *feed)
{
    const struct xfer x = tagged(feed, 0, 0);
    int status = soft_tprobe(&end.fabric, &x);
    return status == DONE || status == -EAGAIN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct soft_tags *tags;
    struct feed feed = {data, size};
    bool good = true;
    end_open(next_byte(&feed) & 1);
    if (!tags)
        tags = exactly(sizeof *tags);
    end.tags = tags;
    soft_tag_leave(&end);
    for (int i = 0; i < 200 && feed.left && good; i++)
        switch (next_byte(&feed) % 8) {
        case 0:
        case 1:
            forge(&feed, CODE_TAG);
            break;
        case 2:
            scribble(&feed);
            break;
        case 3:
            write_slot(&feed);
            break;
        case 4:
            good = transmit(&feed);
            break;
        case 5:
            good = post(&feed);
            break;
        case 6:
            good = probe(&feed);
            break;
        default:
            good = poll_some(&feed);
        }
    clear_slots();
    end_check();
    return 0;
}
