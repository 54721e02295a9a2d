/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files: written to a temporary file in the same folder and renamed, so that readers never
 * see half of one. Anything but a plain file (a pipe, a device) is written directly. */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(const char *path)
{
    int status = errno ? -errno : -EIO;
    if (status == -EINTR)
        return fail(-EINTR, "interrupted");
    /* Neither is a usage error. */
    return fail(status == -EINVAL ? -EIO : status, "%s: cannot be written: %s", path,
                strerror(-status));
}

/* A path of one of our own descriptors: its file, for example a log, is written where it is. */
static int descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    uint64_t number;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < LENGTH(folders); i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) == 0 && !unit_number(path + length, &number) &&
            number < INT_MAX)
            return (int)number;
    }
    return -1;
}

/* Is there something that a file must not replace? */
static bool special(const char *path, struct stat *file)
{
    return !stat(path, file) && !S_ISREG(file->st_mode);
}

/* A new file in the folder of path; a link stays, and its target is replaced. */
static int open_beside(const char *path, char *real, char *name)
{
    if (!realpath(path, real))
        snprintf(real, PATH_MAX, "%s", path);
    int n = snprintf(name, PATH_MAX, "%s.XXXXXX", real);
    if (n < 0 || n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkostemp(name, O_CLOEXEC);
}

/* The file of a path, which may not exist yet. */
static void place_of(const char *path, char *place)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int fd = strcmp(path, "-") == 0 ? STDOUT_FILENO : descriptor(path);
    if (fd >= 0) {
        snprintf(place, PATH_MAX, "fd %d", fd);
        return;
    }
    if (realpath(path, place))
        return;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    size_t used = realpath(folder, place) ? strlen(place) : 0;
    snprintf(place + used, PATH_MAX - used, "/%s", name);
}

bool save_same(const char *a, const char *b)
{
    char places[2][PATH_MAX];
    place_of(a, places[0]);
    place_of(b, places[1]);
    return strcmp(places[0], places[1]) == 0;
}

int save_check(const char *path)
{
    static const char zeroes[4096];
    char real[PATH_MAX], name[PATH_MAX];
    struct stat file;
    if (strcmp(path, "-") == 0)
        return 0;
    if (!*path)
        return fail(-EINVAL, "an output file without a name");
    if (descriptor(path) >= 0)
        return fcntl(descriptor(path), F_GETFL) < 0 ? cannot(path) : 0;
    if (special(path, &file)) {
        if (S_ISDIR(file.st_mode))
            errno = EISDIR;
        return S_ISDIR(file.st_mode) || access(path, W_OK) ? cannot(path) : 0;
    }
    int fd = open_beside(path, real, name);
    if (fd < 0)
        return cannot(path);
    errno = 0;
    int status = write(fd, zeroes, sizeof zeroes) == sizeof zeroes ? 0 : cannot(path);
    close(fd);
    unlink(name);
    return status;
}

static int put(FILE *out, const char *path, const char *bytes, size_t length)
{
    errno = 0;
    return fwrite(bytes, 1, length, out) != length || fflush(out) ? cannot(path) : 0;
}

/* The same, and closes the file in any case. */
static int put_all(FILE *out, const char *path, const char *bytes, size_t length)
{
    int status = put(out, path, bytes, length);
    errno = 0;
    if (fclose(out) && !status)
        status = cannot(path);
    return status;
}

static int save_beside(const char *path, const char *bytes, size_t length)
{
    char real[PATH_MAX], name[PATH_MAX];
    struct stat before;
    mode_t mask = umask(0), mode = 0666 & ~mask;
    umask(mask);
    if (!stat(path, &before))
        mode = before.st_mode & 0777;
    int fd = open_beside(path, real, name);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        int status = cannot(path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (fchmod(fd, mode))
        errno = 0; /* a file system without permissions */
    int status = put_all(out, path, bytes, length);
    if (!status && rename(name, real))
        status = cannot(path);
    if (status)
        unlink(name);
    return status;
}

static int save_as_it_is(int fd, const char *path, const char *bytes, size_t length)
{
    FILE *out = fd < 0 ? fopen(path, "we") : NULL;
    int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    fflush(stdout);
    if (own >= 0 && !(out = fdopen(own, "w")))
        close(own);
    return out ? put_all(out, path, bytes, length) : cannot(path);
}

int save_write(const char *path, const char *bytes, size_t length)
{
    struct stat file;
    int fd = descriptor(path);
    if (strcmp(path, "-") == 0)
        return put(stdout, "standard output", bytes, length);
    if (fd >= 0 || special(path, &file))
        return save_as_it_is(fd, path, bytes, length);
    return save_beside(path, bytes, length);
}

int report_flush(FILE *out)
{
    if (!fflush(out) && !ferror(out))
        return 0;
    if (errno == EINTR)
        return fail(-EINTR, "interrupted");
    return fail(-EIO, "writing results: %s", strerror(errno));
}
