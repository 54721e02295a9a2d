/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way through libfabric, as a bare loop: COUNT sends, then four bytes back from the
 * receiver, LISTS times. rdm PROVIDER SIZE COUNT LISTS CPU,CPU prints MB/s. Every send has a place
 * of its own in the buffers, as in cxi_send_bw; nothing is checked or kept but what libfabric
 * needs. */
#include "core/clock.h"
#include "core/core.h"
#include "core/cpu.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACK_BYTES = 4, DEADLINE_S = 60, ENTRIES = 16, WARM_LISTS = 2, NAME_ROOM = 512 };

struct end {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_mr *mr;
    void *desc;
    fi_addr_t peer;
    char *buffer;
    size_t size;
    uint64_t count, lists;
    uint64_t sent, received; /* completions */
    struct fi_context2 *contexts;
};

static void check(ssize_t status, const char *what)
{
    if (status >= 0)
        return;
    fprintf(stderr, "rdm: %s: %s\n", what, fi_strerror((int)-status));
    exit(1);
}

/* ---- opening ---- */

static struct fi_info *find(const char *provider)
{
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    check(hints ? 0 : -FI_ENOMEM, "hints");
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->fabric_attr->prov_name = strdup(provider);
    bool on_ip = strncmp(provider, "tcp", 3) == 0;
    check(fi_getinfo(FI_VERSION(1, 17), on_ip ? "127.0.0.1" : NULL, NULL, on_ip ? FI_SOURCE : 0,
                     hints, &found),
          "getinfo");
    fi_freeinfo(hints);
    return found;
}

static void open_end(struct end *e, const char *provider)
{
    size_t bytes = e->size * e->count + ACK_BYTES;
    struct fi_cq_attr cq = {.size = 2 * e->count + 2, .format = FI_CQ_FORMAT_MSG};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    e->info = find(provider);
    check(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fabric");
    check(fi_domain(e->fabric, e->info, &e->domain, NULL), "domain");
    check(fi_cq_open(e->domain, &cq, &e->cq, NULL), "queue");
    check(fi_av_open(e->domain, &av, &e->av, NULL), "addresses");
    check(fi_endpoint(e->domain, e->info, &e->ep, NULL), "endpoint");
    check(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "bind");
    check(fi_ep_bind(e->ep, &e->av->fid, 0), "bind");
    check(fi_enable(e->ep), "enable");
    e->buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    e->contexts = calloc(e->count + 1, sizeof *e->contexts);
    check(e->buffer != MAP_FAILED && e->contexts ? 0 : -FI_ENOMEM, "memory");
    memset(e->buffer, 1, bytes);
    if (!(e->info->domain_attr->mr_mode & FI_MR_LOCAL))
        return;
    check(fi_mr_reg(e->domain, e->buffer, bytes, FI_SEND | FI_RECV, 0, 0, 0, &e->mr, NULL), "mr");
    e->desc = fi_mr_desc(e->mr);
}

static void meet(struct end *e, int fd)
{
    char mine[NAME_ROOM] = "", theirs[NAME_ROOM];
    size_t length = sizeof mine;
    check(fi_getname(&e->ep->fid, mine, &length), "name");
    check(write(fd, mine, sizeof mine) == sizeof mine ? 0 : -FI_EIO, "meet");
    check(recv(fd, theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs ? 0 : -FI_EIO, "meet");
    check(fi_av_insert(e->av, theirs, 1, &e->peer, 0, NULL) == 1 ? 0 : -FI_EINVAL, "address");
}

/* ---- moving ---- */

static void progress(struct end *e)
{
    struct fi_cq_msg_entry entries[ENTRIES];
    ssize_t got = fi_cq_read(e->cq, entries, ENTRIES);
    if (got == -FI_EAGAIN)
        return;
    check(got, "completions");
    for (ssize_t i = 0; i < got; i++) {
        e->sent += (entries[i].flags & FI_SEND) != 0;
        e->received += (entries[i].flags & FI_RECV) != 0;
    }
}

static void post_send(struct end *e, uint64_t place, size_t size)
{
    ssize_t got;
    while ((got = fi_send(e->ep, e->buffer + place * e->size, size, e->desc, e->peer,
                          &e->contexts[place])) == -FI_EAGAIN)
        progress(e);
    check(got, "send");
}

static void post_receive(struct end *e, uint64_t place, size_t size)
{
    ssize_t got;
    while ((got = fi_recv(e->ep, e->buffer + place * e->size, size, e->desc, FI_ADDR_UNSPEC,
                          &e->contexts[place])) == -FI_EAGAIN)
        progress(e);
    check(got, "receive");
}

static void send_list(struct end *e)
{
    uint64_t sent = e->sent + e->count, received = e->received + 1;
    post_receive(e, e->count, ACK_BYTES);
    for (uint64_t i = 0; i < e->count; i++)
        post_send(e, i, e->size);
    while (e->sent < sent || e->received < received)
        progress(e);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* By the median list. */
static void send_all(struct end *e)
{
    uint64_t *ns = calloc(e->lists, sizeof *ns), since_ns = 0;
    check(ns ? 0 : -FI_ENOMEM, "memory");
    for (uint64_t i = 0; i < WARM_LISTS; i++)
        send_list(e);
    for (uint64_t i = 0; i < e->lists; i++) {
        since_ns = clock_raw_ns();
        send_list(e);
        ns[i] = clock_raw_ns() - since_ns;
    }
    qsort(ns, e->lists, sizeof *ns, ascending);
    uint64_t middle = e->lists / 2;
    printf("%.2f MB/s\n", (double)(e->count * e->size) * 1e3 / (double)ns[middle]);
    free(ns);
}

/* Receives are posted ahead, and again as soon as they are filled. */
static void receive_all(struct end *e, uint64_t ahead)
{
    uint64_t all = (e->lists + WARM_LISTS) * e->count, posted = 0, answered = 0;
    while (answered < e->lists + WARM_LISTS) {
        for (; posted < all && posted < e->received + ahead; posted++)
            post_receive(e, posted % e->count, e->size);
        progress(e);
        if (e->received < (answered + 1) * e->count)
            continue;
        post_send(e, e->count, ACK_BYTES);
        answered++;
    }
    while (e->sent < answered)
        progress(e);
}

int main(int argc, char **argv)
{
    struct end end = {0};
    uint64_t size = 0;
    int pair[2], how, target, initiator;
    if (argc != 6 || unit_bytes(argv[2], &size) || size < ACK_BYTES ||
        unit_number(argv[3], &end.count) || !end.count || unit_number(argv[4], &end.lists) ||
        !end.lists || sscanf(argv[5], "%d,%d", &target, &initiator) != 2) {
        fprintf(stderr, "usage: rdm PROVIDER SIZE COUNT LISTS TARGET,INITIATOR\n");
        return 2;
    }
    end.size = (size_t)size;
    alarm(DEADLINE_S);
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -FI_EIO : 0, "socketpair");
    pid_t child = fork();
    check(child < 0 || cpu_pin(child ? initiator : target) ? -FI_EIO : 0, "two processes");
    if (!child)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_end(&end, argv[1]);
    meet(&end, pair[!child]);
    if (child)
        send_all(&end);
    else
        receive_all(&end,
                    end.info->rx_attr->size < end.count ? end.info->rx_attr->size : end.count);
    return !child || (waitpid(child, &how, 0) == child && !how) ? 0 : 1;
}
