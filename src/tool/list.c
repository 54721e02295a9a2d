/* SPDX-License-Identifier: BSD-3-Clause */
/* --list: the same in every tool. */
#include "tool/list.h"
#include "fabric/choose.h"
#include "tool/shell.h"

#include <stdio.h>

static void say_device(void *arg, const char *device, const char *what)
{
    (void)arg;
    printf("%-24s %s\n", device, what);
}

int list_print(void)
{
    fabric_list(say_device, NULL);
    return shell_flush("the list");
}
