/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files: written to a temporary file in the same folder and renamed, so that readers never
 * see half of one. Anything but a plain file (a pipe, a device) is written directly, and so is what
 * grows while it is measured. */
#include "report/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static bool special(const struct place *place)
{
    return place->file >= 0 && (place->direct || !S_ISREG(place->facts.st_mode));
}

/* What an O_PATH descriptor stands for, by a name. */
static void name_of(const struct place *place, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", place->file);
}

/* A new file beside the one of the place, with its name and random digits. */
static int open_beside(const struct place *place, char name[NAME_MAX + 1])
{
    char digits[9];
    if (random_digits(digits, sizeof digits))
        return -1;
    if (snprintf(name, NAME_MAX + 1, "%s.%s", place->name, digits) > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return openat(place->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
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

static int check_special(const struct place *place, const char *path)
{
    char name[32];
    name_of(place, name);
    if (S_ISDIR(place->facts.st_mode))
        errno = EISDIR;
    return S_ISDIR(place->facts.st_mode) || access(name, W_OK) ? place_fail(path) : 0;
}

static int check_beside(const struct place *place, const char *path)
{
    static const char zeroes[4096];
    char name[NAME_MAX + 1];
    int fd = open_beside(place, name);
    if (fd < 0)
        return place_fail(path);
    errno = 0;
    ssize_t n = 1; /* of a file that may not grow, the second write has the reason */
    for (size_t left = sizeof zeroes; left && n > 0; left -= (size_t)n)
        n = write(fd, zeroes, left);
    int status = n > 0 ? 0 : place_fail(path);
    close(fd);
    unlinkat(place->folder, name, 0);
    return status;
}

int save_check(const char *path)
{
    struct place place;
    if (strcmp(path, "-") == 0)
        return 0;
    if (!*path)
        return fail(-EINVAL, "an output file without a name");
    if (descriptor(path) >= 0)
        return fcntl(descriptor(path), F_GETFL) < 0 ? place_fail(path) : 0;
    int status = place_find(&place, path);
    if (status)
        return status;
    status = special(&place) ? check_special(&place, path) : check_beside(&place, path);
    place_free(&place);
    return status;
}

int save_folder(const char *path)
{
    struct place place;
    int status = place_find(&place, path);
    place_free(&place);
    return status;
}

static int put(FILE *out, const char *path, const char *bytes, size_t length)
{
    errno = 0;
    return fwrite(bytes, 1, length, out) != length || fflush(out) ? place_fail(path) : 0;
}

/* The same, and closes the file in any case. */
static int put_all(FILE *out, const char *path, const char *bytes, size_t length)
{
    int status = put(out, path, bytes, length);
    errno = 0;
    if (fclose(out) && !status)
        status = place_fail(path);
    return status;
}

static int save_beside(const struct place *place, const char *path, const char *bytes,
                       size_t length)
{
    char name[NAME_MAX + 1];
    mode_t mask = umask(0), mode = place->file >= 0 ? place->facts.st_mode & 0777 : 0666 & ~mask;
    umask(mask);
    int fd = open_beside(place, name);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        int status = place_fail(path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (fchmod(fd, mode))
        errno = 0; /* a file system without permissions */
    int status = put_all(out, path, bytes, length);
    if (!status && renameat(place->folder, name, place->folder, place->name))
        status = place_fail(path);
    if (status)
        unlinkat(place->folder, name, 0);
    return status;
}

static int save_as_it_is(int fd, const char *path, const char *bytes, size_t length)
{
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    fflush(stdout);
    if (out)
        return put_all(out, path, bytes, length);
    int status = place_fail(path);
    if (fd >= 0)
        close(fd);
    return status;
}

static int open_itself(const struct place *place)
{
    char name[32];
    if (place->file < 0)
        return openat(place->folder, place->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    name_of(place, name);
    return open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

static int save_in(const struct place *place, const char *path, const char *bytes, size_t length)
{
    return special(place) ? save_as_it_is(open_itself(place), path, bytes, length)
                          : save_beside(place, path, bytes, length);
}

int save_write(const char *path, const char *bytes, size_t length)
{
    struct place place;
    int fd = descriptor(path);
    if (strcmp(path, "-") == 0)
        return put(stdout, "standard output", bytes, length);
    if (fd >= 0)
        return save_as_it_is(fcntl(fd, F_DUPFD_CLOEXEC, 0), path, bytes, length);
    int status = place_find(&place, path);
    if (!status)
        status = save_in(&place, path, bytes, length);
    place_free(&place);
    return status;
}

int save_open(const char *path, FILE **out)
{
    struct place place = {.folder = -1, .file = -1};
    int fd = strcmp(path, "-") == 0 ? STDOUT_FILENO : descriptor(path);
    int status = fd < 0 ? place_find(&place, path) : 0;
    if (status)
        return status;
    errno = 0;
    fd = fd < 0 ? open_itself(&place) : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!*out)
        status = place_fail(path);
    if (!*out && fd >= 0)
        close(fd);
    place_free(&place);
    return status;
}

int report_flush(FILE *out)
{
    if (!fflush(out) && !ferror(out))
        return 0;
    if (errno == EINTR)
        return fail(-EINTR, "interrupted");
    return fail(-EIO, "writing results: %s", strerror(errno));
}
