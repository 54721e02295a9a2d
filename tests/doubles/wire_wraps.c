/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a client on libfabric's tcp, it makes an attacker of it: one write gets another
 * address, and a length by which the sum of both wraps. The file that WEFT_TEST_WRAP names says how
 * far away; until it has a number, nothing is changed. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A request to write, as it is on the wire. */
struct request {
    uint8_t version, op;
    uint16_t flags;
    uint8_t op_data, count, head_bytes, id;
    uint64_t bytes;
    uint64_t address, length, key;
};
enum { VERSION = 3, OP_WRITE = 4 };

static bool distance(uint64_t *bytes)
{
    const char *path = getenv("WEFT_TEST_WRAP");
    FILE *file = path ? fopen(path, "re") : NULL;
    char text[32] = "";
    bool there = file && fgets(text, sizeof text, file) && strchr(text, '\n');
    if (file)
        fclose(file);
    *bytes = strtoull(text, NULL, 0);
    return there;
}

static void change(void *bytes, size_t length)
{
    static bool done;
    struct request r;
    uint64_t away;
    if (done || length < sizeof r)
        return;
    memcpy(&r, bytes, sizeof r);
    if (r.version != VERSION || r.op != OP_WRITE || r.count != 1 || r.head_bytes != sizeof r ||
        !distance(&away))
        return;
    r.address += away;
    r.length = -away;
    memcpy(bytes, &r, sizeof r);
    done = true;
    fprintf(stderr, "one write was changed\n");
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    change((void *)bytes, length);
    return real(fd, bytes, length, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    for (size_t i = 0; i < message->msg_iovlen; i++)
        change(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    return real(fd, message, flags);
}
