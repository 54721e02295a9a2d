/* SPDX-License-Identifier: BSD-3-Clause */
/* From a launcher to a group: who started this process, the card that the root hands out, and the
 * guard. A launcher that ends a job when one of its processes dies sees only the guard, which does
 * not die: it waits for the process that measures. */
#include "peer/launchers.h"
#include "core/child.h"
#include "core/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const struct launcher *launcher;
    const char *words;
} launchers[] = {
#define LAUNCHER(symbol, words) {&launcher_##symbol, words},
#include "peer/launchers.def"
#undef LAUNCHER
};

const char *launch_value(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

bool launch_number(const char *variable, uint32_t *number)
{
    const char *value = launch_value(variable);
    uint64_t wide = 0;
    if (!value || unit_number(value, &wide) || wide > GROUP_RANKS_MAX)
        return false;
    *number = (uint32_t)wide;
    return true;
}

const char *launch_words(const struct seat *seat)
{
    for (size_t i = 0; i < LENGTH(launchers); i++)
        if (launchers[i].launcher == seat->launcher)
            return launchers[i].words;
    return "";
}

/* Slurm's list of nodes is that of the ranks where each has a node of its own. */
static void find_hosts(struct seat *seat)
{
    const char *list = launch_value("SLURM_STEP_NODELIST");
    const char *order = launch_value("SLURM_DISTRIBUTION");
    uint32_t tasks = 0, count = 0;
    bool ours = launch_number("SLURM_STEP_NUM_TASKS", &tasks) && tasks == seat->size;
    if (ours && list && !(order && strncmp(order, "arbitrary", 9) == 0) &&
        !hostlist_count(list, seat->size, &count) && count == seat->size)
        seat->hosts = list;
}

int launch_find(struct seat *seat)
{
    *seat = (struct seat){.fd = -1};
    for (size_t i = 0; i < LENGTH(launchers) && !seat->launcher; i++)
        if (launchers[i].launcher->here && launchers[i].launcher->here())
            seat->launcher = launchers[i].launcher;
    if (!seat->launcher)
        return -ENOENT;
    int status = seat->launcher->begin(seat);
    seat->root = seat->rank == 0;
    if (!status && seat->size < 2)
        return -ENOENT;
    if (!status)
        find_hosts(seat);
    if (!status && (seat->rank >= seat->size || seat->size > GROUP_RANKS_MAX))
        status = fail(-EINVAL, "the launcher says rank %u of %u", seat->rank, seat->size);
    return status;
}

/* ---- the card ---- */

static bool worth(const struct ifaddrs *at)
{
    int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
    return (family == AF_INET || family == AF_INET6) && at->ifa_flags & IFF_UP &&
           !(at->ifa_flags & IFF_LOOPBACK);
}

/* All addresses of this host, IPv4 first, without those of one link; or that which is listened on.
 */
static void list_addresses(char *text, size_t room, const char *bind)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;
    text[0] = '\0';
    if (bind && *bind)
        used = (size_t)snprintf(text, room, "%s", bind);
    else if (getifaddrs(&all))
        all = NULL;
    for (int six = 0; six < 2; six++)
        for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
            char name[64];
            if (!worth(at) || (at->ifa_addr->sa_family == AF_INET6) != six)
                continue;
            socklen_t length = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
            if (getnameinfo(at->ifa_addr, length, name, sizeof name, NULL, 0, NI_NUMERICHOST) ||
                strchr(name, '%') || used + strlen(name) + 2 > room)
                continue;
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "," : "", name);
        }
    if (all)
        freeifaddrs(all);
    if (!used)
        snprintf(text, room, "127.0.0.1");
}

/* "id;addresses;port;secret", without blanks: PMI has lines of words. */
static int write_card(const struct seat *seat, unsigned port, char card[LAUNCH_CARD])
{
    char secret[SECRET_TEXT] = "";
    if (seat->secret_held)
        secret_text(&seat->secret, secret);
    int length = snprintf(card, LAUNCH_CARD, "%s;%s;%u;%.*s", seat->id, seat->addresses, port,
                          SECRET_TEXT - 1, secret);
    explicit_bzero(secret, sizeof secret);
    return length < LAUNCH_CARD ? 0 : fail(-EMSGSIZE, "a card of %d characters", length);
}

static bool take_field(const char **at, char *text, size_t room)
{
    size_t length = strcspn(*at, ";");
    if (length >= room)
        return false;
    memcpy(text, *at, length);
    text[length] = '\0';
    *at += length + ((*at)[length] == ';');
    return true;
}

static int read_card(struct seat *seat, const char *card)
{
    char port[8], secret[SECRET_TEXT + 2];
    uint64_t number = 0;
    if (!take_field(&card, seat->id, sizeof seat->id) ||
        !take_field(&card, seat->addresses, sizeof seat->addresses) ||
        !take_field(&card, port, sizeof port) || unit_number(port, &number) || !number ||
        number > UINT16_MAX || !take_field(&card, secret, sizeof secret))
        return fail(-EPROTO, "the leading rank's card cannot be read");
    seat->port = (unsigned)number;
    secret[strcspn(secret, "\n")] = '\0';
    seat->secret_held = *secret != '\0';
    int status = 0;
    for (size_t i = 0; seat->secret_held && i < SECRET_BYTES && !status; i++) {
        unsigned byte = 0;
        if (sscanf(secret + 2 * i, "%2x", &byte) != 1)
            status = fail(-EPROTO, "the leading rank's card cannot be read");
        seat->secret.bytes[i] = (unsigned char)byte;
    }
    explicit_bzero(secret, sizeof secret);
    return status;
}

static int hand_out(struct seat *seat, unsigned port)
{
    char card[LAUNCH_CARD] = "";
    int status = seat->root ? write_card(seat, port, card) : 0;
    if (!status)
        status = seat->launcher->share(seat, card);
    if (!status && !seat->root)
        status = read_card(seat, card);
    explicit_bzero(card, sizeof card);
    return status;
}

/* ---- the guard ---- */

enum { GUARD_LOOK_MS = 100 };
static pid_t guarded;

static void pass_on(int number)
{
    if (guarded > 0)
        kill(guarded, number);
}

/* A process that stays stopped is lost to the others: it is killed, or the launcher would never
 * end. */
static int watch_child(uint64_t stopped_ms)
{
    uint64_t since_ms = 0;
    int how = 0;
    for (;;) {
        pid_t seen = waitpid(guarded, &how, WUNTRACED | WCONTINUED | (since_ms ? WNOHANG : 0));
        if (seen < 0 && errno != EINTR)
            return 0;
        if (seen > 0 && (WIFEXITED(how) || WIFSIGNALED(how)))
            return how;
        if (seen > 0)
            since_ms = WIFSTOPPED(how) ? clock_ms() : 0;
        if (since_ms && clock_ms() - since_ms > stopped_ms)
            kill(guarded, SIGKILL);
        if (since_ms)
            poll(NULL, 0, GUARD_LOOK_MS);
    }
}

/* Ends with the process that measures: with its code, or with 0 where it was killed, because the
 * launcher would kill the others. Why it died the others say. */
static void stand_guard(const struct seat *seat, uint64_t stopped_ms)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < LENGTH(passed); i++)
        signal(passed[i], pass_on);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != seat->fd)
            close(fd);
    int how = watch_child(stopped_ms);
    if (WIFSIGNALED(how) && !seat->root)
        _exit(0);
    _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 1);
}

static int leave_guard(const struct seat *seat, uint64_t timeout_ms)
{
    guarded = fork();
    if (guarded < 0)
        return fail(-errno, "cannot start the process that measures: %s", strerror(errno));
    if (guarded > 0)
        stand_guard(seat, 3 * timeout_ms);
    return 0;
}

/* ---- the group ---- */

bool launch_secret(const struct seat *seat, const struct launch_terms *terms)
{
    return terms->secret || seat->secret_held;
}

static int prepare(struct seat *seat, const struct launch_terms *terms)
{
    int status = 0;
    seat->wait_ms = terms->wait_ms;
    if (!seat->root || !seat->launcher->share)
        return 0;
    if (!*seat->addresses)
        list_addresses(seat->addresses, sizeof seat->addresses, terms->bind);
    if (!*seat->id)
        status = random_digits(seat->id, 33);
    if (!status && !terms->secret && !seat->secret_held) {
        status = secret_make(&seat->secret);
        seat->secret_held = !status;
    }
    /* Hosts do not have the user's file. */
    if (!status && terms->secret && seat->launcher == &launcher_hosts) {
        seat->secret = *terms->secret;
        seat->secret_held = true;
    }
    return status;
}

static struct group_spec spec_of(struct seat *seat, const struct launch_terms *terms)
{
    const struct secret *own = seat->secret_held ? &seat->secret : NULL;
    return (struct group_spec){.rank = seat->rank,
                               .size = seat->size,
                               .root = seat->root,
                               .id = seat->id,
                               .secret = terms->secret ? terms->secret : own,
                               .bind = terms->bind,
                               .port = seat->root ? seat->port : 0,
                               .node = *seat->node ? seat->node : NULL,
                               .label = seat->label,
                               .timeout_ms = terms->timeout_ms,
                               .wait_ms = terms->wait_ms,
                               .stop = terms->stop,
                               .nodes = seat->hosts,
                               .watch = {seat, seat->started ? launch_ended : NULL}};
}

int launch_group(struct seat *seat, const struct launch_terms *terms, struct group **group)
{
    struct group *g = NULL;
    int status = prepare(seat, terms);
    /* A member learns the secret from the card before it listens. */
    if (!status && seat->launcher->share && !seat->root)
        status = hand_out(seat, 0);
    const struct group_spec spec = spec_of(seat, terms);
    if (!status)
        status = group_open(&g, &spec);
    if (!status && seat->launcher->share && seat->root)
        status = hand_out(seat, group_port(g));
    if (!status && seat->launcher->end)
        seat->launcher->end(seat);
    if (!status && terms->guard && seat->kills)
        status = leave_guard(seat, terms->timeout_ms);
    if (!status)
        status = group_join(g, seat->addresses, seat->port);
    if (status)
        group_leave(g, status);
    else
        *group = g;
    return status;
}
