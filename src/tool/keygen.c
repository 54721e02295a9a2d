/* SPDX-License-Identifier: BSD-3-Clause */
/* weft keygen: a new secret in a new file that only this user may read. */
#include "core/secret.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(const char *path, int error)
{
    return fail(-error, "%s: %s", path, strerror(error));
}

/* What is there already is never replaced: ends that use it would be locked out. */
static int write_secret(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return cannot(path, errno);
    bool good = !fchmod(fd, 0600) && write(fd, text, SECRET_TEXT) == SECRET_TEXT && !fsync(fd);
    int error = good ? 0 : errno ? errno : EIO;
    if (close(fd) && !error)
        error = errno;
    if (error)
        unlink(path);
    return error ? cannot(path, error) : 0;
}

int keygen_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    const char *places[argc];
    char text[SECRET_TEXT];
    struct secret secret;
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given != 1)
        return fail(-EINVAL, "one FILE is needed (\"-\": standard output)");
    status = secret_make(&secret);
    if (status)
        return status;
    secret_text(&secret, text);
    if (strcmp(places[0], "-") != 0)
        return write_secret(places[0], text);
    fwrite(text, 1, sizeof text, stdout);
    return shell_flush("the secret");
}
