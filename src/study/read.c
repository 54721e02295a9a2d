/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents read back. They come from outside: length, memory and depth are bounded, and every
 * value is checked against the schema before anything is made of it. What is kept lies in one heap
 * of chunks; the parsed tree is let go at once, because histograms are large in it. */
#include "study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCHEMA_VERSION = 1, CHUNK = 1 << 16, WHERE = 96 };
static const size_t file_most = (size_t)256 << 20, memory_most = (size_t)1 << 30;

/* ---- memory ---- */

struct chunk {
    struct chunk *next;
    size_t used, room;
    max_align_t bytes[];
};

struct reader {
    const char *path;
    struct chunk *chunks;
};

/* Room in the newest chunk, or in a new one. */
static void *take_room(struct chunk **chunks, size_t length)
{
    size_t need = (length + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct chunk *chunk = *chunks;
    if (!chunk || chunk->room - chunk->used < need) {
        size_t room = need > CHUNK ? need : CHUNK;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        *chunk = (struct chunk){.next = *chunks, .room = room};
        *chunks = chunk;
    }
    void *place = (char *)chunk->bytes + chunk->used;
    chunk->used += need;
    return place;
}

static void *keep(struct reader *r, size_t length)
{
    void *place = take_room(&r->chunks, length);
    return place ? memset(place, 0, length) : NULL;
}

static void drop(struct chunk *chunk)
{
    while (chunk) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

static int no_memory(const struct reader *r)
{
    return fail(-ENOMEM, "%s: no memory", r->path);
}

/* The parsed tree. A short text can stand for a large one, so what jansson may take is counted; and
 * it is let go as a whole, not node by node. The hooks have no argument. */
static _Thread_local struct {
    struct chunk *chunks;
    size_t left;
    bool exhausted;
} tree;

static void *tree_malloc(size_t length)
{
    tree.exhausted = tree.exhausted || length > tree.left;
    if (tree.exhausted)
        return NULL;
    tree.left -= length;
    return take_room(&tree.chunks, length);
}

static void tree_free(void *place)
{
    (void)place;
}

static json_t *tree_grow(const char *text, size_t length, json_error_t *error)
{
    tree.left = memory_most;
    tree.exhausted = false;
    json_set_alloc_funcs(tree_malloc, tree_free);
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
}

static void tree_fell(void)
{
    drop(tree.chunks);
    tree.chunks = NULL;
}

/* ---- values ---- */

static int wrong(const struct reader *r, const char *where, const char *key, const char *what)
{
    return fail(-EINVAL, "%s: %s%s %s", r->path, where, key, what);
}

/* What a terminal would obey: C0, DEL, and C1 as UTF-8 has it. */
static void disarm(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f) {
            *at = *at == '\n' || *at == '\t' ? ' ' : '?';
        } else if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
            at[0] = '?';
            at[1] = '?';
        }
    }
}

static const char *keep_text(struct reader *r, const char *text)
{
    char *mine = keep(r, strlen(text) + 1);
    if (mine) {
        memcpy(mine, text, strlen(text) + 1);
        disarm(mine);
    }
    return mine;
}

/* "2026-01-31T23:59:59.000Z" */
static bool is_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

static bool is_among(const char *text, const char *const *words)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words;
}

/* ---- objects, by rows ---- */

enum kind { TEXT, TEXT_OR_NULL, TIME, COUNT, POSITIVE, NUMBER, NUMBER_OR_NULL, PERCENT, FLAG };

struct field {
    const char *key;
    enum kind kind;
    size_t at;
    const char *const *words; /* that a text must be one of */
};

static int take_text(struct reader *r, const char *where, const struct field *f,
                     const json_t *value, const char **text)
{
    if (f->kind == TEXT_OR_NULL && json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return wrong(r, where, f->key, "is not a text");
    const char *said = json_string_value(value);
    if (f->kind == TIME && !is_time(said))
        return wrong(r, where, f->key, "is not a time");
    if (f->words && !is_among(said, f->words))
        return wrong(r, where, f->key, "is not a word that is known here");
    *text = keep_text(r, said);
    return *text ? 0 : no_memory(r);
}

static int take_count(const struct reader *r, const char *where, const struct field *f,
                      const json_t *value, uint64_t *count)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < (f->kind == POSITIVE))
        return wrong(r, where, f->key, "is not a count");
    *count = (uint64_t)number;
    return 0;
}

static int take_number(const struct reader *r, const char *where, const struct field *f,
                       const json_t *value, double *number)
{
    *number = json_is_number(value) ? json_number_value(value) : NAN;
    if (f->kind == NUMBER_OR_NULL && json_is_null(value))
        return 0;
    if (!isfinite(*number) || *number < 0)
        return wrong(r, where, f->key, "is not a number from 0 up");
    if (f->kind == PERCENT && (*number <= 0 || *number >= 100))
        return wrong(r, where, f->key, "is not between 0 and 100");
    return 0;
}

static int take(struct reader *r, const char *where, const struct field *f, const json_t *value,
                void *place)
{
    switch (f->kind) {
    case TEXT:
    case TEXT_OR_NULL:
    case TIME:
        return take_text(r, where, f, value, place);
    case COUNT:
    case POSITIVE:
        return take_count(r, where, f, value, place);
    case NUMBER:
    case NUMBER_OR_NULL:
    case PERCENT:
        return take_number(r, where, f, value, place);
    case FLAG:
        if (!json_is_boolean(value))
            return wrong(r, where, f->key, "is neither true nor false");
        *(bool *)place = json_is_true(value);
        return 0;
    }
    return -EINVAL;
}

/* Every row of an object into the struct at base; where names the object, with a dot behind it. */
static int fill(struct reader *r, const json_t *object, const char *where,
                const struct field *fields, void *base)
{
    if (!json_is_object(object))
        return wrong(r, *where ? where : "it", "", "is not an object");
    for (const struct field *f = fields; f->key; f++) {
        const json_t *value = json_object_get(object, f->key);
        int status = value ? take(r, where, f, value, (char *)base + f->at)
                           : wrong(r, where, f->key, "is missing");
        if (status)
            return status;
    }
    return 0;
}

/* An object within an object. */
static int fill_member(struct reader *r, const json_t *object, const char *where, const char *key,
                       const struct field *fields, void *base)
{
    char inner[WHERE + 16];
    snprintf(inner, sizeof inner, "%.*s%s.", WHERE - 1, where, key);
    return fill(r, json_object_get(object, key), inner, fields, base);
}

/* A list: room for its items, each of size bytes. */
static int take_list(struct reader *r, const json_t *object, const char *where, const char *key,
                     size_t size, void *list, size_t *count)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value))
        return wrong(r, where, key, value ? "is not a list" : "is missing");
    *count = json_array_size(value);
    void *items = keep(r, *count * size);
    memcpy(list, &items, sizeof items);
    return items ? 0 : no_memory(r);
}

/* A list of objects that all have the same rows. */
static int fill_list(struct reader *r, const json_t *object, const char *where, const char *key,
                     const struct field *fields, size_t size, void *list, size_t *count)
{
    char *items = NULL;
    int status = take_list(r, object, where, key, size, &items, count);
    memcpy(list, &items, sizeof items);
    for (size_t i = 0; i < *count && !status; i++) {
        char inner[WHERE];
        snprintf(inner, sizeof inner, "%.*s%s[%zu].", WHERE / 3, where, key, i);
        status = fill(r, json_array_get(json_object_get(object, key), i), inner, fields,
                      items + i * size);
    }
    return status;
}

/* ---- the document ---- */

#define AT(type, member) offsetof(struct type, member)

static const char *const origins[] = {"default", "user", "batch", "peer", NULL};
static const char *const states[] = {"complete", "interrupted", "failed", NULL};
static const char *const methods[] = {"latency", "ping-pong", "stream", "stream both ways", NULL};
static const char *const clocks[] = {"cycles", "clock_gettime", NULL};
static const char *const verdicts[] = {"passed", "failed", "unknown", NULL};

static const struct field option_fields[] = {{"name", TEXT, AT(study_pair, name), NULL},
                                             {"value", TEXT, AT(study_pair, value), NULL},
                                             {"origin", TEXT, AT(study_pair, origin), origins},
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
    {0}};

static const struct field verdict_fields[] = {
    {"condition", TEXT, AT(study_verdict, condition), NULL},
    {"result", COUNT, AT(study_verdict, result), NULL},
    {"value", NUMBER_OR_NULL, AT(study_verdict, value), NULL},
    {"verdict", TEXT, AT(study_verdict, verdict), verdicts},
    {0}};

static const struct field result_fields[] = {
    {"test", TEXT, AT(study_result, test), NULL},
    {"label", TEXT, AT(study_result, label), NULL},
    {"size", POSITIVE, AT(study_result, size), NULL},
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

static const struct field run_fields[] = {
    {"begun", TIME, AT(study_run, begun), NULL}, {"ended", TIME, AT(study_run, ended), NULL}, {0}};

static const struct field tool_fields[] = {{"name", TEXT, AT(study_run, tool), NULL},
                                           {"version", TEXT, AT(study_run, version), NULL},
                                           {0}};

static const struct field status_fields[] = {{"state", TEXT, AT(study_run, state), states},
                                             {"exit", COUNT, AT(study_run, exit), NULL},
                                             {"reason", TEXT, AT(study_run, reason), NULL},
                                             {0}};

static int take_bucket(const struct reader *r, const char *where, const json_t *triple,
                       double after_us, struct study_bucket *bucket)
{
    double low = json_number_value(json_array_get(triple, 0));
    double high = json_number_value(json_array_get(triple, 1));
    json_int_t count = json_integer_value(json_array_get(triple, 2));
    bool numbers =
        json_is_number(json_array_get(triple, 0)) && json_is_number(json_array_get(triple, 1));
    if (json_array_size(triple) != 3 || !numbers || !(low >= after_us) || !(high > low) ||
        count < 1)
        return wrong(r, where, "histogram", "has a bucket that is none");
    *bucket = (struct study_bucket){low, high, (uint64_t)count};
    return 0;
}

static int take_histogram(struct reader *r, const json_t *object, const char *where,
                          struct study_result *result)
{
    int status = take_list(r, object, where, "histogram", sizeof *result->buckets, &result->buckets,
                           &result->bucket_count);
    const json_t *list = json_object_get(object, "histogram");
    double after_us = 0;
    for (size_t i = 0; i < result->bucket_count && !status; i++) {
        status = take_bucket(r, where, json_array_get(list, i), after_us, &result->buckets[i]);
        after_us = result->buckets[i].high_us;
    }
    return status;
}

static int take_result(struct reader *r, const json_t *object, const char *where,
                       struct study_result *result)
{
    result->reverse_elapsed_s = NAN;
    int status = fill(r, object, where, result_fields, result);
    if (!status)
        status = fill_member(r, object, where, "fabric", fabric_fields, result);
    if (!status)
        status = fill_member(r, object, where, "method", method_fields, result);
    if (!status)
        status = fill_member(r, object, where, "interference", interference_fields, result);
    if (!status && json_object_get(object, "reverse"))
        status = fill_member(r, object, where, "reverse", reverse_fields, result);
    if (!status && json_object_get(object, "options"))
        status = fill_list(r, object, where, "options", option_fields, sizeof *result->options,
                           &result->options, &result->option_count);
    if (!status)
        status =
            fill_list(r, object, where, "percentiles", percentile_fields,
                      sizeof *result->percentiles, &result->percentiles, &result->percentile_count);
    if (!status)
        status = fill_list(r, object, where, "series", interval_fields, sizeof *result->intervals,
                           &result->intervals, &result->interval_count);
    return status ? status : take_histogram(r, object, where, result);
}

static int take_results(struct reader *r, const json_t *root, struct study_run *run)
{
    int status =
        take_list(r, root, "", "results", sizeof *run->results, &run->results, &run->result_count);
    for (size_t i = 0; i < run->result_count && !status; i++) {
        char where[WHERE];
        snprintf(where, sizeof where, "results[%zu].", i);
        status = take_result(r, json_array_get(json_object_get(root, "results"), i), where,
                             &run->results[i]);
    }
    return status;
}

static int take_verdicts(struct reader *r, const json_t *root, struct study_run *run)
{
    int status = fill_list(r, root, "", "verdicts", verdict_fields, sizeof *run->verdicts,
                           &run->verdicts, &run->verdict_count);
    for (size_t i = 0; i < run->verdict_count && !status; i++)
        if (run->verdicts[i].result >= run->result_count)
            status = wrong(r, "", "verdicts", "has one on a result that is not there");
    return status;
}

/* What a machine has to say of itself is up to it. */
static int take_machine(struct reader *r, const json_t *ends, const char *key,
                        struct study_pair **facts, size_t *count)
{
    json_t *machine = json_object_get(ends, key);
    const char *name;
    json_t *value;
    if (!json_string_value(json_object_get(machine, "host")) ||
        !json_string_value(json_object_get(machine, "weft")))
        return wrong(r, "ends.", key, "does not say host and weft");
    *facts = keep(r, json_object_size(machine) * sizeof **facts);
    if (!*facts)
        return no_memory(r);
    json_object_foreach(machine, name, value)
    {
        struct study_pair *fact = &(*facts)[(*count)++];
        if (!json_is_string(value))
            return wrong(r, "ends.", key, "has a fact that is not a text");
        fact->name = keep_text(r, name);
        fact->value = keep_text(r, json_string_value(value));
        if (!fact->name || !fact->value)
            return no_memory(r);
    }
    return 0;
}

static int take_ends(struct reader *r, const json_t *root, struct study_run *run)
{
    const json_t *ends = json_object_get(root, "ends");
    const json_t *server = json_object_get(ends, "server");
    int status = take_machine(r, ends, "client", &run->client, &run->client_count);
    if (!status && !server)
        status = wrong(r, "ends.", "server", "is missing");
    if (!status && !json_is_null(server))
        status = take_machine(r, ends, "server", &run->server, &run->server_count);
    return status;
}

/* Does a shell take the word as it stands? */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    return *word && word[strspn(word, plain)] == '\0';
}

/* The word with a blank behind it; quoted where that is needed. Returns behind it. */
static char *add_word(char *to, const char *word)
{
    bool quoted = !is_plain(word);
    if (quoted)
        *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'')
            to = stpcpy(to, "'\\'");
        *to++ = *word;
    }
    if (quoted)
        *to++ = '\'';
    *to++ = ' ';
    return to;
}

/* What standard error was told is for people; only its form is looked at. */
static int check_said(struct reader *r, const json_t *root)
{
    const json_t *list = json_object_get(root, "said");
    if (!json_is_array(list))
        return wrong(r, "", "said", list ? "is not a list" : "is missing");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return wrong(r, "", "said", "has an entry that is not a text");
    return 0;
}

static int take_command(struct reader *r, const json_t *tool, struct study_run *run)
{
    const json_t *list = json_object_get(tool, "command");
    size_t count = json_array_size(list), room = 1;
    for (size_t i = 0; i < count; i++) {
        if (!json_is_string(json_array_get(list, i)))
            return wrong(r, "tool.", "command", "has a word that is not a text");
        room += 4 * json_string_length(json_array_get(list, i)) + 3;
    }
    if (!count)
        return wrong(r, "tool.", "command", "has no words");
    char *command = keep(r, room), *to = command;
    if (!command)
        return no_memory(r);
    for (size_t i = 0; i < count; i++)
        to = add_word(to, json_string_value(json_array_get(list, i)));
    to[-1] = '\0';
    disarm(command);
    run->command = command;
    return 0;
}

static int take_run(struct reader *r, const json_t *root, struct study_run *run)
{
    int status = fill(r, root, "", run_fields, run);
    if (!status)
        status = fill_member(r, root, "", "tool", tool_fields, run);
    if (!status)
        status = take_command(r, json_object_get(root, "tool"), run);
    if (!status)
        status = fill_member(r, root, "", "status", status_fields, run);
    if (!status && run->exit > 255)
        status = wrong(r, "status.", "exit", "is no exit code");
    if (!status)
        status = fill_list(r, root, "", "options", option_fields, sizeof *run->options,
                           &run->options, &run->option_count);
    if (!status)
        status = take_ends(r, root, run);
    if (!status)
        status = take_results(r, root, run);
    if (!status)
        status = check_said(r, root);
    return status ? status : take_verdicts(r, root, run);
}

static int check_schema(const struct reader *r, const json_t *root)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *version = json_object_get(root, "version");
    if (!schema || strcmp(schema, "weft-result") != 0 || !json_is_integer(version))
        return fail(-EINVAL, "%s: not a result of a Weft tool", r->path);
    if (json_integer_value(version) != SCHEMA_VERSION)
        return fail(-EINVAL, "%s: schema version %" JSON_INTEGER_FORMAT ", this weft reads %d",
                    r->path, json_integer_value(version), SCHEMA_VERSION);
    return 0;
}

/* ---- the text ---- */

/* jansson's own sentence quotes the file, which is not to reach a terminal. */
static int not_json(const struct reader *r, const json_error_t *error)
{
    static const struct {
        enum json_error_code code;
        const char *what;
    } reasons[] = {
        {json_error_premature_end_of_input, "is cut short"},
        {json_error_duplicate_key, "has a key twice"},
        {json_error_stack_overflow, "is nested too deeply"},
        {json_error_numeric_overflow, "has a number that is too large"},
        {json_error_invalid_utf8, "is not UTF-8"},
        {json_error_null_character, "has a NUL in a text"},
    };
    if (tree.exhausted)
        return fail(-EINVAL, "%s: too much in it for the %zu MiB that are allowed", r->path,
                    memory_most >> 20);
    for (size_t i = 0; i < LENGTH(reasons); i++)
        if (reasons[i].code == json_error_code(error))
            return fail(-EINVAL, "%s: line %d %s", r->path, error->line, reasons[i].what);
    return fail(-EINVAL, "%s: not JSON, at line %d, column %d", r->path, error->line,
                error->column);
}

int study_parse(struct study_run *run, const char *path, const char *text, size_t length)
{
    struct reader r = {.path = path};
    json_error_t error;
    *run = (struct study_run){0};
    if (!length)
        return fail(-EINVAL, "%s: it is empty", path);
    json_t *root = tree_grow(text, length, &error);
    int status = root ? check_schema(&r, root) : not_json(&r, &error);
    if (!status && !(run->path = keep_text(&r, path)))
        status = no_memory(&r);
    if (!status)
        status = take_run(&r, root, run);
    tree_fell();
    run->own = r.chunks;
    if (status)
        study_free(run);
    return status;
}

void study_free(struct study_run *run)
{
    drop(run->own);
    *run = (struct study_run){0};
}

static int too_long(const char *path, size_t length)
{
    char size[32], most[32];
    unit_bytes_text(length, size, sizeof size);
    unit_bytes_text(file_most, most, sizeof most);
    return fail(-EINVAL, "%s: %s long; a result is at most %s", path, size, most);
}

/* What a pipe holds is known only when it has been read. */
static int read_stream(FILE *file, const char *path, char **text, size_t *length)
{
    size_t room = 0;
    *text = NULL;
    *length = 0;
    do {
        room = room ? 2 * room : CHUNK;
        if (room > file_most)
            room = file_most + 1;
        char *larger = realloc(*text, room);
        if (!larger)
            return fail(-ENOMEM, "%s: no memory", path);
        *text = larger;
        *length += fread(*text + *length, 1, room - *length, file);
    } while (*length == room && *length <= file_most);
    if (ferror(file))
        return fail(-EINVAL, "%s: %s", path, strerror(errno));
    if (*length > file_most)
        return fail(-EINVAL, "%s: longer than a result may be", path);
    return 0;
}

int study_read(struct study_run *run, const char *path)
{
    struct stat facts;
    char *text = NULL;
    size_t length = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return fail(-EINVAL, "%s: %s", path, strerror(errno));
    int status = 0;
    if (fstat(fileno(file), &facts))
        status = fail(-EINVAL, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(facts.st_mode))
        status = fail(-EINVAL, "%s: it is a folder", path);
    else if (facts.st_size > (off_t)file_most)
        status = too_long(path, (size_t)facts.st_size);
    if (!status)
        status = read_stream(file, path, &text, &length);
    fclose(file);
    if (!status)
        status = study_parse(run, path, text, length);
    free(text);
    if (status)
        return status;
    run->file[0] = facts.st_dev;
    run->file[1] = facts.st_ino;
    return 0;
}
