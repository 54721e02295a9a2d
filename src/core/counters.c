/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices. Every read looks for the files again: nothing is kept open while a
 * run is timed, and a device that goes away meanwhile only leaves its counters unknown. */
#include "core/counters.h"
#include "core/machine.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS = 2, FOLDER = 200, LIFESPAN_MOST_MS = 200 };

/* Of the 1900 items of CXI's telemetry. */
static const char *const cxi_usual[] = {
    "hni_sts_tx_ok_octets",
    "hni_sts_rx_ok_octets",
    "hni_tx_ok_ieee",
    "hni_rx_ok_ieee",
    "hni_tx_ok_opt",
    "hni_rx_ok_opt",
    "ixe_rx_ptl_restricted_pkt",
    "ixe_rx_ptl_unrestricted_pkt",
    "pct_req_ordered",
    "pct_req_unordered",
    "pct_responses_received",
    "pct_hrp_responses_received",
    "pct_resource_busy",
    "hni_rx_paused_0",
    "hni_rx_paused_1",
    "hni_rx_paused_2",
    "hni_rx_paused_3",
    "hni_rx_paused_4",
    "hni_rx_paused_5",
    "hni_rx_paused_6",
    "hni_rx_paused_7",
    "hni_tx_paused_0",
    "hni_tx_paused_1",
    "hni_tx_paused_2",
    "hni_tx_paused_3",
    "hni_tx_paused_4",
    "hni_tx_paused_5",
    "hni_tx_paused_6",
    "hni_tx_paused_7",
    "hni_pcs_good_cw",
    "hni_pcs_corrected_cw",
    "hni_pcs_uncorrected_cw",
    "hni_llr_tx_replay_event",
    "hni_llr_rx_replay_event",
    "hni_llr_tx_discard",
    "hni_rx_bad_ieee",
    "hni_rx_bad_opt",
    "hni_tx_poisoned_ieee",
    "hni_tx_poisoned_opt",
    "hni_discard_cntr_0",
    "hni_discard_cntr_1",
    "hni_discard_cntr_2",
    "hni_discard_cntr_3",
    "hni_discard_cntr_4",
    "hni_discard_cntr_5",
    "hni_discard_cntr_6",
    "hni_discard_cntr_7",
    "ixe_rx_pkt_drop_ixe_parser",
    "ixe_rx_pkt_drop_pct",
    "ixe_rx_pkt_drop_rmu_norsp",
    "ixe_rx_pkt_drop_rmu_wrsp",
    "ixe_hrp_req_errors",
    "ixe_mem_ucor_err_cntr",
    "pct_sct_timeouts",
    "pct_spt_timeouts",
    "pct_tct_timeouts",
    "pct_retry_srb_requests",
    "pct_no_tct_nacks",
    "pct_no_trs_nacks",
    "pct_no_mst_nacks",
    "pct_bad_seq_nacks",
    "pct_rsp_err_rcvd",
    "pct_rsp_dropped_timeout",
    "pct_hrp_rsp_err_received",
    "pct_hrp_rsp_discard_received",
    "pct_mem_ucor_err_cntr",
    "cq_fail_tx_cntr",
    "cq_fail_tgt_cntr",
    "lpe_fail_cntr",
    "ee_events_dropped_ordinary_cntr_0",
    "ee_events_dropped_ordinary_cntr_1",
    "ee_events_dropped_ordinary_cntr_2",
    "ee_events_dropped_ordinary_cntr_3",
    "oxe_err_no_translation",
    "oxe_err_pci_cmpl",
    "atu_ats_trans_err",
};
_Static_assert(LENGTH(cxi_usual) <= COUNTERS_MOST, "more counters than there is room for");

/* ---- names ---- */

static bool made_of(const char *text, size_t room, const char *more)
{
    size_t length = strnlen(text, room);
    for (size_t i = 0; i < length; i++)
        if (!isascii((unsigned char)text[i]) ||
            (!isalnum((unsigned char)text[i]) && !strchr(more, text[i])))
            return false;
    return length && length < room;
}

bool counter_named(const char *name)
{
    return made_of(name, COUNTER_NAME, "_");
}

bool counter_device(const char *device)
{
    return made_of(device, sizeof((struct counters *)0)->device, "_.:@-") && *device != '.' &&
           !strstr(device, "..");
}

bool counter_is_error(const char *name)
{
    static const char *const signs[] = {"error",   "errs",   "err_",     "fail",   "drop",
                                        "discard", "bad_",   "timeout",  "nack",   "_nak",
                                        "retr",    "replay", "poison",   "uncorr", "out_of_",
                                        "invalid", "_icrc_", "duplicate"};
    static const char *const whole[] = {"collisions", "link_downed"};
    size_t length = strlen(name);
    for (size_t i = 0; i < LENGTH(signs); i++)
        if (strstr(name, signs[i]))
            return true;
    for (size_t i = 0; i < LENGTH(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    return length > 4 && strcmp(name + length - 4, "_err") == 0;
}

/* Calls visit for every name of a list; false if one is none. */
static bool each_name(const char *list, void (*visit)(void *arg, const char *name), void *arg)
{
    for (const char *at = list;; at++) {
        char name[COUNTER_NAME + 1];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : COUNTER_NAME),
                 at);
        if (!counter_named(name))
            return false;
        visit(arg, name);
        at += length;
        if (!*at)
            return true;
    }
}

struct counters_of {
    struct counters *counters;
    const char *which, *root;
    char folders[FOLDERS][FOLDER]; /* the first that has a name counts */
    bool cxi;
};

static void add_name(void *arg, const char *name)
{
    struct counters *c = ((struct counters_of *)arg)->counters;
    size_t length = strlen(name);
    if (c->count == COUNTERS_MOST || length >= COUNTER_NAME || counters_find(c, name))
        return;
    memcpy(c->list[c->count++].name, name, length + 1);
}

bool counters_listed(const char *which)
{
    return strcmp(which, COUNTERS_USUAL) != 0 && strcmp(which, COUNTERS_ERRORS) != 0;
}

int counters_check(const char *which)
{
    struct counters named = {0};
    struct counters_of all = {.counters = &named};
    if (strlen(which) >= COUNTERS_WHICH)
        return fail(-EINVAL, "counters: a list of more than %d characters", COUNTERS_WHICH - 1);
    if (!counters_listed(which))
        return 0;
    if (each_name(which, add_name, &all))
        return named.count < COUNTERS_MOST
                   ? 0
                   : fail(-EINVAL, "counters: at most %d names", COUNTERS_MOST - 1);
    return fail(-EINVAL,
                "counters: \"%.80s\" is neither \"errors\" nor a list of names such as "
                "rx_bytes,rx_errors",
                which);
}

const struct counter *counters_find(const struct counters *c, const char *name)
{
    for (unsigned i = 0; i < c->count; i++)
        if (strcmp(c->list[i].name, name) == 0)
            return &c->list[i];
    return NULL;
}

/* ---- where they are ---- */

static void ignore(void *arg, const char *name)
{
    (void)arg, (void)name;
}

static bool has(const char *root, const char *folder)
{
    return system_each(root, ignore, NULL, "%s", folder) > 0;
}

static void only_port(void *arg, const char *name)
{
    char *port = arg;
    /* Several ports, and no word on which one: none. */
    snprintf(port, 16, "%s", *port || strlen(name) > 15 ? "-" : name);
}

/* "mlx5_0:1", or "mlx5_0" if there is one port. */
static bool find_infiniband(struct counters_of *of, const char *device)
{
    char port[16] = "";
    int length = (int)strcspn(device, ":");
    if (device[length])
        snprintf(port, sizeof port, "%s", device + length + 1);
    else
        system_each(of->root, only_port, port, "/sys/class/infiniband/%s/ports", device);
    if (!*port)
        return false;
    snprintf(of->folders[0], FOLDER, "/sys/class/infiniband/%.*s/ports/%s/counters", length, device,
             port);
    snprintf(of->folders[1], FOLDER, "/sys/class/infiniband/%.*s/ports/%s/hw_counters", length,
             device, port);
    return has(of->root, of->folders[0]) || has(of->root, of->folders[1]);
}

static bool find_folders(struct counters_of *of, const char *device)
{
    snprintf(of->folders[0], FOLDER, "/sys/class/cxi/%s/device/telemetry", device);
    of->cxi = has(of->root, of->folders[0]);
    if (of->cxi || find_infiniband(of, device))
        return true;
    snprintf(of->folders[0], FOLDER, "/sys/class/net/%s/statistics", device);
    *of->folders[1] = '\0';
    return has(of->root, of->folders[0]);
}

/* ---- reading ---- */

static void add_file(void *arg, const char *name)
{
    const struct counters_of *of = arg;
    bool wanted = strcmp(of->which, COUNTERS_USUAL) == 0 || counter_is_error(name);
    if (wanted && counter_named(name) && strcmp(name, "lifespan") != 0)
        add_name(arg, name);
}

/* Another generation of the hardware has other items. */
static void add_usual(struct counters_of *of)
{
    for (size_t i = 0; i < LENGTH(cxi_usual); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s/%s", of->root, of->folders[0], cxi_usual[i]);
        if (access(path, F_OK) == 0)
            add_file(of, cxi_usual[i]);
    }
}

static void choose(struct counters_of *of)
{
    if (counters_listed(of->which))
        each_name(of->which, add_name, of);
    else if (of->cxi)
        add_usual(of);
    else
        for (int i = 0; i < FOLDERS; i++)
            if (*of->folders[i])
                system_each(of->root, add_file, of, "%s", of->folders[i]);
}

/* The driver answers from a copy that is up to so old. */
static void await_renewal(const struct counters_of *of)
{
    uint64_t ms;
    if (*of->folders[1] && system_number(of->root, &ms, "%s/lifespan", of->folders[1]) && ms)
        poll(NULL, 0, (int)(ms < LIFESPAN_MOST_MS ? ms + 1 : LIFESPAN_MOST_MS));
}

void counters_read(struct counters *c, const char *root, const char *device, const char *which)
{
    struct counters_of of = {.counters = c, .which = which, .root = root};
    char plain[sizeof c->device];
    *c = (struct counters){0};
    if (!counter_device(device)) {
        snprintf(c->why, sizeof c->why, "no network device carries it");
        return;
    }
    snprintf(c->device, sizeof c->device, "%s", device);
    /* Some libraries append a kind of endpoint: rdmap0s6-rdm, mlx5_0-dgram. */
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(device, "-"), device);
    if (!find_folders(&of, device) && !(counter_device(plain) && find_folders(&of, plain))) {
        snprintf(c->why, sizeof c->why, "%s has no counters in /sys/class", device);
        return;
    }
    choose(&of);
    if (!c->count)
        snprintf(c->why, sizeof c->why, "%s has no such counters", device);
    await_renewal(&of);
    for (unsigned i = 0; i < c->count; i++)
        for (int k = 0; k < FOLDERS && !c->list[i].known; k++)
            c->list[i].known = *of.folders[k] && system_number(root, &c->list[i].value, "%s/%s",
                                                               of.folders[k], c->list[i].name);
}

/* ---- differences ---- */

/* InfiniBand's error counters have so many bits, and stay at the highest value. */
static uint64_t highest(const char *name)
{
    static const struct {
        const char *name;
        unsigned bits;
    } narrow[] = {{"symbol_error", 16},
                  {"link_error_recovery", 8},
                  {"link_downed", 8},
                  {"port_rcv_errors", 16},
                  {"port_rcv_remote_physical_errors", 16},
                  {"port_rcv_switch_relay_errors", 16},
                  {"port_xmit_discards", 16},
                  {"port_xmit_constraint_errors", 8},
                  {"port_rcv_constraint_errors", 8},
                  {"local_link_integrity_errors", 4},
                  {"excessive_buffer_overrun_errors", 4},
                  {"VL15_dropped", 16}};
    for (size_t i = 0; i < LENGTH(narrow); i++)
        if (strcmp(name, narrow[i].name) == 0)
            return (1U << narrow[i].bits) - 1;
    return UINT64_MAX;
}

void counters_since(struct counters *now, const struct counters *before)
{
    for (unsigned i = 0; i < now->count; i++) {
        struct counter *c = &now->list[i];
        const struct counter *was = counters_find(before, c->name);
        c->known = c->known && was && was->known && c->value >= was->value &&
                   was->value != highest(c->name);
        c->value = c->known ? c->value - was->value : 0;
    }
}
