/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules among the options of the CXI family, each a sentence. */
#include "tool/cxi.h"
#include "tool/local.h"
#include "tool/pairs.h"
#include "tool/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool given(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);
    return row && opt_origin(set, row) == OPT_BY_USER;
}

/* Both ways, an end that names the GPU of its one buffer for both roles is right. */
static void warn_gpus(const struct cxi_options *o, const struct opt_set *set)
{
    bool any = o->tx_gpu >= 0 || o->rx_gpu >= 0, server = !o->address && !o->local;
    bool same = method_of(&o->spec)->lists && o->tx_gpu == o->rx_gpu;
    if (any && o->huge)
        warn("--use-hp has no effect on GPU buffers");
    if (!any && given(set, "gpu-type"))
        warn("--gpu-type has no effect without --tx-gpu or --rx-gpu");
    if (server && given(set, "tx-gpu") && !same)
        warn("--tx-gpu is the client's to say: it has no effect here");
    if (o->address && given(set, "rx-gpu") && !(same && o->spec.both_ways))
        warn("--rx-gpu is the server's to say: it has no effect here");
    if (server && given(set, "use-hp"))
        warn("--use-hp is the client's to say: it has no effect here");
}

/* In the words of the original, and what there is here. */
int cxi_check_device(const char *device)
{
    struct fabric_choice choice;
    int status = fabric_named(device) ? 0 : fabric_choose(device, &choice);
    if (!status)
        return 0;
    return strncmp(device, "cxi", 3) == 0
               ? fail(status, "Invalid device name: %s (%s)", device, fail_reason())
               : fail(status, "Device name must include cxi prefix (ex: cxi0): %s (%s)", device,
                      fail_reason());
}

/* What the original checks first of lists, in its words. */
static int check_list(const struct cxi_options *o)
{
    const struct spec *spec = &o->spec;
    if (o->emulated)
        return fail(-ENOTSUP, "--emu-mode is for time from a register of an emulated NIC, which no "
                              "fabric here has: leave it out");
    if (spec->size.max > spec->data.most)
        return fail(-EINVAL, "Max RDMA buffer size (%" PRIu64 ") < max %s size (%" PRIu64 ")!",
                    spec->data.most, op_of(spec)->name, spec->size.max);
    return 0;
}

/* Devices take turns: every one has as many pairs. */
static int check_pairs(struct cxi_options *o, bool alone)
{
    bool lists = method_of(&o->spec)->lists;
    int status = place_devices(o->devices, &o->device_count);
    if (status)
        return status;
    if (o->device_count > 1 && (!lists || alone))
        return fail(-EINVAL, "--device %s: %s is measured on one device", o->devices,
                    alone ? "loopback" : "latency");
    o->pairs = o->procs ? (unsigned)o->procs : o->device_count;
    if (o->device_count > TEAM_MOST)
        return fail(-EINVAL, "--device: %u devices, at most %d", o->device_count, TEAM_MOST);
    if (o->pairs % o->device_count)
        return fail(-EINVAL, "--procs %u on %u devices: give each device as many pairs", o->pairs,
                    o->device_count);
    if (o->pairs > 1 && o->interval_s)
        return fail(-EINVAL, "--interval is for one pair, not for %u", o->pairs);
    return 0;
}

/* Always from the first place to the first, by commands that carry no payload and are acknowledged
 * by the target. */
static void settle_loopback(struct cxi_options *o)
{
    struct spec *spec = &o->spec;
    spec->size = (struct opt_range){o->transfer, o->transfer};
    spec->data.most = o->transfer;
    spec->hints.no_idc = spec->hints.no_hrp = true;
    o->local = o->gbits = true;
}

static int check_role(struct cxi_options *o, const struct opt_set *set)
{
    struct role role = {.address = o->address,
                        .local = o->local,
                        .loop = o->loop,
                        .port = o->port,
                        .server_cpu = o->cpu[1],
                        .member = o->member};
    int status = role_check(&role, set);
    return status ? status : access_open(&o->access, set, &role);
}

int cxi_check(struct cxi_options *o, struct opt_set *set)
{
    struct spec *spec = &o->spec;
    bool alone = set->takes == CXI_ALONE;
    if (alone)
        settle_loopback(o);
    int status = alone || !method_of(spec)->lists ? 0 : check_list(o);
    if (!status)
        status = check_pairs(o, alone);
    if (!status && !alone)
        status = check_role(o, set);
    if (!status && spec_amo_op(spec) != AMO_CSWAP && given(set, "cswap-op"))
        status = fail(-EINVAL, "--cswap-op %s is for --atomic-op CSWAP, not %s",
                      amo_compare_names[spec_amo_compare(spec)], amo_op_names[spec_amo_op(spec)]);
    if (status)
        return status;
    warn_gpus(o, set);
    if (spec->count.duration_ms && given(set, "iters"))
        warn("--duration and --iters are both given: --duration wins");
    if (spec->count.duration_ms && spec->local.keep_samples) {
        if (given(set, "report-all"))
            warn("--report-all is ignored with --duration");
        spec->local.keep_samples = false;
        opt_resolved(set, "report-all", "duration");
    }
    if (spec->count.duration_ms) {
        spec->count.iterations = 0;
        opt_resolved(set, "iters", "duration");
    }
    if (method_of(spec)->lists)
        spec->local.interval_ms = o->interval_s * 1000;
    spec_settle(spec);
    return spec_check(spec);
}

/* ---- GPUs ---- */

int cxi_find_gpu(const struct cxi_options *o, int64_t device, char memory[SESSION_MEMORY],
                 unsigned *count)
{
    const struct memory_ops *kind;
    if (device < 0)
        return 0;
    int status = gpu_find((enum memory_vendor)o->gpu_type, (unsigned)device, &kind, count);
    if (status && !*count)
        return fail(status, "Invalid GPU type or unable to find GPU libraries: %s", fail_reason());
    if (!status)
        snprintf(memory, SESSION_MEMORY, "%s:%u", kind->name, (unsigned)device);
    return status;
}

/* ---- what a server grants ---- */

/* A client with one pair does not send them. */
static int read_pairs(const struct msg *greeting, uint64_t *pairs, uint64_t *number)
{
    char text[24];
    *pairs = 1;
    *number = 0;
    int status = msg_value(greeting, ".procs", text, sizeof text);
    if (status == -ENOENT)
        return 0;
    if (status || unit_number(text, pairs) || msg_value(greeting, ".pair", text, sizeof text) ||
        unit_number(text, number) || !*pairs)
        return fail(-EPROTO, "a number of pairs that cannot be read");
    return 0;
}

int cxi_grant_pairs(const struct cxi_options *own, const struct pairs *mine,
                    const struct msg *greeting, unsigned *granted)
{
    uint64_t pairs, number, most = own->max_procs;
    int status = read_pairs(greeting, &pairs, &number);
    if (status)
        return status;
    if (own->member ? pairs != mine->count || number != mine->member.number : number != 0)
        return fail(-EPROTO, "this is not the server of pair %" PRIu64 " of %" PRIu64, number,
                    pairs);
    if (!most)
        most = cpu_choices("", NULL, (int64_t[CPU_CHOICES]){0}, TEAM_MOST);
    if (pairs > most && !own->member)
        return fail(-EDQUOT,
                    "the client wants %" PRIu64 " pairs, and the server allows %" PRIu64
                    ": start it with --max-procs %" PRIu64,
                    pairs, most, pairs);
    if (own->procs && own->procs != pairs)
        return fail(-EINVAL,
                    "the client has %" PRIu64 " pairs, the server %" PRIu64
                    ": give both the same --procs",
                    pairs, own->procs);
    if (pairs % own->device_count)
        return fail(-EINVAL, "the client has %" PRIu64 " pairs, the server %u devices", pairs,
                    own->device_count);
    *granted = (unsigned)pairs;
    return 0;
}

void cxi_server_arguments(struct arguments *a, const struct cxi_options *o, bool port_given,
                          int64_t cpu)
{
    arguments_begin(a);
    argument(a, "--port", "%" PRIu64, port_given ? o->port : 0);
    argument(a, "--bind", "%s", *o->bind ? o->bind : local_address);
    argument(a, "--device", "%s", o->devices);
    argument(a, "--svc-id", "%" PRIu64, o->service);
    argument(a, "--timeout", "%" PRIu64, o->spec.timeout_ms / 1000);
    local_bounds(a, &o->most);
    if (o->pairs > 1)
        argument(a, "--max-procs", "%u", o->pairs);
    if (cpu >= 0)
        argument(a, "--cpu", "%" PRId64, cpu);
    if (o->rx_gpu >= 0)
        argument(a, "--rx-gpu", "%" PRId64, o->rx_gpu);
    if (o->rx_gpu >= 0 && o->gpu_type)
        argument(a, "--gpu-type", "%s", memory_vendors[o->gpu_type - 1]);
}
