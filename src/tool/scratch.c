/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary folders. The kernel releases a lock when its process dies, however it died: a folder
 * that can be locked has no owner any more. Where folders cannot be locked, nothing is removed. */
#include "tool/scratch.h"
#include "core/core.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 8, DIGITS = 6, FOLDERS_DEEP = 1 };
static const char prefix[] = "weft-repeat-";

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void empty(int folder, int deep)
{
    int own = open_folder(folder, ".");
    DIR *list = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !unlinkat(folder, name, 0))
            continue;
        int inner = deep ? open_folder(folder, name) : -1;
        if (inner < 0)
            continue;
        empty(inner, deep - 1);
        close(inner);
        unlinkat(folder, name, AT_REMOVEDIR);
    }
    if (list)
        closedir(list);
    else if (own >= 0)
        close(own);
}

/* "weft-repeat-PID-XXXXXX" */
static bool is_scratch(const char *name)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return false;
    size_t pid = strspn(name + length, "0123456789");
    return pid && name[length + pid] == '-' && strlen(name + length + pid + 1) == DIGITS;
}

static void sweep(const char *place)
{
    DIR *list = opendir(place);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        struct stat facts;
        int folder = is_scratch(entry->d_name) ? open_folder(dirfd(list), entry->d_name) : -1;
        if (folder < 0)
            continue;
        if (!fstat(folder, &facts) && facts.st_uid == geteuid() &&
            !flock(folder, LOCK_EX | LOCK_NB)) {
            empty(folder, FOLDERS_DEEP);
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
        }
        close(folder);
    }
    if (list)
        closedir(list);
}

/* False if another start took it for one that was left behind, before it was locked. */
static bool hold(struct scratch *s)
{
    struct stat mine, there;
    s->lock = open_folder(AT_FDCWD, s->path);
    if (s->lock < 0)
        return false;
    if (flock(s->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return false;
    return !fstat(s->lock, &mine) && !stat(s->path, &there) && mine.st_ino == there.st_ino;
}

int scratch_make(struct scratch *s)
{
    const char *tmp = secure_getenv("TMPDIR");
    tmp = tmp && *tmp ? tmp : "/tmp";
    sweep(tmp);
    for (int i = 0; i < ATTEMPTS; i++) {
        int n = snprintf(s->path, sizeof s->path, "%s/%s%d-XXXXXX", tmp, prefix, (int)getpid());
        errno = ENAMETOOLONG;
        if (n < 0 || n >= (int)sizeof s->path || !mkdtemp(s->path))
            break;
        if (hold(s))
            return 0;
        if (s->lock >= 0)
            close(s->lock);
        errno = EBUSY;
    }
    return fail(-errno, "cannot create a temporary folder: %s", strerror(errno));
}

void scratch_remove(struct scratch *s)
{
    empty(s->lock, FOLDERS_DEEP);
    rmdir(s->path);
    close(s->lock);
}
