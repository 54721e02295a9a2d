/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: devices, services and their VNIs, and PIDs. A PID is an abstract socket name, which the
 * kernel frees when the process dies, however it dies. Each user has PIDs of its own. */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef WEFT_SERVICES_FILE
#define WEFT_SERVICES_FILE "/etc/weft/services"
#endif

int soft_nic_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    for (int i = 0; i < SOFT_NICS; i++) {
        char name[16];
        snprintf(name, sizeof name, "cxi%d", i);
        say(arg, name, "software NIC, shared memory, one machine");
    }
    return 0;
}

static int device_number(const char *device)
{
    if (!*device)
        return 0;
    for (int i = 0; i < SOFT_NICS; i++) {
        char name[16];
        snprintf(name, sizeof name, "cxi%d", i);
        if (strcmp(device, name) == 0)
            return i;
    }
    return fail(-ENODEV, "no device \"%s\" on soft; there are: cxi0 to cxi%d", device,
                SOFT_NICS - 1);
}

/* ---- services ---- */

struct service {
    uint64_t id, vni;
    bool disabled;
};

/* "ID VNI" or "ID VNI disabled"; 1 for a service, 0 for an empty line. */
static int service_line(char *line, struct service *service)
{
    char *rest = NULL;
    line[strcspn(line, "#\n")] = '\0';
    const char *id = strtok_r(line, " \t\r", &rest);
    const char *vni = strtok_r(NULL, " \t\r", &rest);
    const char *word = strtok_r(NULL, " \t\r", &rest);
    if (!id)
        return 0;
    if (!vni || unit_number(id, &service->id) || unit_number(vni, &service->vni) ||
        service->vni < 1 || service->vni > 65535 || (word && strcmp(word, "disabled") != 0) ||
        strtok_r(NULL, " \t\r", &rest))
        return -EINVAL;
    service->disabled = word;
    return 1;
}

static int unknown_service(uint64_t id, const char *known, const char *path, bool file)
{
    return fail(-ENOENT, "service %" PRIu64 " is not known; there are: %s%s%s%s", id, known,
                file ? "" : " (more would be read from ", file ? "" : path, file ? "" : ")");
}

/* Service 1 is always there; the file may add others or change it. */
static int find_service(uint64_t id, uint64_t *vni)
{
    const char *path = secure_getenv("WEFT_SERVICES");
    if (!path)
        path = WEFT_SERVICES_FILE;
    struct service found = {.id = 1, .vni = 10}, next;
    bool have = id == 1;
    char line[256], known[256] = "1";
    int number = 0, status = 0;
    FILE *file = fopen(path, "re");
    while (file && !status && fgets(line, sizeof line, file)) {
        number++;
        int kind = service_line(line, &next);
        if (kind < 0)
            status =
                fail(-EINVAL, "%s line %d: not \"ID VNI\" or \"ID VNI disabled\"", path, number);
        if (kind <= 0)
            continue;
        if (next.id != 1 && strlen(known) + 24 < sizeof known)
            snprintf(known + strlen(known), sizeof known - strlen(known), ", %" PRIu64, next.id);
        if (next.id == id) {
            found = next;
            have = true;
        }
    }
    if (file)
        fclose(file);
    if (status)
        return status;
    if (!have)
        return unknown_service(id, known, path, file);
    if (found.disabled)
        return fail(-EACCES, "service %" PRIu64 " is disabled in %s", id, path);
    *vni = found.vni;
    return 0;
}

/* ---- names of ends ---- */

static socklen_t socket_name(struct sockaddr_un *socket, const struct soft_name *name)
{
    *socket = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t room = sizeof socket->sun_path - 1;
    int n = snprintf(socket->sun_path + 1, room,
                     "weft/nic-%05x/vni-%" PRIu64 "/user-%" PRIu64 "/pid-%u", name->address,
                     name->vni, name->user, name->pid);
    if (name->tag)
        n += snprintf(socket->sun_path + 1 + n, room - (size_t)n, "/%016" PRIx64, name->tag);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int soft_name_order(const struct soft_name *a, const struct soft_name *b)
{
    const uint64_t pairs[][2] = {{a->address, b->address},
                                 {a->pid, b->pid},
                                 {a->vni, b->vni},
                                 {a->user, b->user},
                                 {a->tag, b->tag}};
    for (size_t i = 0; i < LENGTH(pairs); i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return 0;
}

int soft_name_print(const struct soft_name *name, struct msg *text)
{
    char host[64] = "", network[64];
    host_id(host, sizeof host);
    host_network(network, sizeof network);
    return msg_print(text,
                     "nic=0x%x\npid=%u\nvni=%" PRIu64 "\nuser=%" PRIu64 "\ntag=%" PRIu64
                     "\nhost=%s\nnetwork=%s\n",
                     name->address, name->pid, name->vni, name->user, name->tag, host, network);
}

int soft_name_read(struct soft_name *name, const struct msg *text)
{
    uint64_t address = 0, pid = 0;
    int status = msg_number(text, "nic", &address);
    if (!status)
        status = msg_number(text, "pid", &pid);
    if (!status)
        status = msg_number(text, "vni", &name->vni);
    if (!status)
        status = msg_number(text, "user", &name->user);
    if (!status)
        status = msg_number(text, "tag", &name->tag);
    if (!status && (address > 0xfffff || pid >= SOFT_PIDS))
        status = fail(-EPROTO, "soft: the other end has an impossible NIC address or PID");
    name->address = (unsigned)address;
    name->pid = (unsigned)pid;
    return status;
}

bool soft_may_connect(bool server, uint64_t mine, uint64_t theirs)
{
    uint64_t client_user = server ? theirs : mine;
    return mine == theirs || client_user == 0;
}

int soft_name_check(const struct soft_name *ours, bool server, const struct soft_name *theirs,
                    const struct msg *text)
{
    char mine[64] = "", host[64] = "";
    if (theirs->vni != ours->vni)
        return fail(-EACCES,
                    "VNI mismatch: this end's service is in VNI %" PRIu64
                    ", the other end's in VNI %" PRIu64 "; give both the same service ID",
                    ours->vni, theirs->vni);
    host_id(mine, sizeof mine);
    if (msg_value(text, "host", host, sizeof host) || strcmp(mine, host) != 0)
        return fail(-EHOSTUNREACH, "the other end is on another machine: soft works within one");
    /* A name dialled there would be an end of this network, perhaps this end itself. */
    host_network(mine, sizeof mine);
    if (msg_value(text, "network", host, sizeof host) || strcmp(mine, host) != 0)
        return fail(-EHOSTUNREACH, "the other end is in another network namespace (a container?): "
                                   "soft works within one");
    if (!soft_may_connect(server, ours->user, theirs->user))
        return fail(-EACCES,
                    "the other end belongs to user %" PRIu64 ", this one to user %" PRIu64
                    ": only a server's own user, or root, may connect to it; device ofi:tcp "
                    "works between users",
                    theirs->user, ours->user);
    if (soft_name_order(ours, theirs) == 0)
        return fail(-EPROTO, "soft: the other end gives this end's own address");
    return 0;
}

/* ---- sockets ---- */

static int unix_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int soft_nic_dial(const struct soft_name *name)
{
    struct sockaddr_un there;
    socklen_t length = socket_name(&there, name);
    int fd = unix_socket();
    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&there, length)) {
        int status = -errno;
        close(fd);
        return status;
    }
    return fd;
}

bool soft_nic_user(int fd, uint64_t *user)
{
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length))
        return false;
    *user = who.uid;
    return true;
}

/* Binds the name: -EADDRINUSE without a sentence if somebody has it. */
static int take_name(const struct soft_nic *nic)
{
    struct sockaddr_un here;
    socklen_t length = socket_name(&here, &nic->name);
    if (!bind(nic->listener, (struct sockaddr *)&here, length) &&
        !listen(nic->listener, SOFT_GUESTS))
        return 0;
    return errno == EADDRINUSE ? -EADDRINUSE
                               : fail(-errno, "soft: binding a PID: %s", strerror(errno));
}

/* Anybody may bind any name. */
static bool held_by_its_user(const struct soft_name *name)
{
    uint64_t user;
    int fd = soft_nic_dial(name);
    if (fd < 0)
        return false;
    bool so = soft_nic_user(fd, &user) && user == name->user;
    close(fd);
    return so;
}

/* Where no name is free, a PID that another user keeps is taken with a tag that nobody can guess.
 * Two of our ends may then have one PID: their names still differ. */
static int take_kept_name(struct soft_nic *nic)
{
    uint64_t tag;
    int status = random_word(&tag);
    for (unsigned i = 0; i < SOFT_PIDS && !status; i++) {
        nic->name.pid = (unsigned)((tag + i) % SOFT_PIDS);
        if (held_by_its_user(&nic->name))
            continue;
        nic->name.tag = tag;
        return take_name(nic);
    }
    return status
               ? status
               : fail(-EADDRINUSE,
                      "soft: user %" PRIu64 " has all %d PIDs of cxi%u in VNI %" PRIu64,
                      nic->name.user, SOFT_PIDS, nic->name.address - SOFT_FIRST_NIC, nic->name.vni);
}

int soft_nic_open(struct soft_nic *nic, const char *device, uint64_t service)
{
    struct soft_name *name = &nic->name;
    int number = device_number(device);
    if (number < 0)
        return number;
    *name = (struct soft_name){.address = SOFT_FIRST_NIC + (unsigned)number, .user = geteuid()};
    int status = find_service(service, &name->vni);
    if (status)
        return status;
    nic->listener = unix_socket();
    if (nic->listener < 0)
        return fail(nic->listener, "soft: socket: %s", strerror(-nic->listener));
    do
        status = take_name(nic);
    while (status == -EADDRINUSE && ++name->pid < SOFT_PIDS);
    if (status == -EADDRINUSE)
        status = take_kept_name(nic);
    if (!status)
        return 0;
    close(nic->listener);
    nic->listener = -1;
    return status;
}
