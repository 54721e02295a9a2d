/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules among options, each a sentence. */
#include "bench/bench.h"
#include "core/opt.h"

#include <errno.h>

const char *const plan_huge[] = {"2M", "1G", NULL};

static bool given(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);
    return row && opt_origin(set, row) == OPT_BY_USER;
}

static int roles(const struct plan *plan)
{
    if (plan->local && plan->address)
        return fail(-EINVAL, "--local starts its own server: leave out the address \"%s\"",
                    plan->address);
    if (plan->loop && (plan->address || plan->local))
        return fail(-EINVAL, "--loop is for a server: leave out %s",
                    plan->local ? "--local" : "the address");
    if (plan->address && !*plan->address)
        return fail(-EINVAL, "the server's address is empty: \"\"");
    if (plan->address && !plan->port)
        return fail(-EINVAL, "--port 0 is for a server, which then says the port it was given");
    if (plan->cpu[1] >= 0 && !plan->local)
        return fail(-EINVAL, "--cpu: a second CPU is for the server that --local starts");
    return 0;
}

static void gpus(const struct plan *plan, const struct opt_set *set)
{
    bool any = plan->tx_gpu >= 0 || plan->rx_gpu >= 0;
    if (any && plan->huge)
        warn("--use-hp has no effect on GPU buffers");
    if (!any && given(set, "gpu-type"))
        warn("--gpu-type has no effect without --tx-gpu or --rx-gpu");
}

unsigned plan_gpus(const struct plan *plan)
{
    return (1U << plan->vendors[0] | 1U << plan->vendors[1]) & MEMORY_ALL_GPUS;
}

int plan_find_gpu(struct plan *plan, int rank, unsigned *count)
{
    const struct memory_ops *kind;
    int64_t device = plan_gpu(plan, rank);
    *count = 0;
    plan->vendors[rank] = MEMORY_CPU;
    if (device < 0)
        return 0;
    int status = gpu_find((enum memory_vendor)plan->gpu_type, (unsigned)device, &kind, count);
    if (!status)
        plan->vendors[rank] = kind->vendor;
    return status;
}

/* Does the type have the op? And then the size is the type's. */
static int atomics(struct plan *plan, const struct opt_set *set)
{
    char ops[128];
    if (!opt_find(set, "atomic-op"))
        return 0;
    enum amo_op op = (enum amo_op)(plan->amo_op - 1);
    enum amo_type type = (enum amo_type)(plan->amo_type - 1);
    enum amo_compare compare = (enum amo_compare)(plan->amo_compare - 1);
    if (op != AMO_CSWAP && given(set, "cswap-op"))
        return fail(-EINVAL, "--cswap-op %s is for --atomic-op CSWAP, not %s",
                    amo_compare_names[compare], amo_op_names[op]);
    if (!amo_valid(op, type, compare)) {
        amo_list_ops(type, ops, sizeof ops);
        return fail(-EINVAL, "Invalid Op and Type combination: %s%s%s on %s, which takes %s",
                    amo_op_names[op], op == AMO_CSWAP ? " " : "",
                    op == AMO_CSWAP ? amo_compare_names[compare] : "", amo_type_names[type], ops);
    }
    plan->size.min = plan->size.max = amo_size(type);
    return 0;
}

int plan_check(struct plan *plan, const struct opt_set *set)
{
    int status = roles(plan);
    if (!status)
        status = atomics(plan, set);
    if (status)
        return status;
    gpus(plan, set);
    if (plan->duration_s && given(set, "iters"))
        warn("--duration and --iters are both given: --duration wins");
    if (plan->duration_s && plan->report_all) {
        if (given(set, "report-all"))
            warn("--report-all is ignored with --duration");
        plan->report_all = false;
    }
    return 0;
}
