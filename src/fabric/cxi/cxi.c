/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, open and close, and what the NIC says in our words. */
#include "fabric/cxi/cxi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

const struct fabric_host *weft_cxi_host;

/* ---- errors ---- */

static const struct {
    unsigned code;
    int status;
    const char *words;
} codes[] = {
    {WEFT_C_RC_UNDELIVERABLE, -EHOSTUNREACH, "undeliverable: the other end's NIC does not answer"},
    {WEFT_C_RC_PT_DISABLED, -ECONNREFUSED, "the target's portal table entry is disabled"},
    {WEFT_C_RC_DROPPED, -EIO, "the target's NIC has dropped it"},
    {WEFT_C_RC_PERM_VIOLATION, -EACCES, "not permitted"},
    {WEFT_C_RC_OP_VIOLATION, -EACCES, "the target's list entry does not permit it"},
    {WEFT_C_RC_NO_MATCH, -ENOENT, "no list entry of the target matches"},
    {WEFT_C_RC_UNCOR, -EIO, "a memory error that cannot be corrected"},
    {WEFT_C_RC_NO_SPACE, -ENOSPC, "no space at the target"},
    {WEFT_C_RC_ENTRY_NOT_FOUND, -ENOENT, "no such list entry at the target"},
    {WEFT_C_RC_NO_TARGET_CONN, -EHOSTUNREACH, "the target's NIC has no room for a connection"},
    {WEFT_C_RC_SEQUENCE_ERROR, -EIO, "packets out of sequence"},
    {WEFT_C_RC_VNI_NOT_FOUND, -EHOSTUNREACH, "the target's NIC does not know the VNI"},
    {WEFT_C_RC_PTLTE_NOT_FOUND, -ENOENT, "the target has no portal table entry there"},
    {WEFT_C_RC_HRP_RSP_DISCARD, -EIO, "the fabric has discarded it (HRP)"},
    {WEFT_C_RC_INVALID_AC, -EFAULT, "an address context that is not valid"},
    {WEFT_C_RC_PAGE_PERM_ERROR, -EFAULT, "a page that may not be used so"},
    {WEFT_C_RC_NO_TRANSLATION, -EFAULT, "an address that is not mapped"},
    {WEFT_C_RC_PCIE_ERROR_POISONED, -EIO, "poisoned data on PCIe"},
    {WEFT_C_RC_PCIE_UNSUCCESS_CMPL, -EIO, "PCIe did not complete it"},
    {WEFT_C_RC_AMO_INVAL_OP_ERROR, -EIO, "an atomic that does not exist"},
    {WEFT_C_RC_AMO_ALIGN_ERROR, -EIO, "an atomic that is not aligned"},
    {WEFT_C_RC_CMD_ALIGN_ERROR, -EIO, "a command that is not aligned"},
    {WEFT_C_RC_CMD_INVALID_ARG, -EIO, "a command with an invalid argument"},
    {WEFT_C_RC_ADDR_OUT_OF_RANGE, -ERANGE, "an address out of range"},
    {WEFT_C_RC_CONN_CLOSED, -ECONNRESET, "the connection of the NICs was closed"},
    {WEFT_C_RC_CANCELED, -ECANCELED, "cancelled"},
    {WEFT_C_RC_AMO_LENGTH_ERROR, -EIO, "an atomic of a wrong length"},
};

const char *weft_cxi_code(unsigned code)
{
    for (size_t i = 0; i < LENGTH(codes); i++)
        if (codes[i].code == code)
            return codes[i].words;
    return "an error that has no name here";
}

int weft_cxi_errno(unsigned code)
{
    for (size_t i = 0; i < LENGTH(codes); i++)
        if (codes[i].code == code)
            return codes[i].status;
    return -EIO;
}

void weft_cxi_lose(struct weft_cxi *cxi, int status, const char *format, ...)
{
    va_list list;
    if (cxi->lost)
        return;
    va_start(list, format);
    vsnprintf(cxi->reason, sizeof cxi->reason, format, list);
    va_end(list);
    cxi->lost = status;
}

static int refuse(const struct weft_cxi *cxi, const char *what, int status)
{
    return weft_cxi_host->fail(weft_cxi_status(status), "cxi: %s on cxi%u: %s", what,
                               cxi->dev->info.dev_id, strerror(-status));
}

/* ---- device and service ---- */

static int open_device(struct weft_cxi *cxi, const char *device)
{
    char *end = NULL;
    const char *name = *device ? device : "cxi0";
    unsigned long id = strncmp(name, "cxi", 3) == 0 && name[3] >= '0' && name[3] <= '9'
                           ? strtoul(name + 3, &end, 10)
                           : UINT32_MAX;
    if (id >= UINT32_MAX || !end || *end)
        return weft_cxi_host->fail(-ENODEV, "cxi: no device \"%s\": they are called cxi0, cxi1 ...",
                                   name);
    int status = cxi->calls->cxil_open_device((uint32_t)id, &cxi->dev);
    if (status)
        return weft_cxi_host->fail(-ENODEV, "cxi: no device \"%s\": %s", name, strerror(-status));
    unsigned indices = cxi->dev->info.pid_granule;
    return indices > 4 && indices <= WEFT_CXI_INDICES
               ? 0
               : weft_cxi_host->fail(-ENOTSUP, "cxi: a PID of %s has %u indices", name, indices);
}

/* The VNI of a service, as HPE's own tools find it: its first; if it has none of its own, the
 * default service's; else 1. */
static int find_vni(struct weft_cxi *cxi, unsigned service, unsigned *vni)
{
    struct weft_cxi_svc_desc desc = {0};
    int status = cxi->calls->cxil_get_svc(cxi->dev, service, &desc);
    if (status)
        return weft_cxi_host->fail(status == -EINVAL ? -ENOENT : status,
                                   "cxi: no service %u on cxi%u: %s", service,
                                   cxi->dev->info.dev_id, strerror(-status));
    if (!cassini_get(&desc, cxi_svc_desc__enable))
        return weft_cxi_host->fail(-EKEYREVOKED, "cxi: service %u of cxi%u is disabled", service,
                                   cxi->dev->info.dev_id);
    if (!cassini_get(&desc, cxi_svc_desc__restricted_vnis))
        status = cxi->calls->cxil_get_svc(cxi->dev, WEFT_CXI_DEFAULT_SVC_ID, &desc);
    bool has = !status && cassini_get(&desc, cxi_svc_desc__restricted_vnis) && desc.num_vld_vnis;
    *vni = has ? desc.vnis[0] : 1;
    return 0;
}

static int open_domain(struct weft_cxi *cxi, uint64_t service)
{
    const struct cassini_calls *c = cxi->calls;
    unsigned vni = 0;
    if (!service || service > INT32_MAX)
        return weft_cxi_host->fail(-EINVAL, "cxi: there is no such service");
    int status = find_vni(cxi, (unsigned)service, &vni);
    if (status)
        return status;
    status = c->cxil_alloc_lni(cxi->dev, &cxi->lni, (unsigned)service);
    if (status)
        return refuse(cxi, "a logical network interface", status);
    status = c->cxil_alloc_domain(cxi->lni, vni, WEFT_C_PID_ANY, &cxi->domain);
    return status ? refuse(cxi, "a PID", status) : 0;
}

static int open_profile(struct weft_cxi *cxi, unsigned type, struct weft_cxi_cp **cp)
{
    const struct cassini_calls *c = cxi->calls;
    unsigned vni = cxi->domain->vni;
    int status =
        c->cxil_alloc_trig_cp
            ? c->cxil_alloc_trig_cp(cxi->lni, vni, WEFT_CXI_TC_BEST_EFFORT, type, WEFT_ANY_LCID, cp)
            : c->cxil_alloc_cp(cxi->lni, vni, WEFT_CXI_TC_BEST_EFFORT, type, cp);
    return status ? refuse(cxi, "a communication profile", status) : 0;
}

/* ---- queues ---- */

static void *map_memory(struct weft_cxi *cxi, size_t length, struct weft_cxi_md **md)
{
    const uint32_t flags = WEFT_CXI_MAP_PIN | WEFT_CXI_MAP_READ | WEFT_CXI_MAP_WRITE;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        weft_cxi_host->fail(-ENOMEM, "cxi: no memory for queues");
        return NULL;
    }
    int status = cxi->calls->cxil_map(cxi->lni, memory, length, flags, NULL, md);
    if (!status)
        return memory;
    refuse(cxi, "mapping memory", status);
    munmap(memory, length);
    return NULL;
}

enum { ARENA = (sizeof(struct weft_cxi_arena) + 4095) / 4096 * 4096 };

static int open_events(struct weft_cxi *cxi, bool sleeps)
{
    struct weft_cxi_eq_attr attr = {.queue_len = WEFT_CXI_EVENTS,
                                    .flags = WEFT_CXI_EQ_EC_DISABLE | WEFT_CXI_EQ_TGT_LONG};
    cxi->eq_memory = map_memory(cxi, WEFT_CXI_EVENTS, &cxi->eq_md);
    cxi->arena = cxi->eq_memory ? map_memory(cxi, ARENA, &cxi->arena_md) : NULL;
    if (!cxi->arena)
        return -ENOMEM;
    attr.queue = cxi->eq_memory;
    /* Where there is none, the facts say so. */
    if (sleeps)
        weft_cxi_sleep_open(cxi);
    int status =
        cxi->calls->cxil_alloc_evtq(cxi->lni, cxi->eq_md, &attr, cxi->wait, NULL, &cxi->eq);
    return status ? refuse(cxi, "an event queue", status) : 0;
}

static int open_queue(struct weft_cxi *cxi, unsigned count, unsigned flags, struct weft_cxi_cq **cq)
{
    struct weft_cxi_cq_alloc_opts opts = {.count = count, .flags = flags};
    opts.lcid = flags & WEFT_CXI_CQ_IS_TX ? cxi->cp->lcid : 0;
    int status = cxi->calls->cxil_alloc_cmdq(cxi->lni, cxi->eq, &opts, cq);
    return status ? refuse(cxi, "a command queue", status) : 0;
}

static int open_queues(struct weft_cxi *cxi)
{
    const unsigned tx = WEFT_CXI_CQ_IS_TX, few = 64;
    int status = open_queue(cxi, WEFT_CXI_QUEUE, tx, &cxi->data.cq);
    if (!status)
        status = open_queue(cxi, few, tx, &cxi->talk.cq);
    if (!status)
        status = open_queue(cxi, 2 * WEFT_CXI_RECEIVES, 0, &cxi->target);
    if (!status)
        status = open_queue(cxi, few, tx | WEFT_CXI_CQ_TX_WITH_TRIG_CMDS, &cxi->trigger);
    cxi->data.lcid = cxi->talk.lcid = cxi->cp->lcid;
    if (status)
        return status;
    status = cxi->calls->cxil_alloc_ct(cxi->lni, NULL, &cxi->ct);
    if (status)
        return refuse(cxi, "a counter", status);
    cxi->ct->doorbell[CASSINI_CT_RESET / sizeof(uint64_t)] = 0;
    cxi->ct->doorbell[CASSINI_CT_RESET_FAIL / sizeof(uint64_t)] = 0;
    return 0;
}

/* ---- open and close ---- */

static int open_all(struct weft_cxi *cxi, const struct fabric_want *want)
{
    int status = open_device(cxi, want->device);
    if (!status)
        status = open_domain(cxi, want->service);
    /* The first profile is the one of triggers too. */
    if (!status)
        status = open_profile(cxi, WEFT_CXI_TC_TYPE_DEFAULT, &cxi->cp);
    if (!status && open_profile(cxi, WEFT_CXI_TC_TYPE_HRP, &cxi->hrp))
        cxi->hrp = NULL;
    if (!status)
        status = open_events(cxi, want->events);
    return status ? status : open_queues(cxi);
}

static void weft_cxi_close(struct fabric *fabric)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    const struct cassini_calls *c = cxi->calls;
    struct weft_cxi_cq *queues[] = {cxi->trigger, cxi->target, cxi->talk.cq, cxi->data.cq};
    if (cxi->trigger)
        weft_cxi_leave(fabric);
    for (int i = 0; i < WEFT_CXI_ENTRIES; i++)
        if (cxi->exposed[i].region)
            weft_cxi_withdraw(fabric, cxi->exposed[i].region);
    if (cxi->trigger)
        c->cxil_destroy_cmdq(cxi->trigger);
    if (cxi->ct)
        c->cxil_destroy_ct(cxi->ct);
    for (size_t i = 1; i < LENGTH(queues); i++)
        if (queues[i])
            c->cxil_destroy_cmdq(queues[i]);
    if (cxi->eq)
        c->cxil_destroy_evtq(cxi->eq);
    weft_cxi_sleep_close(cxi);
    if (cxi->arena_md)
        c->cxil_unmap(cxi->arena_md);
    if (cxi->eq_md)
        c->cxil_unmap(cxi->eq_md);
    if (cxi->arena)
        munmap(cxi->arena, ARENA);
    if (cxi->eq_memory)
        munmap(cxi->eq_memory, WEFT_CXI_EVENTS);
    if (cxi->hrp)
        c->cxil_destroy_cp(cxi->hrp);
    if (cxi->cp)
        c->cxil_destroy_cp(cxi->cp);
    if (cxi->domain)
        c->cxil_destroy_domain(cxi->domain);
    if (cxi->lni)
        c->cxil_destroy_lni(cxi->lni);
    if (cxi->dev)
        c->cxil_close_device(cxi->dev);
    free(cxi);
}

static void free_slots(struct weft_cxi *cxi)
{
    for (int i = WEFT_CXI_SLOTS; i-- > 1;) {
        cxi->slots[i].next = cxi->free;
        cxi->free = &cxi->slots[i];
    }
}

static int weft_cxi_open(struct fabric **fabric, const struct fabric_want *want,
                         struct fabric_facts *facts)
{
    const struct cassini_calls *calls = weft_cxi_library();
    if (!calls)
        return -ENODEV;
    struct weft_cxi *cxi = calloc(1, sizeof *cxi);
    if (!cxi)
        return weft_cxi_host->fail(-ENOMEM, "cxi: no memory");
    cxi->fabric.ops = &weft_cxi_ops;
    cxi->calls = calls;
    cxi->looks = want->looks;
    cxi->bell = -1;
    free_slots(cxi);
    int status = open_all(cxi, want);
    if (status) {
        weft_cxi_close(&cxi->fabric);
        return status;
    }
    weft_cxi_facts(cxi, want, facts);
    *fabric = &cxi->fabric;
    return 0;
}

const struct fabric_ops weft_cxi_ops = {.abi = FABRIC_ABI,
                                        .name = "cxi",
                                        .what = "Slingshot NICs through libcxi",
                                        .list = weft_cxi_list,
                                        .open = weft_cxi_open,
                                        .close = weft_cxi_close,
                                        .expose = weft_cxi_expose,
                                        .withdraw = weft_cxi_withdraw,
                                        .address = weft_cxi_address,
                                        .connect = weft_cxi_connect,
                                        .leave = weft_cxi_leave,
                                        .write = weft_cxi_write,
                                        .read = weft_cxi_read,
                                        .send = weft_cxi_send,
                                        .recv = weft_cxi_recv,
                                        .atomic = weft_cxi_atomic,
                                        .am = weft_cxi_am,
                                        .batch = weft_cxi_batch,
                                        .poll = weft_cxi_poll,
                                        .event_fd = weft_cxi_event_fd,
                                        .arm = weft_cxi_arm};

__attribute__((visibility("default"))) const struct fabric_ops *
weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    weft_cxi_host = host;
    return &weft_cxi_ops;
}
