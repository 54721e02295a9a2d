/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends that sleep until the NIC interrupts. The descriptor of libcxi is a file of sysfs: it can
 * always be read, and what has come makes it urgent. A descriptor of epoll that waits for that
 * stands for it. */
#include "fabric/cxi/cxi.h"

#include <sys/epoll.h>
#include <unistd.h>

bool weft_cxi_sleep_open(struct weft_cxi *cxi)
{
    const struct cassini_calls *c = cxi->calls;
    struct epoll_event urgent = {.events = EPOLLPRI};
    if (!c->cxil_alloc_wait_obj || !c->cxil_destroy_wait_obj || !c->cxil_get_wait_obj_fd ||
        !c->cxil_clear_wait_obj || c->cxil_alloc_wait_obj(cxi->lni, &cxi->wait))
        return false;
    cxi->bell = epoll_create1(EPOLL_CLOEXEC);
    if (cxi->bell >= 0 &&
        !epoll_ctl(cxi->bell, EPOLL_CTL_ADD, c->cxil_get_wait_obj_fd(cxi->wait), &urgent))
        return true;
    weft_cxi_sleep_close(cxi);
    return false;
}

void weft_cxi_sleep_close(struct weft_cxi *cxi)
{
    if (cxi->bell >= 0)
        close(cxi->bell);
    if (cxi->wait)
        cxi->calls->cxil_destroy_wait_obj(cxi->wait);
    cxi->bell = -1;
    cxi->wait = NULL;
}

int weft_cxi_event_fd(struct fabric *fabric)
{
    const struct weft_cxi *cxi = (const struct weft_cxi *)fabric;
    return cxi->wait
               ? cxi->bell
               : weft_cxi_host->fail(-ENOTSUP, "cxi: it was not opened for events, or has none");
}

/* The interrupt of what was read already is forgotten before the last look. */
int weft_cxi_arm(struct fabric *fabric)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    if (!cxi->wait)
        return weft_cxi_event_fd(fabric);
    if (cxi->done_head != cxi->done_tail || cxi->lost || weft_cxi_mail_pending(cxi))
        return -EAGAIN;
    cxi->calls->cxil_clear_wait_obj(cxi->wait);
    weft_cxi_listen(cxi->eq);
    return weft_cxi_has_event(cxi->eq) || weft_cxi_dropped(cxi->eq) ? -EAGAIN : DONE;
}
