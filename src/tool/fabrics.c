/* SPDX-License-Identifier: BSD-3-Clause */
/* What each fabric has and can do. Vendors' libraries are slow, print, crash and hang, so a child
 * asks them: it writes one line for each thing it finds, "KIND\tNAME\tTEXT", and before each step
 * what it is about to do. */
#include "fabric/choose.h"
#include "tool/info.h"
#include "tool/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FABRIC_MS = 10000, DEVICES = 256 };

/* Kinds of lines. */
enum { STEP = 's', HEAD = 'h', LIBRARY = 'l', DEVICE = 'd', DETAIL = 'v', NOTE = 'n' };

/* ---- in the child ---- */

struct asking {
    FILE *out;
    const struct fabric_ops *ops;
    bool verbose;
    int count;
    struct {
        char name[FABRIC_DEVICE_MAX], what[160];
    } devices[DEVICES];
    char previous[FABRIC_DEVICE_MAX + 40];
    struct msg detail, last_detail;
};

static void detail(struct asking *a, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void detail(struct asking *a, const char *name, const char *format, ...)
{
    char text[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    msg_add(&a->detail, "%c\t%s\t%s\n", DETAIL, name, text);
}

static void keep_name(void *arg, const char *device, const char *what)
{
    struct asking *a = arg;
    if (a->count == DEVICES)
        return;
    snprintf(a->devices[a->count].name, sizeof a->devices[0].name, "%s", device);
    /* What holds for all of them stands in the head. */
    if (strcmp(what, a->ops->what) != 0)
        snprintf(a->devices[a->count].what, sizeof a->devices[0].what, "%s", what);
    a->count++;
}

/* RECV goes with SEND. */
static const char *const verb_words[VERBS] = {[VERB_WRITE] = "write",
                                              [VERB_READ] = "read",
                                              [VERB_SEND] = "send",
                                              [VERB_ATOMIC] = "atomics",
                                              [VERB_AM] = "active messages"};

static void say_verbs(const struct fabric_facts *facts, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int verb = 0; verb < VERBS && used < room; verb++)
        if (verb_words[verb] && facts->verbs & 1U << verb)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "",
                                     verb_words[verb]);
}

static void say_layouts(const size_t most[LAYOUTS], char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < LAYOUTS && used < room; i++) {
        char bytes[32] = "any size";
        if (!most[i])
            continue;
        if (most[i] < SIZE_MAX / 2)
            unit_bytes_text(most[i], bytes, sizeof bytes);
        used += (size_t)snprintf(text + used, room - used, "%s%s up to %s", used ? ", " : "",
                                 fabric_layout_names[i], bytes);
    }
    char *any;
    while ((any = strstr(text, "up to any size")))
        memmove(any, any + strlen("up to "), strlen(any + strlen("up to ")) + 1);
}

static void say_atomics(const uint16_t types[AMO_OPS], char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int op = 0; op < AMO_OPS && used < room; op++)
        if (types[op])
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? " " : "",
                                     amo_op_names[op]);
}

static void say_types(const struct fabric_facts *facts, char *text, size_t room)
{
    size_t used = 0;
    uint16_t types = 0;
    text[0] = '\0';
    for (int op = 0; op < AMO_OPS; op++)
        types |= (uint16_t)(facts->amo[0][op] | facts->amo[1][op]);
    for (int type = 0; type < AMO_TYPES && used < room; type++)
        if (types & 1U << type)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? " " : "",
                                     amo_type_names[type]);
}

static void tell_atomics(struct asking *a, const struct fabric_facts *facts)
{
    char text[512];
    say_atomics(facts->amo[0], text, sizeof text);
    detail(a, "atomics", "%s", *text ? text : "none that does not fetch");
    say_atomics(facts->amo[1], text, sizeof text);
    detail(a, "", "fetching: %s", *text ? text : "none");
    say_types(facts, text, sizeof text);
    detail(a, "", "on: %s", text);
}

static void tell_details(struct asking *a, const struct fabric_facts *facts)
{
    static const unsigned laid_out = VERB(WRITE) | VERB(READ) | VERB(AM);
    char text[512];
    detail(a, "path", "%s", facts->form);
    for (int verb = 0; verb < VERBS; verb++) {
        const char *name = verb == VERB_RECV ? "receive" : verb_words[verb];
        if (!(facts->verbs & 1U << verb))
            continue;
        say_layouts(facts->layout_max[verb], text, sizeof text);
        bool headed = verb == VERB_ATOMIC || (laid_out & 1U << verb && *text);
        if (verb == VERB_ATOMIC)
            tell_atomics(a, facts);
        else if (headed)
            detail(a, name, "%s", text);
        if (facts->proves[verb])
            detail(a, headed ? "" : name, "done: %s", facts->proves[verb]);
    }
    detail(a, "in flight", "%u", facts->depth);
}

/* A module's path ends with its library: "uct tcp/lo (UCX 1.13)". */
static void tell_library(struct asking *a, const char *form)
{
    const char *library = strrchr(form, '(');
    if (library && !fabric_built_in(a->ops->name))
        fprintf(a->out, "%c\t\t%.*s\n", LIBRARY, (int)strcspn(library + 1, ")"), library + 1);
}

static void tell_device(struct asking *a, const char *name, const char *what)
{
    struct fabric_choice choice = {.ops = a->ops, .named = true};
    struct fabric_facts facts = {0};
    char full[FABRIC_DEVICE_MAX + 40], text[128];
    bool alone = strcmp(name, a->ops->name) == 0;
    snprintf(full, sizeof full, "%s%s%s", a->ops->name, alone ? "" : ":", alone ? "" : name);
    snprintf(choice.device, sizeof choice.device, "%s", alone ? "" : name);
    fprintf(a->out, "%c\t\topening %s\n", STEP, full);
    if (fabric_try(&choice, 1, 0, &facts)) {
        fprintf(a->out, "%c\t%s\tcannot be used: %s\n", DEVICE, full, fail_reason());
        return;
    }
    say_verbs(&facts, text, sizeof text);
    fprintf(a->out, "%c\t%s\t%s\n", DEVICE, full, *what ? what : text);
    tell_library(a, facts.form);
    if (!a->verbose)
        return;
    a->detail = (struct msg){0};
    tell_details(a, &facts);
    /* The first line names the device itself. */
    const char *mine = strchr(a->detail.bytes, '\n');
    const char *last = strchr(a->last_detail.bytes, '\n');
    if (mine && last && strcmp(mine, last) == 0) {
        fprintf(a->out, "%c\t\tthe same as %s\n", NOTE, a->previous);
        return;
    }
    fputs(a->detail.bytes, a->out);
    a->last_detail = a->detail;
    snprintf(a->previous, sizeof a->previous, "%s", full);
}

struct question {
    const char *fabric;
    bool verbose;
};

static void ask_fabric(const void *arg, FILE *out)
{
    const struct question *question = arg;
    static struct asking a;
    a = (struct asking){.out = out, .verbose = question->verbose};
    fprintf(out, "%c\t\tloading it\n", STEP);
    a.ops = fabric_find(question->fabric);
    if (!a.ops) {
        fprintf(out, "%c\t\tcannot be used: %s\n", HEAD, fail_reason());
        return;
    }
    fprintf(out, "%c\t\t%s\n", HEAD, a.ops->what);
    fprintf(out, "%c\t\tlisting its devices\n", STEP);
    if (a.ops->list(keep_name, &a))
        fprintf(out, "%c\t\tcannot list its devices: %s\n", NOTE, fail_reason());
    for (int i = 0; i < a.count; i++)
        tell_device(&a, a.devices[i].name, a.devices[i].what);
    if (!a.count)
        fprintf(out, "%c\t\tno device\n", NOTE);
}

/* ---- here ---- */

/* What was found on one fabric, on its way to the page. */
struct answer {
    struct page *page;
    const char *fabric;
    char form[128]; /* built in; or module, and its library */
    bool headed, in_device, in_details;
    char step[256];
};

/* The library, which is known only when a device has been opened. */
static void find_form(struct answer *answer, const char *text)
{
    const char *at = text ? strstr(text, "\nl\t\t") : NULL;
    int length = at ? (int)strcspn(at + 4, "\n") : 0;
    if (fabric_built_in(answer->fabric))
        snprintf(answer->form, sizeof answer->form, "built in");
    else
        snprintf(answer->form, sizeof answer->form, "module%s%.*s", at ? ", " : "", length,
                 at ? at + 4 : "");
}

static void text_line(struct answer *answer, char kind, const char *name, const char *text)
{
    FILE *out = answer->page->out;
    if (kind == HEAD)
        fprintf(out, "  %s (%s): %s\n", answer->fabric, answer->form, text);
    else if (kind == DEVICE)
        fprintf(out, "    %-22s %s\n", name, text);
    else if (kind == DETAIL)
        fprintf(out, "      %-16s %s\n", name, text);
    else if (kind == NOTE)
        fprintf(out, "      %s\n", text);
}

static void json_end_device(struct answer *answer)
{
    if (answer->in_details)
        json_close(&answer->page->json, ']');
    if (answer->in_device)
        json_close(&answer->page->json, '}');
    answer->in_details = answer->in_device = false;
}

static void json_line(struct answer *answer, char kind, const char *name, const char *text)
{
    struct json *json = &answer->page->json;
    char both[1200];
    if (kind == HEAD) {
        json_text(json, "form", answer->form);
        json_text(json, "what", text);
        json_open(json, "devices", '[');
    } else if (kind == DEVICE) {
        json_end_device(answer);
        json_open(json, NULL, '{');
        json_text(json, "name", name);
        json_text(json, "what", text);
        answer->in_device = true;
    } else if ((kind == DETAIL || kind == NOTE) && answer->in_device) {
        if (!answer->in_details)
            json_open(json, "details", '[');
        answer->in_details = true;
        snprintf(both, sizeof both, "%s%s%s", name, *name ? ": " : "", text);
        json_text(json, NULL, both);
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
    if (answer->page->form == PAGE_JSON)
        json_line(answer, *kind, name, line);
    else
        text_line(answer, *kind, name, line);
}

/* What the library printed, where that helps to see why. */
static void show_said(FILE *out, char *said)
{
    char *line;
    for (int i = 0; i < 4 && (line = strsep(&said, "\n"));)
        if (*line) {
            for (char *at = line; *at; at++)
                if ((unsigned char)*at < ' ' || *at == 127)
                    *at = ' ';
            fprintf(out, "    it said: %.160s\n", line);
            i++;
        }
}

static void show_trouble(struct answer *answer, const char *why)
{
    char line[] = "h\t\tcannot be used";
    if (!answer->headed)
        take_line(answer, line);
    if (answer->page->form == PAGE_JSON) {
        char both[600];
        json_end_device(answer);
        json_close(&answer->page->json, ']');
        snprintf(both, sizeof both, "%s, while %s", why, answer->step);
        json_text(&answer->page->json, "trouble", both);
        return;
    }
    fprintf(answer->page->out, "    %s, while %s\n", why, answer->step);
}

static void ask_child(const struct sight *sight, struct answer *answer)
{
    struct question question = {.fabric = answer->fabric, .verbose = sight->verbose};
    struct probe probe;
    char why[256];
    int status = probe_run(&probe, ask_fabric, &question, FABRIC_MS);
    snprintf(why, sizeof why, "%s", fail_reason());
    find_form(answer, probe.text);
    char *rest = probe.text, *line;
    while (rest && (line = strsep(&rest, "\n")))
        take_line(answer, line);
    if (status) {
        show_trouble(answer, why);
    } else if (answer->page->form == PAGE_JSON) {
        json_end_device(answer);
        json_close(&answer->page->json, ']');
    }
    if (answer->page->form == PAGE_TEXT && probe.said && (status || sight->verbose))
        show_said(answer->page->out, probe.said);
    probe_free(&probe);
}

static void show_fabric(const struct sight *sight, struct page *page, const char *fabric)
{
    struct answer answer = {.page = page, .fabric = fabric, .step = "starting"};
    struct fabric_choice choice;
    bool json = page->form == PAGE_JSON;
    if (json) {
        json_open(&page->json, NULL, '{');
        json_text(&page->json, "name", fabric);
    }
    if (fabric_named(fabric)) {
        ask_child(sight, &answer);
    } else {
        fabric_choose(fabric, &choice); /* says what is missing */
        if (json)
            json_text(&page->json, "trouble", fail_reason());
        else
            fprintf(page->out, "  %s (module): %s\n", fabric, fail_reason());
    }
    page_end(page, '}');
}

void fabrics_show(const struct sight *sight, struct page *page)
{
    const char *name;
    page_section(page, "Fabrics", "fabrics", '[');
    for (size_t i = 0; (name = fabric_name(i)); i++)
        show_fabric(sight, page, name);
    page_end(page, ']');
}
