/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading weft-NAME.so. Vendor libraries install signal handlers when they are loaded, so every
 * handler is restored; they are never unloaded, because their threads and exit handlers remain. */
#include "core/core.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef WEFT_MODULE_DIR
#define WEFT_MODULE_DIR "/usr/local/lib/weft"
#endif

static bool good_name(const char *name)
{
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    return *name && strlen(name) < 32;
}

static bool readable(char *path, size_t room, const char *folder, size_t length, const char *name)
{
    int n = snprintf(path, room, "%.*s/weft-%s.so", (int)length, folder, name);
    return n > 0 && (size_t)n < room && access(path, R_OK) == 0;
}

/* The folder of the running program, and "../modules" of it in a build. */
static bool beside_tools(char *path, size_t room, const char *name)
{
    char self[PATH_MAX], modules[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    const char *folder = dirname(self);
    snprintf(modules, sizeof modules, "%s/../modules", folder);
    return readable(path, room, folder, strlen(folder), name) ||
           readable(path, room, modules, strlen(modules), name);
}

static bool find_path(char *path, size_t room, const char *name)
{
    const char *folders = secure_getenv("WEFT_MODULE_PATH");
    if (!good_name(name))
        return false;
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        if (length && readable(path, room, folders, length, name))
            return true;
        folders += length + (folders[length] == ':');
    }
    return beside_tools(path, room, name) ||
           readable(path, room, WEFT_MODULE_DIR, strlen(WEFT_MODULE_DIR), name);
}

bool module_exists(const char *name)
{
    char path[PATH_MAX];
    return find_path(path, sizeof path, name);
}

/* Not held while a library runs, which may wait for another process. Handlers are not restored
 * while any library runs: some libraries probe instructions with a signal. */
static struct {
    pthread_mutex_t lock;
    unsigned users;
    struct sigaction actions[NSIG];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void signals_keep(void)
{
    pthread_mutex_lock(&kept.lock);
    for (int i = 1; i < NSIG && !kept.users; i++)
        sigaction(i, NULL, &kept.actions[i]);
    kept.users++;
    pthread_mutex_unlock(&kept.lock);
}

/* Of the mask the C library fills only the part that the kernel has: the rest is never compared. */
static bool changed(const struct sigaction *was, const struct sigaction *now)
{
    bool masks = false;
    for (int i = 1; i < NSIG && !masks; i++)
        masks = sigismember(&was->sa_mask, i) != sigismember(&now->sa_mask, i);
    return masks || was->sa_sigaction != now->sa_sigaction || was->sa_flags != now->sa_flags;
}

void signals_restore(void)
{
    pthread_mutex_lock(&kept.lock);
    kept.users--;
    for (int i = 1; i < NSIG && !kept.users; i++) {
        struct sigaction now = {0};
        if (!sigaction(i, NULL, &now) && changed(&kept.actions[i], &now))
            sigaction(i, &kept.actions[i], NULL);
    }
    pthread_mutex_unlock(&kept.lock);
}

int module_load(const char *name, const char *symbol, bool global, void **entry)
{
    char path[PATH_MAX];
    if (!find_path(path, sizeof path, name))
        return fail(-ENOENT, "weft-%s.so is not found", name);
    /* Libraries of InfiniPath and Omni-Path, which libfabric brings along, install handlers that
     * print and exit, unless they find this before they are initialised. */
    setenv("IPATH_NO_BACKTRACE", "1", 0);
    setenv("HFI_NO_BACKTRACE", "1", 0);
    /* Without this UCX logs to standard output, where the results go. */
    setenv("UCX_LOG_FILE", "stderr", 0);
    signals_keep();
    void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    signals_restore();
    if (!library)
        return fail(-ELIBACC, "%s", dlerror());
    *entry = dlsym(library, symbol);
    return *entry ? 0 : fail(-ELIBBAD, "%s is not such a module", path);
}
