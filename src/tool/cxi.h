/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the CXI family, its options and their rows. */
#ifndef WEFT_TOOL_CXI_H
#define WEFT_TOOL_CXI_H

#include "tool/access.h"
#include "tool/output.h"
#include "tool/place.h"

/* A command, from tools.def. */
struct cxi_tool {
    const char *name;  /* what both ends must have in common */
    const char *title; /* of the header */
    const char *op, *method;
    bool alone; /* the loopback tool: one process is both ends */
};

struct cxi_options {
    struct spec spec; /* first: rows `of` the spec's fill it */
    struct output_request output;
    char device[FABRIC_DEVICE_MAX]; /* of this process */
    char devices[PLACE_DEVICES];    /* as typed: of all pairs, in turn */
    unsigned device_count;
    uint64_t procs, max_procs; /* as given */
    unsigned pairs;            /* how many measure together */
    char near[PLACE_CPU + 32]; /* this process's CPU, where a NIC decided it, or "" */
    uint64_t service, port, wait_s;
    int64_t tx_gpu, rx_gpu; /* the client's and the server's; -1: none */
    int gpu_type;           /* this end's: 1 + place in memory_vendors, 0: whatever there is */
    uint64_t transfer;      /* the loopback tool: bytes */
    int huge;               /* 0, or the choice of --use-hp */
    uint64_t interval_s;    /* lists: a row this often; 0: only the last */
    bool gbits;             /* bandwidth in Gb/s */
    bool emulated;          /* the original's: time from a register of the NIC */
    unsigned gpus;          /* how many there are here, if this end uses one */
    bool local, loop, list, help, version;
    char bind[256];
    struct access access;
    struct bounds most; /* a server's */
    int64_t cpu[2];
    const char *address; /* NULL: a server, or local */
    bool member;         /* started by pair 0, for another pair */
};

/* Rows are taken by what the op has, or by what an op of one half of the family has: bits. */
enum {
    CXI_SIZED = 1,
    CXI_AMO = 2,
    CXI_IDC = 4, /* of an op that has no rendezvous */
    CXI_RESTRICTED = 8,
    CXI_LAT = 16, /* latency */
    CXI_LAT_SIZED = 32,
    CXI_LAT_AMO = 64,
    CXI_LAT_PULLS = 128, /* rendezvous, and IDC */
    CXI_BW = 256,        /* bandwidth, of lists */
    CXI_BW_SIZED = 512,
    CXI_BW_AMO = 1024,
    CXI_BW_PULLS = 2048,
    CXI_BW_HRP = 4096, /* of what has sizes */
    CXI_BW_HRP_AMO = 8192,
    CXI_ALL = 16384,
    CXI_PAIR = 32768,    /* a server and a client */
    CXI_LOOPBACK = 65536 /* both ends in one process */
};
enum { CXI_ALONE = CXI_ALL | CXI_LOOPBACK }; /* what the loopback tool takes */
unsigned cxi_takes(const struct op *op, const struct method *method);
extern const struct opt cxi_rows[];

/* The choices of --use-hp, as memory kinds are named. */
extern const char *const cxi_huge[];

/* The rules that no single option knows, in sentences. Settles what one option does to another, and
 * warns of it. */
int cxi_check(struct cxi_options *options, struct opt_set *set);
/* Is there such a device here? */
int cxi_check_device(const char *device);

/* The loopback tool: this thread initiates and reports, on this CPU unless it is -1; a second one
 * is the target, with the same offer and spec. */
int cxi_loopback(struct session *session, const struct offer *offer, struct spec *spec, int64_t cpu,
                 struct report *report);

/* The memory of a GPU by its number, as memory is named, if that is not -1; count: how many there
 * are. */
int cxi_find_gpu(const struct cxi_options *options, int64_t device, char memory[SESSION_MEMORY],
                 unsigned *count);

struct pairs;

/* How many pairs the client wants, within the bounds of this server and what its user gave; mine:
 * of which this process is one, if it is. */
int cxi_grant_pairs(const struct cxi_options *own, const struct pairs *mine,
                    const struct msg *greeting, unsigned *granted);

/* The tool of this name, or NULL. */
const struct cxi_tool *cxi_tool_find(const char *name);

/* Sets op and method of the spec, and the rows that the tool takes; what they fill is the caller's.
 */
const struct op *cxi_tool_rows(const struct cxi_tool *tool, struct spec *spec, struct opt_set *set);

/* Prints the options that the set takes. */
int cxi_help(const struct cxi_tool *tool, const struct op *op, const struct opt_set *set);

int cxi_main(const struct cxi_tool *tool, int argc, char **argv);

/* What is the server's own, of --local; the rest it hears from the client. */
struct arguments;
void cxi_server_arguments(struct arguments *arguments, const struct cxi_options *options,
                          bool port_given, int64_t cpu);

#endif
