/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_atomic_lat: atomic memory operation latency. */
#include "tool/tool.h"

static const struct tool tool = {.name = "cxi_atomic_lat",
                                 .title = "CXI Atomic Memory Operation Latency Test",
                                 .op = &op_atomic,
                                 .method = &method_latency,
                                 .rows = cxi_rows,
                                 .takes = CXI_ATOMIC,
                                 .help_end =
                                     "\nAtomic Ops:\n"
                                     "  MIN, MAX, SUM, LOR, LAND, BOR, BAND, LXOR, BXOR, SWAP, "
                                     "CSWAP, AXOR\n"
                                     "CSWAP Ops:\n"
                                     "  EQ, NE, LE, LT, GE, GT\n"
                                     "Atomic Types:\n"
                                     "  INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, "
                                     "FLOAT, DOUBLE,\n"
                                     "  FLOAT_COMPLEX, DOUBLE_COMPLEX, UINT128\n"};

int main(int argc, char **argv)
{
    return tool_main(&tool, argc, argv);
}
