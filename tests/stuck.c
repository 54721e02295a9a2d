/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric whose library hangs, for tests: WEFT_STUCK says where, "load", "list", "open" or "die".
 */
#include "fabric/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stay_if(const char *where)
{
    const char *request = getenv("WEFT_STUCK");
    while (request && strcmp(request, where) == 0)
        pause();
}

static int stuck_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    const char *request = getenv("WEFT_STUCK");
    stay_if("list");
    say(arg, "good", "a device");
    if (request && strcmp(request, "die") == 0) {
        fprintf(stderr, "the vendor's \033[31mlast words\n");
        abort();
    }
    return 0;
}

static int stuck_open(struct fabric **fabric, const struct fabric_want *want,
                      struct fabric_facts *facts)
{
    static struct fabric one;
    (void)want;
    stay_if("open");
    *facts = (struct fabric_facts){.verbs = VERB(WRITE), .form = "stuck (Library 9)"};
    *fabric = &one;
    return 0;
}

static void stuck_close(struct fabric *fabric)
{
    (void)fabric;
}

static const struct fabric_ops stuck = {.abi = FABRIC_ABI,
                                        .name = "uct",
                                        .what = "a fabric that hangs",
                                        .list = stuck_list,
                                        .open = stuck_open,
                                        .close = stuck_close};

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    (void)host;
    stay_if("load");
    return &stuck;
}
