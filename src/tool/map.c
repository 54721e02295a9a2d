/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map: which node, pair or group of many is slow. From argv to an exit code. */
#include "tool/map.h"
#include "core/clock.h"
#include "tool/map_launch.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* UTC. */
static void time_text(char text[32])
{
    time_t now = time(NULL);
    struct tm parts;
    snprintf(text, 32, "1970-01-01T00:00:00Z");
    if (gmtime_r(&now, &parts))
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* Of the terminal; 0: it is none, or shows no colours. */
static uint32_t terminal_columns(void)
{
    struct winsize size = {.ws_col = 80};
    if (!*text_style(stdout, TEXT_BOLD))
        return 0;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size.ws_col ? size.ws_col : 80;
}

/* "%r" in a device is the number of the rank. */
static void expand_device(const char *typed, uint32_t rank, char device[FABRIC_DEVICE_MAX])
{
    size_t used = 0;
    for (const char *at = typed; *at && used + 12 < FABRIC_DEVICE_MAX; at++)
        if (at[0] == '%' && at[1] == 'r') {
            used += (size_t)sprintf(device + used, "%u", rank);
            at++;
        } else {
            device[used++] = *at;
        }
    device[used] = '\0';
}

/* ---- the leader's documents ---- */

static bool to_stdout(const struct map_options *o)
{
    return strcmp(o->json, "-") == 0 || strcmp(o->csv, "-") == 0 || strcmp(o->cells, "-") == 0;
}

/* The first thing that failed is said at the end. */
static void note(int status, int *first, char why[1024])
{
    if (status && !*first) {
        *first = status;
        snprintf(why, 1024, "%s", fail_reason());
    }
}

/* Documents first: a launcher may end this process as soon as another one has ended. What cannot be
 * written keeps nothing else back. */
static int show(struct map_lead *lead, const struct map_options *o, int status)
{
    struct map_record *r = &lead->record;
    char why[1024] = "", broken[1024] = "";
    int failed = 0, first = 0;
    note(status, &first, why);
    if (status && !r->first.count)
        return status;
    time_text(r->head.ended);
    if (*o->json)
        note(map_save_json(r, o->json), &failed, broken);
    if (*o->csv)
        note(map_save_csv(r, o->csv), &failed, broken);
    if (!to_stdout(o))
        note(map_print(r, terminal_columns(), stdout), &failed, broken);
    note(cell_file_close(&lead->cells), &failed, broken);
    if (failed)
        return fail(failed, "%s", broken);
    return status ? fail(status, "%s", why) : r->code;
}

static void fill_head(struct map_head *h, const struct map_request *request,
                      const struct map_launch *launch, int argc, char **argv)
{
    const struct map_options *o = request->options;
    const struct spec *spec = &o->spec;
    *h = (struct map_head){.argc = argc,
                           .argv = argv,
                           .test = map_test_names[o->test - 1],
                           .time = strcmp(method_of(spec)->samples(spec), "latency") == 0
                                       ? "latency"
                                       : "time per operation",
                           .how = launch->how,
                           .size = spec->size.min,
                           .slot_ms = spec->count.duration_ms,
                           .iterations = spec->count.iterations,
                           .trusted = launch->trusted,
                           .min_effect = request->min_effect};
    snprintf(h->device, sizeof h->device, "%.*s", (int)sizeof h->device - 1, o->device);
    time_text(h->begun);
}

/* ---- every rank ---- */

static struct map_rank rank_here;
static struct map_lead lead_here;

static int run(const struct map_request *request, const struct map_launch *launch, int argc,
               char **argv)
{
    struct map_rank *m = &rank_here;
    struct map_lead *lead = group_root(launch->group) ? &lead_here : NULL;
    m->group = launch->group;
    m->request = request;
    m->lead = lead;
    expand_device(request->options->device, group_rank(launch->group), m->device);
    m->offer = (struct offer){
        .device = m->device, .given = *m->device, .vouched = true, .members = 1, .service = 1};
    warn_to(NULL); /* what disturbs a pair is in its figures */
    if (lead)
        fill_head(&lead->record.head, request, launch, argc, argv);
    /* A reader that closes the pipe to the cells still gets the rest. */
    if (lead && *request->options->cells)
        signal(SIGPIPE, SIG_IGN);
    int status = map_measure(m);
    warn_to(shell_say);
    if (!lead)
        return status;
    status = show(lead, request->options, status);
    map_lead_close(lead);
    return status;
}

int map_command(const struct command *command, int argc, char **argv)
{
    static struct map_options options;
    struct map_request request;
    static struct map_launch launch;
    struct opt_set set = {.rows = map_rows, .base = &options};
    const char *places[argc];
    int given;
    spec_defaults(&options.spec);
    int status = weft_parse_rows(command, argc, argv, &set, &options.help, places, &given);
    if (status)
        return status < 0 ? map_launch_wrong(&launch, status) : 0;
    if (given)
        status = fail(-EINVAL, "unexpected argument \"%s\" (--help shows the usage)", places[0]);
    if (!status)
        status = map_settle(&options, &set, &request);
    if (status)
        return map_launch_wrong(&launch, status);
    shell_catch_signals();
    status = map_launch(&launch, &request, &set);
    if (!status)
        status = run(&request, &launch, argc, argv);
    return map_launch_end(&launch, status);
}
