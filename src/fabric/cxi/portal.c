/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target has: portal table entries at indices of its domain, and list entries in them. */
#include "fabric/cxi/cxi.h"

#include <time.h>

enum {
    WORDS = WEFT_C_CQ_CMD_SIZE / sizeof(uint64_t),
    TRIES = 4096,
    PATIENCE_MS = 2000,
    REST_NS = 50000
};

uint64_t weft_cxi_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for an answer of our own NIC, which takes microseconds. If it takes long, it may need this
 * CPU; and there is a look after the time is over, because we may not have run for all of it. */
static int await(struct weft_cxi *cxi, const unsigned *came, const char *what)
{
    const struct timespec rest = {.tv_nsec = REST_NS};
    uint64_t since = weft_cxi_now_ms(), waited = 0;
    while (!*came && !cxi->lost) {
        if (waited > PATIENCE_MS)
            return weft_cxi_host->fail(-ETIMEDOUT, "cxi: the NIC does not say that %s", what);
        waited = weft_cxi_now_ms() - since;
        if (waited)
            nanosleep(&rest, NULL);
        weft_cxi_progress(cxi);
    }
    return *came ? 0 : weft_cxi_host->fail(cxi->lost, "cxi: %s", cxi->reason);
}

/* ---- indices ---- */

/* The driver maps two entries at one index without a word, and only one of them is reached: which
 * ones are taken is known here. */
static bool is_used(const struct weft_cxi *cxi, unsigned index)
{
    return cxi->used[index / 64] >> index % 64 & 1;
}

static int map_at(struct weft_cxi *cxi, const struct weft_cxi_portal *portal, unsigned index,
                  struct weft_cxil_pte_map **map)
{
    int status = cxi->calls->cxil_map_pte(portal->pte, cxi->domain, index, false, map);
    if (!status)
        cxi->used[index / 64] |= UINT64_C(1) << index % 64;
    return status;
}

static void unmap(struct weft_cxi *cxi, unsigned index, struct weft_cxil_pte_map **map)
{
    if (!*map)
        return;
    cxi->calls->cxil_unmap_pte(*map);
    *map = NULL;
    cxi->used[index / 64] &= ~(UINT64_C(1) << index % 64);
}

/* A free one of the half for puts, or of the other. */
static int map_anywhere(struct weft_cxi *cxi, const struct weft_cxi_portal *portal, bool gets,
                        unsigned *index, struct weft_cxil_pte_map **map)
{
    const struct weft_cxil_devinfo *info = &cxi->dev->info;
    unsigned half = info->pid_granule / 2;
    for (int i = 0; i < TRIES; i++) {
        uint64_t word;
        int status = weft_cxi_host->random_word(&word);
        if (status)
            return status;
        *index = (unsigned)(word % half) + (gets ? half : 0);
        if (*index != info->rdzv_get_idx && !is_used(cxi, *index))
            return map_at(cxi, portal, *index, map);
    }
    return -ENOSPC;
}

static int map_all(struct weft_cxi *cxi, struct weft_cxi_portal *portal)
{
    if (portal->use == WEFT_CXI_PULLS) {
        portal->get_index = cxi->dev->info.rdzv_get_idx;
        return map_at(cxi, portal, portal->get_index, &portal->get_map);
    }
    int status = map_anywhere(cxi, portal, false, &portal->put_index, &portal->put_map);
    if (!status && portal->use == WEFT_CXI_PUTS_AND_GETS)
        status = map_anywhere(cxi, portal, true, &portal->get_index, &portal->get_map);
    return status;
}

void weft_cxi_portal_hide(struct weft_cxi *cxi, struct weft_cxi_portal *portal)
{
    unmap(cxi, portal->put_index, &portal->put_map);
    unmap(cxi, portal->get_index, &portal->get_map);
}

int weft_cxi_portal_move(struct weft_cxi *cxi, struct weft_cxi_portal *portal)
{
    weft_cxi_portal_hide(cxi, portal);
    int status = map_all(cxi, portal);
    return status ? weft_cxi_host->fail(weft_cxi_status(status),
                                        "cxi: no index for a portal table entry: %s",
                                        strerror(-status))
                  : 0;
}

/* ---- entries ---- */

static int enable(struct weft_cxi *cxi, const struct weft_cxi_portal *portal)
{
    uint64_t command[WORDS] = {0};
    cassini_put(command, c_set_state_cmd__ptlte_state, WEFT_C_PTLTE_ENABLED);
    cassini_put(command, c_set_state_cmd__ptlte_index, portal->pte->ptn);
    cxi->waits_for = portal->pte->ptn;
    cxi->state_changes = 0;
    if (!weft_cxi_emit(cxi->target, WEFT_C_CMD_TYPE_CQ, WEFT_C_CMD_TGT_SETSTATE, command,
                       sizeof command))
        return weft_cxi_host->fail(-ENOSPC, "cxi: no room for a command of the target");
    weft_cxi_ring(cxi->target);
    return await(cxi, &cxi->state_changes, "a portal table entry is enabled");
}

int weft_cxi_portal_open(struct weft_cxi *cxi, struct weft_cxi_portal *portal, bool matching,
                         enum weft_cxi_use use)
{
    struct weft_cxi_pt_alloc_opts opts = {0};
    *portal = (struct weft_cxi_portal){.use = use};
    cassini_put(&opts, cxi_pt_alloc_opts__is_matching, matching);
    cassini_put(&opts, cxi_pt_alloc_opts__use_long_event, 1);
    int status = cxi->calls->cxil_alloc_pte(cxi->lni, cxi->eq, &opts, &portal->pte);
    if (!status)
        status = map_all(cxi, portal);
    if (status)
        status =
            weft_cxi_host->fail(weft_cxi_status(status), "cxi: no portal table entry on %s: %s",
                                cxi->dev->info.device_name, strerror(-status));
    else
        status = enable(cxi, portal);
    if (status)
        weft_cxi_portal_close(cxi, portal);
    return status;
}

void weft_cxi_portal_close(struct weft_cxi *cxi, struct weft_cxi_portal *portal)
{
    weft_cxi_portal_hide(cxi, portal);
    if (portal->pte)
        cxi->calls->cxil_destroy_pte(portal->pte);
    *portal = (struct weft_cxi_portal){0};
}

int weft_cxi_append(struct weft_cxi *cxi, const struct weft_cxi_portal *portal,
                    const struct weft_cxi_grant *grant)
{
    uint64_t command[WORDS] = {0};
    cassini_put(command, c_target_cmd__ptl_list, WEFT_C_PTL_LIST_PRIORITY);
    cassini_put(command, c_target_cmd__ptlte_index, portal->pte->ptn);
    cassini_put(command, c_target_cmd__event_unlink_disable, 1);
    cassini_put(command, c_target_cmd__event_success_disable, !grant->events);
    cassini_put(command, c_target_cmd__event_comm_disable, !grant->events);
    cassini_put(command, c_target_cmd__unrestricted_end_ro, grant->relaxed);
    cassini_put(command, c_target_cmd__unrestricted_body_ro, grant->relaxed);
    cassini_put(command, c_target_cmd__use_once, grant->once);
    cassini_put(command, c_target_cmd__op_get, grant->get);
    cassini_put(command, c_target_cmd__op_put, grant->put);
    cassini_put(command, c_target_cmd__buffer_id, grant->buffer_id);
    cassini_put(command, c_target_cmd__lac, grant->md->lac);
    cassini_put(command, c_target_cmd__start, weft_cxi_iova(grant->md, grant->address));
    cassini_put(command, c_target_cmd__length, grant->length);
    cassini_put(command, c_target_cmd__match_id, grant->match_id);
    cassini_put(command, c_target_cmd__match_bits, grant->match_bits);
    cassini_put(command, c_target_cmd__ignore_bits, grant->ignore_bits);
    if (!weft_cxi_emit(cxi->target, WEFT_C_CMD_TYPE_CQ, WEFT_C_CMD_TGT_APPEND, command,
                       sizeof command))
        return -EAGAIN;
    cxi->links = 0;
    cxi->waits_for = portal->pte->ptn;
    weft_cxi_ring(cxi->target);
    return 0;
}

int weft_cxi_append_now(struct weft_cxi *cxi, const struct weft_cxi_portal *portal,
                        const struct weft_cxi_grant *grant)
{
    int status = weft_cxi_append(cxi, portal, grant);
    return status ? weft_cxi_host->fail(-ENOSPC, "cxi: no room for a command of the target")
                  : await(cxi, &cxi->links, "a list entry is linked");
}
