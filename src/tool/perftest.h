/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: ucx_perftest's options and tests. */
#ifndef WEFT_TOOL_PERFTEST_H
#define WEFT_TOOL_PERFTEST_H

#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/tool.h"

/* Which rows may stand in a line of a batch file. */
enum { PERF_TEST = 1, PERF_RUN = 2 };
enum { PERF_MEMORY = 40 }; /* room for -m */

struct perftest {
    struct plan_output output;
    int test, layout; /* choices: 1 + place */
    char device[FABRIC_DEVICE_MAX], transport[FABRIC_DEVICE_MAX];
    int64_t cpu[2];
    uint64_t iters, size, header, warmup, window, outstanding;
    uint64_t port, duration_s, interval_s, timeout_s, wait_s;
    bool grouped, final_only, csv, loop, local, bidir, verify, list, help, version;
    char batch[4096], bind[256];
    char memory[PERF_MEMORY]; /* the client's, or the client's and the server's */
    const char *address;
};

/* A test by name. */
struct perf_test {
    const char *name, *what;
    enum weft_op op;
    enum weft_mode mode;
};

extern const struct perf_test perf_tests[];
extern const char *const perf_test_names[];
extern const struct opt perf_rows[];

/* The help text. */
int perf_help(const struct opt_set *set, struct msg *text);

/* The device as fabrics are chosen by, from -x and -d; "" if neither is given. */
int perf_device(const char *transport, const char *device, char *text, size_t room);

/* One end's kind of memory, by its rank; -EINVAL and a sentence if there is no such kind. */
int perf_memory(const char *text, int rank, char memory[PERF_MEMORY]);

/* The parameters of a test; device and memory must stay as long as they do. */
int perf_params(const struct perftest *options, const char *device, const char *memory,
                struct weft_params *params);

#endif
