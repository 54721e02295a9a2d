/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing a fabric, and loading one. WEFT_MODULE_PATH names the folder of the test modules. */
#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void a_bare_device_is_found_on_soft(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("cxi2", &choice), 0);
    assert_ptr_equal(choice.ops, &fabric_soft);
    assert_string_equal(choice.device, "cxi2");
    assert_false(choice.named);
}

static void a_prefix_that_names_a_fabric_chooses_it(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("null:delay=2us", &choice), 0);
    assert_ptr_equal(choice.ops, &fabric_null);
    assert_string_equal(choice.device, "delay=2us");
    assert_true(choice.named);
    assert_int_equal(fabric_choose("soft", &choice), 0);
    assert_string_equal(choice.device, "");
}

static void what_is_no_fabric_and_no_device_is_refused_with_a_list(void **state)
{
    (void)state;
    static const char *const bad[] = {"cxi99", "nosuch:x", "foo", "mlx5_1:1", ":", "", "../evil:x"};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct fabric_choice choice;
        assert_int_equal(fabric_choose(bad[i], &choice), -ENODEV);
        assert_non_null(strstr(fail_reason(), "cxi0"));
        assert_non_null(strstr(fail_reason(), "null"));
    }
}

static void a_module_is_loaded_by_name_and_only_once(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("corrupts:cxi0", &choice), 0);
    assert_string_equal(choice.ops->name, "corrupts");
    assert_ptr_equal(fabric_find("corrupts"), choice.ops);
}

static void a_module_of_another_version_is_refused(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("other_abi:x", &choice), -ENODEV);
    assert_non_null(strstr(fail_reason(), "version"));
}

static void a_fabric_that_is_nowhere_says_what_was_looked_for(void **state)
{
    (void)state;
    assert_null(fabric_find("nowhere"));
    assert_non_null(strstr(fail_reason(), "weft-nowhere.so"));
}

static void mine(int number)
{
    (void)number;
}

static void loading_keeps_signal_handlers(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = mine}, now;
    assert_int_equal(sigaction(SIGTERM, &action, NULL), 0);
    assert_non_null(fabric_find("corrupts"));
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, mine);
    signal(SIGTERM, SIG_DFL);
}

/* A fabric whose library takes a signal over. The second opening begins while the first is under
 * way, and ends after it. */
static sem_t began, second_began, first_is_over;

static void vendors(int number)
{
    (void)number;
}

static int seize_open(struct fabric **fabric, const struct fabric_want *want,
                      struct fabric_facts *facts)
{
    struct sigaction action = {.sa_handler = vendors};
    (void)facts;
    *fabric = NULL;
    if (want->server) {
        sem_post(&second_began);
        sem_wait(&first_is_over);
        return 0;
    }
    sigaction(SIGTERM, &action, NULL);
    sem_post(&began);
    sem_wait(&second_began);
    return 0;
}

static const struct fabric_ops seize = {.abi = FABRIC_ABI, .name = "seize", .open = seize_open};

static void *open_second(void *arg)
{
    struct fabric_want want = {.server = true};
    struct fabric_facts facts;
    struct fabric *fabric;
    (void)arg;
    sem_wait(&began);
    fabric_open(&seize, &fabric, &want, &facts);
    return NULL;
}

static void two_threads_that_open_fabrics_keep_signal_handlers(void **state)
{
    struct sigaction action = {.sa_handler = mine, .sa_flags = SA_RESTART}, now;
    struct fabric_want want = {0};
    struct fabric_facts facts;
    struct fabric *fabric;
    pthread_t thread;
    (void)state;
    sigaddset(&action.sa_mask, SIGUSR1);
    sem_init(&began, 0, 0);
    sem_init(&second_began, 0, 0);
    sem_init(&first_is_over, 0, 0);
    assert_int_equal(sigaction(SIGTERM, &action, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, open_second, NULL), 0);
    assert_int_equal(fabric_open(&seize, &fabric, &want, &facts), 0);
    sem_post(&first_is_over);
    pthread_join(thread, NULL);
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    signal(SIGTERM, SIG_DFL);
    assert_ptr_equal(now.sa_handler, mine);
    assert_true(now.sa_flags & SA_RESTART);
    assert_true(sigismember(&now.sa_mask, SIGUSR1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_device_is_found_on_soft),
        cmocka_unit_test(a_prefix_that_names_a_fabric_chooses_it),
        cmocka_unit_test(what_is_no_fabric_and_no_device_is_refused_with_a_list),
        cmocka_unit_test(a_module_is_loaded_by_name_and_only_once),
        cmocka_unit_test(a_module_of_another_version_is_refused),
        cmocka_unit_test(a_fabric_that_is_nowhere_says_what_was_looked_for),
        cmocka_unit_test(loading_keeps_signal_handlers),
        cmocka_unit_test(two_threads_that_open_fabrics_keep_signal_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
