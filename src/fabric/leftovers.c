/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory that killed processes have left in /dev/shm. UCX removes the name of a segment once
 * it is filled, libfabric when it is closed: until then a SIGKILL leaves up to gigabytes. The
 * kernel grants a write lease only if no process, in whatever container, has the file open or
 * mapped: then its owner is gone, and nobody can be using it. */
#include "fabric/choose.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Consumes the characters of a set, at least one. */
static bool skip(const char **at, const char *set)
{
    size_t length = strspn(*at, set);
    *at += length;
    return length;
}

/* UCX: "ucx_shm_posix_" and hexadecimal digits. libfabric: "PID:DOMAIN:ENDPOINT". */
static bool is_segment(const char *name)
{
    static const char ucx[] = "ucx_shm_posix_", digits[] = "0123456789";
    if (strncmp(name, ucx, strlen(ucx)) == 0) {
        name += strlen(ucx);
        return skip(&name, "0123456789abcdef") && !*name;
    }
    return skip(&name, digits) && *name++ == ':' && skip(&name, digits) && *name++ == ':' &&
           skip(&name, digits) && !*name;
}

/* A lease that another process breaks sends a signal: one that is ignored. */
static void remove_unused(int folder, const char *name)
{
    struct stat facts;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &facts) && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
        !fcntl(fd, F_SETSIG, SIGURG) && !fcntl(fd, F_SETLEASE, F_WRLCK))
        unlinkat(folder, name, 0);
    close(fd);
}

void fabric_sweep(const char *place)
{
    DIR *list = opendir(place);
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        if (is_segment(entry->d_name))
            remove_unused(dirfd(list), entry->d_name);
    if (list)
        closedir(list);
}
