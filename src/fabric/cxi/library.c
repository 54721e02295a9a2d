/* SPDX-License-Identifier: BSD-3-Clause */
/* libcxi, loaded when a device of it is asked for, and the devices it has. */
#include "fabric/cxi/cxi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define LIBRARY "libcxi.so.1"

static struct cassini_calls calls;
static char why_not[256];

/* A function's address from dlsym, as POSIX means it. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found && !*why_not)
        snprintf(why_not, sizeof why_not, LIBRARY " has no %s", name);
    return found;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool all = library;
    if (!library) {
        snprintf(why_not, sizeof why_not, "%s", dlerror());
        return;
    }
#define CXIL(name, args) all &= find(library, #name, &calls.name);
    CASSINI_CALLS
    all &= find(library, "cxil_close_device", &calls.cxil_close_device);
    if (!all)
        return;
    CASSINI_CALLS_MAYBE
#undef CXIL
    find(library, "cxil_free_device_list", &calls.cxil_free_device_list);
    find(library, "cxil_clear_wait_obj", &calls.cxil_clear_wait_obj);
    if (calls.cxil_alloc_trig_cp || calls.cxil_alloc_cp)
        *why_not = '\0';
}

const struct cassini_calls *weft_cxi_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!*why_not)
        return &calls;
    weft_cxi_host->fail(-ENODEV, "cxi: %s", why_not);
    return NULL;
}

int weft_cxi_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    const struct cassini_calls *c = weft_cxi_library();
    struct weft_cxil_device_list *list;
    if (!c || !c->cxil_get_device_list || !c->cxil_free_device_list ||
        c->cxil_get_device_list(&list))
        return 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct weft_cxil_devinfo *info = &list->info[i];
        char what[96];
        snprintf(what, sizeof what, "Slingshot NIC, address 0x%x, link %s", info->nid,
                 info->link_state ? "up" : "down");
        say(arg, info->device_name, what);
    }
    c->cxil_free_device_list(list);
    return 0;
}
