/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes how two ends of soft meet: addresses, keys, and messages on the socket with descriptors of
 * all kinds. What is accepted is used in full, and every descriptor is closed again. */
#include "fabric/soft/soft.h"
#include "fuzz/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned fuzz_accepted;

enum { KEYS = 3, REGION = 4096, PORTAL = (sizeof(struct soft_portal) + 4095) & ~4095 };
enum { NONE, A_PORTAL, A_REGION, UNSEALED, READ_ONLY, A_PIPE, TWO, KINDS };
static const char nonce[] = "0123456789abcdef";

static int memory(size_t length, int seals)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)length) || (seals && fcntl(fd, F_ADD_SEALS, seals)))
        abort();
    return fd;
}

/* The same ones for all inputs. */
static const int *descriptors(void)
{
    static int fds[KINDS], both[2];
    char path[32];
    if (fds[A_PORTAL])
        return fds;
    fds[NONE] = -1;
    fds[A_PORTAL] = memory(PORTAL, SOFT_SEALS);
    fds[A_REGION] = memory(REGION, SOFT_SEALS);
    fds[UNSEALED] = memory(PORTAL, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[A_PORTAL]);
    fds[READ_ONLY] = open(path, O_RDONLY | O_CLOEXEC);
    if (pipe2(both, O_CLOEXEC))
        abort();
    fds[A_PIPE] = both[0];
    fds[TWO] = fds[A_REGION];
    return fds;
}

/* Text of the input's own, or lines with numbers that fit, or nearly. */
static size_t next_text(struct feed *feed, char *text, size_t room)
{
    uint8_t what = next_byte(feed);
    if (what & 0x80) {
        size_t length = what & 0x7f;
        length = length < feed->left ? length : feed->left;
        memcpy(text, feed->data, length);
        feed->data += length;
        feed->left -= length;
        return length;
    }
    static const uint64_t lengths[] = {REGION, PORTAL, REGION - 1};
    size_t which = what >> 2 & 3;
    uint64_t length = which < LENGTH(lengths) ? lengths[which] : next_bytes(feed, 8);
    int n = snprintf(text, room, "key=%d\nlength=%llu\nentry=%d\n", what & 3,
                     (unsigned long long)length, what >> 4);
    if (what == 0x7f)
        n += snprintf(text + n, room - (size_t)n, "memory=cuda\ngpu=0\nidentity=x\nhandle=00\n");
    return (size_t)n;
}

static void send_one(struct feed *feed, int socket)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    char text[256];
    uint8_t kind = next_byte(feed) % KINDS;
    size_t count = kind == TWO ? 2 : 1, length = next_text(feed, text, sizeof text);
    struct iovec bytes = {.iov_base = text, .iov_len = length};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (kind != NONE) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(head) + i * sizeof(int), &descriptors()[kind], sizeof(int));
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
        abort();
}

/* All of what was agreed on can be reached. */
static void use(struct soft *soft, struct remote *remotes, int count)
{
    struct completion found[2];
    static char bytes[PORTAL];
    for (int i = 0; i < count; i++) {
        if (remotes[i].gpu || remotes[i].length > sizeof bytes)
            abort();
        memcpy(bytes, remotes[i].address, remotes[i].length);
        memset(remotes[i].address, 0, remotes[i].length);
    }
    soft_poll(&soft->fabric, found, 2);
    fuzz_accepted++;
}

static void meet(struct feed *feed, struct soft *soft, const struct msg *address, int other)
{
    struct msg keys[KEYS] = {{.length = 0}};
    struct remote remotes[KEYS] = {{.address = NULL}};
    uint8_t what = next_byte(feed);
    const struct fabric_meeting meeting = {
        .nonce = nonce, .address = address, .keys = keys, .count = what % (KEYS + 1)};
    int status = LATER;
    for (int i = 0; i < meeting.count; i++)
        keys[i].length = next_text(feed, keys[i].bytes, sizeof keys[i].bytes);
    for (int i = 0; i < 24 && status == LATER; i++) {
        if (other >= 0 && feed->left)
            send_one(feed, other);
        status = soft_link_step(soft, &meeting, remotes);
    }
    if (status == DONE)
        use(soft, remotes, meeting.count);
}

/* Connected already: the input is what comes over the socket. */
static void socket_of(struct feed *feed, struct soft *soft)
{
    const struct msg address = {.length = 0};
    int dialled[2], guest[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, dialled) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, guest))
        abort();
    uint8_t what = next_byte(feed);
    soft->link.listed = true;
    soft->link.dialled = dialled[0];
    soft->link.guests[0] = guest[0];
    soft->link.theirs = (struct soft_name){.pid = 1, .user = geteuid()};
    soft->nic.name.pid = what & 2;
    if (what & 1)
        send_one(feed, guest[1]);
    if (send(guest[1], nonce, strlen(nonce), MSG_NOSIGNAL) < 0)
        abort();
    meet(feed, soft, &address, dialled[1]);
    close(dialled[1]);
    close(guest[1]);
}

/* Not yet: the input is the address. Nobody is in this VNI. */
static void address_of(struct feed *feed, struct soft *soft)
{
    struct msg address = {.length = 0};
    soft_name_print(&(struct soft_name){.address = 0x12, .pid = 1, .vni = 65535}, &address);
    size_t at = next_bytes(feed, 2) % (address.length + 1);
    size_t length = feed->left < address.length - at ? feed->left : address.length - at;
    memcpy(address.bytes + at, feed->data, length);
    feed->data += length;
    feed->left -= length;
    meet(feed, soft, &address, -1);
}

/* It is a lower one if a descriptor was closed twice, a higher one if one is still open. */
static int next_descriptor(void)
{
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        abort();
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct soft soft, ready;
    struct feed feed = {data, size};
    descriptors();
    if (soft_portal_open(&ready)) /* one for all inputs: it takes longer than the rest */
        abort();
    int before = next_descriptor();
    fuzz_accepted = 0;
    soft = (struct soft){.nic = {.listener = -1, .name = {.vni = 65535, .user = geteuid()}},
                         .own = ready.own,
                         .portal = ready.portal};
    soft_link_open(&soft.link);
    if (next_byte(&feed) % 16)
        socket_of(&feed, &soft);
    else
        address_of(&feed, &soft);
    soft_link_close(&soft);
    soft_own_unlist(soft.own);
    if (next_descriptor() != before)
        abort();
    return 0;
}
