/* SPDX-License-Identifier: BSD-3-Clause */
/* How two ends get at each other's memory: each dials the other's PID, shows the nonce of this run,
 * and is sent descriptors. Both check the user on the other side of the socket, and that a
 * descriptor can no longer shrink: a truncated one would kill the process that touches it. Ends of
 * one process find each other's memory in own.c. */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512 };

void soft_link_open(struct soft_link *link)
{
    *link = (struct soft_link){.dialled = -1, .partner = -1};
    for (int i = 0; i < SOFT_GUESTS; i++)
        link->guests[i] = -1;
}

static void close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void unmap_region(struct soft *soft, const struct soft_map *map)
{
    if (!map->address || map->shared)
        return;
    if (map->gpu)
        gpu_release(soft->gpu, map->address);
    else
        munmap(map->address, map->length);
}

void soft_link_leave(struct soft *soft)
{
    struct soft_link *link = &soft->link, next;
    close_socket(&link->dialled);
    close_socket(&link->partner);
    soft_gpu_unpin(soft);
    for (size_t i = 0; i < LENGTH(link->maps); i++)
        unmap_region(soft, &link->maps[i]);
    if (link->own)
        soft_own_release(link->own);
    soft_link_open(&next);
    memcpy(next.guests, link->guests, sizeof next.guests);
    *link = next;
}

void soft_link_close(struct soft *soft)
{
    soft_link_leave(soft);
    for (int i = 0; i < SOFT_GUESTS; i++)
        close_socket(&soft->link.guests[i]);
}

/* Does the other side of a socket belong to the user that the other end names? */
static bool is_theirs(const struct soft *soft, int fd)
{
    uint64_t user;
    return soft_nic_user(fd, &user) && user == soft->link.theirs.user;
}

/* ---- giving ours ---- */

/* Text, and a descriptor unless it is -1. */
static int send_message(int socket, struct msg *text, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {.iov_base = text->bytes, .iov_len = text->length};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (text->length > MESSAGE_MAX)
        return fail(-EMSGSIZE, "soft: %zu bytes on one's memory", text->length);
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof(int));
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        return fail(-errno, "soft: handing over memory: %s", strerror(errno));
    return 0;
}

static int send_region(int socket, const struct region *region, uint64_t key, bool own_process)
{
    struct msg text;
    int fd = region->fd;
    int status = msg_print(&text, "key=%" PRIu64 "\nlength=%zu\n", key, region->mapped);
    if (!status && region->gpu)
        status = soft_gpu_describe(region, own_process, &text, &fd);
    return status ? status : send_message(socket, &text, fd);
}

/* Both have listed what they have before either can hear from the other. */
static void find_own(struct soft *soft, const char *nonce)
{
    if (!soft->link.own)
        soft->link.own = soft_own_find(soft, nonce);
}

/* The portal first, then every entry of this meeting. */
static int give_all(struct soft *soft, const char *nonce, int fd)
{
    find_own(soft, nonce);
    bool own_process = soft->link.own;
    int status = send_region(fd, &soft->own->portal, 0, own_process);
    for (int i = 0; i < SOFT_ENTRIES && !status; i++)
        if (soft->keys[i])
            status = send_region(fd, soft->exposed[i], soft->keys[i], own_process);
    return status;
}

static bool hung_up(int fd)
{
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) > 0 && look.revents & (POLLHUP | POLLERR);
}

/* A place for one more: of those that wait, one that has gone, or in the end any. */
static int *guest_place(struct soft_link *link)
{
    for (int i = 0; i < SOFT_GUESTS; i++)
        if (link->guests[i] < 0)
            return &link->guests[i];
    for (int i = 0; i < SOFT_GUESTS; i++)
        if (hung_up(link->guests[i])) {
            close_socket(&link->guests[i]);
            return &link->guests[i];
        }
    int *last = &link->guests[link->next_guest++ % SOFT_GUESTS];
    close_socket(last);
    return last;
}

/* Takes in all that knock, or one that nobody wants would keep others waiting. */
static void welcome(struct soft *soft)
{
    for (int i = 0; i < SOFT_GUESTS; i++) {
        int fd = accept4(soft->nic.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        uint64_t user;
        if (fd < 0)
            return;
        if (soft_nic_user(fd, &user) && soft_may_connect(soft->server, soft->nic.name.user, user))
            *guest_place(&soft->link) = fd;
        else
            close(fd);
    }
}

/* Is it the other end of our meeting? Others wait: they may have dialled for a meeting that is yet
 * to come. */
static bool is_partner(int *guest, const char *nonce)
{
    char shown[SOFT_NONCE + 1];
    ssize_t n = recv(*guest, shown, sizeof shown, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0 || hung_up(*guest)) {
        close_socket(guest);
        return false;
    }
    if (n != (ssize_t)strlen(nonce) || memcmp(shown, nonce, (size_t)n) != 0)
        return false;
    /* Closed with something unread, it would take from the other end what that has yet to read. */
    return recv(*guest, shown, sizeof shown, MSG_DONTWAIT) == n;
}

static int serve_guests(struct soft *soft, const char *nonce)
{
    struct soft_link *link = &soft->link;
    welcome(soft);
    for (int i = 0; i < SOFT_GUESTS; i++) {
        if (link->guests[i] < 0 || !is_theirs(soft, link->guests[i]) ||
            !is_partner(&link->guests[i], nonce))
            continue;
        link->partner = link->guests[i];
        link->guests[i] = -1;
        int status = give_all(soft, nonce, link->partner);
        link->served = !status;
        return status;
    }
    return 0;
}

/* ---- taking theirs ---- */

/* How many descriptors came with a message. If it is one, it is *fd; more are nobody's. */
static size_t take_descriptors(struct msghdr *message, int *fd)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    *fd = -1;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        memcpy(fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
        if (count > 1)
            close(*fd);
    }
    if (count > 1)
        *fd = -1;
    return count;
}

/* One message, with its descriptor or -1; -EAGAIN if there is none yet. */
static int receive_region(int socket, struct msg *text, int *fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {.iov_base = text->bytes, .iov_len = MESSAGE_MAX};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    /* To a reader that does not wait the kernel may show the end of a connection before the last
     * that was sent on it: that is there at a second look. */
    if (n == 0 && !message.msg_controllen) {
        message.msg_controllen = sizeof control.room;
        n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    }
    if (n < 0 && errno == EAGAIN)
        return -EAGAIN;
    size_t count = n < 0 ? 0 : take_descriptors(&message, fd);
    if (n <= 0)
        return fail(-ECONNABORTED, "soft: the other end hung up before it handed over its memory: "
                                   "it has left, or belongs to another user");
    if (count > 1)
        return fail(-EPROTO, "soft: a message with more than one descriptor");
    text->bytes[n] = '\0';
    text->length = (size_t)n;
    return 0;
}

/* Maps a descriptor. Pages that nobody has touched yet are made here: they must not be more than
 * the machine has. */
static int map_region(struct soft_map *map, const struct msg *text, int fd)
{
    uint64_t length;
    struct stat file;
    int status = msg_number(text, "length", &length);
    if (status)
        return status;
    if (fd < 0)
        return fail(-EPROTO, "soft: a message without its descriptor");
    int have = fcntl(fd, F_GET_SEALS);
    if (have < 0 || (have & SOFT_SEALS) != SOFT_SEALS || fstat(fd, &file) ||
        (uint64_t)file.st_size != length)
        return fail(-EPROTO, "soft: the other end's memory is not sealed, or not of its length");
    uint64_t present = (uint64_t)file.st_blocks * 512;
    status = present < length ? memory_enough(length - present) : 0;
    if (status)
        return status;
    void *there = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (there == MAP_FAILED)
        return fail(-errno, "soft: mapping %" PRIu64 " bytes of the other end: %s", length,
                    strerror(errno));
    *map = (struct soft_map){.address = there, .length = length};
    return 0;
}

/* Another end of this process: both threads use one mapping. */
static int share_region(struct soft *soft, struct soft_map *map, uint64_t key)
{
    const struct region *region = soft_own_region(soft->link.own, key);
    if (!region)
        return fail(-EPROTO, "soft: a key without its memory");
    *map = (struct soft_map){
        .address = region->address, .length = region->mapped, .gpu = region->gpu, .shared = true};
    return region->gpu ? soft_gpu_expose(soft, region) : 0;
}

/* Which of the meeting's keys this memory is for, or -1. */
static int wanted(const struct fabric_meeting *meeting, uint64_t key)
{
    uint64_t one = 0;
    for (int i = 0; i < meeting->count && key; i++)
        if (!msg_number(&meeting->keys[i], "key", &one) && one == key)
            return i;
    return -1;
}

/* Gives the key its address and its entry. */
static int bind_remote(struct soft_link *link, const struct soft_map *map, const struct msg *key,
                       struct remote *remote)
{
    uint64_t number = 0, length = 0, index = 0;
    struct soft_portal *portal = link->maps[0].address;
    int status = msg_number(key, "key", &number);
    if (!status)
        status = msg_number(key, "length", &length);
    if (!status)
        status = msg_number(key, "entry", &index);
    if (!status && (length > map->length || index >= SOFT_ENTRIES))
        status = fail(-EPROTO, "soft: a key that does not fit its memory");
    if (status)
        return status;
    *remote = (struct remote){.address = map->address,
                              .length = length,
                              .gpu = map->gpu,
                              .key = number,
                              .own = &portal->entries[index]};
    link->regions[index].address = map->address;
    link->regions[index].length = length;
    link->regions[index].gpu = map->gpu;
    return 0;
}

/* Both ends come to the same answer: the channel is in the portal of the lower name. */
static void open_mail(struct soft *soft)
{
    struct soft_portal *portal = soft->link.maps[0].address;
    bool above = soft_name_order(&soft->nic.name, &soft->link.theirs) > 0;
    soft->mail.side = above;
    soft->mail.channel = above ? &portal->channel : &soft->portal->channel;
    soft->mail.wakes = soft->sleeps;
    soft->mail.waker = soft->link.dialled;
}

static int take_portal(struct soft *soft, const struct fabric_meeting *meeting,
                       const struct msg *text, int fd)
{
    struct soft_link *link = &soft->link;
    struct soft_map *map = &link->maps[0];
    find_own(soft, meeting->nonce);
    if (link->own) {
        const struct region *portal = &link->own->portal;
        *map =
            (struct soft_map){.address = portal->address, .length = portal->mapped, .shared = true};
        return 0;
    }
    int status = map_region(map, text, fd);
    if (!status && map->length < sizeof(struct soft_portal))
        status = fail(-EPROTO, "soft: the other end's portal is too small");
    return status;
}

/* The portal, or memory that one of the keys is for; what nobody asked for is not mapped. */
static int take_region(struct soft *soft, const struct fabric_meeting *meeting,
                       const struct msg *text, int fd)
{
    struct soft_link *link = &soft->link;
    struct soft_map *map = &link->maps[link->received];
    uint64_t key = 0;
    if (link->received == 0)
        return take_portal(soft, meeting, text, fd);
    int status = msg_number(text, "key", &key);
    int number = status ? -1 : wanted(meeting, key);
    if (number < 0)
        return status;
    if (link->own)
        status = share_region(soft, map, key);
    else if (soft_gpu_said(text))
        status = soft_gpu_map(soft, map, text, fd);
    else
        status = map_region(map, text, fd);
    return status ? status : bind_remote(link, map, &meeting->keys[number], &link->remotes[number]);
}

static bool complete(const struct soft_link *link, int count)
{
    for (int i = 0; i < count; i++)
        if (!link->remotes[i].own)
            return false;
    return link->received > 0;
}

static int receive_all(struct soft *soft, const struct fabric_meeting *meeting,
                       struct remote *remote)
{
    struct soft_link *link = &soft->link;
    while (!complete(link, meeting->count)) {
        struct msg text = {0};
        int fd = -1;
        if (link->received == (int)LENGTH(link->maps))
            return fail(-EPROTO, "soft: a key without its memory");
        int status = receive_region(link->dialled, &text, &fd);
        if (status == -EAGAIN)
            return 0;
        if (!status)
            status = take_region(soft, meeting, &text, fd);
        close_socket(&fd);
        if (status)
            return status;
        link->received++;
    }
    memcpy(remote, link->remotes, (size_t)meeting->count * sizeof *remote);
    link->attached = true;
    open_mail(soft);
    return soft_gpu_join(soft);
}

/* Who is to be met; from now on an end of this process that meets us finds us. */
static int begin(struct soft *soft, const struct fabric_meeting *meeting)
{
    int status = soft_name_read(&soft->link.theirs, meeting->address);
    if (!status)
        status =
            soft_name_check(&soft->nic.name, soft->server, &soft->link.theirs, meeting->address);
    if (status)
        return status;
    soft_own_list(soft, meeting->nonce);
    soft->link.listed = true;
    return 0;
}

static int dial(struct soft *soft, const char *nonce)
{
    const struct soft_name *theirs = &soft->link.theirs;
    int fd = soft_nic_dial(theirs);
    if (fd == -EAGAIN)
        return 0;
    if (fd < 0)
        return fail(-EHOSTUNREACH,
                    "soft: NIC 0x%x PID %u of user %" PRIu64 " cannot be reached (%s): is the "
                    "other end in another network namespace or container?",
                    theirs->address, theirs->pid, theirs->user, strerror(-fd));
    if (!is_theirs(soft, fd)) {
        close(fd);
        return fail(-EACCES, "soft: NIC 0x%x PID %u does not belong to user %" PRIu64,
                    theirs->address, theirs->pid, theirs->user);
    }
    soft->link.dialled = fd;
    if (send(fd, nonce, strlen(nonce), MSG_NOSIGNAL) < 0)
        return fail(-errno, "soft: greeting the other end: %s", strerror(errno));
    return 0;
}

int soft_link_step(struct soft *soft, const struct fabric_meeting *meeting, struct remote *remote)
{
    struct soft_link *link = &soft->link;
    int status;
    if (meeting->count > SOFT_ENTRIES)
        return fail(-EINVAL, "soft: %d keys, at most %d", meeting->count, SOFT_ENTRIES);
    if (!*meeting->nonce || strlen(meeting->nonce) > SOFT_NONCE)
        return fail(-EINVAL, "soft: a nonce of %zu characters, at most %d", strlen(meeting->nonce),
                    SOFT_NONCE);
    status = soft_portal_open(soft);
    if (!status && !link->listed)
        status = begin(soft, meeting);
    if (!status && link->dialled < 0)
        status = dial(soft, meeting->nonce);
    if (!status && !link->served)
        status = serve_guests(soft, meeting->nonce);
    if (!status && link->dialled >= 0 && !link->attached)
        status = receive_all(soft, meeting, remote);
    if (status)
        return status;
    return link->served && link->attached ? DONE : LATER;
}
