/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes active messages on soft: ours goes on sending and polling while the other end writes to
 * the lines and slots. */
#include "fuzz/soft_end.h"

#include <errno.h>

unsigned fuzz_accepted;

static bool transmit(struct feed *feed)
{
    static const unsigned layouts[] = {0, HINT(SHORT), HINT(BCOPY), HINT(ZCOPY)};
    uint8_t what = next_byte(feed);
    const struct xfer x = {.local = &ours,
                           .at = RECEIVED,
                           .length = next_number(feed) % (OURS - RECEIVED + 1),
                           .how = layouts[what & 3],
                           .id = 1,
                           .header = 7,
                           .header_bytes = what & 4 ? next_number(feed) : what & 8};
    int status = soft_am(&end.fabric, &x);
    fuzz_accepted += status == DONE;
    return status >= 0 || status == -EAGAIN || status == -EINVAL || status == -EMSGSIZE;
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
            forge(&feed, CODE_AM_WORD + next_byte(&feed) % 5U);
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
        default:
            good = poll_some(&feed);
        }
    clear_slots();
    end_check();
    return 0;
}
