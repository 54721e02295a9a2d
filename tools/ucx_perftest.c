/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: latency, bandwidth and message rate of active messages, puts, gets and atomics. */
#include "tool/tool.h"

int main(int argc, char **argv)
{
    return perftest_main(argc, argv);
}
