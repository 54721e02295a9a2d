/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of the CXI family's header that are not simply an option's value. */
#include "tool/cxi_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- header values ---- */

static const struct cxi_options *options_of(const void *header)
{
    return ((const struct header *)header)->base;
}

static const struct spec *spec_of(const void *header)
{
    return &options_of(header)->spec;
}

static const struct facts *facts_of(const void *header)
{
    return ((const struct header *)header)->facts;
}

static const struct session *session_of(const void *header)
{
    return facts_of(header)->session;
}

static const struct fabric_facts *fabric_of(const void *header)
{
    return &session_of(header)->facts;
}

int cxi_show_fabric(const void *header, char *text, size_t room)
{
    const char *why = session_of(header)->why;
    return snprintf(text, room, "%s%s%s", fabric_of(header)->form, *why ? ": " : "", why);
}

int cxi_show_cpu(const void *header, char *text, size_t room)
{
    const char *near = options_of(header)->near;
    return *near ? snprintf(text, room, "%s", near) : NO_LINE;
}

static bool on_gpu(const void *header, int rank)
{
    return session_of(header)->vendors[rank] != MEMORY_CPU;
}

static int show_memory(const void *header, int rank, char *text, size_t room)
{
    const char *colon = strchr(session_of(header)->memory[rank], ':');
    if (!on_gpu(header, rank))
        return snprintf(text, room, "System");
    return snprintf(text, room, "GPU %s", colon ? colon + 1 : "0");
}

int cxi_show_tx(const void *header, char *text, size_t room)
{
    return show_memory(header, PEER_CLIENT, text, room);
}

int cxi_show_rx(const void *header, char *text, size_t room)
{
    return show_memory(header, PEER_SERVER, text, room);
}

static int show_vendor(const void *header, int rank, char *text, size_t room)
{
    enum memory_vendor vendor = session_of(header)->vendors[rank];
    return vendor == MEMORY_CPU ? NO_LINE : snprintf(text, room, "%s", memory_vendors[vendor - 1]);
}

int cxi_show_client_vendor(const void *header, char *text, size_t room)
{
    return show_vendor(header, PEER_CLIENT, text, room);
}

int cxi_show_server_vendor(const void *header, char *text, size_t room)
{
    return show_vendor(header, PEER_SERVER, text, room);
}

/* Of either end: both are this process's, and it has GPUs of one vendor. */
int cxi_show_vendor(const void *header, char *text, size_t room)
{
    return show_vendor(header, on_gpu(header, PEER_CLIENT) ? PEER_CLIENT : PEER_SERVER, text, room);
}

int cxi_show_test_type(const void *header, char *text, size_t room)
{
    return snprintf(text, room, spec_of(header)->count.duration_ms ? "Duration" : "Iteration");
}

int cxi_show_iters(const void *header, char *text, size_t room)
{
    const struct spec_count *count = &spec_of(header)->count;
    return count->duration_ms ? NO_LINE : snprintf(text, room, "%" PRIu64, count->iterations);
}

int cxi_show_duration(const void *header, char *text, size_t room)
{
    uint64_t duration_ms = spec_of(header)->count.duration_ms;
    return duration_ms ? snprintf(text, room, "%" PRIu64 " seconds", duration_ms / 1000) : NO_LINE;
}

int cxi_show_ops(const void *header, char *text, size_t room)
{
    uint64_t ops = spec_of(header)->count.ops_per_sample;
    return ops > 1 ? snprintf(text, room, "%" PRIu64, ops) : NO_LINE;
}

int cxi_show_gap(const void *header, char *text, size_t room)
{
    return snprintf(text, room, "%" PRIu64 " microseconds", spec_of(header)->pace.gap_ns / 1000);
}

int cxi_show_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? snprintf(text, room, "%" PRIu64, size->min) : NO_LINE;
}

int cxi_show_min_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->min);
}

int cxi_show_max_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->max);
}

int cxi_show_service(const void *header, char *text, size_t room)
{
    const char *why = fabric_of(header)->why_no_service;
    if (why)
        return snprintf(text, room, "n/a (%s)", why);
    return snprintf(text, room, "%" PRIu64, options_of(header)->service);
}

/* Hints may hold for some sizes. */
static void judge(const void *header, enum hint hint, int rank, uint64_t size,
                  struct hint_state *state)
{
    struct hint_question question = {.facts = fabric_of(header),
                                     .op = facts_of(header)->op,
                                     .spec = spec_of(header),
                                     .size = size,
                                     .gpu = on_gpu(header, rank),
                                     .lists = facts_of(header)->method->lists};
    hint_judge(&question, hint, state);
}

/* A request that cannot be honoured is not silently dropped. A sweep of lists may outgrow it. */
static int show_hint(const void *header, enum hint hint, char *text, size_t room)
{
    struct hint_state state, last;
    judge(header, hint, PEER_CLIENT, spec_of(header)->size.min, &state);
    judge(header, hint, PEER_CLIENT, spec_of(header)->size.max, &last);
    if (!state.has)
        return snprintf(text, room, "n/a (%s)", state.why);
    if (state.barred)
        return snprintf(text, room, "Disabled - Not Applicable");
    if (state.holds && !last.holds && facts_of(header)->method->lists)
        return snprintf(text, room, "Enabled (not %s)", last.why);
    if (!state.asked || state.holds)
        return snprintf(text, room, state.holds ? "Enabled" : "Disabled");
    return snprintf(text, room, "Disabled (%s)", state.why);
}

/* The end that answers sends too. */
int cxi_show_idc(const void *header, char *text, size_t room)
{
    struct hint_state first, last;
    const struct spec *spec = spec_of(header);
    judge(header, HINT_INLINE, PEER_CLIENT, spec->size.min, &first);
    judge(header, HINT_INLINE, PEER_SERVER, spec->size.min, &last);
    if ((facts_of(header)->legs == 2 || spec->both_ways) && first.holds != last.holds)
        return snprintf(text, room, "Enabled (not from the %s's GPU)",
                        first.holds ? "server" : "client");
    if (facts_of(header)->method->lists && first.has && first.barred && spec->hints.rendezvous)
        return snprintf(text, room, "Disabled (%s)", first.why);
    return show_hint(header, HINT_INLINE, text, room);
}

int cxi_show_restricted(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_RESTRICTED, text, room);
}

int cxi_show_matching(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_MATCHING, text, room);
}

int cxi_show_rendezvous(const void *header, char *text, size_t room)
{
    return spec_of(header)->hints.rendezvous ? show_hint(header, HINT_RENDEZVOUS, text, room)
                                             : NO_LINE;
}

int cxi_show_amo_op(const void *header, char *text, size_t room)
{
    const struct spec *spec = spec_of(header);
    enum amo_op op = spec_amo_op(spec);
    const char *how = fabric_of(header)->compare_how;
    bool compares = op == AMO_CSWAP, fetching = spec->amo.fetching;
    bool fetches = how && !fetching && (compares || op == AMO_AXOR);
    return snprintf(text, room, "%s %s%s%s%s%s%s", fetching ? "FETCHING" : "NON-FETCHING",
                    amo_op_names[op], compares ? " " : "",
                    compares ? amo_compare_names[spec_amo_compare(spec)] : "", fetches ? " (" : "",
                    fetches ? how : "", fetches ? ")" : "");
}

/* The widest types are not done alike everywhere. */
int cxi_show_amo_type(const void *header, char *text, size_t room)
{
    const char *how = fabric_of(header)->amo_how;
    enum amo_type type = spec_amo_type(spec_of(header));
    bool wide = amo_size(type) == AMO_MAX_BYTES && how;
    return snprintf(text, room, "%s%s%s%s", amo_type_names[type], wide ? " (" : "", wide ? how : "",
                    wide ? ")" : "");
}

int cxi_show_ll(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_LL, text, room);
}

int cxi_show_results(const void *header, char *text, size_t room)
{
    return snprintf(text, room, spec_of(header)->local.keep_samples ? "All" : "Summary");
}

int cxi_show_huge(const void *header, char *text, size_t room)
{
    const struct region *buffer = &session_of(header)->buffer;
    if (buffer->gpu && options_of(header)->huge && facts_of(header)->method->lists)
        return snprintf(text, room, "Disabled - Not Applicable");
    if (buffer->kind == &memory_host || buffer->gpu)
        return snprintf(text, room, "Disabled");
    return snprintf(text, room, "Enabled (%s - %zu pages)", buffer->kind->name,
                    buffer->mapped / buffer->page);
}

int cxi_show_verify(const void *header, char *text, size_t room)
{
    return spec_of(header)->data.verify ? snprintf(text, room, "Every iteration, not timed")
                                        : NO_LINE;
}

int cxi_show_events(const void *header, char *text, size_t room)
{
    return spec_of(header)->waits.events ? snprintf(text, room, "Sleep until an event") : NO_LINE;
}

int cxi_show_clock(const void *header, char *text, size_t room)
{
    return snprintf(text, room, "%s", facts_of(header)->clock_text);
}

static int show_local(const void *header, bool initiator, char *text, size_t room)
{
    const struct fabric_facts *fabric = fabric_of(header);
    if (facts_of(header)->initiator != initiator)
        return NO_LINE;
    return snprintf(text, room, "%s%s%s", fabric->self, *fabric->domain ? " " : "", fabric->domain);
}

static int show_remote(const void *header, bool initiator, char *text, size_t room)
{
    const struct facts *facts = facts_of(header);
    bool says = facts->method->lists || fabric_of(header)->nic;
    if (facts->initiator == initiator)
        return NO_LINE;
    return snprintf(text, room, "%s%s", facts->remote,
                    says && facts_loopback(facts) ? " (loopback)" : "");
}

int cxi_show_local_client(const void *header, char *text, size_t room)
{
    return show_local(header, true, text, room);
}

int cxi_show_local_server(const void *header, char *text, size_t room)
{
    return show_local(header, false, text, room);
}

int cxi_show_remote_client(const void *header, char *text, size_t room)
{
    return show_remote(header, true, text, room);
}

int cxi_show_remote_server(const void *header, char *text, size_t room)
{
    return show_remote(header, false, text, room);
}

/* ---- bandwidth tools ---- */

int cxi_show_pairs(const void *header, char *text, size_t room)
{
    unsigned pairs = options_of(header)->pairs;
    return pairs > 1 ? snprintf(text, room, "%u", pairs) : NO_LINE;
}

int cxi_show_client_rx(const void *header, char *text, size_t room)
{
    return spec_of(header)->both_ways ? cxi_show_tx(header, text, room) : NO_LINE;
}

int cxi_show_server_tx(const void *header, char *text, size_t room)
{
    return spec_of(header)->both_ways ? cxi_show_rx(header, text, room) : NO_LINE;
}

int cxi_show_list(const void *header, char *text, size_t room)
{
    uint64_t list = spec_of(header)->pace.list;
    unsigned depth = fabric_of(header)->depth;
    if (list <= depth || session_takes_lists(session_of(header), spec_of(header)))
        return snprintf(text, room, "%" PRIu64, list);
    return snprintf(text, room, "%" PRIu64 " (%u at a time)", list, depth);
}

int cxi_show_hrp(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_HRP, text, room);
}

int cxi_show_both_ways(const void *header, char *text, size_t room)
{
    return snprintf(text, room, spec_of(header)->both_ways ? "Enabled" : "Disabled");
}

int cxi_show_puts(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_RENDEZVOUS, text, room);
}

/* All of a list's places together, in whole pages; a GPU's are not shown. */
int cxi_show_buffer(const void *header, char *text, size_t room)
{
    const struct region *buffer = &session_of(header)->buffer;
    const struct spec *spec = spec_of(header);
    size_t used = spec_list_bytes(spec);
    size_t page = buffer->page && !buffer->gpu ? buffer->page : (size_t)sysconf(_SC_PAGESIZE);
    return snprintf(text, room, "%" PRIu64 " (%zu used)", spec->data.most,
                    (used + page - 1) / page * page);
}

int cxi_show_found(const void *header, char *text, size_t room)
{
    unsigned gpus = options_of(header)->gpus;
    return gpus ? snprintf(text, room, "Found %u GPU(s)", gpus) : NO_LINE;
}
