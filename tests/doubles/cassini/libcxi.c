/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's calls: what the driver would allocate, give numbers and refuse. */
#include "nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALL             __attribute__((visibility("default"))) int
#define CXIL(name, args) CALL name args;
CASSINI_CALLS
CASSINI_CALLS_MAYBE
#undef CXIL
__attribute__((visibility("default"))) void cxil_close_device(struct weft_cxil_dev *dev);
__attribute__((visibility("default"))) void
cxil_free_device_list(struct weft_cxil_device_list *list);
__attribute__((visibility("default"))) void cxil_clear_wait_obj(struct weft_cxil_wait_obj *wait);
CALL cxil_map_csr(struct weft_cxil_dev *dev);
CALL cxil_read_csr(struct weft_cxil_dev *dev, unsigned csr, void *value, size_t length);

enum { PAGE = 4096, SERVICE_VNI = 10, OTHER_SERVICE = 2, OTHER_VNI = 77, REVOKED = 9 };
enum { FIRST_UNIT = 2 * WEFT_C_CQ_FIRST_WR_PTR };

/* A thing of ours that would be there when something it hangs on goes. */
static int busy(const char *what)
{
    fprintf(stderr, "cassini: %s is destroyed while it is in use\n", what);
    return -EBUSY;
}

static void *make(size_t length)
{
    void *thing = calloc(1, length);
    if (!thing)
        abort();
    return thing;
}

/* The first free place of a table from first on, or -1. */
static int place(void *const *table, int first, int count)
{
    for (int i = first; i < count; i++)
        if (!table[i])
            return i;
    return -1;
}

/* NOLINTBEGIN(bugprone-sizeof-expression): tables of pointers. */
#define PLACE(table, first) place((void *const *)(table), first, sizeof(table) / sizeof(void *))
/* NOLINTEND(bugprone-sizeof-expression) */

/* ---- devices and services ---- */

static unsigned devices(void)
{
    const char *count = getenv("CASSINI_DEVICES");
    return count ? (unsigned)strtoul(count, NULL, 10) : 2;
}

static unsigned revision(void)
{
    const char *number = getenv("CASSINI_REVISION");
    return number ? (unsigned)strtoul(number, NULL, 10) : CASSINI_1_LAST_LOSING_HRP;
}

static struct weft_cxil_devinfo describe(uint32_t id)
{
    struct weft_cxil_devinfo info = {.dev_id = id,
                                     .nid = FIRST_NID + id % 2 + id / 2 * PORTS,
                                     .pid_bits = PID_BITS,
                                     .pid_count = PIDS,
                                     .pid_granule = INDICES,
                                     .rdzv_get_idx = PULL_INDEX,
                                     .vendor_id = 0x17db,
                                     .device_id = CASSINI_1_DEVICE,
                                     .device_rev = revision(),
                                     .device_platform = 1,
                                     .link_mtu = 9000,
                                     .link_speed = 200000,
                                     .link_state = 1,
                                     .pct_eq = 1,
                                     .cassini_version = 0x11};
    snprintf(info.device_name, sizeof info.device_name, "cxi%u", id);
    snprintf(info.driver_name, sizeof info.driver_name, "cxi_ss1");
    snprintf(info.fru_description, sizeof info.fru_description, "software");
    return info;
}

int cxil_open_device(uint32_t id, struct weft_cxil_dev **dev)
{
    if (id >= devices())
        return -ENOENT;
    *dev = make(sizeof **dev);
    (*dev)->info = describe(id);
    return 0;
}

void cxil_close_device(struct weft_cxil_dev *dev)
{
    free(dev);
}

int cxil_get_device_list(struct weft_cxil_device_list **list)
{
    unsigned count = devices();
    *list = make(sizeof **list + count * sizeof *(*list)->info);
    (*list)->count = count;
    for (unsigned i = 0; i < count; i++)
        (*list)->info[i] = describe(i);
    return 0;
}

void cxil_free_device_list(struct weft_cxil_device_list *list)
{
    free(list);
}

int cxil_get_amo_remap_to_pcie_fadd(struct weft_cxil_dev *dev, int *amo_remap)
{
    const char *op = getenv("CASSINI_REMAP");
    (void)dev;
    *amo_remap = op ? (int)strtol(op, NULL, 10) : -1;
    return 0;
}

int cxil_map_csr(struct weft_cxil_dev *dev)
{
    (void)dev;
    return -ENOTSUP;
}

int cxil_read_csr(struct weft_cxil_dev *dev, unsigned csr, void *value, size_t length)
{
    (void)dev, (void)csr, (void)value, (void)length;
    return -ENOTSUP;
}

/* 1 and 2, in VNIs of their own, and 9, which is disabled. */
int cxil_get_svc(struct weft_cxil_dev *dev, unsigned svc_id, struct weft_cxi_svc_desc *desc)
{
    (void)dev;
    if (svc_id != WEFT_CXI_DEFAULT_SVC_ID && svc_id != OTHER_SERVICE && svc_id != REVOKED)
        return -EINVAL;
    *desc = (struct weft_cxi_svc_desc){.num_vld_vnis = 1, .svc_id = svc_id};
    desc->vnis[0] = svc_id == OTHER_SERVICE ? OTHER_VNI : SERVICE_VNI;
    cassini_put(desc, cxi_svc_desc__restricted_vnis, 1);
    cassini_put(desc, cxi_svc_desc__enable, svc_id != REVOKED);
    return 0;
}

/* ---- LNI, domain, profiles ---- */

int cxil_alloc_lni(struct weft_cxil_dev *dev, struct weft_cxil_lni **lni, unsigned svc_id)
{
    struct weft_cxi_svc_desc desc = {0};
    static unsigned last;
    if (cxil_get_svc(dev, svc_id, &desc))
        return -EINVAL;
    if (svc_id == REVOKED || fault("revoked"))
        return -EKEYREVOKED;
    struct nic *nic = make(sizeof *nic);
    nic->pub.id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    nic->info = dev->info;
    pthread_mutex_init(&nic->lock, NULL);
    nic->out_last = &nic->out;
    nic->ops = make(OPS * sizeof *nic->ops);
    nic->free_op = OPS;
    for (int i = 0; i < 8; i++)
        nic->next_iova[i] = UINT64_C(0x3f000000000) + (uint64_t)nic->pub.id * (UINT64_C(1) << 32);
    *lni = &nic->pub;
    return 0;
}

int cxil_destroy_lni(struct weft_cxil_lni *lni)
{
    struct nic *nic = (struct nic *)lni;
    if (nic->things)
        return busy("an LNI");
    nic_stop(nic);
    while (nic->out) {
        struct queued *q = nic->out;
        nic->out = q->next;
        free(q);
    }
    while (nic->coming) {
        struct coming *c = nic->coming;
        nic->coming = c->next;
        free(c);
    }
    pthread_mutex_destroy(&nic->lock);
    free(nic->ops);
    free(nic);
    return 0;
}

int cxil_alloc_domain(struct weft_cxil_lni *lni, unsigned vni, unsigned pid,
                      struct weft_cxil_domain **domain)
{
    struct nic *nic = (struct nic *)lni;
    if ((vni != SERVICE_VNI && vni != OTHER_VNI) || (pid >= PIDS && pid != WEFT_C_PID_ANY))
        return -EINVAL;
    if (nic->domain)
        return -ENOSPC;
    struct domain *d = make(sizeof *d);
    d->nic = nic;
    d->pub.vni = vni;
    int status = wire_open(d, pid);
    if (status) {
        free(d);
        return status;
    }
    pthread_mutex_lock(&nic->lock);
    nic->domain = d;
    nic->things++;
    pthread_mutex_unlock(&nic->lock);
    *domain = &d->pub;
    return 0;
}

int cxil_destroy_domain(struct weft_cxil_domain *domain)
{
    struct domain *d = (struct domain *)domain;
    if (d->maps)
        return busy("a domain");
    pthread_mutex_lock(&d->nic->lock);
    d->nic->domain = NULL;
    d->nic->things--;
    pthread_mutex_unlock(&d->nic->lock);
    close(d->socket);
    free(d);
    return 0;
}

int cxil_alloc_cp(struct weft_cxil_lni *lni, unsigned vni, unsigned tc, unsigned tc_type,
                  struct weft_cxi_cp **cp)
{
    struct nic *nic = (struct nic *)lni;
    int lcid = PLACE(nic->cps, 0);
    if (lcid < 0)
        return -ENOSPC;
    if (vni != SERVICE_VNI && vni != OTHER_VNI)
        return -EINVAL;
    struct cp *c = make(sizeof *c);
    c->nic = nic;
    c->pub = (struct weft_cxi_cp){.vni = vni, .tc = tc, .tc_type = tc_type, .lcid = (uint32_t)lcid};
    pthread_mutex_lock(&nic->lock);
    nic->cps[lcid] = c;
    nic->things++;
    pthread_mutex_unlock(&nic->lock);
    *cp = &c->pub;
    return 0;
}

int cxil_alloc_trig_cp(struct weft_cxil_lni *lni, unsigned vni, unsigned tc, unsigned tc_type,
                       unsigned cp_type, struct weft_cxi_cp **cp)
{
    (void)cp_type;
    return cxil_alloc_cp(lni, vni, tc, tc_type, cp);
}

int cxil_destroy_cp(struct weft_cxi_cp *cp)
{
    struct cp *c = (struct cp *)cp;
    if (c->users)
        return busy("a communication profile");
    pthread_mutex_lock(&c->nic->lock);
    c->nic->cps[c->pub.lcid] = NULL;
    c->nic->things--;
    pthread_mutex_unlock(&c->nic->lock);
    free(c);
    return 0;
}

/* ---- memory ---- */

/* By its dma-buf: there is no driver of a GPU here that could be asked. */
static char *device_memory(const struct weft_cxi_md_hints *hints, uint64_t before, size_t length)
{
    if (!hints || !hints->dmabuf_valid || hints->dmabuf_offset % PAGE != before)
        return NULL;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, hints->dmabuf_fd,
                        (off_t)(hints->dmabuf_offset - before));
    return memory == MAP_FAILED ? NULL : memory;
}

int cxil_map(struct weft_cxil_lni *lni, void *va, size_t len, uint32_t flags,
             struct weft_cxi_md_hints *hints, struct weft_cxi_md **md)
{
    struct nic *nic = (struct nic *)lni;
    uint64_t first = (uint64_t)(uintptr_t)va & ~(uint64_t)(PAGE - 1);
    uint64_t length = ((uint64_t)(uintptr_t)va + len + PAGE - 1 - first) & ~(uint64_t)(PAGE - 1);
    int at = PLACE(nic->mds, 0);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the interface has it. */
    char *memory = (char *)(uintptr_t)first;
    if (!va || !len || !(flags & (WEFT_CXI_MAP_READ | WEFT_CXI_MAP_WRITE)))
        return -EINVAL;
    if (at < 0)
        return -ENOSPC;
    if (flags & WEFT_CXI_MAP_DEVICE)
        memory = device_memory(hints, (uint64_t)(uintptr_t)va - first, length);
    if (!memory)
        return -EINVAL;
    struct md *m = make(sizeof *m);
    m->nic = nic;
    m->memory = memory;
    pthread_mutex_lock(&nic->lock);
    m->pub.lac = (uint8_t)(1 + nic->next_lac++ % 3);
    m->pub.iova = nic->next_iova[m->pub.lac];
    nic->next_iova[m->pub.lac] += length + PAGE;
    m->pub.va = first;
    m->pub.len = length;
    m->pub.page_shift = 12;
    m->pub.id = (uint32_t)at;
    nic->mds[at] = m;
    nic->things++;
    pthread_mutex_unlock(&nic->lock);
    *md = &m->pub;
    return 0;
}

int cxil_unmap(struct weft_cxi_md *md)
{
    struct md *m = (struct md *)md;
    struct nic *nic = m->nic;
    for (int i = 0; i < EQS; i++)
        if (nic->eqs[i] && nic->eqs[i]->md == m)
            return busy("a memory descriptor of an event queue");
    pthread_mutex_lock(&nic->lock);
    nic->mds[m->pub.id] = NULL;
    nic->things--;
    pthread_mutex_unlock(&nic->lock);
    if ((uintptr_t)m->memory != m->pub.va)
        munmap(m->memory, m->pub.len);
    free(m);
    return 0;
}

/* ---- wait objects ---- */

int cxil_alloc_wait_obj(struct weft_cxil_lni *lni, struct weft_cxil_wait_obj **wait)
{
    struct nic *nic = (struct nic *)lni;
    int ends[2];
    if (fault("no_wait") || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -ENOSPC;
    if (send(ends[1], "", 1, 0) != 1)
        abort();
    *wait = make(sizeof **wait);
    **wait = (struct weft_cxil_wait_obj){.nic = nic, .software = ends[0], .hardware = ends[1]};
    pthread_mutex_lock(&nic->lock);
    nic->things++;
    pthread_mutex_unlock(&nic->lock);
    return 0;
}

int cxil_destroy_wait_obj(struct weft_cxil_wait_obj *wait)
{
    if (wait->users)
        return busy("a wait object");
    pthread_mutex_lock(&wait->nic->lock);
    wait->nic->things--;
    pthread_mutex_unlock(&wait->nic->lock);
    close(wait->software);
    close(wait->hardware);
    free(wait);
    return 0;
}

int cxil_get_wait_obj_fd(struct weft_cxil_wait_obj *wait)
{
    return wait->software;
}

void cxil_clear_wait_obj(struct weft_cxil_wait_obj *wait)
{
    char byte;
    pthread_mutex_lock(&wait->nic->lock);
    if (wait->raised && recv(wait->software, &byte, 1, MSG_OOB) != 1)
        abort();
    wait->raised = false;
    pthread_mutex_unlock(&wait->nic->lock);
}

/* ---- queues and counters ---- */

int cxil_alloc_evtq(struct weft_cxil_lni *lni, const struct weft_cxi_md *md,
                    const struct weft_cxi_eq_attr *attr, struct weft_cxil_wait_obj *event,
                    struct weft_cxil_wait_obj *status, struct weft_cxi_eq **eq)
{
    struct nic *nic = (struct nic *)lni;
    uint64_t at = (uint64_t)(uintptr_t)attr->queue;
    int number = PLACE(nic->eqs, 1);
    (void)status;
    if (!md || at % PAGE || attr->queue_len % PAGE || !attr->queue_len || at < md->va ||
        attr->queue_len > md->len || at - md->va > md->len - attr->queue_len)
        return -EINVAL;
    if (number < 0)
        return -ENOSPC;
    struct eq *e = make(sizeof *e);
    e->nic = nic;
    e->wait = event;
    e->md = (const struct md *)md;
    memset(attr->queue, 0, attr->queue_len);
    e->wr = CASSINI_EQ_BLOCK;
    e->limit = (uint32_t)attr->queue_len;
    e->state = 1;
    e->initiator_long = attr->flags & WEFT_CXI_EQ_INIT_LONG;
    e->target_long = attr->flags & WEFT_CXI_EQ_TGT_LONG;
    e->pub = (struct weft_cxi_eq){.byte_size = e->limit,
                                  .sw_state_addr = &e->state,
                                  .rd_offset = CASSINI_EQ_BLOCK,
                                  .prev_rd_offset = CASSINI_EQ_BLOCK,
                                  .eqn = (uint32_t)number,
                                  .events = attr->queue};
    pthread_mutex_lock(&nic->lock);
    nic->eqs[number] = e;
    nic->things++;
    if (event)
        event->users++;
    pthread_mutex_unlock(&nic->lock);
    *eq = &e->pub;
    return 0;
}

int cxil_destroy_evtq(struct weft_cxi_eq *eq)
{
    struct eq *e = (struct eq *)eq;
    struct nic *nic = e->nic;
    if (e->users)
        return busy("an event queue");
    pthread_mutex_lock(&nic->lock);
    nic->eqs[e->pub.eqn] = NULL;
    nic->things--;
    if (e->wait)
        e->wait->users--;
    /* What is still under way has nobody to tell. */
    for (unsigned i = 0; i < nic->ops_used; i++)
        if (nic->ops[i].eq == e)
            nic->ops[i].eq = NULL;
    pthread_mutex_unlock(&nic->lock);
    free(e);
    return 0;
}

static unsigned whole_pages(unsigned count)
{
    unsigned slots = PAGE / WEFT_C_CQ_CMD_SIZE;
    while (slots < count)
        slots *= 2;
    return slots;
}

static void *pages(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

int cxil_alloc_cmdq(struct weft_cxil_lni *lni, struct weft_cxi_eq *eq,
                    const struct weft_cxi_cq_alloc_opts *opts, struct weft_cxi_cq **cq)
{
    struct nic *nic = (struct nic *)lni;
    int number = PLACE(nic->cqs, 0);
    bool tx = opts->flags & WEFT_CXI_CQ_IS_TX;
    bool trigger = opts->flags & WEFT_CXI_CQ_TX_WITH_TRIG_CMDS;
    unsigned size = whole_pages(opts->count + WEFT_C_CQ_FIRST_WR_PTR);
    if (number < 0)
        return -ENOSPC;
    if (!opts->count || size > 65536 || (trigger && (!tx || opts->lcid)) ||
        (tx && (opts->lcid >= CPS || !nic->cps[opts->lcid])))
        return -EINVAL;
    struct cq *c = make(sizeof *c);
    c->nic = nic;
    c->eq = (struct eq *)eq;
    c->flags = opts->flags;
    c->lcid = c->initial_lcid = opts->lcid;
    c->ring = pages((size_t)size * WEFT_C_CQ_CMD_SIZE);
    c->launch = pages(LAUNCH_PAGE);
    c->rd = c->wr = WEFT_C_CQ_FIRST_WR_PTR;
    *(uint64_t *)(void *)c->launch = UINT64_MAX;
    c->pub = (struct weft_cxi_cq){.size = size,
                                  .wp_addr = (uint64_t *)(void *)c->launch,
                                  .ll_64 = c->launch + CASSINI_LL_64,
                                  .ll_128a = c->launch + CASSINI_LL_128A,
                                  .ll_128u = c->launch + CASSINI_LL_128U,
                                  .cmds32 = c->ring,
                                  .rp32 = FIRST_UNIT,
                                  .idx = (uint32_t)number + (tx ? 0 : WEFT_C_NUM_TRANSMIT_CQS),
                                  .size32 = 2 * size,
                                  .wp32 = FIRST_UNIT,
                                  .hw_wp32 = FIRST_UNIT};
    cassini_put(c->ring, c_cq_status__rd_ptr, c->rd);
    cassini_put(c->ring, c_cq_status__return_code, WEFT_C_RC_OK);
    pthread_mutex_lock(&nic->lock);
    nic->cqs[number] = c;
    nic->things++;
    if (tx)
        nic->cps[opts->lcid]->users++;
    if (c->eq)
        c->eq->users++;
    pthread_mutex_unlock(&nic->lock);
    *cq = &c->pub;
    return nic_start(nic);
}

int cxil_destroy_cmdq(struct weft_cxi_cq *cq)
{
    struct cq *c = (struct cq *)cq;
    struct nic *nic = c->nic;
    bool tx = c->flags & WEFT_CXI_CQ_IS_TX;
    pthread_mutex_lock(&nic->lock);
    for (int i = 0; i < CQS; i++)
        if (nic->cqs[i] == c)
            nic->cqs[i] = NULL;
    nic->things--;
    if (tx && nic->cps[c->initial_lcid])
        nic->cps[c->initial_lcid]->users--;
    if (c->eq)
        c->eq->users--;
    pthread_mutex_unlock(&nic->lock);
    munmap(c->ring, (size_t)c->pub.size * WEFT_C_CQ_CMD_SIZE);
    munmap(c->launch, LAUNCH_PAGE);
    free(c);
    return 0;
}

int cxil_alloc_ct(struct weft_cxil_lni *lni, void *wb, struct weft_cxi_ct **ct)
{
    struct nic *nic = (struct nic *)lni;
    int number = PLACE(nic->cts, 1);
    if (number < 0)
        return -ENOSPC;
    struct ct *c = make(sizeof *c);
    c->nic = nic;
    c->page = pages(PAGE);
    for (int i = 0; i < 256 / 8; i++)
        c->page[i] = UINT64_MAX;
    c->pub = (struct weft_cxi_ct){.doorbell = c->page, .ctn = (uint32_t)number, .wb = wb};
    pthread_mutex_lock(&nic->lock);
    nic->cts[number] = c;
    nic->things++;
    pthread_mutex_unlock(&nic->lock);
    *ct = &c->pub;
    return 0;
}

int cxil_destroy_ct(struct weft_cxi_ct *ct)
{
    struct ct *c = (struct ct *)ct;
    struct nic *nic = c->nic;
    pthread_mutex_lock(&nic->lock);
    nic->cts[c->pub.ctn] = NULL;
    nic->things--;
    for (unsigned i = 0; i < nic->ops_used; i++)
        if (nic->ops[i].ct == c)
            nic->ops[i].ct = NULL;
    pthread_mutex_unlock(&nic->lock);
    munmap(c->page, PAGE);
    free(c);
    return 0;
}

/* ---- portal table entries ---- */

int cxil_alloc_pte(struct weft_cxil_lni *lni, struct weft_cxi_eq *eq,
                   struct weft_cxi_pt_alloc_opts *opts, struct weft_cxil_pte **pte)
{
    struct nic *nic = (struct nic *)lni;
    int number = PLACE(nic->ptes, 0);
    if (number < 0)
        return -ENOSPC;
    struct pte *p = make(sizeof *p);
    p->nic = nic;
    p->eq = (struct eq *)eq;
    p->pub.ptn = (uint32_t)number;
    p->matching = cassini_get(opts, cxi_pt_alloc_opts__is_matching);
    p->long_events = cassini_get(opts, cxi_pt_alloc_opts__use_long_event);
    p->state = WEFT_C_PTLTE_DISABLED;
    p->last = &p->entries;
    pthread_mutex_lock(&nic->lock);
    nic->ptes[number] = p;
    nic->things++;
    if (p->eq)
        p->eq->users++;
    pthread_mutex_unlock(&nic->lock);
    *pte = &p->pub;
    return 0;
}

int cxil_destroy_pte(struct weft_cxil_pte *pte)
{
    struct pte *p = (struct pte *)pte;
    struct nic *nic = p->nic;
    if (p->maps)
        return busy("a portal table entry");
    pthread_mutex_lock(&nic->lock);
    nic->ptes[p->pub.ptn] = NULL;
    nic->things--;
    if (p->eq)
        p->eq->users--;
    /* A put that has not all come in has nowhere to go any more. */
    for (struct coming **at = &nic->coming; *at;) {
        struct coming *c = *at;
        if (c->pte != p) {
            at = &c->next;
            continue;
        }
        c->pte = NULL;
        c->code = WEFT_C_RC_PTLTE_NOT_FOUND;
        at = &c->next;
    }
    target_free(p);
    pthread_mutex_unlock(&nic->lock);
    free(p);
    return 0;
}

int cxil_map_pte(struct weft_cxil_pte *pte, struct weft_cxil_domain *domain, unsigned pid_offset,
                 bool is_multicast, struct weft_cxil_pte_map **map)
{
    struct pte *p = (struct pte *)pte;
    struct domain *d = (struct domain *)domain;
    struct map **at = &d->portals[pid_offset % INDICES];
    if (pid_offset >= INDICES || is_multicast)
        return -EINVAL;
    struct map *m = make(sizeof *m);
    *m = (struct map){.pte = p, .domain = d, .index = pid_offset};
    pthread_mutex_lock(&p->nic->lock);
    /* As the driver does: it does not ask whether there is one already. */
    while (*at)
        at = &(*at)->next;
    *at = m;
    d->maps++;
    p->maps++;
    pthread_mutex_unlock(&p->nic->lock);
    *map = (struct weft_cxil_pte_map *)(void *)m;
    return 0;
}

int cxil_unmap_pte(struct weft_cxil_pte_map *map)
{
    struct map *m = (struct map *)(void *)map;
    struct nic *nic = m->pte->nic;
    struct map **at = &m->domain->portals[m->index];
    pthread_mutex_lock(&nic->lock);
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    m->domain->maps--;
    m->pte->maps--;
    pthread_mutex_unlock(&nic->lock);
    free(m);
    return 0;
}
