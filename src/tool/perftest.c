/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: one test, or the product of batch files, between a client and a server, or between
 * two MPI ranks. One connection carries all the tests of a client: it sends the options of each,
 * and both ends run it. */
#include "core/machine.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/batch.h"
#include "tool/local.h"
#include "tool/perftest_show.h"
#include "tool/progress.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 8, LABEL_MOST = 128, LABELS = BATCHES * (LABEL_MOST + 1) };

static const char goodbye[] = "bye=1\n";

struct session {
    struct perftest options;
    struct opt_set set;
    struct peer *peer;
    bool usable;                                     /* the connection, after the last test */
    char paths[sizeof((struct perftest *)0)->batch]; /* taken apart; the option stays whole */
    struct batch batches[BATCHES];
    int batch_count;
    const struct batch_line *at[BATCHES]; /* the line of each file that the test comes from */
    struct perf_show show;
    struct output_author author;
    unsigned failures, runs;
    int status; /* of the last failure */
    struct local local;
};

/* ---- one test, at the client ---- */

/* The server hears the options, and says whether it can read them. */
static int propose(struct session *s, const struct opt_set *set)
{
    struct msg ask, answer, *server = &s->show.output.document.server;
    const struct perftest *o = set->base;
    uint64_t yes = 0;
    int status = msg_print(&ask, ".device=%s\n", o->device);
    if (!status)
        status = opt_encode(set, &ask);
    if (!status)
        status = peer_swap(s->peer, &ask, &answer);
    if (!status && (msg_number(&answer, "yes", &yes) || yes != 1))
        status = fail(-EPROTO, "the server's answer cannot be read");
    if (!status && !server->length)
        *server = answer;
    return status;
}

/* A device may be looked for on every fabric there is, and loading them can take seconds: with
 * signs of life meanwhile. */
static int find_device(const struct session *s, const char *transport, const char *device,
                       char text[FABRIC_DEVICE_MAX])
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, s->peer, KEEPALIVE_LIBRARY_MS);
    int status = perf_device(transport, device, text, FABRIC_DEVICE_MAX);
    keepalive_end(&keepalive);
    return status;
}

static int run_test(struct session *s, const struct opt_set *set, const char *labels)
{
    const struct perftest *o = set->base;
    struct test_audience audience;
    struct weft_params params;
    struct weft_result result;
    char device[FABRIC_DEVICE_MAX], memory[PERF_MEMORY];
    int status = find_device(s, o->transport, o->device, device);
    if (!status)
        status = perf_memory(o->memory, PEER_CLIENT, memory);
    if (!status)
        status = perf_params(o, device, memory, &params);
    if (status)
        return status;
    s->usable = false;
    status = propose(s, set);
    if (status)
        return status;
    params.cpu = (int)o->cpu[0];
    params.stop = &shell_stop;
    memcpy(params.percentiles, s->show.output.percentiles, sizeof params.percentiles);
    perf_show_begin(&s->show, set, labels, &audience);
    status = test_run(&params, s->peer, &audience, &result, &s->usable);
    status = perf_show_end(&s->show, &result, status);
    weft_result_free(&result);
    return status;
}

/* ---- batches ---- */

static int only_in_command(const struct opt_set *set)
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
        if (row->takes == PERF_RUN && set->origin[row - set->rows] == OPT_BY_USER)
            return fail(-EINVAL, "-%c (--%s) is for the command line, not for a line of a batch",
                        row->letter ? row->letter : '-', row->name);
    return 0;
}

/* A line's options on top of those that stand. */
static int apply_line(const struct batch_line *line, struct opt_set *set)
{
    const char *place;
    int given;
    if (line->error)
        return fail(-EINVAL, "%s", line->error);
    if (strlen(line->words[0]) > LABEL_MOST)
        return fail(-EINVAL, "a label of more than %d characters", LABEL_MOST);
    uint8_t before[OPT_MAX];
    memcpy(before, set->origin, sizeof before);
    memset(set->origin, OPT_BY_DEFAULT, sizeof set->origin);
    int status = opt_parse(set, line->count - 1, line->words + 1, &place, 0, &given);
    if (!status)
        status = only_in_command(set);
    for (size_t i = 0; i < OPT_MAX; i++)
        if (before[i] == OPT_BY_USER)
            set->origin[i] = OPT_BY_USER;
    return status;
}

static void say_line(const struct batch *batch, const struct batch_line *line, const char *why)
{
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%.300s:%u: %s", batch->path, line->number, why);
    shell_say(sentence);
}

/* All the lines that a test of the product comes from. */
static void say_lines(const struct session *s, const char *why)
{
    char sentence[2048] = "";
    size_t used = 0;
    for (int i = 0; i < s->batch_count && used < sizeof sentence; i++)
        used += (size_t)snprintf(sentence + used, sizeof sentence - used, "%s%.200s:%u",
                                 i ? ", " : "", s->batches[i].path, s->at[i]->number);
    if (used < sizeof sentence)
        snprintf(sentence + used, sizeof sentence - used, ": %s", why);
    shell_say(sentence);
}

/* Lines that can never run are said once, and left out of the product. */
static void check_lines(struct session *s)
{
    for (int i = 0; i < s->batch_count; i++)
        for (size_t k = 0; k < s->batches[i].count; k++) {
            struct batch_line *line = &s->batches[i].lines[k];
            struct perftest scratch = s->options;
            struct opt_set set = s->set;
            set.base = &scratch;
            if (!apply_line(line, &set))
                continue;
            say_line(&s->batches[i], line, fail_reason());
            line->error = "said";
            s->failures++;
            s->runs++;
            s->status = -EINVAL;
        }
}

/* Without a limit of its own, a test with a duration ends by that. */
static void settle_limits(struct opt_set *set)
{
    struct perftest *o = set->base;
    const struct opt *iters = opt_find(set, "iters");
    if (o->duration_s && opt_origin(set, iters) == OPT_BY_DEFAULT)
        o->iters = 0;
}

static bool over(const struct session *s)
{
    return shell_stop || (s->runs && !s->usable);
}

/* Every line of this file, on top of the lines of the files before it. */
static void product(struct session *s, int level, const struct opt_set *outer, const char *labels)
{
    if (level == s->batch_count) {
        struct perftest options = *(const struct perftest *)outer->base;
        struct opt_set set = *outer;
        set.base = &options;
        settle_limits(&set);
        int status = run_test(s, &set, labels);
        s->runs++;
        if (!status)
            return;
        s->failures++;
        s->status = status;
        if (level && status != -EINTR)
            say_lines(s, fail_reason());
        return;
    }
    const struct batch *batch = &s->batches[level];
    for (size_t i = 0; i < batch->count && !over(s); i++) {
        struct perftest options = *(const struct perftest *)outer->base;
        struct opt_set set = *outer;
        char joined[LABELS];
        if (batch->lines[i].error)
            continue;
        set.base = &options;
        apply_line(&batch->lines[i], &set);
        snprintf(joined, sizeof joined, "%s%s%s", labels, level ? "\n" : "",
                 batch->lines[i].words[0]);
        s->at[level] = &batch->lines[i];
        product(s, level + 1, &set, joined);
    }
}

static int read_batches(struct session *s)
{
    char *rest = s->paths, *path;
    int status = 0;
    memcpy(s->paths, s->options.batch, sizeof s->paths);
    while (rest && *rest && !status && (path = strsep(&rest, "\n"))) {
        if (s->batch_count == BATCHES)
            return fail(-EINVAL, "more than %d batch files", BATCHES);
        status = batch_read(&s->batches[s->batch_count], path);
        if (!status && !s->batches[s->batch_count++].count)
            status = fail(-EINVAL, "batch file %s: no test in it", path);
    }
    return status;
}

/* The names of the files head their columns. */
static void name_columns(const struct session *s, char *columns, size_t room)
{
    size_t used = 0;
    columns[0] = '\0';
    for (int i = 0; i < s->batch_count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s", s->batches[i].path);
        int n = snprintf(columns + used, room - used, "%s%.*s", i ? "\n" : "", LABEL_MOST,
                         basename(path));
        if (n > 0 && used + (size_t)n < room)
            used += (size_t)n;
    }
}

static unsigned count_tests(const struct session *s)
{
    unsigned tests = 1;
    for (int i = 0; i < s->batch_count; i++) {
        unsigned lines = 0;
        for (size_t k = 0; k < s->batches[i].count; k++)
            lines += !s->batches[i].lines[k].error;
        tests *= lines;
    }
    return tests;
}

/* This end, for the document. It runs on the CPU that it was given only while it measures. */
static int describe(const struct perftest *o, struct msg *text)
{
    int status = o->cpu[0] >= 0 ? msg_add(text, "allowed=%" PRId64 "\n", o->cpu[0]) : 0;
    if (!status)
        status = machine_describe(text);
    return status ? status : msg_add(text, "weft=%s\n", weft_version());
}

/* All tests of this client over one connection. */
static int run_all(struct session *s)
{
    char columns[LABELS];
    struct msg bye, *mine = &s->show.output.document.client;
    *mine = (struct msg){0};
    int described = describe(&s->options, mine);
    if (described)
        return described;
    name_columns(s, columns, sizeof columns);
    s->show.boxed = (struct report_boxed){.out = stdout,
                                          .csv = s->options.csv,
                                          .final_only = s->options.final_only,
                                          .grouped = s->options.grouped,
                                          .percentiles = s->show.output.percentiles,
                                          .columns = columns};
    s->show.batch = s->batch_count > 0;
    s->show.progress.sizes = count_tests(s);
    progress_begin();
    s->usable = true;
    product(s, 0, &s->set, "");
    interference_say(&s->show.disturbed);
    if (s->usable && !msg_print(&bye, "%s", goodbye))
        peer_send(s->peer, &bye);
    if (!s->failures || !s->batch_count || shell_stop)
        return s->failures ? s->status : 0;
    if (!s->usable)
        return fail(s->status, "%s", fail_reason());
    return fail(-EREMOTEIO, "%u of %u tests failed", s->failures, s->runs);
}

/* ---- the client ---- */

static int client(struct session *s, const char *address, unsigned port)
{
    struct visit visit = {.address = address,
                          .port = port,
                          .wait_ms = s->options.local ? LOCAL_WAIT_MS : s->options.wait_s * 1000,
                          .timeout_ms = s->options.timeout_s * 1000};
    struct msg greeting, answer;
    int status = msg_print(&greeting, ".tool=ucx_perftest\n");
    if (!status)
        status = visit_server(&visit, &greeting, &answer, &s->peer);
    if (status)
        return status;
    status = run_all(s);
    peer_close(s->peer);
    return status;
}

static int both(struct session *s)
{
    const struct perftest *o = &s->options;
    const struct opt *row = opt_find(&s->set, "port");
    struct arguments a;
    unsigned port = 0;
    int64_t cpu;
    int status = local_place(o->cpu, &cpu);
    if (!status) {
        bool given = opt_origin(&s->set, row) == OPT_BY_USER;
        arguments_begin(&a);
        argument(&a, "--port", "%" PRIu64, given ? o->port : 0);
        argument(&a, "--bind", "%s", *o->bind ? o->bind : "127.0.0.1");
        argument(&a, "--timeout", "%" PRIu64, o->timeout_s);
        if (*o->device)
            argument(&a, "--device", "%s", o->device);
        if (cpu >= 0)
            argument(&a, "--cpu", "%" PRId64, cpu);
        status = local_start(&s->local, &a, &port);
    }
    if (!status)
        status = client(s, *o->bind ? o->bind : "127.0.0.1", port);
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    local_stop(&s->local);
    return status ? fail(status, "%s", why) : 0;
}

/* ---- the server ---- */

/* What the client asks for, with this end's own device if it has one. */
static int take_options(const struct session *s, const struct msg *ask, struct perftest *options,
                        struct weft_params *params, char device[FABRIC_DEVICE_MAX],
                        char memory[PERF_MEMORY])
{
    struct opt_set set = s->set;
    char theirs[FABRIC_DEVICE_MAX];
    *options = s->options;
    set.base = options;
    int status = msg_value(ask, ".device", theirs, sizeof theirs);
    if (status)
        return fail(-EPROTO, "a test without a device");
    status = opt_decode(&set, ask, NULL);
    if (!status)
        status = find_device(s, options->transport, *s->options.device ? s->options.device : theirs,
                             device);
    if (!status)
        status = perf_memory(options->memory, PEER_SERVER, memory);
    if (!status)
        status = perf_params(options, device, memory, params);
    return status;
}

static int serve_test(struct session *s, const struct msg *ask)
{
    struct perftest options;
    struct weft_params params = {0};
    struct weft_result result;
    struct msg answer;
    char device[FABRIC_DEVICE_MAX], memory[PERF_MEMORY];
    s->usable = false;
    int status = take_options(s, ask, &options, &params, device, memory);
    if (status) {
        peer_end(s->peer, status, fail_reason());
        return status;
    }
    s->peer->timeout_ms = params.timeout_ms;
    params.cpu = (int)s->options.cpu[0];
    params.stop = &shell_stop;
    status = msg_print(&answer, "yes=1\n");
    if (!status)
        status = describe(&s->options, &answer);
    if (!status)
        status = peer_send(s->peer, &answer);
    if (status)
        return status;
    status = test_run(&params, s->peer, NULL, &result, &s->usable);
    weft_result_free(&result);
    return status;
}

/* One test after the other, until the client has said goodbye. */
static int serve(struct session *s)
{
    int last = 0;
    char why[1024] = "";
    for (;;) {
        struct msg ask;
        int status = peer_recv(s->peer, &ask, NULL, NULL);
        if (status)
            return status;
        if (strcmp(ask.bytes, goodbye) == 0)
            return last ? fail(last, "%s", why) : 0;
        status = serve_test(s, &ask);
        if (!status)
            continue;
        if (!s->usable || status == -EINTR)
            return status;
        if (last)
            shell_say(why);
        last = status;
        snprintf(why, sizeof why, "%s", fail_reason());
    }
}

static int agree(void *arg, struct peer *peer, const struct msg *greeting, struct msg *answer)
{
    char name[64] = "";
    (void)arg;
    (void)peer;
    (void)answer;
    msg_value(greeting, ".tool", name, sizeof name);
    if (strcmp(name, "ucx_perftest") == 0)
        return 0;
    return fail(-EPROTO, "the client is %.40s, the server is ucx_perftest",
                *name ? name : "of an unknown kind");
}

static int serve_client(void *arg, struct peer *peer)
{
    struct session *s = arg;
    s->peer = peer;
    return serve(s);
}

static int server(struct session *s)
{
    struct service service = {.bind = s->options.bind,
                              .port = (unsigned)s->options.port,
                              .loop = s->options.loop,
                              .timeout_ms = s->options.timeout_s * 1000,
                              .arg = s,
                              .agree = agree,
                              .serve = serve_client};
    return serve_clients(&service);
}

/* ---- MPI ---- */

static int ranks(struct session *s)
{
    struct peer_terms terms = {.timeout_ms = s->options.timeout_s * 1000, .stop = &shell_stop};
    int status = peer_mpi(&s->peer, &terms);
    if (status)
        return status;
    if (s->peer->rank == PEER_SERVER)
        output_drop(&s->show.output);
    status = s->peer->rank == PEER_CLIENT ? run_all(s) : serve(s);
    /* Both ranks have it; one says it. */
    bool quiet = s->peer->rank == PEER_SERVER && s->usable;
    peer_close(s->peer);
    if (status && quiet && status != -EINTR)
        exit(shell_exit_code(status));
    return status;
}

/* ---- main ---- */

static int roles(const struct session *s)
{
    const struct perftest *o = &s->options;
    if (o->local && o->address)
        return fail(-EINVAL, "--local starts its own server: leave out the address \"%s\"",
                    o->address);
    if (o->loop && (o->address || o->local))
        return fail(-EINVAL, "-l is for a server: leave out %s",
                    o->local ? "--local" : "the address");
    if (o->address && !*o->address)
        return fail(-EINVAL, "the server's address is empty: \"\"");
    if (o->address && !o->port)
        return fail(-EINVAL, "-p 0 is for a server, which then says the port it was given");
    if (o->cpu[1] >= 0 && !o->local)
        return fail(-EINVAL, "-c: a second CPU is for the server that --local starts");
    return 0;
}

/* What is wrong on every machine is said before anybody is kept waiting. */
static int check_client(struct session *s)
{
    const struct perftest *o = &s->options;
    struct weft_params params;
    int status = read_batches(s);
    if (status)
        return status;
    if (!s->batch_count)
        settle_limits(&s->set);
    if (o->csv && o->grouped)
        warn("-N has no effect on CSV: a separator would be taken for a field's end");
    check_lines(s);
    status = output_open(&s->show.output, &o->output, &s->author);
    if (status || s->batch_count)
        return status;
    char device[FABRIC_DEVICE_MAX], memory[PERF_MEMORY];
    status = perf_params(o, "", NULL, &params);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = perf_memory(o->memory, rank, memory);
    return status ? status : perf_device(o->transport, o->device, device, sizeof device);
}

static void say_device(void *arg, const char *device, const char *what)
{
    (void)arg;
    printf("%-24s %s\n", device, what);
}

/* Ranks of a launcher, unless told to be one of the two that meet over TCP. */
static bool by_launcher(const struct session *s)
{
    const struct perftest *o = &s->options;
    const struct opt *port = opt_find(&s->set, "port");
    bool server_here = o->loop || *o->bind || opt_origin(&s->set, port) == OPT_BY_USER;
    return !o->address && !o->local && !server_here && mpi_launched();
}

/* A server's own word counts for little. */
static void warn_server(const struct session *s)
{
    for (const struct opt *row = opt_next(&s->set, NULL); row; row = opt_next(&s->set, row))
        if (row->flags & OPT_SHARED && row->takes == PERF_TEST &&
            opt_origin(&s->set, row) == OPT_BY_USER)
            warn("--%s is the client's to say: it has no effect here", row->name);
}

static int run(struct session *s)
{
    const struct perftest *o = &s->options;
    bool launched = by_launcher(s);
    bool client_here = o->address || o->local || launched;
    int status = roles(s);
    if (!status && client_here)
        status = check_client(s);
    else if (!status && *o->batch)
        status = fail(-EINVAL, "-b is the client's: a server hears its tests from the client");
    else if (!status)
        status = output_bar(&s->options.output);
    if (status)
        return status;
    shell_catch_signals();
    if (o->local)
        return both(s);
    if (o->address)
        return client(s, o->address, (unsigned)o->port);
    if (launched)
        return ranks(s);
    warn_server(s);
    return server(s);
}

static int answer(struct session *s, int argc, char **argv)
{
    struct msg text;
    int given;
    opt_defaults(&s->set);
    int status = opt_parse(&s->set, argc - 1, argv + 1, &s->options.address, 1, &given);
    if (status)
        return status;
    if (s->options.help) {
        status = perf_help(&s->set, &text);
        if (!status)
            fputs(text.bytes, stdout);
        return status ? status : shell_flush("the help text");
    }
    if (s->options.version) {
        printf("%s (Weft) %s\n", shell_program, weft_version());
        return shell_flush("the version");
    }
    if (s->options.list) {
        fabric_list(say_device, NULL);
        return shell_flush("the list");
    }
    return run(s);
}

int perftest_main(int argc, char **argv)
{
    static struct session session;
    struct session *s = &session;
    s->set = (struct opt_set){.rows = perf_rows, .base = &s->options};
    s->local = (struct local){.out = -1, .errors = -1};
    s->author = (struct output_author){
        .tool = "ucx_perftest", .argc = argc, .argv = argv, .set = &s->set, .rates = true};
    shell_open(argc, argv);
    int status = answer(s, argc, argv);
    for (int i = 0; i < s->batch_count; i++)
        batch_free(&s->batches[i]);
    int code = status ? local_failure(s->options.local ? &s->local : NULL, status) : EXIT_DONE;
    return output_close(&s->show.output, code, fail_reason());
}
