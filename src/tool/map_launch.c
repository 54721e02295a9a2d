/* SPDX-License-Identifier: BSD-3-Clause */
/* How the ranks of weft map come to be: copies of this process, a command on each host, or ranks of
 * a launcher. All of them have the same options. */
#include "tool/map_launch.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 48, WORD = 1024 };

/* ---- hosts ---- */

/* What the leader alone does. */
static bool is_leaders(const struct opt *row)
{
    static const char *const names[] = {"hosts", "agent", "json",        "csv",
                                        "cells", "help",  "secret-file", "groups"};
    for (size_t i = 0; i < LENGTH(names); i++)
        if (strcmp(row->name, names[i]) == 0)
            return true;
    return false;
}

/* The command of a member: this program with the options that count for it. */
static int start_hosts(struct map_launch *l, const struct map_options *o, const struct opt_set *set)
{
    static char text[WORDS][WORD];
    static char *words[WORDS + 1];
    char value[WORD - 64];
    int count = 0;
    ssize_t length = readlink("/proc/self/exe", text[0], WORD - 1);
    if (length <= 0)
        return fail(-errno, "the name of this program is not known: %s", strerror(errno));
    text[0][length] = '\0';
    words[count++] = text[0];
    words[count++] = "map";
    words[count++] = "--member";
    for (const struct opt *row = opt_next(set, NULL); row && count < WORDS;
         row = opt_next(set, row)) {
        if (!row->name || is_leaders(row) || opt_origin(set, row) != OPT_BY_USER)
            continue;
        opt_format(row, set->base, value, sizeof value);
        snprintf(text[count], WORD, "--%s=%s", row->name, value);
        words[count] = text[count];
        count++;
    }
    return launch_hosts(&l->seat, o->hosts, o->agent, words);
}

/* ---- all ways ---- */

static int find_seat(struct map_launch *l, const struct map_options *o, const struct opt_set *set)
{
    if (o->member)
        return launch_member(&l->seat);
    if (o->local)
        return launch_local(&l->seat, (uint32_t)o->local);
    if (*o->hosts)
        return start_hosts(l, o, set);
    int status = launch_find(&l->seat);
    if (status == -ENOENT && l->seat.launcher)
        return fail(-EINVAL,
                    "the launcher started %u rank, at least 2 are needed (or give --local "
                    "N or --hosts LIST)",
                    l->seat.size);
    return status == -ENOENT
               ? fail(-EINVAL, "no ranks: give --local N or --hosts LIST, or use a launcher (srun, "
                               "mpiexec)")
               : status;
}

int map_launch(struct map_launch *l, const struct map_request *r, const struct opt_set *set)
{
    const struct map_options *o = r->options;
    struct launch_terms terms = {.bind = o->local ? "127.0.0.1" : NULL,
                                 .timeout_ms = o->spec.timeout_ms,
                                 .wait_ms = o->wait_s * 1000,
                                 .stop = &shell_stop,
                                 .guard = !o->local && !o->member && !*o->hosts};
    int status = 0;
    if (*o->access.secret_file) {
        status = secret_read(&l->secret, o->access.secret_file);
        terms.secret = &l->secret;
    }
    if (!status)
        status = find_seat(l, o, set);
    if (status)
        return status;
    status = launch_group(&l->seat, &terms, &l->group);
    l->how = l->seat.launcher->name;
    l->trusted = !status && launch_secret(&l->seat, &terms);
    return status;
}

int map_launch_wrong(struct map_launch *l, int status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    if (!launch_find(&l->seat) && l->seat.rank)
        exit(shell_exit_code(status)); /* a launcher may add them up */
    return fail(status, "%s", why);
}

int map_launch_end(struct map_launch *l, int status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", status < 0 ? fail_reason() : "");
    group_leave(l->group, status < 0 ? status : 0);
    /* One that never came to be a rank of a group says why: nobody else can. */
    if (!l->seat.root && l->seat.launcher && (l->group || l->seat.rank))
        exit(EXIT_DONE);
    launch_end(&l->seat);
    explicit_bzero(&l->secret, sizeof l->secret);
    return status < 0 ? fail(status, "%s", why) : status;
}
