/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory and huge pages: what is reserved, present, shared and given back, and the sentences
 * when there is not enough. The huge page test sets nr_hugepages, restores it, and skips where it
 * may not. */
#include "memory/memory.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t system_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct region host_region(size_t length)
{
    struct region region = {.fd = -1};
    if (memory_host.alloc(&region, length, &memory_host))
        fail_msg("%zu bytes: %s", length, fail_reason());
    return region;
}

/* How many pages of the region are present. */
static size_t present(const struct region *region)
{
    size_t pages = region->mapped / system_page(), n = 0;
    unsigned char *map = malloc(pages);
    assert_non_null(map);
    assert_int_equal(mincore(region->address, region->mapped, map), 0);
    for (size_t i = 0; i < pages; i++)
        n += map[i] & 1;
    free(map);
    return n;
}

/* ---- kinds ---- */

static void memory_find_knows_six_kinds_and_nothing_else(void **state)
{
    static const char *const bad[] = {"", "Host", "hos", "host ", "2m", "2MB", "4K", "CUDA", "hip"};
    (void)state;
    assert_ptr_equal(memory_find("host"), &memory_host);
    assert_ptr_equal(memory_find("2M"), &memory_huge_2m);
    assert_ptr_equal(memory_find("1G"), &memory_huge_1g);
    assert_ptr_equal(memory_find("cuda"), &memory_cuda);
    assert_ptr_equal(memory_find("rocm"), &memory_rocm);
    assert_ptr_equal(memory_find("ze"), &memory_ze);
    for (size_t i = 0; i < LENGTH(bad); i++)
        assert_null(memory_find(bad[i]));
    assert_int_equal(memory_host.page, 0);
    assert_int_equal(memory_huge_2m.page, 2 << 20);
    assert_int_equal(memory_huge_1g.page, 1 << 30);
}

/* ---- host memory ---- */

static void host_memory_is_rounded_up_to_whole_pages(void **state)
{
    const size_t page = system_page();
    const struct {
        size_t length, mapped;
    } cases[] = {{1, page},
                 {8, page},
                 {page - 1, page},
                 {page, page},
                 {page + 1, 2 * page},
                 {10 * page + 1, 11 * page}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct region region = host_region(cases[i].length);
        assert_ptr_equal(region.kind, &memory_host);
        assert_int_equal(region.length, cases[i].length);
        assert_int_equal(region.mapped, cases[i].mapped);
        assert_int_equal(region.page, page);
        assert_int_equal((uintptr_t)region.address % page, 0);
        assert_int_equal(lseek(region.fd, 0, SEEK_END), (off_t)cases[i].mapped);
        memory_host.free(&region);
    }
}

static void host_memory_is_present_only_where_it_was_populated(void **state)
{
    const size_t page = system_page();
    struct region region = host_region(16 * page);
    unsigned char map[16];
    (void)state;
    assert_int_equal(present(&region), 0);
    assert_int_equal(memory_host.populate(&region, 4 * page, 0), 0);
    assert_int_equal(present(&region), 0);
    assert_int_equal(memory_host.populate(&region, 4 * page, 3 * page), 0);
    assert_int_equal(mincore(region.address, region.mapped, map), 0);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(map[i] & 1, i >= 4 && i < 7);
    /* A range that begins and ends within pages takes both of them. */
    assert_int_equal(memory_host.populate(&region, 9 * page + 5, page), 0);
    assert_int_equal(present(&region), 5);
    assert_int_equal(memory_host.populate(&region, 0, region.mapped), 0);
    assert_int_equal(present(&region), 16);
    memory_host.free(&region);
}

static void host_memory_begins_as_zeros_and_keeps_what_is_filled_in(void **state)
{
    const size_t page = system_page(), length = 3 * page + 7;
    static const char word[] = {'w', 'x', 'y', 'z'};
    struct region region = host_region(length);
    char *sent = malloc(length), *got = malloc(length);
    (void)state;
    assert_true(sent && got);
    memset(sent, 0, length);
    assert_int_equal(memory_host.peek(&region, 0, got, length), 0);
    assert_memory_equal(got, sent, length);
    for (size_t i = 0; i < length; i++)
        sent[i] = (char)(i * 7 + 1);
    assert_int_equal(memory_host.fill(&region, 0, sent, length), 0);
    assert_int_equal(memory_host.populate(&region, 0, region.mapped), 0);
    assert_int_equal(memory_host.peek(&region, 0, got, length), 0);
    assert_memory_equal(got, sent, length);
    assert_memory_equal(region.address, sent, length);
    /* A few bytes over the end of a page, and the last one. */
    assert_int_equal(memory_host.fill(&region, page - 2, word, sizeof word), 0);
    assert_int_equal(memory_host.fill(&region, length - 1, "!", 1), 0);
    memcpy(sent + page - 2, word, sizeof word);
    sent[length - 1] = '!';
    assert_int_equal(memory_host.peek(&region, 0, got, length), 0);
    assert_memory_equal(got, sent, length);
    assert_int_equal(memory_host.peek(&region, page - 1, got, 2), 0);
    assert_memory_equal(got, word + 1, 2);
    free(sent);
    free(got);
    memory_host.free(&region);
}

/* What the child does: maps the memory for itself, reads a word and answers it. */
static int other_process(const struct region *region)
{
    char *mine = mmap(NULL, region->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
    if (mine == MAP_FAILED || mine == region->address)
        return 2;
    if (strcmp(mine + system_page(), "ping") != 0)
        return 3;
    memcpy(mine + system_page(), "pong", 5);
    return 0;
}

static void host_memory_can_be_mapped_by_another_process(void **state)
{
    struct region region = host_region(2 * system_page());
    char word[5];
    int status;
    (void)state;
    assert_int_equal(memory_host.fill(&region, system_page(), "ping", 5), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(other_process(&region));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(memory_host.peek(&region, system_page(), word, 5), 0);
    assert_string_equal(word, "pong");
    memory_host.free(&region);
}

static void host_memory_can_be_sealed_and_does_not_leak_into_programs(void **state)
{
    struct region region = host_region(1);
    (void)state;
    assert_int_equal(fcntl(region.fd, F_GET_SEALS), 0);
    assert_int_equal(fcntl(region.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    memory_host.free(&region);
}

/* What lies between the region and the stack, other buffers left out; -1: there is no stack. */
static int things_above(const struct region *region)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint64_t start;
    int count = 0;
    bool stack = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) && !stack) {
        assert_int_equal(sscanf(line, "%" SCNx64, &start), 1);
        stack = strstr(line, "[stack]");
        count += !stack && start > (uintptr_t)region->address && !strstr(line, "memfd:weft");
    }
    fclose(maps);
    return stack ? count : -1;
}

static void host_memory_lies_above_all_else_but_the_stack_and_nobody_knows_where(void **state)
{
    (void)state;
    struct region one = host_region(1 << 20);
    uintptr_t was = (uintptr_t)one.address;
    int above = things_above(&one);
    memory_host.free(&one);
    if (above < 0)
        skip();
    assert_int_equal(above, 0);
    struct region two = host_region(1 << 20);
    assert_int_equal(things_above(&two), 0);
    assert_int_not_equal((uintptr_t)two.address, was);
    memory_host.free(&two);
}

static void host_memory_is_given_back_once(void **state)
{
    unsigned char map[1];
    struct region region = host_region(8), was = region;
    (void)state;
    memory_host.free(&region);
    assert_null(region.address);
    assert_int_equal(region.fd, -1);
    assert_int_equal(fcntl(was.fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(mincore(was.address, was.mapped, map), -1);
    assert_int_equal(errno, ENOMEM);
    memory_host.free(&region); /* does nothing */
    assert_int_equal(region.fd, -1);
}

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void host_memory_of_impossible_lengths_is_refused_in_a_sentence(void **state)
{
    const int before = open_files();
    struct region region = {.fd = -1};
    (void)state;
    assert_int_equal(memory_host.alloc(&region, SIZE_MAX, &memory_host), -ENOMEM);
    assert_contains(fail_reason(), "18446744073709551615 bytes");
    assert_int_equal(memory_host.alloc(&region, SIZE_MAX - system_page(), &memory_host), -ENOMEM);
    assert_int_equal(memory_host.alloc(&region, SIZE_MAX / 2, &memory_host), -ENOMEM);
    assert_contains(fail_reason(), "needed");
    assert_int_equal(memory_huge_2m.alloc(&region, SIZE_MAX, &memory_huge_2m), -ENOMEM);
    assert_null(region.address);
    assert_int_equal(open_files(), before);
}

/* ---- how much there is ---- */

static uint64_t total_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * system_page();
}

static void memory_available_is_some_of_what_the_machine_has(void **state)
{
    (void)state;
    assert_in_range(memory_available(), 1, total_bytes());
}

static void memory_enough_takes_what_there_is(void **state)
{
    (void)state;
    assert_int_equal(memory_enough(0), 0);
    assert_int_equal(memory_enough(4096), 0);
    assert_int_equal(memory_enough(memory_available() / 2), 0);
}

/* Half of what is left to the others; the majority counts, because others come and go. */
static void memory_enough_leaves_something_to_the_others(void **state)
{
    int refused = 0;
    (void)state;
    for (int i = 0; i < 21; i++)
        refused += memory_enough(memory_available() - (32 << 20)) == -ENOMEM;
    assert_in_range(refused, 11, 21);
}

static void memory_enough_says_how_much_is_needed_there_and_missing(void **state)
{
    const uint64_t available = memory_available(), more = UINT64_C(64) << 30;
    char need[32], expected[64], unit[8];
    double have, missing;
    (void)state;
    assert_int_equal(memory_enough(available + more), -ENOMEM);
    unit_bytes_text(available + more, need, sizeof need);
    snprintf(expected, sizeof expected, "not enough memory: %s needed, ", need);
    assert_contains(fail_reason(), expected);
    assert_int_equal(sscanf(strstr(fail_reason(), "needed, "),
                            "needed, %lf %7s available, %lf GiB missing", &have, unit, &missing),
                     3);
    /* Others use memory meanwhile. */
    assert_true(missing > 62 && missing < 66);
    assert_true(have > 0);
    /* Not by a sum that wraps. */
    assert_int_equal(memory_enough(UINT64_MAX), -ENOMEM);
    assert_int_equal(memory_enough(UINT64_MAX - (64 << 20)), -ENOMEM);
}

/* ---- huge pages ---- */

static int huge_path(const struct memory_ops *kind, const char *what, char *path, size_t room)
{
    return snprintf(path, room, "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", kind->page >> 10,
                    what);
}

static uint64_t huge_number(const struct memory_ops *kind, const char *what)
{
    char path[128];
    uint64_t number = 0;
    huge_path(kind, what, path, sizeof path);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

static int set_huge_pages(const struct memory_ops *kind, uint64_t number)
{
    char path[128];
    huge_path(kind, "nr_hugepages", path, sizeof path);
    FILE *file = fopen(path, "we");
    if (!file)
        return -1;
    int said = fprintf(file, "%" PRIu64 "\n", number);
    return fclose(file) || said < 0 ? -1 : 0;
}

/* The sentence names what is needed, what is free and the command that helps. */
static void check_huge_missing(const struct memory_ops *kind)
{
    uint64_t number = huge_number(kind, "nr_hugepages");
    uint64_t available = huge_number(kind, "free_hugepages") - huge_number(kind, "resv_hugepages");
    uint64_t needed = available + 3;
    const int before = open_files();
    struct region region = {.fd = -1};
    char expected[256];
    if (huge_number(kind, "nr_overcommit_hugepages"))
        skip();
    int status = kind->alloc(&region, (needed - 1) * kind->page + 1, kind);
    assert_int_equal(status, -ENOMEM);
    snprintf(expected, sizeof expected,
             "Insufficient %s huge pages. Need %" PRIu64 " to run: of %s: %" PRIu64
             " needed, %" PRIu64 " free; as root: echo "
             "%" PRIu64 " > /sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
             kind->name, needed, kind->name, needed, available, number + needed - available,
             kind->page >> 10);
    assert_contains(fail_reason(), expected);
    assert_null(region.address);
    assert_int_equal(open_files(), before);
}

static void huge_pages_of_2m_that_are_missing_are_counted(void **state)
{
    (void)state;
    check_huge_missing(&memory_huge_2m);
}

static void huge_pages_of_1g_that_are_missing_are_counted(void **state)
{
    (void)state;
    check_huge_missing(&memory_huge_1g);
}

static uint64_t huge_pages_before;

static int note_huge_pages(void **state)
{
    (void)state;
    huge_pages_before = huge_number(&memory_huge_2m, "nr_hugepages");
    return 0;
}

static int restore_huge_pages(void **state)
{
    (void)state;
    if (huge_number(&memory_huge_2m, "nr_hugepages") == huge_pages_before)
        return 0;
    return set_huge_pages(&memory_huge_2m, huge_pages_before);
}

static void huge_pages_are_huge_populated_and_given_back(void **state)
{
    const struct memory_ops *kind = &memory_huge_2m;
    const size_t length = kind->page + 1;
    struct region region = {.fd = -1};
    struct statfs system;
    char word[5];
    (void)state;
    if (set_huge_pages(kind, huge_pages_before + 4))
        skip();
    uint64_t free_pages = huge_number(kind, "free_hugepages");
    if (free_pages - huge_number(kind, "resv_hugepages") < 2)
        skip();
    if (kind->alloc(&region, length, kind))
        fail_msg("%s", fail_reason());
    assert_ptr_equal(region.kind, kind);
    assert_int_equal(region.length, length);
    assert_int_equal(region.mapped, 2 * kind->page);
    assert_int_equal(region.page, kind->page);
    assert_int_equal((uintptr_t)region.address % kind->page, 0);
    assert_int_equal(fstatfs(region.fd, &system), 0);
    assert_int_equal(system.f_type, HUGETLBFS_MAGIC);
    assert_int_equal(system.f_bsize, kind->page);
    /* Reserved, not yet taken; then taken one after the other. */
    assert_int_equal(huge_number(kind, "free_hugepages"), free_pages);
    assert_int_equal(kind->populate(&region, 1, 10), 0);
    assert_int_equal(huge_number(kind, "free_hugepages"), free_pages - 1);
    assert_int_equal(kind->populate(&region, 0, region.mapped), 0);
    assert_int_equal(huge_number(kind, "free_hugepages"), free_pages - 2);
    assert_int_equal(kind->fill(&region, kind->page - 2, "huge", 5), 0);
    assert_int_equal(kind->peek(&region, kind->page - 2, word, 5), 0);
    assert_string_equal(word, "huge");
    kind->free(&region);
    assert_int_equal(huge_number(kind, "free_hugepages"), free_pages);
}

static void huge_pages_promised_to_others_do_not_count_as_free(void **state)
{
    const struct memory_ops *kind = &memory_huge_2m;
    struct region first = {.fd = -1}, second = {.fd = -1};
    char expected[64];
    (void)state;
    if (set_huge_pages(kind, huge_pages_before + 4))
        skip();
    uint64_t unpromised = huge_number(kind, "free_hugepages") - huge_number(kind, "resv_hugepages");
    if (unpromised < 2 || huge_number(kind, "nr_overcommit_hugepages"))
        skip();
    if (kind->alloc(&first, (unpromised - 1) * kind->page, kind))
        fail_msg("%s", fail_reason());
    assert_int_equal(kind->alloc(&second, 2 * kind->page, kind), -ENOMEM);
    snprintf(expected, sizeof expected, "2 needed, 1 free");
    assert_contains(fail_reason(), expected);
    kind->free(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_find_knows_six_kinds_and_nothing_else),
        cmocka_unit_test(host_memory_is_rounded_up_to_whole_pages),
        cmocka_unit_test(host_memory_is_present_only_where_it_was_populated),
        cmocka_unit_test(host_memory_begins_as_zeros_and_keeps_what_is_filled_in),
        cmocka_unit_test(host_memory_can_be_mapped_by_another_process),
        cmocka_unit_test(host_memory_can_be_sealed_and_does_not_leak_into_programs),
        cmocka_unit_test(host_memory_lies_above_all_else_but_the_stack_and_nobody_knows_where),
        cmocka_unit_test(host_memory_is_given_back_once),
        cmocka_unit_test(host_memory_of_impossible_lengths_is_refused_in_a_sentence),
        cmocka_unit_test(memory_available_is_some_of_what_the_machine_has),
        cmocka_unit_test(memory_enough_takes_what_there_is),
        cmocka_unit_test(memory_enough_leaves_something_to_the_others),
        cmocka_unit_test(memory_enough_says_how_much_is_needed_there_and_missing),
        cmocka_unit_test(huge_pages_of_2m_that_are_missing_are_counted),
        cmocka_unit_test(huge_pages_of_1g_that_are_missing_are_counted),
        cmocka_unit_test_setup_teardown(huge_pages_are_huge_populated_and_given_back,
                                        note_huge_pages, restore_huge_pages),
        cmocka_unit_test_setup_teardown(huge_pages_promised_to_others_do_not_count_as_free,
                                        note_huge_pages, restore_huge_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
