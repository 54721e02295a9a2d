/* SPDX-License-Identifier: BSD-3-Clause */
/* The network: a socket for each NIC, VNI and PID, which is also what makes a PID somebody's. */
#include "nic.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAKEN_MOST = 64 };

void wire_address(uint32_t nid, unsigned vni, uint32_t pid, struct sockaddr_un *address,
                  socklen_t *length)
{
    const char *name = getenv("CASSINI_NAME");
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* No file: the name goes with the last one who has it. */
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "cassini-%u-%s-%x-%u-%u",
                     (unsigned)getuid(), name ? name : "", nid, vni, pid);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int bind_pid(struct domain *domain, unsigned pid)
{
    struct sockaddr_un address;
    socklen_t length;
    wire_address(domain->nic->info.nid, domain->pub.vni, pid, &address, &length);
    if (bind(domain->socket, (struct sockaddr *)&address, length))
        return errno == EADDRINUSE ? -EEXIST : -errno;
    domain->pub.pid = pid;
    return 0;
}

int wire_open(struct domain *domain, unsigned pid)
{
    int size = 4 << 20;
    domain->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (domain->socket < 0)
        return -errno;
    setsockopt(domain->socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    int status = -EEXIST;
    for (unsigned one = 0; pid == WEFT_C_PID_ANY && one < PIDS && status == -EEXIST; one++)
        status = bind_pid(domain, one);
    if (pid != WEFT_C_PID_ANY)
        status = bind_pid(domain, pid);
    if (status)
        close(domain->socket);
    return status;
}

void wire_send(struct nic *nic, uint32_t nid, uint32_t pid, const struct packet *packet,
               const void *data, size_t length)
{
    struct queued *q = malloc(sizeof *q + length);
    if (!q)
        abort();
    q->next = NULL;
    q->packet = *packet;
    q->packet.nid = nic->info.nid;
    q->packet.pid = nic->domain->pub.pid;
    q->packet.vni = nic->domain->pub.vni;
    if (length)
        memcpy(q->packet.data, data, length);
    q->length = sizeof q->packet + length;
    wire_address(nid, nic->domain->pub.vni, pid, &q->to, &q->to_length);
    *nic->out_last = q;
    nic->out_last = &q->next;
    nic->out_count++;
}

/* As far as sockets take it; what cannot be delivered at all is known at once. */
static bool send_queued(struct nic *nic)
{
    bool any = false;
    while (nic->out && (!nic->out_from_ms || now_ms() >= nic->out_from_ms)) {
        struct queued *q = nic->out;
        ssize_t sent = sendto(nic->domain->socket, &q->packet, q->length, MSG_NOSIGNAL,
                              (struct sockaddr *)&q->to, q->to_length);
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
            break;
        nic->out = q->next;
        nic->out_count--;
        if (!nic->out)
            nic->out_last = &nic->out;
        if (sent < 0 && q->packet.kind != ACK && q->packet.kind != DATA)
            initiator_lost(nic, &q->packet);
        free(q);
        any = true;
    }
    return any;
}

static bool receive(struct nic *nic)
{
    static __thread union {
        struct packet packet;
        uint8_t bytes[sizeof(struct packet) + MTU];
    } in;
    ssize_t got = recv(nic->domain->socket, &in, sizeof in, 0);
    if (got < (ssize_t)sizeof in.packet || in.packet.bytes != (size_t)got - sizeof in.packet)
        return got > 0;
    if (in.packet.kind == ACK || in.packet.kind == DATA)
        initiator_answer(nic, &in.packet);
    else
        target_packet(nic, &in.packet);
    return true;
}

bool wire_work(struct nic *nic)
{
    if (!nic->domain)
        return false;
    bool any = send_queued(nic);
    for (int i = 0; i < TAKEN_MOST && receive(nic); i++)
        any = true;
    return any;
}
