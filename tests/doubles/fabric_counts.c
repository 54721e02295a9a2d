/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: another fabric, and a record of how often it is opened
 * and connected. A device is one of soft, or names its fabric: counts:cxi1, counts:ofi:tcp; a
 * process uses one fabric in this way. The file that WEFT_TEST_COUNTS names gets a line each,
 * "PID open" or "PID connect", by one write, so that processes can share it. WEFT_TEST_DEVICE is
 * the network device that is then said to carry it. */
#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct fabric_host *weft;
static const struct fabric_ops *inner;
static struct fabric_ops counts;

static void note(const char *what)
{
    const char *path = getenv("WEFT_TEST_COUNTS");
    char line[32];
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    int n = snprintf(line, sizeof line, "%d %s\n", (int)getpid(), what);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        weft->warn("counts: cannot write to the file of WEFT_TEST_COUNTS");
    if (fd >= 0)
        close(fd);
}

static int counts_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                          struct remote *remote)
{
    int got = inner->connect(fabric, meeting, remote);
    if (got == DONE)
        note("connect");
    return got;
}

static int counts_open(struct fabric **fabric, const struct fabric_want *want,
                       struct fabric_facts *facts);

static void wrap(const struct fabric_ops *ops)
{
    inner = ops;
    counts = *ops;
    counts.name = "counts";
    counts.what = "another fabric, and how often it is opened, for tests";
    counts.open = counts_open;
    counts.connect = counts_connect;
}

static int counts_open(struct fabric **fabric, const struct fabric_want *want,
                       struct fabric_facts *facts)
{
    struct fabric_want wanted = *want;
    const char *colon = strchr(want->device, ':');
    char name[16];
    if (colon) {
        snprintf(name, sizeof name, "%.*s", (int)(colon - want->device), want->device);
        const struct fabric_ops *other = weft->find(name);
        if (!other)
            return -ENODEV;
        if (other != inner)
            wrap(other);
        wanted.device = colon + 1;
    }
    note("open");
    int status = inner->open(fabric, &wanted, facts);
    const char *device = getenv("WEFT_TEST_DEVICE");
    if (!status && device)
        snprintf(facts->device, sizeof facts->device, "%s", device);
    return status;
}

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    weft = host;
    wrap(host->find("soft"));
    return &counts;
}
