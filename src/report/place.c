/* SPDX-License-Identifier: BSD-3-Clause */
/* Follows a path link by link, with descriptors: nothing that was looked at can be replaced before
 * it is used. Kernels refuse such links only if they are set to, and readlink(2) not even then. */
#include "report/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

struct walk {
    const char *path;
    char rest[PATH_MAX]; /* not yet followed */
    unsigned links;
    bool last; /* the name at hand ends the path */
};

int place_fail(const char *path)
{
    int status = errno ? -errno : -EIO;
    if (status == -EINTR)
        return fail(-EINTR, "interrupted");
    /* Neither is a usage error. */
    return fail(status == -EINVAL ? -EIO : status, "%s: cannot be written: %s", path,
                strerror(-status));
}

/* The owner of the folder could replace it anyway. */
static int refuse_foreign(const struct walk *w, const struct place *place)
{
    struct stat folder;
    const struct stat *file = &place->facts;
    const mode_t open_to_all = S_ISVTX | S_IWOTH;
    if (fstat(place->folder, &folder))
        return place_fail(w->path);
    if ((folder.st_mode & open_to_all) != open_to_all || file->st_uid == geteuid() ||
        file->st_uid == folder.st_uid)
        return 0;
    return fail(-EACCES,
                "%s: not written: \"%s\" is a %s of another user (uid %u), in a folder where "
                "everybody may create files",
                w->path, place->name,
                S_ISLNK(file->st_mode)   ? "link"
                : S_ISREG(file->st_mode) ? "file"
                : S_ISDIR(file->st_mode) ? "folder"
                                         : "pipe or device",
                (unsigned)file->st_uid);
}

static int enter(struct place *place, int folder)
{
    if (place->folder >= 0)
        close(place->folder);
    place->folder = folder;
    return folder < 0 ? -1 : 0;
}

static int begin(struct place *place, const char *path)
{
    return enter(place, open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* The next name of the path. */
static int take_name(struct walk *w, struct place *place)
{
    char *at = w->rest + strspn(w->rest, "/");
    size_t length = strcspn(at, "/");
    w->last = !at[length];
    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(place->name, length ? at : ".", length ? length : 1);
    place->name[length ? length : 1] = '\0';
    memmove(w->rest, at + length, strlen(at + length) + 1);
    return 0;
}

/* The link's text comes before the rest. */
static int follow(struct walk *w, struct place *place)
{
    char text[PATH_MAX];
    ssize_t length = readlinkat(place->file, "", text, sizeof text - 1);
    if (length < 0)
        return -1;
    text[length] = '\0';
    if (++w->links > LINKS_MAX) {
        errno = ELOOP;
        return -1;
    }
    if ((size_t)length + strlen(w->rest) >= sizeof w->rest) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memmove(w->rest + length, w->rest, strlen(w->rest) + 1);
    memcpy(w->rest, text, (size_t)length);
    w->last = false;
    return *text == '/' ? begin(place, text) : 0;
}

/* The text of a link in /proc does not say what it leads to. */
static bool is_text(const struct place *place)
{
    struct statfs system;
    return fstatfs(place->folder, &system) || system.f_type != PROC_SUPER_MAGIC;
}

static int look(struct place *place, int flags)
{
    if (place->file >= 0)
        close(place->file);
    place->file = openat(place->folder, place->name, O_PATH | O_CLOEXEC | flags);
    return place->file < 0 ? -1 : fstat(place->file, &place->facts);
}

static int step(struct walk *w, struct place *place)
{
    if (take_name(w, place))
        return place_fail(w->path);
    if (look(place, O_NOFOLLOW))
        return w->last && errno == ENOENT ? 0 : place_fail(w->path);
    bool link = S_ISLNK(place->facts.st_mode);
    int status = w->last || link ? refuse_foreign(w, place) : 0;
    if (status)
        return status;
    if (link && is_text(place))
        return follow(w, place) ? place_fail(w->path) : 0;
    if (link && look(place, 0))
        return place_fail(w->path);
    place->direct = link && w->last;
    if (!w->last) {
        enter(place, place->file);
        place->file = -1;
    }
    return 0;
}

int place_find(struct place *place, const char *path)
{
    struct walk w = {.path = path};
    bool fits = (size_t)snprintf(w.rest, sizeof w.rest, "%s", path) < sizeof w.rest;
    *place = (struct place){.folder = -1, .file = -1};
    errno = ENAMETOOLONG;
    int status = !fits || begin(place, path) ? place_fail(path) : 0;
    while (!status && !w.last)
        status = step(&w, place);
    if (status)
        place_free(place);
    return status;
}

void place_free(struct place *place)
{
    if (place->file >= 0)
        close(place->file);
    if (place->folder >= 0)
        close(place->folder);
    *place = (struct place){.folder = -1, .file = -1};
}
