/* SPDX-License-Identifier: BSD-3-Clause */
/* CXI devices: link, firmware, services and counters, from files alone. A driver that hangs does so
 * when its files are read, so a child process reads them and writes a line per finding,
 * "KIND\tNAME\tTEXT". What cannot be read is a finding too, with the reason. */
#include "core/counters.h"
#include "host/probe.h"
#include "host/sections.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CXI_MS = 5000, SERVICES_MOST = 64, TEXT = 1024 };

/* Kinds of lines, in the order in which a device has them. */
enum { DEVICE = 'd', FIELD = 'f', SERVICE = 's', COUNTER = 'c', MISSING = 'm' };

/* ---- the child ---- */

struct look {
    const char *root, *name;
    FILE *out;
    struct msg missing;
};

static void miss(struct look *l, const char *what, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", l->root, file);
    errno = 0;
    const char *why = access(path, R_OK) ? strerror(errno) : "it has no value";
    msg_add(&l->missing, "%c\t%s\t%s: %s\n", MISSING, what, file, why);
}

struct fact {
    const char *name;
    bool number;
    const char *files[4]; /* below the device; the first that says something counts */
};

/* The second generation of the hardware has its port's files elsewhere. */
static const struct fact facts[] = {
    {"link", false, {"port/link", "port/0/link/state", "properties/link"}},
    {"speed_mbits", true, {"properties/speed"}},
    {"nic_address", false, {"properties/nid"}},
    {"cassini", false, {"properties/cassini_version"}},
    {"numa_node", true, {"numa_node"}},
    {"firmware", false, {"uc/qspi_blob_version"}}};

static bool find(struct look *l, const struct fact *fact, char *text, size_t room)
{
    uint64_t number;
    for (int i = 0; fact->files[i]; i++)
        if (system_line(l->root, text, room, "/sys/class/cxi/%s/device/%s", l->name,
                        fact->files[i]) &&
            (!fact->number || !unit_number(text, &number)))
            return true;
    return false;
}

/* properties/link has no word for it. */
static const char *in_words(const struct fact *fact, const char *text)
{
    bool link = strcmp(fact->name, "link") == 0;
    return link && strcmp(text, "1") == 0 ? "up" : link && strcmp(text, "0") == 0 ? "down" : text;
}

static void find_fact(struct look *l, const struct fact *fact)
{
    char text[128], path[300];
    if (find(l, fact, text, sizeof text)) {
        fprintf(l->out, "%c\t%s\t%s\n", FIELD, fact->name, in_words(fact, text));
        return;
    }
    snprintf(path, sizeof path, "/sys/class/cxi/%.200s/device/%s", l->name, fact->files[0]);
    miss(l, fact->name, path);
}

/* A service is several lines of the driver's table, which root alone can read: "ID: 1",
 * "  Name:default", "  State:Enabled". */
static void find_services(struct look *l)
{
    char path[PATH_MAX], line[256], id[16] = "", name[64] = "", file[300];
    unsigned count = 0;
    snprintf(file, sizeof file, "/sys/kernel/debug/cxi/%.200s/services", l->name);
    snprintf(path, sizeof path, "%s%s", l->root, file);
    FILE *in = fopen(path, "re");
    while (in && count < SERVICES_MOST && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        text_clean(line);
        sscanf(line, "ID: %15[0-9]", id);
        sscanf(line, " Name:%63[^\n]", name);
        if (strstr(line, " State:") && *id) {
            fprintf(l->out, "%c\t%s\t%s\t%s\n", SERVICE, id, strstr(line, "Enabled") ? "1" : "0",
                    name);
            id[0] = name[0] = '\0';
            count++;
        }
    }
    if (in)
        fclose(in);
    if (!count)
        miss(l, "services", file);
}

static void find_counters(struct look *l)
{
    struct counters c;
    counters_read(&c, l->root, l->name, COUNTERS_USUAL);
    for (unsigned i = 0; i < c.count; i++)
        if (c.list[i].known)
            fprintf(l->out, "%c\t%s\t%llu\n", COUNTER, c.list[i].name,
                    (unsigned long long)c.list[i].value);
    if (!c.count)
        msg_add(&l->missing, "%c\tcounters\t%s\n", MISSING, c.why);
}

static void look_at(void *arg, const char *name)
{
    struct look *l = arg;
    l->name = name;
    l->missing = (struct msg){0};
    fprintf(l->out, "%c\t%s\t\n", DEVICE, name);
    for (size_t i = 0; i < LENGTH(facts); i++)
        find_fact(l, &facts[i]);
    find_services(l);
    find_counters(l);
    fputs(l->missing.bytes, l->out);
}

static void look_work(const void *arg, FILE *out)
{
    const struct host_state *state = arg;
    struct look look = {.root = state->root, .out = out};
    system_each(state->root, look_at, &look, "/sys/class/cxi");
}

/* ---- the parent ---- */

struct answer {
    struct printer *printer;
    bool verbose;
    char kind; /* of the last line; 0: no device yet */
    char name[64], fields[TEXT], services[TEXT], errors[TEXT], others[TEXT], missing[TEXT];
    unsigned counters;
};

/* In words. */
static void add_field(struct answer *a, const char *name, const char *text)
{
    static const char *const words[][2] = {
        {"numa_node", "NUMA node"}, {"nic_address", "NIC"}, {"cassini", "Cassini"}};
    const char *word = name;
    for (size_t i = 0; i < LENGTH(words); i++)
        word = strcmp(name, words[i][0]) == 0 ? words[i][1] : word;
    if (strcmp(name, "speed_mbits") == 0)
        list_add(a->fields, TEXT, ", ", "%g Gb/s", strtod(text, NULL) / 1000);
    else
        list_add(a->fields, TEXT, ", ", "%s %s", word, text);
}

static void text_part(const struct answer *a, const char *name, const char *text)
{
    if (*text)
        fprintf(a->printer->out, "    %-13s %s\n", name, text);
}

static void text_end(struct answer *a)
{
    if (!a->kind)
        return;
    fprintf(a->printer->out, "  %-15s %s\n", a->name, a->fields);
    text_part(a, "services", a->services);
    if (a->counters && !*a->errors)
        snprintf(a->errors, TEXT, "none (%u counters)", a->counters);
    text_part(a, "errors", a->errors);
    if (a->verbose)
        text_part(a, "counters", a->others);
    text_part(a, "not readable", a->missing);
}

static void text_line(struct answer *a, char kind, const char *name, const char *text)
{
    if (kind == DEVICE) {
        text_end(a);
        *a = (struct answer){.printer = a->printer, .verbose = a->verbose};
        snprintf(a->name, sizeof a->name, "%s", name);
    } else if (kind == FIELD) {
        add_field(a, name, text);
    } else if (kind == SERVICE) {
        list_add(a->services, TEXT, ", ", "%s %s (%s)", name, text + strcspn(text, "\t") + 1,
                 *text == '1' ? "enabled" : "disabled");
    } else if (kind == COUNTER) {
        a->counters++;
        if (strcmp(text, "0") != 0)
            list_add(counter_is_error(name) ? a->errors : a->others, TEXT, ", ", "%s %s", name,
                     text);
    } else if (kind == MISSING) {
        list_add(a->missing, TEXT, "; ", "%s (%s)", name, text);
    }
}

static void json_part(struct answer *a, char kind)
{
    static const struct {
        char kind, open, close;
        const char *key;
    } parts[] = {{SERVICE, '[', ']', "services"},
                 {COUNTER, '{', '}', "counters"},
                 {MISSING, '[', ']', "missing"}};
    for (size_t i = 0; i < LENGTH(parts) && a->kind != kind; i++)
        if (a->kind == parts[i].kind)
            json_close(&a->printer->json, parts[i].close);
    for (size_t i = 0; i < LENGTH(parts) && a->kind != kind; i++)
        if (kind == parts[i].kind)
            json_open(&a->printer->json, parts[i].key, parts[i].open);
}

static void json_line(struct answer *a, char kind, const char *name, const char *text)
{
    struct json *json = &a->printer->json;
    bool number =
        kind == COUNTER ||
        (kind == FIELD && (strcmp(name, "speed_mbits") == 0 || strcmp(name, "numa_node") == 0));
    json_part(a, kind);
    if (number)
        json_count(json, name, strtoull(text, NULL, 10));
    else if (kind == FIELD)
        json_text(json, name, text);
    else if (kind == DEVICE && a->kind)
        json_close(json, '}');
    if (kind != DEVICE && kind != SERVICE && kind != MISSING)
        return;
    json_open(json, NULL, '{');
    if (kind == SERVICE) {
        json_count(json, "id", strtoull(name, NULL, 10));
        json_text(json, "name", text + strcspn(text, "\t") + 1);
        json_bool(json, "enabled", *text == '1');
    } else {
        json_text(json, kind == DEVICE ? "name" : "what", name);
        if (kind == MISSING)
            json_text(json, "why", text);
    }
    if (kind != DEVICE)
        json_close(json, '}');
}

static void take_line(struct answer *a, char *line)
{
    const char *kind = strsep(&line, "\t"), *name = strsep(&line, "\t");
    if (!name || !line)
        return;
    if (a->printer->format == PRINT_JSON)
        json_line(a, *kind, name, line);
    else
        text_line(a, *kind, name, line);
    a->kind = *kind;
}

static void end(struct answer *a, int status)
{
    char line[400], lost[] = "d\tcxi\t";
    snprintf(line, sizeof line, "%c\tthe rest\t%s, while reading below /sys/class/cxi", MISSING,
             fail_reason());
    if (status && !a->kind)
        take_line(a, lost);
    if (status)
        take_line(a, line);
    if (a->printer->format != PRINT_JSON) {
        text_end(a);
    } else if (a->kind) {
        json_part(a, DEVICE);
        json_close(&a->printer->json, '}');
    }
}

void cxi_section(const struct host_state *state, struct printer *printer)
{
    struct answer answer = {.printer = printer, .verbose = state->verbose};
    struct probe probe;
    print_section(printer, "CXI devices", "cxi", '[');
    int status = probe_run(&probe, look_work, state, CXI_MS);
    char *rest = probe.text, *line;
    while (rest && (line = strsep(&rest, "\n")))
        take_line(&answer, line);
    end(&answer, status);
    if (!answer.kind)
        print_value(printer, "", "none");
    probe_free(&probe);
    print_section_end(printer, ']');
}
