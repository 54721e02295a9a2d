/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: weft map. Every rank runs the same schedule: in each step it measures with its
 * partner or rests, and then all take a turn of the group, in which the leader gets what was
 * measured. What is to be measured again the leader answers. */
#ifndef WEFT_TOOL_MAP_H
#define WEFT_TOOL_MAP_H

#include "bench/session.h"
#include "peer/group.h"
#include "report/maps.h"
#include "tool/access.h"

enum { MAP_PATH = 4096 };

struct map_options {
    struct spec spec; /* first: rows `of` the spec's fill it */
    uint64_t local, at_once, slot_ms, seed, wait_s;
    int test; /* choice: 1 + place in map_tests */
    char device[FABRIC_DEVICE_MAX], partners[32], min_effect[32], groups[MAP_PATH];
    char hosts[MAP_PATH], agent[1024];
    char json[MAP_PATH], csv[MAP_PATH], cells[MAP_PATH];
    struct access access;
    bool member, help; /* member: started by --hosts */
};

/* What a map is asked for, from the options. */
struct map_request {
    const struct map_options *options;
    uint32_t partners, again; /* 0: all */
    double min_effect;
};

extern const char *const map_test_names[];

/* Settles the spec, checks the files to be written, and reads what is text. */
int map_settle(struct map_options *options, struct opt_set *set, struct map_request *request);

/* ---- one rank ---- */

enum map_stage { MAP_FIRST, MAP_SECOND, MAP_THIRD };

struct map_lead;

struct map_rank {
    struct group *group;
    const struct map_request *request;
    uint32_t rank, size; /* rank == size: it leads and does not measure */
    struct session session;
    struct offer offer;
    char device[FABRIC_DEVICE_MAX];
    bool *out;     /* per rank: it cannot measure, as the first turn has shown */
    bool one_host; /* all ranks are on one: otherwise those of a host do not meet */
    struct map_plan plan;
    struct map_again again; /* ranks is 0: no second stage */
    struct map_meeting *third;
    size_t third_count;
    uint32_t third_steps;
    struct map_place { /* in the schedule */
        enum map_stage stage;
        uint32_t round, turn;
        uint32_t base, step; /* rounds of the stages before this one; steps of all */
    } at;
    struct cpu_list cpus;  /* --local: pairs are put on them; none: the launcher has done so */
    struct map_lead *lead; /* NULL: another rank leads */
};

/* A pair that is measured again, and in which step of the third stage. */
struct map_meeting {
    uint32_t a, b, step;
};

/* From a joined group to the last step; at the leader also the model and the verdicts. */
int map_measure(struct map_rank *rank);

/* The partner of a rank in this step; MAP_NONE: it rests. */
uint32_t map_rank_partner(const struct map_rank *rank, uint32_t whose);

/* ---- what ranks give the leader ---- */

/* Before the first round: can it measure? */
struct map_ready {
    uint32_t magic;
    int32_t status;
    char why[MAP_REASON];
    char form[160], device[160], self[64];
};

/* After each step. As long as its entries. */
struct map_value {
    uint32_t magic;
    int32_t status;
    char why[MAP_REASON];
    struct map_cell cell; /* count is 0: it has measured nothing */
    float unresolved_us;  /* the clock cannot tell the median from this; 0: it can */
    uint32_t entries;
    struct map_entry {
        uint32_t bucket, count;
    } list[MAP_BUCKETS];
};
enum { MAP_MAGIC = 0x77656674 };

/* Measures with a partner; what came of it is in the value. */
void map_pair(struct map_rank *rank, uint32_t other, struct map_value *value);
size_t map_value_length(const struct map_value *value);

/* ---- the leader ---- */

struct map_lead {
    const struct map_rank *rank;
    struct map_record record;
    struct map_model model;
    struct map_verdicts verdicts;
    uint32_t *suspects, suspect_count;
    struct map_pair *pairs;
    size_t pair_count;
    uint32_t *answer; /* what the others are told next */
    bool complete;    /* all stages were measured */
    struct cell_file cells;
};

int map_lead_open(struct map_lead *lead, const struct map_rank *rank);
void map_lead_close(struct map_lead *lead);

/* group_decide of the turns: before the first round, after a step, before the second stage. */
int map_lead_ready(void *lead, const struct group_value *values, struct group_value *answer);
int map_lead_take(void *lead, const struct group_value *values, struct group_value *answer);
int map_lead_choose(void *lead, const struct group_value *values, struct group_value *answer);

/* The verdicts; the exit code and the reason for it are in the record. status: how the measurement
 * ended. */
int map_lead_judge(struct map_lead *lead, int status);

/* Names and groups of ranks, from the launcher, a file or the addresses of devices. */
/* What is wrong with --groups, before any rank is there. */
int map_groups_check(const char *groups);
int map_lead_places(struct map_lead *lead, const struct group_value *values);

#endif
