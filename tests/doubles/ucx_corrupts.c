/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into an end on UCX's protocol layer: of each twenty messages and puts that have bytes,
 * one leaves with a bit of its first byte turned over. */
#include <dlfcn.h>
#include <stdlib.h>

enum { FAULTY = 20, BIT = 0x10 };

static unsigned calls;

/* UCX's own, which is there when its caller is. */
static void *real(const char *name)
{
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function)
        abort();
    return function;
}

/* What is under way stays as it is: the next message is made anew. */
#define CORRUPTS(name, parameters, ...)                                                            \
    void *name parameters;                                                                         \
    void *name parameters                                                                          \
    {                                                                                              \
        void *(*function)parameters;                                                               \
        *(void **)(void *)&function = real(#name);                                                 \
        int bit = count && ++calls % FAULTY == 0 ? BIT : 0;                                        \
        if (bit)                                                                                   \
            *bytes = (char)(*bytes ^ bit);                                                         \
        void *request = function(__VA_ARGS__);                                                     \
        if (bit && !request)                                                                       \
            *bytes = (char)(*bytes ^ bit);                                                         \
        return request;                                                                            \
    }

CORRUPTS(ucp_tag_send_nbx,
         (void *ep, char *bytes, size_t count, unsigned long tag, const void *param), ep, bytes,
         count, tag, param)
CORRUPTS(ucp_tag_send_sync_nbx,
         (void *ep, char *bytes, size_t count, unsigned long tag, const void *param), ep, bytes,
         count, tag, param)
CORRUPTS(ucp_am_send_nbx,
         (void *ep, unsigned id, const void *header, size_t length, char *bytes, size_t count,
          const void *param),
         ep, id, header, length, bytes, count, param)
CORRUPTS(ucp_stream_send_nbx, (void *ep, char *bytes, size_t count, const void *param), ep, bytes,
         count, param)
CORRUPTS(ucp_put_nbx,
         (void *ep, char *bytes, size_t count, unsigned long there, void *key, const void *param),
         ep, bytes, count, there, key, param)
