/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the header of the CXI family: its places, and how what is not simply an option's
 * value is shown. */
#ifndef WEFT_TOOL_CXI_SHOW_H
#define WEFT_TOOL_CXI_SHOW_H

#include "tool/cxi.h"

/* Places in the header. */
enum {
    AT_DEVICE = 1,
    AT_FABRIC,
    AT_SERVICE,
    AT_CPU,
    AT_PAIRS,
    AT_CLIENT_MEM,
    AT_CLIENT_RX,
    AT_CLIENT_GPU_BW,
    AT_SERVER_TX,
    AT_SERVER_MEM,
    AT_CLIENT_GPU,
    AT_SERVER_GPU,
    AT_TEST_TYPE,
    AT_ITERS,
    AT_DURATION,
    AT_WARMUP,
    AT_OPS,
    AT_GAP,
    AT_SIZE,
    AT_MIN_SIZE,
    AT_MAX_SIZE,
    AT_AMO_OP,
    AT_AMO_TYPE,
    AT_LIST,
    AT_HRP,
    AT_IDC,
    AT_MATCHING,
    AT_RESTRICTED,
    AT_LL,
    AT_BOTH_WAYS,
    AT_RENDEZVOUS,
    AT_RESULTS,
    AT_BUFFER,
    AT_ALIGN,
    AT_HUGE,
    AT_VERIFY,
    AT_EVENTS,
    AT_CLOCK,
    AT_LOCAL,
    AT_REMOTE,
    AT_FOUND
};

enum { NO_LINE = -1 };

int cxi_show_cpu(const void *header, char *text, size_t room);
int cxi_show_fabric(const void *header, char *text, size_t room);
int cxi_show_tx(const void *header, char *text, size_t room);
int cxi_show_rx(const void *header, char *text, size_t room);
int cxi_show_client_vendor(const void *header, char *text, size_t room);
int cxi_show_server_vendor(const void *header, char *text, size_t room);
int cxi_show_test_type(const void *header, char *text, size_t room);
int cxi_show_iters(const void *header, char *text, size_t room);
int cxi_show_duration(const void *header, char *text, size_t room);
int cxi_show_ops(const void *header, char *text, size_t room);
int cxi_show_gap(const void *header, char *text, size_t room);
int cxi_show_size(const void *header, char *text, size_t room);
int cxi_show_min_size(const void *header, char *text, size_t room);
int cxi_show_max_size(const void *header, char *text, size_t room);
int cxi_show_service(const void *header, char *text, size_t room);
int cxi_show_idc(const void *header, char *text, size_t room);
int cxi_show_restricted(const void *header, char *text, size_t room);
int cxi_show_matching(const void *header, char *text, size_t room);
int cxi_show_rendezvous(const void *header, char *text, size_t room);
int cxi_show_amo_op(const void *header, char *text, size_t room);
int cxi_show_amo_type(const void *header, char *text, size_t room);
int cxi_show_ll(const void *header, char *text, size_t room);
int cxi_show_results(const void *header, char *text, size_t room);
int cxi_show_huge(const void *header, char *text, size_t room);
int cxi_show_verify(const void *header, char *text, size_t room);
int cxi_show_events(const void *header, char *text, size_t room);
int cxi_show_clock(const void *header, char *text, size_t room);
int cxi_show_local_client(const void *header, char *text, size_t room);
int cxi_show_local_server(const void *header, char *text, size_t room);
int cxi_show_remote_client(const void *header, char *text, size_t room);
int cxi_show_remote_server(const void *header, char *text, size_t room);

/* Of the bandwidth tools. */
int cxi_show_pairs(const void *header, char *text, size_t room);
int cxi_show_client_rx(const void *header, char *text, size_t room);
int cxi_show_vendor(const void *header, char *text, size_t room); /* of the loopback tool */
int cxi_show_server_tx(const void *header, char *text, size_t room);
int cxi_show_list(const void *header, char *text, size_t room);
int cxi_show_hrp(const void *header, char *text, size_t room);
int cxi_show_both_ways(const void *header, char *text, size_t room);
int cxi_show_puts(const void *header, char *text, size_t room);
int cxi_show_buffer(const void *header, char *text, size_t room);
int cxi_show_found(const void *header, char *text, size_t room);

#endif
