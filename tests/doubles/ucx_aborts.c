/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into an end on UCX: as soon as the file WEFT_TEST_ABORTS is there, which it removes,
 * UCX's progress aborts, as some releases do for an end that has lost its other one. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS_PER_LOOK = 64 };

unsigned ucp_worker_progress(void *worker);

static unsigned (*progress)(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static unsigned calls;
    const char *file = getenv("WEFT_TEST_ABORTS");
    if (!progress) {
        void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
        *(void **)(void *)&progress = library ? dlsym(library, __func__) : NULL;
    }
    if (!progress || (file && ++calls % CALLS_PER_LOOK == 0 && unlink(file) == 0))
        abort();
    return progress(worker);
}
