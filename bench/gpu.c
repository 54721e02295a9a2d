/* SPDX-License-Identifier: BSD-3-Clause */
/* A bare loop over the CUDA driver: one copy, one synchronisation, timed. The GPU's memory is that
 * of a second process, opened by its handle, and host memory is shared and page-locked, as in the
 * tools.  gpu HOW WAY SIZE COUNT [LIST], HOW stream, plain, query, flag, kernel, spin or list; WAY
 * in, out or within. Prints the median in microseconds, once it has seen that whole copies are
 * made. list: LIST copies, each at its own place, and one synchronisation; prints the mean. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 2 << 20, WARM_UP = 20, SPIN = 1, NON_BLOCKING = 1, MAPPED = 3 };
enum { STREAM, PLAIN, QUERY, FLAG, KERNEL, SPIN_KERNEL, TOGETHER };
enum { IN, OUT, WITHIN };
typedef unsigned long long address_t;

struct handle {
    char bytes[64];
};

/* Every call by its name in the library. */
#define CALLS(CALL)                                                                                \
    CALL(cuInit, unsigned)                                                                         \
    CALL(cuDeviceGet, int *, int)                                                                  \
    CALL(cuDevicePrimaryCtxSetFlags_v2, int, unsigned)                                             \
    CALL(cuDevicePrimaryCtxRetain, void **, int)                                                   \
    CALL(cuCtxSetCurrent, void *)                                                                  \
    CALL(cuCtxSynchronize, void)                                                                   \
    CALL(cuStreamCreate, void **, unsigned)                                                        \
    CALL(cuStreamSynchronize, void *)                                                              \
    CALL(cuStreamQuery, void *)                                                                    \
    CALL(cuStreamWriteValue32_v2, void *, address_t, uint32_t, unsigned)                           \
    CALL(cuMemAlloc_v2, address_t *, size_t)                                                       \
    CALL(cuMemcpyHtoDAsync_v2, address_t, const void *, size_t, void *)                            \
    CALL(cuMemcpyDtoHAsync_v2, void *, address_t, size_t, void *)                                  \
    CALL(cuMemcpyDtoDAsync_v2, address_t, address_t, size_t, void *)                               \
    CALL(cuMemcpyHtoD_v2, address_t, const void *, size_t)                                         \
    CALL(cuMemcpyDtoH_v2, void *, address_t, size_t)                                               \
    CALL(cuMemcpyDtoD_v2, address_t, address_t, size_t)                                            \
    CALL(cuMemHostRegister_v2, void *, size_t, unsigned)                                           \
    CALL(cuMemHostGetDevicePointer_v2, address_t *, void *, unsigned)                              \
    CALL(cuIpcGetMemHandle, struct handle *, address_t)                                            \
    CALL(cuIpcOpenMemHandle_v2, address_t *, struct handle, unsigned)                              \
    CALL(cuIpcCloseMemHandle, address_t)                                                           \
    CALL(cuModuleLoadData, void **, const void *)                                                  \
    CALL(cuModuleGetFunction, void **, void *, const char *)                                       \
    CALL(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
         unsigned, void *, void **, void **)

#define DECLARE(name, ...) static int (*name)(__VA_ARGS__);
CALLS(DECLARE)
#define LOAD(name, ...) {#name, &name},

/* Bytes one by one, a thread each. With a flag, the last thing it does is to write that, behind a
 * fence for the whole system: whoever sees the flag sees the bytes. */
static const char kernel_text[] = ".version 6.0\n"
                                  ".target sm_60\n"
                                  ".address_size 64\n"
                                  ".visible .entry copy(.param .u64 to, .param .u64 from,\n"
                                  "                     .param .u64 length, .param .u64 flag,\n"
                                  "                     .param .u32 number)\n"
                                  "{\n"
                                  "  .reg .pred %p<3>;\n"
                                  "  .reg .b16 %h<2>;\n"
                                  "  .reg .b32 %r<4>;\n"
                                  "  .reg .b64 %d<9>;\n"
                                  "  ld.param.u64 %d1, [to];\n"
                                  "  ld.param.u64 %d2, [from];\n"
                                  "  ld.param.u64 %d3, [length];\n"
                                  "  ld.param.u64 %d8, [flag];\n"
                                  "  ld.param.u32 %r3, [number];\n"
                                  "  mov.u32 %r1, %tid.x;\n"
                                  "  cvt.u64.u32 %d4, %r1;\n"
                                  "  mov.u32 %r2, %ntid.x;\n"
                                  "  cvt.u64.u32 %d5, %r2;\n"
                                  "again:\n"
                                  "  setp.ge.u64 %p1, %d4, %d3;\n"
                                  "  @%p1 bra moved;\n"
                                  "  add.u64 %d6, %d2, %d4;\n"
                                  "  add.u64 %d7, %d1, %d4;\n"
                                  "  ld.volatile.u8 %h1, [%d6];\n"
                                  "  st.u8 [%d7], %h1;\n"
                                  "  add.u64 %d4, %d4, %d5;\n"
                                  "  bra again;\n"
                                  "moved:\n"
                                  "  setp.eq.u64 %p1, %d8, 0;\n"
                                  "  @%p1 bra done;\n"
                                  "  membar.sys;\n"
                                  "  bar.sync 0;\n"
                                  "  setp.ne.u32 %p2, %r1, 0;\n"
                                  "  @%p2 bra done;\n"
                                  "  membar.sys;\n"
                                  "  st.volatile.u32 [%d8], %r3;\n"
                                  "done:\n"
                                  "  ret;\n"
                                  "}\n";

static void check(int code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "gpu: %s: CUDA error %d\n", what, code);
    exit(1);
}

static int not_there(void)
{
    enum { NOT_FOUND = 500 };
    return NOT_FOUND;
}

static void load(void)
{
    static const struct {
        const char *name;
        void *where;
    } calls[] = {CALLS(LOAD)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "gpu: libcuda.so.1 is not here\n");
        exit(77);
    }
    /* What is missing is found out by whoever calls it. */
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *found = dlsym(library, calls[i].name);
        if (!found)
            found = (void *)not_there;
        memcpy(calls[i].where, &found, sizeof found);
    }
}

static void open_gpu(int number)
{
    int device;
    void *context;
    load();
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, number), "the GPU");
    cuDevicePrimaryCtxSetFlags_v2(device, SPIN);
    check(cuDevicePrimaryCtxRetain(&context, device), "its context");
    check(cuCtxSetCurrent(context), "its context");
}

/* The other process: gives its memory away, and waits until nobody wants it. */
static void lend(int number, size_t bytes, int out, int in)
{
    struct handle handle;
    address_t address;
    char end;
    prctl(PR_SET_PDEATHSIG, 9);
    open_gpu(number);
    check(cuMemAlloc_v2(&address, bytes), "memory");
    check(cuIpcGetMemHandle(&handle, address), "a handle");
    if (write(out, &handle, sizeof handle) != sizeof handle)
        exit(1);
    while (read(in, &end, 1) > 0)
        continue;
    exit(0);
}

static address_t borrow(int number, size_t bytes, int *keep)
{
    int there[2], back[2];
    struct handle handle;
    address_t address;
    if (pipe(there) || pipe(back))
        exit(1);
    if (fork() == 0) {
        close(there[0]);
        close(back[1]);
        lend(number, bytes, there[1], back[0]);
    }
    close(there[1]);
    close(back[0]);
    *keep = back[1];
    open_gpu(number);
    if (read(there[0], &handle, sizeof handle) != sizeof handle) {
        fprintf(stderr, "gpu: the other process has no memory to give\n");
        exit(1);
    }
    check(cuIpcOpenMemHandle_v2(&address, handle, 1), "the other process's memory");
    return address;
}

/* What a copy needs. */
static struct {
    int how, way;
    size_t size, at; /* bytes of a copy, and where */
    unsigned list;
    char *host;
    volatile uint32_t *flag;
    address_t host_there, flag_there, there, own;
    void *stream, *other, *kernel;
    uint32_t number;
} c;

static int begin(void)
{
    if (c.way == IN)
        return cuMemcpyHtoDAsync_v2(c.there + c.at, c.host + c.at, c.size, c.stream);
    if (c.way == OUT)
        return cuMemcpyDtoHAsync_v2(c.host + c.at, c.there + c.at, c.size, c.stream);
    return cuMemcpyDtoDAsync_v2(c.there + c.at, c.own + c.at, c.size, c.stream);
}

static int plain(void)
{
    if (c.way == IN)
        return cuMemcpyHtoD_v2(c.there, c.host, c.size);
    if (c.way == OUT)
        return cuMemcpyDtoH_v2(c.host, c.there, c.size);
    int code = cuMemcpyDtoD_v2(c.there, c.own, c.size);
    return code ? code : cuCtxSynchronize();
}

static int launch(void)
{
    address_t to = c.way == OUT ? c.host_there : c.there;
    address_t from = c.way == IN ? c.host_there : c.way == OUT ? c.there : c.own;
    uint64_t length = c.size, flag = c.how == SPIN_KERNEL ? c.flag_there : 0;
    uint32_t number = ++c.number;
    void *arguments[] = {&to, &from, &length, &flag, &number};
    unsigned threads = c.size < 32 ? 32 : c.size < 1024 ? (unsigned)c.size : 1024;
    int code = cuLaunchKernel(c.kernel, 1, 1, 1, threads, 1, 1, 0, c.stream, arguments, NULL);
    if (!flag)
        return code ? code : cuStreamSynchronize(c.stream);
    while (!code && *c.flag != number)
        continue;
    return code;
}

static int flagged(void)
{
    int code = begin();
    if (!code)
        code = cuStreamWriteValue32_v2(c.stream, c.flag_there, ++c.number, 0);
    while (!code && *c.flag != c.number)
        continue;
    return code;
}

static int queried(void)
{
    enum { NOT_READY = 600 };
    int code = begin();
    while (!code && (code = cuStreamQuery(c.stream)) == NOT_READY)
        code = 0;
    return code;
}

/* The first place last, where prove() looks. */
static int together(void)
{
    int code = 0;
    for (unsigned i = c.list; i-- > 0 && !code;) {
        c.at = i * c.size;
        code = begin();
    }
    return code ? code : cuStreamSynchronize(c.stream);
}

static int once(void)
{
    int code;
    switch (c.how) {
    case TOGETHER:
        return together();
    case STREAM:
        code = begin();
        return code ? code : cuStreamSynchronize(c.stream);
    case PLAIN:
        return plain();
    case QUERY:
        return queried();
    case FLAG:
        return flagged();
    default:
        return launch();
    }
}

static void prepare(int number, int *keep)
{
    size_t bytes = (c.size * c.list + BLOCK - 1) / BLOCK * BLOCK;
    void *module;
    c.there = borrow(number, bytes, keep);
    int fd = memfd_create("gpu", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)(bytes + BLOCK)))
        exit(1);
    c.host = mmap(NULL, bytes + BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (c.host == MAP_FAILED)
        exit(1);
    memset(c.host, 1, bytes + BLOCK);
    c.flag = (volatile uint32_t *)(void *)(c.host + bytes);
    *c.flag = 0;
    check(cuMemHostRegister_v2(c.host, bytes + BLOCK, MAPPED), "page-locking");
    check(cuMemHostGetDevicePointer_v2(&c.host_there, c.host, 0), "the GPU's address of the host");
    c.flag_there = c.host_there + bytes;
    check(cuStreamCreate(&c.stream, NON_BLOCKING), "a stream");
    check(cuMemAlloc_v2(&c.own, bytes), "memory");
    check(cuStreamCreate(&c.other, NON_BLOCKING), "a stream");
    if (c.how != KERNEL && c.how != SPIN_KERNEL)
        return;
    check(cuModuleLoadData(&module, kernel_text), "the kernel");
    check(cuModuleGetFunction(&c.kernel, module, "copy"), "the kernel");
}

/* Through another stream, which does not wait for the first: is all of it there when a copy counts
 * as done? */
static void prove(void)
{
    enum { ROUNDS = 50 };
    char *sent = malloc(c.size), *got = malloc(c.size);
    if (!sent || !got)
        exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < c.size; k++)
            sent[k] = (char)(k * 31 + (k >> 8) + (size_t)i * 7);
        if (c.way == IN)
            memcpy(c.host, sent, c.size);
        else
            check(cuMemcpyHtoDAsync_v2(c.way == OUT ? c.there : c.own, sent, c.size, c.other),
                  "a pattern");
        check(cuStreamSynchronize(c.other), "a pattern");
        check(once(), "a copy");
        if (c.way == OUT)
            memcpy(got, c.host, c.size);
        else
            check(cuMemcpyDtoHAsync_v2(got, c.there, c.size, c.other), "a look");
        check(cuStreamSynchronize(c.other), "a look");
        if (memcmp(got, sent, c.size) != 0) {
            fprintf(stderr, "gpu: a copy was not whole when it counted as done\n");
            exit(1);
        }
    }
    free(sent);
    free(got);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int choose(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    fprintf(stderr, "gpu: what is %s?\n", word);
    exit(2);
}

int main(int argc, char **argv)
{
    static const char *const hows[] = {"stream", "plain", "query", "flag",
                                       "kernel", "spin",  "list",  NULL};
    static const char *const ways[] = {"in", "out", "within", NULL};
    int keep;
    if (argc < 5) {
        fprintf(stderr, "usage: gpu HOW WAY SIZE COUNT [LIST]\n");
        return 2;
    }
    c.how = choose(argv[1], hows);
    c.way = choose(argv[2], ways);
    c.size = strtoull(argv[3], NULL, 0);
    size_t count = strtoull(argv[4], NULL, 0);
    c.list = argc > 5 && c.how == TOGETHER ? (unsigned)strtoul(argv[5], NULL, 0) : 1;
    prepare(0, &keep);
    uint64_t *samples = calloc(count, sizeof *samples);
    if (!samples || !count)
        return 1;
    if (c.size <= 1 << 20)
        prove();
    for (int i = 0; i < (c.how == TOGETHER ? 1 : WARM_UP); i++)
        check(once(), "a copy");
    uint64_t first_ns = now_ns();
    for (size_t i = 0; i < count; i++) {
        uint64_t begin_ns = now_ns();
        check(once(), "a copy");
        samples[i] = now_ns() - begin_ns;
    }
    double mean_ns = (double)(now_ns() - first_ns) / (double)count;
    qsort(samples, count, sizeof *samples, by_size);
    size_t middle = count / 2;
    printf("%.3f\n", (c.how == TOGETHER ? mean_ns : (double)samples[middle]) / 1000);
    check(cuIpcCloseMemHandle(c.there), "letting go");
    close(keep);
    wait(NULL);
    return 0;
}
