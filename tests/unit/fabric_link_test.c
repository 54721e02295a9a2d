/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of a link, from files as the kernel has them. */
#include "core/core.h"
#include "fabric/link.h"
#include "support/machine_files.h"

static void an_interface_has_its_speed_and_a_port_its_rate(void **state)
{
    (void)state;
    put("/sys/class/net/hsn0/speed", "200000\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put("/sys/class/infiniband/mlx5_1/ports/2/rate", "2.5 Gb/sec (1X SDR)\n");
    assert_int_equal(link_bits_per_s(root, "hsn0"), 200000000000);
    assert_int_equal(link_bits_per_s(root, "mlx5_0:1"), 100000000000);
    assert_int_equal(link_bits_per_s(root, "mlx5_1:2"), 2500000000);
}

static void what_has_no_known_rate_has_none(void **state)
{
    (void)state;
    put("/sys/class/net/down0/speed", "-1\n");
    put("/sys/class/net/odd0/speed", "Unknown!\n");
    put("/sys/class/net/lo/mtu", "65536\n");
    static const char *const devices[] = {"down0", "odd0",        "lo",      "memory",
                                          "",      "../net/hsn0", "mlx5_0:9"};
    for (size_t i = 0; i < LENGTH(devices); i++)
        assert_int_equal(link_bits_per_s(root, devices[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILES(an_interface_has_its_speed_and_a_port_its_rate),
        ON_FILES(what_has_no_known_rate_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
