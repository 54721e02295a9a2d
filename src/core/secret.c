/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that hold a secret. The checks are on what was opened, not on a name that may change
 * meanwhile. */
#include "core/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char by_number[] = "fd:";

/* "fd:N": the descriptor. */
static int inherited(const char *path)
{
    uint64_t number;
    if (unit_number(path + strlen(by_number), &number) || number > INT32_MAX)
        return fail(-EINVAL, "the secret \"%s\": a descriptor is a number, such as fd:3", path);
    return (int)number;
}

static int open_secret(const char *path)
{
    if (strncmp(path, by_number, strlen(by_number)) == 0)
        return inherited(path);
    /* Not blocking: a FIFO is refused, not waited for. */
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ELOOP)
        return fail(-ELOOP, "the secret %s is a symbolic link, which is not followed", path);
    return fd < 0 ? fail(-errno, "the secret %s: %s", path, strerror(errno)) : fd;
}

static int check_file(int fd, const char *path)
{
    struct stat file;
    if (fstat(fd, &file))
        return fail(-errno, "the secret %s: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return fail(-EACCES, "the secret %s is not a regular file", path);
    if (file.st_uid != geteuid() && file.st_uid)
        return fail(-EACCES, "the secret %s belongs to another user", path);
    if (file.st_mode & (S_IRWXG | S_IRWXO))
        return fail(-EACCES, "the secret %s has mode %04o, so that others may use it: chmod 600 %s",
                    path, (unsigned)file.st_mode & 07777U, path);
    return 0;
}

static int parse(struct secret *secret, const char *text, size_t length, const char *path)
{
    struct msg digits = {0};
    size_t got = 0;
    if (length == SECRET_TEXT && text[length - 1] == '\n')
        length--;
    int status = msg_print(&digits, "secret=%.*s\n", (int)length, text);
    if (!status && length == SECRET_TEXT - 1)
        status = msg_hex(&digits, "secret", secret->bytes, SECRET_BYTES, &got);
    explicit_bzero(&digits, sizeof digits);
    if (status || got != SECRET_BYTES)
        return fail(-EACCES,
                    "the secret %s is not %d hexadecimal digits; make one with: weft keygen "
                    "FILE",
                    path, 2 * SECRET_BYTES);
    return 0;
}

int secret_read(struct secret *secret, const char *path)
{
    char text[SECRET_TEXT + 1]; /* one more, to notice a longer file */
    int fd = open_secret(path);
    if (fd < 0)
        return fd;
    int status = check_file(fd, path);
    ssize_t length = status ? 0 : pread(fd, text, sizeof text, 0);
    if (length < 0)
        status = fail(-errno, "the secret %s: %s", path, strerror(errno));
    if (!status)
        status = parse(secret, text, (size_t)length, path);
    explicit_bzero(text, sizeof text);
    if (fd > STDERR_FILENO) /* the place of a standard stream stays taken */
        close(fd);
    return status;
}

int secret_make(struct secret *secret)
{
    if (getrandom(secret->bytes, sizeof secret->bytes, 0) != sizeof secret->bytes)
        return fail(-errno, "no random bytes: %s", strerror(errno));
    return 0;
}

void secret_text(const struct secret *secret, char text[SECRET_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        text[2 * i] = digits[secret->bytes[i] >> 4];
        text[2 * i + 1] = digits[secret->bytes[i] & 15];
    }
    text[SECRET_TEXT - 1] = '\n';
}
