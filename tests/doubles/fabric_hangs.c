/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric whose library hangs, for tests: WEFT_TEST_HANGS says where, "load", "list", "open" or
 * "die".
 */
#include "fabric/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stay_if(const char *where)
{
    const char *request = getenv("WEFT_TEST_HANGS");
    while (request && strcmp(request, where) == 0)
        pause();
}

static int hangs_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    const char *request = getenv("WEFT_TEST_HANGS");
    stay_if("list");
    say(arg, "good", "a device");
    if (request && strcmp(request, "die") == 0) {
        fprintf(stderr, "the vendor's \033[31mlast words\n");
        abort();
    }
    return 0;
}

static int hangs_open(struct fabric **fabric, const struct fabric_want *want,
                      struct fabric_facts *facts)
{
    static struct fabric one;
    (void)want;
    stay_if("open");
    *facts = (struct fabric_facts){.verbs = VERB(WRITE), .form = "hangs (Library 9)"};
    *fabric = &one;
    return 0;
}

static void hangs_close(struct fabric *fabric)
{
    (void)fabric;
}

static const struct fabric_ops hangs = {.abi = FABRIC_ABI,
                                        .name = "uct",
                                        .what = "a fabric that hangs",
                                        .list = hangs_list,
                                        .open = hangs_open,
                                        .close = hangs_close};

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    (void)host;
    stay_if("load");
    return &hangs;
}
