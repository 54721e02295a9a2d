/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: devices, services and their VNIs, and PIDs. A PID is an abstract socket name, which the
 * kernel frees when the process dies, however it dies. */
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

/* ---- PIDs ---- */

static socklen_t nic_name(struct sockaddr_un *name, unsigned address, uint64_t vni, unsigned pid)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1,
                     "weft/nic-%05x/vni-%" PRIu64 "/pid-%u", address & 0xfffffU, vni, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int unix_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int soft_nic_open(struct soft_nic *nic, const char *device, uint64_t service)
{
    int number = device_number(device);
    if (number < 0)
        return number;
    int status = find_service(service, &nic->vni);
    if (status)
        return status;
    nic->address = SOFT_FIRST_NIC + (unsigned)number;
    nic->listener = unix_socket();
    if (nic->listener < 0)
        return fail(nic->listener, "soft: socket: %s", strerror(-nic->listener));
    for (nic->pid = 0; nic->pid < SOFT_PIDS; nic->pid++) {
        struct sockaddr_un name;
        socklen_t length = nic_name(&name, nic->address, nic->vni, nic->pid);
        if (!bind(nic->listener, (struct sockaddr *)&name, length) &&
            !listen(nic->listener, SOFT_GUESTS))
            return 0;
        if (errno != EADDRINUSE) {
            status = fail(-errno, "soft: binding a PID: %s", strerror(errno));
            break;
        }
    }
    if (!status)
        status = fail(-EADDRINUSE, "soft: all %d PIDs of cxi%d in VNI %" PRIu64 " are taken",
                      SOFT_PIDS, number, nic->vni);
    close(nic->listener);
    nic->listener = -1;
    return status;
}

int soft_nic_dial(unsigned address, uint64_t vni, unsigned pid)
{
    struct sockaddr_un name;
    socklen_t length = nic_name(&name, address, vni, pid);
    int fd = unix_socket();
    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&name, length)) {
        int status = -errno;
        close(fd);
        return status;
    }
    return fd;
}
