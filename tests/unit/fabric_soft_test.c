/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC and another end that does not keep to the rules. */
#include "fabric/soft/soft.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 8 };

/* One message with the same descriptor several times. */
static void send_descriptors(int socket, const char *text, size_t count, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MOST * sizeof(int))];
    } control = {0};
    struct iovec bytes = {.iov_base = (char *)text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    assert_non_null(head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(head) + i * sizeof(int), &fd, sizeof fd);
    assert_true(sendmsg(socket, &message, MSG_NOSIGNAL) >= 0);
}

/* A pipe ends when nobody has its other side any more. */
static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        int status;
    } cases[] = {{"key=1\nlength=8\naddress=0\n", 2, -EPROTO},
                 {"key=1\nlength=8\naddress=0\n", MOST, -EPROTO},
                 {"key=1\nlength=8\naddress=0\n", 1, -EPROTO}, /* it is no memory */
                 {"", 1, -ECONNABORTED}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct soft *soft = calloc(1, sizeof *soft);
        struct msg address = {0}, key = {0};
        struct remote remote;
        int ends[2], given[2];
        char byte;
        assert_non_null(soft);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(pipe2(given, O_CLOEXEC | O_NONBLOCK), 0);
        soft_link_open(&soft->link);
        soft->link.dialled = ends[0];
        soft->link.served = true;
        send_descriptors(ends[1], cases[i].text, cases[i].count, given[1]);
        close(given[1]);
        assert_int_equal(soft_link_step(soft, &address, &key, 1, &remote), cases[i].status);
        assert_int_equal(read(given[0], &byte, 1), 0);
        soft_link_close(soft);
        free(soft);
        close(ends[1]);
        close(given[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_that_nobody_asked_for_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
