/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_read_lat: one-sided read latency. */
#include "tool/tool.h"

static const struct tool tool = {.name = "cxi_read_lat",
                                 .title = "CXI RDMA Read Latency Test",
                                 .op = &op_read,
                                 .method = &method_latency,
                                 .rows = cxi_rows,
                                 .takes = CXI_READ};

int main(int argc, char **argv)
{
    return tool_main(&tool, argc, argv);
}
