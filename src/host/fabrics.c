/* SPDX-License-Identifier: BSD-3-Clause */
/* What each fabric has and can do. Vendor libraries are slow, print, crash and hang, so a child
 * process asks them. It writes one line per finding, "KIND\tNAME\tTEXT", and before each step a
 * line that names the step, so that the parent knows where a child got stuck. */
#include "fabric/amo.h"
#include "fabric/choose.h"
#include "host/probe.h"
#include "host/sections.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FABRIC_MS = 10000, DEVICES = 256, OUTPUT_LINES = 4, OUTPUT_WIDTH = 160 };

/* Kinds of lines. */
enum { STEP = 's', HEAD = 'h', LIBRARY = 'l', DEVICE = 'd', OPS = 'o', DETAIL = 'v', NOTE = 'n' };

/* A fabric whose child could not load it. */
#define NOT_USABLE "not usable"

/* ---- texts ---- */

static const char *const verb_words[VERBS] = {[VERB_WRITE] = "write",
                                              [VERB_READ] = "read",
                                              [VERB_SEND] = "send",
                                              [VERB_ATOMIC] = "atomics",
                                              [VERB_AM] = "active messages",
                                              [VERB_TSEND] = "tagged messages",
                                              [VERB_STREAM_SEND] = "streams of bytes"};

/* The same for programs. */
static const char *const verb_names[VERBS] = {
    [VERB_WRITE] = "write",       [VERB_READ] = "read", [VERB_SEND] = "send",
    [VERB_ATOMIC] = "atomic",     [VERB_AM] = "am",     [VERB_TSEND] = "tag",
    [VERB_STREAM_SEND] = "stream"};

/* Those that come with another, and are not listed themselves. */
static const char *const other_words[VERBS] = {[VERB_RECV] = "receive",
                                               [VERB_TRECV] = "tagged receive",
                                               [VERB_STREAM_RECV] = "stream receive"};

static void verbs_text(const struct fabric_facts *facts, const char *const *words,
                       const char *separator, char *text, size_t room)
{
    text[0] = '\0';
    for (int verb = 0; verb < VERBS; verb++)
        if (words[verb] && facts->verbs & 1U << verb)
            list_add(text, room, separator, "%s", words[verb]);
}

static void layouts_text(const size_t most[LAYOUTS], char *text, size_t room)
{
    char bytes[32];
    text[0] = '\0';
    for (int i = 0; i < LAYOUTS; i++) {
        if (!most[i])
            continue;
        if (most[i] < SIZE_MAX / 2) {
            unit_bytes_text(most[i], bytes, sizeof bytes);
            list_add(text, room, ", ", "%s up to %s", fabric_layout_names[i], bytes);
        } else {
            list_add(text, room, ", ", "%s any size", fabric_layout_names[i]);
        }
    }
}

static void atomics_text(const uint16_t types[AMO_OPS], char *text, size_t room)
{
    text[0] = '\0';
    for (int op = 0; op < AMO_OPS; op++)
        if (types[op])
            list_add(text, room, " ", "%s", amo_op_names[op]);
}

static void types_text(const struct fabric_facts *facts, char *text, size_t room)
{
    uint16_t types = 0;
    text[0] = '\0';
    for (int op = 0; op < AMO_OPS; op++)
        types |= (uint16_t)(facts->amo[0][op] | facts->amo[1][op]);
    for (int type = 0; type < AMO_TYPES; type++)
        if (types & 1U << type)
            list_add(text, room, " ", "%s", amo_type_names[type]);
}

/* ---- the child: details of a device ---- */

/* What the child is asked, and what it knows so far. */
struct query {
    const char *fabric;
    bool verbose;
    FILE *out;
    const struct fabric_ops *ops;
    int count; /* of devices */
    struct {
        char name[FABRIC_DEVICE_MAX], what[160];
    } devices[DEVICES];
    char previous[FABRIC_DEVICE_MAX + 40]; /* the device that last_detail is of */
    struct msg detail, last_detail;
};

static void add_detail(struct query *q, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_detail(struct query *q, const char *name, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    msg_add(&q->detail, "%c\t%s\t%s\n", DETAIL, name, text);
}

static void add_atomics(struct query *q, const struct fabric_facts *facts)
{
    char text[512];
    atomics_text(facts->amo[0], text, sizeof text);
    add_detail(q, "atomics", "non-fetching: %s", *text ? text : "none");
    atomics_text(facts->amo[1], text, sizeof text);
    add_detail(q, "", "fetching: %s", *text ? text : "none");
    types_text(facts, text, sizeof text);
    add_detail(q, "", "types: %s", text);
}

static void add_verb(struct query *q, const struct fabric_facts *facts, int verb)
{
    static const unsigned with_layouts = VERB(WRITE) | VERB(READ) | VERB(AM);
    const char *name = verb_words[verb] ? verb_words[verb] : other_words[verb];
    char text[512];
    layouts_text(facts->layout_max[verb], text, sizeof text);
    bool named = verb == VERB_ATOMIC || (with_layouts & 1U << verb && *text);
    if (verb == VERB_ATOMIC)
        add_atomics(q, facts);
    else if (named)
        add_detail(q, name, "%s", text);
    if (facts->proves[verb])
        add_detail(q, named ? "" : name, "done: %s", facts->proves[verb]);
}

static void add_details(struct query *q, const struct fabric_facts *facts)
{
    q->detail = (struct msg){0};
    add_detail(q, "path", "%s", facts->form);
    for (int verb = 0; verb < VERBS; verb++)
        if (facts->verbs & 1U << verb)
            add_verb(q, facts, verb);
    add_detail(q, "in flight", "up to %u", facts->depth);
}

/* Details equal to those of the device before are not repeated. */
static void write_details(struct query *q, const char *device)
{
    /* The first line, the path, names the device itself. */
    const char *mine = strchr(q->detail.bytes, '\n');
    const char *last = strchr(q->last_detail.bytes, '\n');
    if (mine && last && strcmp(mine, last) == 0) {
        fprintf(q->out, "%c\t\tsame as %s\n", NOTE, q->previous);
        return;
    }
    fputs(q->detail.bytes, q->out);
    q->last_detail = q->detail;
    snprintf(q->previous, sizeof q->previous, "%s", device);
}

/* ---- the child: devices ---- */

static void keep_device(void *arg, const char *device, const char *what)
{
    struct query *q = arg;
    if (q->count == DEVICES)
        return;
    snprintf(q->devices[q->count].name, sizeof q->devices[0].name, "%s", device);
    /* A text that describes all devices is printed with the fabric. */
    if (strcmp(what, q->ops->what) != 0)
        snprintf(q->devices[q->count].what, sizeof q->devices[0].what, "%s", what);
    q->count++;
}

/* The path of a module's device ends with its library: "uct tcp/lo (UCX 1.13)". */
static void write_library(struct query *q, const char *path)
{
    const char *library = strrchr(path, '(');
    if (library && !fabric_built_in(q->ops->name))
        fprintf(q->out, "%c\t\t%.*s\n", LIBRARY, (int)strcspn(library + 1, ")"), library + 1);
}

static void write_device(struct query *q, const char *name, const char *what)
{
    struct fabric_choice choice = {.ops = q->ops, .named = true};
    struct fabric_facts facts = {0};
    char device[FABRIC_DEVICE_MAX + 40], text[128];
    bool alone = strcmp(name, q->ops->name) == 0;
    snprintf(device, sizeof device, "%s%s%s", q->ops->name, alone ? "" : ":", alone ? "" : name);
    snprintf(choice.device, sizeof choice.device, "%s", alone ? "" : name);
    fprintf(q->out, "%c\t\topening %s\n", STEP, device);
    if (fabric_try(&choice, 1, 0, &facts)) {
        fprintf(q->out, "%c\t%s\t" NOT_USABLE ": %s\n", DEVICE, device, fail_reason());
        return;
    }
    verbs_text(&facts, verb_words, ", ", text, sizeof text);
    fprintf(q->out, "%c\t%s\t%s\n", DEVICE, device, *what ? what : text);
    verbs_text(&facts, verb_names, ",", text, sizeof text);
    fprintf(q->out, "%c\t%u\t%s\n", OPS, facts.depth, text);
    write_library(q, facts.form);
    if (!q->verbose)
        return;
    add_details(q, &facts);
    write_details(q, device);
}

static void query_work(const void *arg, FILE *out)
{
    static struct query q;
    q = *(const struct query *)arg;
    q.out = out;
    fprintf(out, "%c\t\tloading it\n", STEP);
    q.ops = fabric_find(q.fabric);
    if (!q.ops) {
        fprintf(out, "%c\t\t" NOT_USABLE ": %s\n", HEAD, fail_reason());
        return;
    }
    fprintf(out, "%c\t\t%s\n", HEAD, q.ops->what);
    fprintf(out, "%c\t\tlisting its devices\n", STEP);
    if (q.ops->list(keep_device, &q))
        fprintf(out, "%c\t\tcannot list its devices: %s\n", NOTE, fail_reason());
    for (int i = 0; i < q.count; i++)
        write_device(&q, q.devices[i].name, q.devices[i].what);
    if (!q.count)
        fprintf(out, "%c\t\tno device\n", NOTE);
}

/* ---- the parent ---- */

/* The answer of one fabric, while it is printed. */
struct answer {
    struct printer *printer;
    const char *fabric;
    char form[128]; /* built in, or module and its library */
    char library[96];
    bool headed;
    char step[256]; /* the last one that the child began */
    char error[600];
    bool in_device, opened; /* JSON: a device is begun; it could be opened */
    double depth;
    char ops[128]; /* separated by commas */
};

/* The library is known only after a device was opened, but is printed first. */
static void find_form(struct answer *answer, const char *text)
{
    const char *at = text ? strstr(text, "\nl\t\t") : NULL;
    int length = at ? (int)strcspn(at + 4, "\n") : 0;
    if (fabric_built_in(answer->fabric))
        snprintf(answer->form, sizeof answer->form, "built in");
    else
        snprintf(answer->form, sizeof answer->form, "module%s%.*s", at ? ", " : "", length,
                 at ? at + 4 : "");
    snprintf(answer->library, sizeof answer->library, "%.*s", length, at ? at + 4 : "");
}

static void text_line(struct answer *answer, char kind, const char *name, const char *text)
{
    FILE *out = answer->printer->out;
    if (kind == HEAD)
        fprintf(out, "  %s (%s): %s\n", answer->fabric, answer->form, text);
    else if (kind == DEVICE)
        fprintf(out, "    %-22s %s\n", name, text);
    else if (kind == DETAIL)
        fprintf(out, "      %-16s %s\n", name, text);
    else if (kind == NOTE)
        fprintf(out, "      %s\n", text);
}

/* A device is closed when the next one begins: what it can do comes after its name. */
static void json_end_device(struct answer *answer)
{
    struct json *json = &answer->printer->json;
    char *rest = answer->ops, *one;
    if (!answer->in_device)
        return;
    json_bool(json, "usable", answer->opened);
    json_open(json, "ops", '[');
    while (rest && *rest && (one = strsep(&rest, ",")))
        json_text(json, NULL, one);
    json_close(json, ']');
    json_number(json, "in_flight", answer->opened ? answer->depth : NAN);
    json_close(json, '}');
    answer->in_device = answer->opened = false;
    answer->ops[0] = '\0';
}

static void json_device(struct answer *answer, const char *name)
{
    struct json *json = &answer->printer->json;
    json_end_device(answer);
    json_open(json, NULL, '{');
    json_text(json, "name", name);
    answer->in_device = true;
}

static void json_head(struct answer *answer, const char *text)
{
    struct json *json = &answer->printer->json;
    bool usable = strncmp(text, NOT_USABLE, strlen(NOT_USABLE)) != 0;
    const char *why = text + strspn(text + strlen(NOT_USABLE), ": ") + strlen(NOT_USABLE);
    json_bool(json, "built_in", fabric_built_in(answer->fabric));
    json_bool(json, "usable", usable);
    json_text(json, "library", *answer->library ? answer->library : NULL);
    if (!usable)
        snprintf(answer->error, sizeof answer->error, "%s", why);
    json_open(json, "devices", '[');
}

static void json_line(struct answer *answer, char kind, const char *name, const char *text)
{
    if (kind == HEAD) {
        json_head(answer, text);
    } else if (kind == DEVICE) {
        json_device(answer, name);
    } else if (kind == OPS) {
        answer->opened = true;
        answer->depth = strtod(name, NULL);
        snprintf(answer->ops, sizeof answer->ops, "%s", text);
    }
}

static void take_line(struct answer *answer, char *line)
{
    const char *kind = strsep(&line, "\t"), *name = strsep(&line, "\t");
    if (!name || !line)
        return;
    if (*kind == STEP)
        snprintf(answer->step, sizeof answer->step, "%s", line);
    answer->headed |= *kind == HEAD;
    if (answer->printer->format == PRINT_JSON)
        json_line(answer, *kind, name, line);
    else
        text_line(answer, *kind, name, line);
}

/* The first lines that the library printed, without control characters. */
static void print_output(FILE *out, char *output)
{
    char *line;
    for (int i = 0; i < OUTPUT_LINES && (line = strsep(&output, "\n"));) {
        if (!*line)
            continue;
        line[strnlen(line, OUTPUT_WIDTH)] = '\0';
        text_clean(line);
        fprintf(out, "    its output: %s\n", line);
        i++;
    }
}

/* Ends the answer, with the reason why it is not complete, or NULL. */
static void end_answer(struct answer *answer, const char *reason)
{
    char head[] = "h\t\t" NOT_USABLE;
    if (reason && !answer->headed)
        take_line(answer, head);
    if (reason)
        snprintf(answer->error, sizeof answer->error, "%s, while %s", reason, answer->step);
    if (answer->printer->format == PRINT_JSON) {
        json_end_device(answer);
        json_close(&answer->printer->json, ']');
        json_text(&answer->printer->json, "error", *answer->error ? answer->error : NULL);
    } else if (reason) {
        fprintf(answer->printer->out, "    %s\n", answer->error);
    }
}

static void query_fabric(const struct host_state *state, struct answer *answer)
{
    static struct query query;
    struct probe probe;
    char reason[256];
    query = (struct query){.fabric = answer->fabric, .verbose = state->verbose};
    int status = probe_run(&probe, query_work, &query, FABRIC_MS);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    find_form(answer, probe.text);
    char *rest = probe.text, *line;
    while (rest && (line = strsep(&rest, "\n")))
        take_line(answer, line);
    end_answer(answer, status ? reason : NULL);
    if (answer->printer->format == PRINT_TEXT && probe.output && (status || state->verbose))
        print_output(answer->printer->out, probe.output);
    probe_free(&probe);
}

static void print_fabric(const struct host_state *state, struct printer *printer,
                         const char *fabric)
{
    struct answer answer = {.printer = printer, .fabric = fabric, .step = "starting"};
    struct fabric_choice choice;
    bool json = printer->format == PRINT_JSON;
    if (json) {
        json_open(&printer->json, NULL, '{');
        json_text(&printer->json, "name", fabric);
    }
    if (fabric_named(fabric)) {
        query_fabric(state, &answer);
    } else {
        fabric_choose(fabric, &choice); /* fails with the reason */
        if (json) {
            json_head(&answer, NOT_USABLE);
            json_close(&printer->json, ']');
            json_text(&printer->json, "error", fail_reason());
        } else
            fprintf(printer->out, "  %s (module): %s\n", fabric, fail_reason());
    }
    print_section_end(printer, '}');
}

void fabrics_section(const struct host_state *state, struct printer *printer)
{
    const char *name;
    print_section(printer, "Fabrics", "fabrics", '[');
    for (size_t i = 0; (name = fabric_name(i)); i++)
        print_fabric(state, printer, name);
    print_section_end(printer, ']');
}
