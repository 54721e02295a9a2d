/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a document and the struct study_run they are read into: one table per object. */
#include "study/read.h"

#include <math.h>
#include <string.h>

#define AT(type, member) offsetof(struct type, member)

static const char *const first_origins[] = {"default", "user", "batch", "peer", NULL};
static const char *const origins[] = {"default", "user", "batch", "peer", "resolved", NULL};
static const char *const states[] = {"complete", "interrupted", "failed", NULL};
static const char *const methods[] = {"latency", "ping-pong",       "stream", "stream both ways",
                                      "list",    "lists both ways", NULL};
static const char *const clocks[] = {"cycles", "clock_gettime", NULL};
static const char *const verdicts[] = {"passed", "failed", "unknown", NULL};

/* Version 1: a list with names. */
static const struct field option_fields[] = {
    {"name", TEXT, AT(study_pair, name), NULL},
    {"value", TEXT, AT(study_pair, value), NULL},
    {"origin", TEXT, AT(study_pair, origin), first_origins},
    {0}};

/* Version 2: an object by name. */
static const struct field origin_fields[] = {{"origin", TEXT, AT(study_pair, origin), origins},
                                             {0}};

static const struct field percentile_fields[] = {
    {"percent", PERCENT, AT(study_percentile, percent), NULL},
    {"us", NUMBER_OR_NULL, AT(study_percentile, us), NULL},
    {"low_us", NUMBER_OR_NULL, AT(study_percentile, low_us), NULL},
    {"high_us", NUMBER_OR_NULL, AT(study_percentile, high_us), NULL},
    {0}};

static const struct field interval_fields[] = {
    {"end_s", NUMBER, AT(study_interval, end_s), NULL},
    {"count", COUNT, AT(study_interval, count), NULL},
    {"mean_us", NUMBER, AT(study_interval, mean_us), NULL},
    {"min_us", NUMBER_OR_NULL, AT(study_interval, min_us), NULL},
    {"max_us", NUMBER_OR_NULL, AT(study_interval, max_us), NULL},
    {"p50_us", NUMBER_IF_ANY, AT(study_interval, p50_us), NULL},
    {"p99_us", NUMBER_IF_ANY, AT(study_interval, p99_us), NULL},
    {0}};

static const struct field part_fields[] = {
    {"device", TEXT, AT(study_part, device), NULL},
    {"complete", FLAG, AT(study_part, complete), NULL},
    {"operations", COUNT, AT(study_part, operations), NULL},
    {"elapsed_s", NUMBER_OR_NULL, AT(study_part, elapsed_s), NULL},
    {"bytes_per_s", NUMBER_OR_NULL, AT(study_part, bytes_per_s), NULL},
    {"messages_per_s", NUMBER_OR_NULL, AT(study_part, messages_per_s), NULL},
    {0}};

static const struct field verdict_fields[] = {
    {"condition", TEXT, AT(study_condition, text), NULL},
    {"result", COUNT, AT(study_condition, result), NULL},
    {"value", NUMBER_OR_NULL, AT(study_condition, value), NULL},
    {"verdict", TEXT, AT(study_condition, verdict), verdicts},
    {0}};

static const struct field result_fields[] = {
    {"test", TEXT, AT(study_result, test), NULL},
    {"label", TEXT, AT(study_result, label), NULL},
    {"size", COUNT, AT(study_result, size), NULL},
    {"layout", TEXT_OR_NULL, AT(study_result, layout), NULL},
    {"complete", FLAG, AT(study_result, complete), NULL},
    {"count", COUNT, AT(study_result, count), NULL},
    {"min_us", NUMBER, AT(study_result, min_us), NULL},
    {"max_us", NUMBER, AT(study_result, max_us), NULL},
    {"mean_us", NUMBER, AT(study_result, mean_us), NULL},
    {"deviation_us", NUMBER, AT(study_result, deviation_us), NULL},
    {"median_us", NUMBER, AT(study_result, median_us), NULL},
    {"elapsed_s", NUMBER_OR_NULL, AT(study_result, elapsed_s), NULL},
    {"bytes_per_s", NUMBER_OR_NULL, AT(study_result, bytes_per_s), NULL},
    {"messages_per_s", NUMBER_OR_NULL, AT(study_result, messages_per_s), NULL},
    {0}};

/* Since version 2. */
static const struct field sampling_fields[] = {
    {"operations", COUNT, AT(study_result, operations), NULL},
    {"ops_per_sample", POSITIVE, AT(study_result, ops_per_sample), NULL},
    {"warmup", COUNT, AT(study_result, warmup), NULL},
    {"resolved", FLAG, AT(study_result, resolved), NULL},
    {"resolution_ns", NUMBER, AT(study_result, resolution_ns), NULL},
    {"clamped", COUNT, AT(study_result, clamped), NULL},
    {0}};

static const struct field step_fields[] = {
    {"clock_step_ns", NUMBER, AT(study_result, clock_step_ns), NULL}, {0}};

static const struct field library_fields[] = {
    {"library", TEXT_OR_NULL, AT(study_result, library), NULL}, {0}};

/* A request to the NIC. Nothing here asks for them yet. */
struct request {
    bool asked, honoured;
    const char *why;
};
static const struct field hint_fields[] = {{"asked", FLAG, AT(request, asked), NULL},
                                           {"honoured", FLAG, AT(request, honoured), NULL},
                                           {"why", TEXT, AT(request, why), NULL},
                                           {0}};

static const struct field build_fields[] = {{"version", TEXT, AT(study_run, version), NULL},
                                            {"commit", TEXT, AT(study_run, commit), NULL},
                                            {"compiler", TEXT, AT(study_run, compiler), NULL},
                                            {"flags", TEXT, AT(study_run, flags), NULL},
                                            {0}};

static const struct field fabric_fields[] = {{"name", TEXT, AT(study_result, fabric), NULL},
                                             {"device", TEXT, AT(study_result, device), NULL},
                                             {"form", TEXT, AT(study_result, form), NULL},
                                             {"why", TEXT, AT(study_result, why), NULL},
                                             {0}};

static const struct field method_fields[] = {
    {"name", TEXT, AT(study_result, method), methods},
    {"half_round_trip", FLAG, AT(study_result, half_round_trip), NULL},
    {"clock", TEXT, AT(study_result, clock), clocks},
    {"clock_cost_ns", NUMBER, AT(study_result, clock_cost_ns), NULL},
    {"clock_subtracted", FLAG, AT(study_result, clock_subtracted), NULL},
    {"completion_proves", TEXT, AT(study_result, proves), NULL},
    {0}};

static const struct field interference_fields[] = {
    {"preempted", COUNT, AT(study_result, preempted), NULL},
    {"migrated", COUNT, AT(study_result, migrated), NULL},
    {"page_faults", COUNT, AT(study_result, page_faults), NULL},
    {"steal_ms", COUNT, AT(study_result, steal_ms), NULL},
    {0}};

static const struct field reverse_fields[] = {
    {"count", COUNT, AT(study_result, reverse_count), NULL},
    {"elapsed_s", NUMBER, AT(study_result, reverse_elapsed_s), NULL},
    {0}};

/* Of one of several pairs; its results are in the sum. */
struct pair_of {
    const char *device;
};
static const struct field pair_fields[] = {{"device", TEXT, AT(pair_of, device), NULL}, {0}};

static const struct field ceiling_fields[] = {
    {"memcpy_bytes_per_s", NUMBER_OR_NULL, AT(study_result, memcpy_bytes_per_s), NULL},
    {"link_bytes_per_s", NUMBER_OR_NULL, AT(study_result, link_bytes_per_s), NULL},
    {0}};

static const struct field run_fields[] = {
    {"begun", TIME, AT(study_run, begun), NULL}, {"ended", TIME, AT(study_run, ended), NULL}, {0}};

static const struct field tool_fields[] = {{"name", TEXT, AT(study_run, tool), NULL},
                                           {"version", TEXT, AT(study_run, version), NULL},
                                           {0}};

static const struct field status_fields[] = {{"state", TEXT, AT(study_run, state), states},
                                             {"exit", COUNT, AT(study_run, exit), NULL},
                                             {"reason", TEXT, AT(study_run, reason), NULL},
                                             {0}};

static int read_bucket(const struct reader *r, const char *where, const json_t *triple,
                       double from_us, struct study_bucket *bucket)
{
    double low = json_number_value(json_array_get(triple, 0));
    double high = json_number_value(json_array_get(triple, 1));
    json_int_t count = json_integer_value(json_array_get(triple, 2));
    bool numbers =
        json_is_number(json_array_get(triple, 0)) && json_is_number(json_array_get(triple, 1));
    if (json_array_size(triple) != 3 || !numbers || !(low >= from_us) || !(high > low) || count < 1)
        return reader_wrong(r, where, "histogram", "has an invalid bucket");
    *bucket = (struct study_bucket){low, high, (uint64_t)count};
    return 0;
}

static int read_histogram(struct reader *r, const json_t *object, const char *where,
                          struct study_result *result)
{
    int status = read_list(r, object, where, "histogram", sizeof *result->buckets, &result->buckets,
                           &result->bucket_count);
    const json_t *list = json_object_get(object, "histogram");
    double from_us = 0;
    for (size_t i = 0; i < result->bucket_count && !status; i++) {
        status = read_bucket(r, where, json_array_get(list, i), from_us, &result->buckets[i]);
        from_us = result->buckets[i].high_us;
    }
    return status;
}

/* The value as it would be typed; NULL: no memory. */
static const char *typed(struct reader *r, const json_t *value)
{
    char text[64] = "";
    if (json_is_string(value))
        return reader_text(r, json_string_value(value));
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(text, sizeof text, "%d", json_is_true(value));
    return reader_text(r, text);
}

/* "--duration": the option that decided. */
static int read_cause(struct reader *r, const json_t *option, const char *where,
                      struct study_pair *pair)
{
    char text[80];
    const char *by = json_string_value(json_object_get(option, "by"));
    if (strcmp(pair->origin, "resolved") != 0)
        return 0;
    if (!by)
        return reader_wrong(r, where, "by", "is missing");
    snprintf(text, sizeof text, "--%.70s", by);
    pair->origin = reader_text(r, text);
    return pair->origin ? 0 : reader_no_memory(r);
}

static int read_option(struct reader *r, const json_t *option, const char *where,
                       struct study_pair *pair)
{
    const json_t *value = json_object_get(option, "value");
    int status = read_object(r, option, where, origin_fields, pair);
    if (!status && (!value || json_is_object(value) || json_is_array(value)))
        status = reader_wrong(r, where, "value", value ? "has a wrong type" : "is missing");
    if (!status && !(pair->value = typed(r, value)))
        status = reader_no_memory(r);
    return status ? status : read_cause(r, option, where, pair);
}

/* Both forms give the same. */
static int read_options(struct reader *r, json_t *object, const char *where,
                        struct study_pair **options, size_t *count)
{
    json_t *all = json_object_get(object, "options"), *option;
    const char *name;
    char inner[WHERE];
    int status = 0;
    if (r->version == 1)
        return read_objects(r, object, where, "options", option_fields, sizeof **options, options,
                            count);
    if (!json_is_object(all))
        return reader_wrong(r, where, "options", all ? "is not an object" : "is missing");
    *options = reader_alloc(r, json_object_size(all) * sizeof **options);
    if (!*options)
        return reader_no_memory(r);
    json_object_foreach(all, name, option)
    {
        struct study_pair *pair = &(*options)[(*count)++];
        pair->name = reader_text(r, name);
        if (!pair->name)
            return reader_no_memory(r);
        snprintf(inner, sizeof inner, "%.*soptions.%.40s.", WHERE / 3, where, pair->name);
        status = read_option(r, option, inner, pair);
        if (status)
            return status;
    }
    return status;
}

static int check_hints(struct reader *r, const json_t *object, const char *where)
{
    json_t *all = json_object_get(object, "hints"), *one;
    const char *name;
    char inner[WHERE];
    int status = 0;
    if (!json_is_object(all))
        return reader_wrong(r, where, "hints", all ? "is not an object" : "is missing");
    json_object_foreach(all, name, one)
    {
        struct request request;
        snprintf(inner, sizeof inner, "%.*shints.", WHERE / 3, where);
        status = status ? status : read_object(r, one, inner, hint_fields, &request);
    }
    return status;
}

/* What documents have since version 2. */
static int read_more(struct reader *r, const json_t *object, const char *where,
                     struct study_result *result)
{
    result->resolved = true;
    result->ops_per_sample = 1;
    result->operations = result->count;
    result->clock_step_ns = NAN;
    if (r->version == 1)
        return 0;
    int status = read_object(r, object, where, sampling_fields, result);
    if (!status)
        status = read_member(r, object, where, "method", step_fields, result);
    if (!status)
        status = read_member(r, object, where, "fabric", library_fields, result);
    if (!status)
        status = read_counters(r, object, where, result);
    return status ? status : check_hints(r, object, where);
}

static int read_pairs(struct reader *r, json_t *object, const char *where, const char *key,
                      struct study_result *result)
{
    struct pair_of *pairs = NULL;
    size_t count = 0;
    int status = read_objects(r, object, where, key, pair_fields, sizeof *pairs, &pairs, &count);
    result->pairs = count;
    for (size_t i = 0; i < count && !status; i++) {
        size_t before = 0;
        while (before < i && strcmp(pairs[before].device, pairs[i].device) != 0)
            before++;
        result->devices += before == i;
    }
    return status;
}

static int read_lists(struct reader *r, json_t *object, const char *where,
                      struct study_result *result)
{
    const char *key = json_object_get(object, "threads") ? "threads" : "pairs";
    int status = 0;
    if (json_object_get(object, "options"))
        status = read_options(r, object, where, &result->options, &result->option_count);
    if (!status)
        status = read_objects(r, object, where, "percentiles", percentile_fields,
                              sizeof *result->percentiles, &result->percentiles,
                              &result->percentile_count);
    if (!status && json_object_get(object, key))
        status = read_pairs(r, object, where, key, result);
    if (!status)
        status =
            read_objects(r, object, where, "series", interval_fields, sizeof *result->intervals,
                         &result->intervals, &result->interval_count);
    if (!status && json_object_get(object, key))
        status = read_objects(r, object, where, key, part_fields, sizeof *result->parts,
                              &result->parts, &result->part_count);
    return status ? status : read_histogram(r, object, where, result);
}

static int read_result(struct reader *r, json_t *object, const char *where,
                       struct study_result *result)
{
    result->reverse_elapsed_s = result->memcpy_bytes_per_s = result->link_bytes_per_s = NAN;
    int status = read_object(r, object, where, result_fields, result);
    if (!status)
        status = read_member(r, object, where, "fabric", fabric_fields, result);
    if (!status)
        status = read_member(r, object, where, "method", method_fields, result);
    if (!status)
        status = read_member(r, object, where, "interference", interference_fields, result);
    if (!status && json_object_get(object, "reverse"))
        status = read_member(r, object, where, "reverse", reverse_fields, result);
    if (!status && json_object_get(object, "ceilings"))
        status = read_member(r, object, where, "ceilings", ceiling_fields, result);
    if (!status)
        status = read_more(r, object, where, result);
    return status ? status : read_lists(r, object, where, result);
}

static int read_results(struct reader *r, const json_t *root, struct study_run *run)
{
    int status =
        read_list(r, root, "", "results", sizeof *run->results, &run->results, &run->result_count);
    for (size_t i = 0; i < run->result_count && !status; i++) {
        char where[WHERE];
        snprintf(where, sizeof where, "results[%zu].", i);
        status = read_result(r, json_array_get(json_object_get(root, "results"), i), where,
                             &run->results[i]);
    }
    return status;
}

static int read_verdicts(struct reader *r, const json_t *root, struct study_run *run)
{
    int status = read_objects(r, root, "", "verdicts", verdict_fields, sizeof *run->conditions,
                              &run->conditions, &run->condition_count);
    for (size_t i = 0; i < run->condition_count && !status; i++)
        if (run->conditions[i].result >= run->result_count)
            status = reader_wrong(r, "", "verdicts", "refers to a result that does not exist");
    return status;
}

/* Both machines describe themselves: any facts, but host and weft must be among them. */
static int read_machine(struct reader *r, const json_t *ends, const char *key,
                        struct study_pair **facts, size_t *count)
{
    json_t *machine = json_object_get(ends, key);
    const char *name;
    json_t *value;
    if (!json_string_value(json_object_get(machine, "host")) ||
        !json_string_value(json_object_get(machine, "weft")))
        return reader_wrong(r, "ends.", key, "lacks host or weft");
    *facts = reader_alloc(r, json_object_size(machine) * sizeof **facts);
    if (!*facts)
        return reader_no_memory(r);
    json_object_foreach(machine, name, value)
    {
        struct study_pair *fact = &(*facts)[(*count)++];
        if (!json_is_string(value))
            return reader_wrong(r, "ends.", key, "has a value that is not a string");
        fact->name = reader_text(r, name);
        fact->value = reader_text(r, json_string_value(value));
        if (!fact->name || !fact->value)
            return reader_no_memory(r);
    }
    return 0;
}

static int read_ends(struct reader *r, const json_t *root, struct study_run *run)
{
    const json_t *ends = json_object_get(root, "ends");
    const json_t *server = json_object_get(ends, "server");
    int status = read_machine(r, ends, "client", &run->client, &run->client_count);
    if (!status && !server)
        status = reader_wrong(r, "ends.", "server", "is missing");
    if (!status && !json_is_null(server))
        status = read_machine(r, ends, "server", &run->server, &run->server_count);
    return status;
}

static int read_texts(struct reader *r, const json_t *object, const char *where, const char *key,
                      const char ***texts, size_t *count)
{
    int status = read_list(r, object, where, key, sizeof **texts, texts, count);
    for (size_t i = 0; i < *count && !status; i++) {
        const char *text = json_string_value(json_array_get(json_object_get(object, key), i));
        if (!text)
            return reader_wrong(r, where, key, "has an entry that is not a string");
        (*texts)[i] = reader_text(r, text);
        status = (*texts)[i] ? 0 : reader_no_memory(r);
    }
    return status;
}

static int read_build(struct reader *r, const json_t *root, struct study_run *run)
{
    if (r->version == 1)
        return 0;
    int status = read_member(r, root, "", "build", build_fields, run);
    return status ? status
                  : read_texts(r, json_object_get(root, "build"), "build.", "libraries",
                               &run->libraries, &run->library_count);
}

int read_run(struct reader *r, json_t *root, struct study_run *run)
{
    int status = read_object(r, root, "", run_fields, run);
    if (!status)
        status = read_member(r, root, "", "tool", tool_fields, run);
    if (!status)
        status = read_command(r, json_object_get(root, "tool"), run);
    if (!status)
        status = read_member(r, root, "", "status", status_fields, run);
    if (!status && run->exit > 255)
        status = reader_wrong(r, "status.", "exit", "is not an exit code");
    if (!status)
        status = read_build(r, root, run);
    if (!status)
        status = read_options(r, root, "", &run->options, &run->option_count);
    if (!status)
        status = read_ends(r, root, run);
    if (!status)
        status = read_results(r, root, run);
    if (!status)
        status = read_texts(r, root, "", r->version == 1 ? "said" : "warnings", &run->warnings,
                            &run->warning_count);
    return status ? status : read_verdicts(r, root, run);
}
