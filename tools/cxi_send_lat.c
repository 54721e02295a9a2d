/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_send_lat: two-sided message latency, half the round trip. */
#include "tool/tool.h"

static const struct tool tool = {.name = "cxi_send_lat",
                                 .title = "CXI RDMA Send Latency Test",
                                 .op = &op_send,
                                 .method = &method_latency,
                                 .rows = cxi_rows,
                                 .takes = CXI_SEND};

int main(int argc, char **argv)
{
    return tool_main(&tool, argc, argv);
}
