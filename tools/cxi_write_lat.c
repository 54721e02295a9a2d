/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_write_lat: one-sided write latency. */
#include "tool/tool.h"

static const struct tool tool = {.name = "cxi_write_lat",
                                 .title = "CXI RDMA Write Latency Test",
                                 .op = &op_write,
                                 .method = &method_latency,
                                 .rows = cxi_rows,
                                 .takes = CXI_WRITE};

int main(int argc, char **argv)
{
    return tool_main(&tool, argc, argv);
}
