/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules among the options of the CXI family, each a sentence. */
#include "tool/cxi.h"
#include "tool/serve.h"

#include <errno.h>

static bool given(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);
    return row && opt_origin(set, row) == OPT_BY_USER;
}

static void warn_gpus(const struct cxi_options *o, const struct opt_set *set)
{
    bool any = o->tx_gpu >= 0 || o->rx_gpu >= 0, server = !o->address && !o->local;
    if (any && o->huge)
        warn("--use-hp has no effect on GPU buffers");
    if (!any && given(set, "gpu-type"))
        warn("--gpu-type has no effect without --tx-gpu or --rx-gpu");
    if (server && given(set, "tx-gpu"))
        warn("--tx-gpu is the client's to say: it has no effect here");
    if (server && given(set, "use-hp"))
        warn("--use-hp is the client's to say: it has no effect here");
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
                        .server_cpu = o->cpu[1]};
    int status = role_check(&role, set);
    return status ? status : access_open(&o->access, set, &role);
}

int cxi_check(struct cxi_options *o, struct opt_set *set)
{
    struct spec *spec = &o->spec;
    bool alone = set->takes == CXI_ALONE;
    if (alone)
        settle_loopback(o);
    int status = alone ? 0 : check_role(o, set);
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
