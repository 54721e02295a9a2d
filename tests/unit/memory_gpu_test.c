/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of GPUs, on doubles of their vendors' libraries: what is reserved, cleared, filled and
 * given back, what is refused, and two threads of one process that move bytes between such buffers.
 */
#include "doubles/gpu_double.h"
#include "memory/memory.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft.h>

/* A put is noticed by looking at memory while it is written, which is what is tested. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:run_pending\nrace:stamped\nrace:look_until_settled\n";
}

enum { PAGE = 2 << 20 };

static const struct memory_ops *const kinds[] = {&memory_cuda, &memory_rocm, &memory_ze};

static struct region region_of(const struct memory_ops *kind, unsigned device, size_t length)
{
    struct region region = {.fd = -1, .device = device};
    if (kind->alloc(&region, length, kind))
        fail_msg("%zu bytes: %s", length, fail_reason());
    return region;
}

static void memory_choose_takes_a_kind_and_the_number_of_a_gpu(void **state)
{
    static const char *const bad[] = {
        "",       "cuda:", "cuda:x", "cuda:-1",  "cuda:65536",
        "host:0", "2M:1",  ":1",     "cuda:1:2", "cuda,host",
        "CUDA",   "hip",   "ze ",    "cuda:1 ",  "averylongkindofmemory"};
    const struct memory_ops *kind;
    unsigned device;
    (void)state;
    assert_int_equal(memory_choose("host", &kind, &device), 0);
    assert_ptr_equal(kind, &memory_host);
    assert_int_equal(memory_choose("rocm", &kind, &device), 0);
    assert_ptr_equal(kind, &memory_rocm);
    assert_int_equal(device, 0);
    assert_int_equal(memory_choose("ze:12", &kind, &device), 0);
    assert_ptr_equal(kind, &memory_ze);
    assert_int_equal(device, 12);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        if (memory_choose(bad[i], &kind, &device) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_contains(fail_reason(), "there are host");
    }
}

static void gpu_find_takes_the_first_maker_that_has_any_unless_told(void **state)
{
    const struct memory_ops *kind;
    unsigned count;
    (void)state;
    assert_int_equal(gpu_find(MEMORY_CPU, 1, &kind, &count), 0);
    assert_ptr_equal(kind, &memory_cuda);
    assert_int_equal(count, 2);
    assert_int_equal(gpu_find(MEMORY_AMD, 0, &kind, &count), 0);
    assert_ptr_equal(kind, &memory_rocm);
    assert_int_equal(gpu_find(MEMORY_INTEL, 1, &kind, &count), 0);
    assert_ptr_equal(kind, &memory_ze);
    assert_int_equal(gpu_find(MEMORY_INTEL, 2, &kind, &count), -ENODEV);
    assert_string_equal(fail_reason(), "no GPU 2: there are 2 GPUs of INTEL here, 0 to 1");
}

static void gpu_memory_is_rounded_up_and_only_its_own_calls_reach_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 1, PAGE + 1);
        assert_ptr_equal(region.kind, kinds[i]);
        assert_int_equal(region.length, PAGE + 1);
        assert_int_equal(region.mapped, 2 * PAGE);
        assert_int_equal(region.device, 1);
        assert_int_equal(region.fd, -1);
        assert_non_null(region.gpu);
        fflush(NULL);
        pid_t child = fork();
        if (!child) {
            signal(SIGSEGV, SIG_DFL);
            *(volatile char *)region.address = 1;
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) || WEXITSTATUS(how));
        kinds[i]->free(&region);
        assert_null(region.address);
        kinds[i]->free(&region); /* does nothing */
    }
}

/* In another process: what importing so many bytes of it answers. */
static int import_elsewhere(const struct memory_ops *kind, const struct gpu_handle *handle,
                            size_t length)
{
    int how;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct gpu *gpu;
        char *address;
        int status = gpu_open(kind, 0, NULL, &gpu);
        _exit(-(status ? status : gpu_import(gpu, handle, length, &address)));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return -WEXITSTATUS(how);
}

static void gpu_memory_of_another_process_is_no_longer_than_its_driver_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 0, PAGE);
        struct gpu_handle handle = {.fd = -1};
        assert_int_equal(gpu_export(&region, &handle), 0);
        assert_int_equal(import_elsewhere(kinds[i], &handle, PAGE), 0);
        assert_int_equal(import_elsewhere(kinds[i], &handle, PAGE + 1), -EPROTO);
        kinds[i]->free(&region);
    }
}

static void gpu_memory_is_zeroes_once_populated_and_keeps_what_is_filled_in(void **state)
{
    enum { LENGTH_ = PAGE + 100 };
    static const char word[] = {'x', 'y', 'z'};
    char *sent = malloc(LENGTH_), *got = malloc(LENGTH_);
    (void)state;
    assert_true(sent && got);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 0, LENGTH_);
        memset(sent, 0, LENGTH_);
        assert_int_equal(kinds[i]->populate(&region, 0, region.mapped), 0);
        assert_int_equal(kinds[i]->peek(&region, 0, got, LENGTH_), 0);
        assert_memory_equal(got, sent, LENGTH_);
        for (size_t k = 0; k < LENGTH_; k++)
            sent[k] = (char)(k * 7 + i);
        assert_int_equal(kinds[i]->fill(&region, 0, sent, LENGTH_), 0);
        assert_memory_equal(gpu_view(region.address), sent, LENGTH_);
        assert_int_equal(kinds[i]->fill(&region, PAGE - 1, word, sizeof word), 0);
        memcpy(sent + PAGE - 1, word, sizeof word);
        assert_int_equal(kinds[i]->peek(&region, 0, got, LENGTH_), 0);
        assert_memory_equal(got, sent, LENGTH_);
        assert_int_equal(kinds[i]->fill(&region, 0, NULL, 0), 0);
        kinds[i]->free(&region);
    }
    free(sent);
    free(got);
}

static void too_much_gpu_memory_is_refused_with_what_there_is(void **state)
{
    (void)state;
    setenv("FAKE_BYTES", "8388608", 1);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = {.fd = -1, .device = 1}, small = region_of(kinds[i], 1, PAGE);
        assert_int_equal(kinds[i]->alloc(&region, 7 << 20, kinds[i]), -ENOMEM);
        assert_contains(fail_reason(), "not enough memory on GPU 1");
        assert_contains(fail_reason(), "8.0 MiB needed");
        if (kinds[i] != &memory_ze) /* which does not tell */
            assert_contains(fail_reason(), "6.0 MiB free");
        assert_null(region.address);
        kinds[i]->free(&small);
        assert_int_equal(kinds[i]->alloc(&region, SIZE_MAX, kinds[i]), -ENOMEM);
    }
    unsetenv("FAKE_BYTES");
}

static void a_gpu_of_another_number_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = {.fd = -1, .device = 2};
        assert_int_equal(kinds[i]->alloc(&region, 8, kinds[i]), -ENODEV);
        assert_contains(fail_reason(), "no GPU 2: there are 2 GPUs");
    }
}

static void a_copy_that_fails_says_what_it_was(void **state)
{
    char byte = 0;
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 0, 8);
        setenv("FAKE_FAULT", "lost@0", 1);
        assert_int_equal(kinds[i]->fill(&region, 0, &byte, 1), -EIO);
        assert_contains(fail_reason(), "GPU 0 (");
        assert_contains(fail_reason(), "copying 1 bytes from the host");
        assert_int_equal(kinds[i]->peek(&region, 0, &byte, 1), -EIO);
        assert_contains(fail_reason(), "to the host");
        unsetenv("FAKE_FAULT");
        kinds[i]->free(&region);
    }
}

/* The second question finds the double's queue empty. */
static void copies_begun_together_are_done_when_the_gpu_says_so(void **state)
{
    static const char words[] = "in flight";
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 0, 4096);
        struct gpu *gpu = region.gpu;
        char back[2 * sizeof words] = {0};
        char *there = region.address;
        const char *seen = gpu_view(there);
        assert_int_equal(gpu_begin(gpu, there, words, sizeof words, GPU_IN), 0);
        assert_int_equal(gpu_begin(gpu, there + 100, there, sizeof words, GPU_WITHIN), 0);
        assert_int_equal(gpu_begin(gpu, back, there + 100, sizeof words, GPU_OUT), 0);
        assert_int_equal(gpu_done(gpu), 0);
        assert_memory_not_equal(seen, words, sizeof words);
        assert_int_equal(gpu_done(gpu), 1);
        assert_memory_equal(seen, words, sizeof words);
        assert_string_equal(back, words);
        assert_int_equal(gpu_done(gpu), 1); /* nothing is under way */
        assert_int_equal(gpu_begin(gpu, back + 1, there, sizeof words, GPU_OUT), 0);
        gpu_wait(gpu);
        assert_string_equal(back + 1, words);
        setenv("FAKE_FAULT", "lost@0", 1);
        assert_int_equal(gpu_done(gpu), -EIO);
        assert_contains(fail_reason(), "waiting for copies");
        unsetenv("FAKE_FAULT");
        kinds[i]->free(&region);
    }
}

static void a_gpu_that_was_refused_is_asked_for_again(void **state)
{
    char byte = 0;
    (void)state;
    struct region first = region_of(&memory_cuda, 0, 8), second = region_of(&memory_cuda, 1, 8);
    setenv("FAKE_FAULT", "use", 1);
    assert_int_equal(memory_cuda.fill(&first, 0, &byte, 1), -EIO);
    unsetenv("FAKE_FAULT");
    assert_int_equal(memory_cuda.fill(&first, 0, &byte, 1), 0);
    memory_cuda.free(&first);
    memory_cuda.free(&second);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void a_handle_for_another_process_leaves_no_descriptor(void **state)
{
    struct gpu_handle handle;
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        unsigned before = open_descriptors();
        struct region region = region_of(kinds[i], 0, 8);
        assert_int_equal(gpu_export(&region, &handle), 0);
        assert_int_equal(gpu_export(&region, &handle), 0);
        kinds[i]->free(&region);
        assert_int_equal(open_descriptors(), before);
    }
}

/* ---- two threads ---- */

struct end {
    struct weft_bootstrap bootstrap;
    struct weft_params params;
    int status;
    char reason[256], fabric[128];
};

static void *run_end(void *arg)
{
    struct end *end = arg;
    struct weft_result result;
    weft_result_init(&result);
    end->status = weft_run(&end->params, &end->bootstrap, NULL, NULL, &result);
    snprintf(end->reason, sizeof end->reason, "%s", weft_reason());
    snprintf(end->fabric, sizeof end->fabric, "%s", result.fabric ? result.fabric : "");
    weft_result_free(&result);
    return NULL;
}

static void run_both(struct end ends[2], const char *op, const char *method, const char *first,
                     const char *second)
{
    struct weft_bootstrap pair[2];
    pthread_t other;
    assert_int_equal(weft_threads(pair), 0);
    for (int i = 0; i < 2; i++) {
        struct weft_params *p = &ends[i].params;
        ends[i].bootstrap = pair[i];
        weft_params_init(p);
        p->op = op;
        p->method = method;
        p->layout = NULL;
        p->size = 3000;
        p->iterations = 50;
        p->warmup = 5;
        p->device = "soft";
        p->memory = i ? second : first;
        p->verify = 1;
    }
    assert_int_equal(pthread_create(&other, NULL, run_end, &ends[1]), 0);
    run_end(&ends[0]);
    pthread_join(other, NULL);
    weft_close(&ends[0].bootstrap);
    weft_close(&ends[1].bootstrap);
}

/* Another device's driver maps it; what is written there is the GPU's. */
static void a_dmabuf_is_the_memory_itself_and_the_callers_to_close(void **state)
{
    static const char words[] = "through a descriptor";
    (void)state;
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct region region = region_of(kinds[i], 0, 4096);
        char back[sizeof words];
        uint64_t offset;
        int fd;
        unsigned before = 0;
        for (int lap = 0; lap < 3; lap++) {
            assert_int_equal(kinds[i]->dmabuf(&region, &fd, &offset), 0);
            char *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
            assert_ptr_not_equal(bytes, MAP_FAILED);
            memcpy(bytes + lap, words, sizeof words);
            munmap(bytes, 4096);
            close(fd);
            assert_int_equal(kinds[i]->peek(&region, (size_t)lap, back, sizeof back), 0);
            assert_string_equal(back, words);
            assert_true(!lap || open_descriptors() == before);
            before = open_descriptors();
        }
        setenv("FAKE_FAULT", i == 2 ? "export" : "dmabuf", 1);
        kinds[i]->free(&region);
        region = region_of(kinds[i], 0, 4096);
        assert_int_equal(kinds[i]->dmabuf(&region, &fd, &offset), -ENOTSUP);
        unsetenv("FAKE_FAULT");
        kinds[i]->free(&region);
    }
}

static void two_threads_move_bytes_between_gpus_and_the_host(void **state)
{
    static const char *const places[][2] = {{"cuda", "cuda"}, {"cuda:1", "host"},
                                            {"host", "cuda"}, {"rocm", "rocm:1"},
                                            {"ze", "ze"},     {"host", "ze:1"}};
    static const struct {
        const char *op, *method;
    } tests[] = {{"write", "ping-pong"}, {"read", "stream"},   {"am", "ping-pong"},
                 {"write", "stream"},    {"write", "latency"}, {"send", "latency"}};
    struct end ends[2] = {0};
    (void)state;
    for (size_t i = 0; i < LENGTH(places); i++)
        for (size_t k = 0; k < LENGTH(tests); k++) {
            run_both(ends, tests[k].op, tests[k].method, places[i][0], places[i][1]);
            for (int e = 0; e < 2; e++)
                if (ends[e].status)
                    fail_msg("%s, %s: %s", places[i][0], places[i][1], ends[e].reason);
            assert_contains(ends[0].fabric, "copy engine of");
        }
}

static void both_threads_hear_of_a_gpu_that_is_not_there(void **state)
{
    struct end ends[2] = {0};
    (void)state;
    run_both(ends, "read", "stream", "host", "cuda:7");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].status, -ENODEV);
        assert_string_equal(ends[i].reason, "no GPU 7: there are 2 GPUs of NVIDIA here, 0 to 1");
    }
    run_both(ends, "read", "stream", "ze", "cuda");
    for (int i = 0; i < 2; i++) {
        /* Each finds it out while connecting, or hears it from the one that was faster. */
        assert_true(ends[i].status == -ENOTSUP || ends[i].status == -EREMOTEIO);
        assert_contains(ends[i].reason, "no copy engine reaches both");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_choose_takes_a_kind_and_the_number_of_a_gpu),
        cmocka_unit_test(gpu_find_takes_the_first_maker_that_has_any_unless_told),
        cmocka_unit_test(gpu_memory_is_rounded_up_and_only_its_own_calls_reach_it),
        cmocka_unit_test(gpu_memory_of_another_process_is_no_longer_than_its_driver_says),
        cmocka_unit_test(gpu_memory_is_zeroes_once_populated_and_keeps_what_is_filled_in),
        cmocka_unit_test(too_much_gpu_memory_is_refused_with_what_there_is),
        cmocka_unit_test(a_gpu_of_another_number_is_refused),
        cmocka_unit_test(a_copy_that_fails_says_what_it_was),
        cmocka_unit_test(copies_begun_together_are_done_when_the_gpu_says_so),
        cmocka_unit_test(a_gpu_that_was_refused_is_asked_for_again),
        cmocka_unit_test(a_handle_for_another_process_leaves_no_descriptor),
        cmocka_unit_test(a_dmabuf_is_the_memory_itself_and_the_callers_to_close),
        cmocka_unit_test(two_threads_move_bytes_between_gpus_and_the_host),
        cmocka_unit_test(both_threads_hear_of_a_gpu_that_is_not_there),
    };
    return cmocka_run_group_tests_name("gpu_memory", tests, NULL, NULL);
}
