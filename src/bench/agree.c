/* SPDX-License-Identifier: BSD-3-Clause */
/* How two ends agree on a run: the client proposes, the server answers, the client says go. Each
 * end gets ready before it answers, so that a run that cannot be made is refused before anything is
 * timed. Everything in these messages comes from outside and is checked. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REASON = 600 };

static const char any_fabric[] = "any";

/* ---- refusals ---- */

/* What these mean is this end's own: it was interrupted, or is to try again. */
static int as_refusal(int code)
{
    return code == EINTR || code == EAGAIN ? -EREMOTEIO : -code;
}

int session_refuse(struct msg *text, int status)
{
    char why[REASON];
    snprintf(why, sizeof why, "%s", fail_reason());
    return msg_print(text, "code=%d\nwhy=%s\n", -status, why);
}

int session_refused(struct session *s, const struct msg *text)
{
    char why[REASON] = "", number[16];
    uint64_t code = 0;
    int status = msg_value(text, "code", number, sizeof number);
    if (status == -ENOENT)
        return 0;
    if (status || unit_number(number, &code) || !code || code > 4095 ||
        msg_value(text, "why", why, sizeof why))
        return fail(-EPROTO, "the %s's answer cannot be read", s->peer->other);
    s->refused = true;
    return fail(as_refusal((int)code), "%s", why);
}

/* ---- what an end says of itself ---- */

static int describe(const struct session *s, const struct offer *offer, struct msg *text)
{
    char fabric[32];
    bool named = fabric_named(offer->device);
    snprintf(fabric, sizeof fabric, "%.*s", (int)strcspn(offer->device, ":"), offer->device);
    int status =
        msg_add(text, ".weft=%s\n.device=%s\n.fabric=%s\n.given=%d\n.linked=%d\n", core_version(),
                offer->device, named ? fabric : any_fabric, offer->given, s->connected);
    return status ? status : fabric_describe(*offer->device ? offer->device : NULL, text);
}

int session_propose(struct session *s, const struct offer *offer, const struct spec *spec,
                    struct msg *text)
{
    s->refused = false;
    int status = random_digits(s->nonce, sizeof s->nonce);
    if (!status)
        status = msg_add(text, ".nonce=%s\n.memory=%s\n.your_memory=%s\n.verbs=%u\n.looks=%d\n",
                         s->nonce, *offer->memory[0] ? offer->memory[0] : "host",
                         offer->memory[PEER_SERVER], offer->verbs, offer->looks);
    if (!status && offer->more)
        status = msg_add(text, "%s", offer->more);
    if (!status)
        status = describe(s, offer, text);
    return status ? status : spec_encode(spec, text);
}

/* ---- versions ---- */

static bool other_version(const struct msg *theirs, char version[32])
{
    return !msg_value(theirs, ".weft", version, 32) && strcmp(version, core_version()) != 0;
}

/* Two versions may not measure alike. Said once, whatever becomes of the run. */
static void compare_versions(const struct session *s, const struct msg *theirs)
{
    char version[32];
    if (s->peer->runs <= 1 && other_version(theirs, version))
        warn("the %s is Weft %s, this end is Weft %s", s->peer->other, version, core_version());
}

/* What one end asks for may be new to the other. */
static int between_versions(int status, const struct msg *proposal)
{
    char version[32];
    if (!status || !other_version(proposal, version))
        return status;
    return fail(status, "%s (the client is Weft %s, the server Weft %s)", fail_reason(), version,
                core_version());
}

/* ---- memory ---- */

/* Whose GPU each end's buffer is on. */
static int note_vendor(struct session *s, int rank, const char *memory)
{
    const struct memory_ops *kind;
    unsigned device;
    int status = memory_choose(memory, &kind, &device);
    s->vendors[rank] = status ? MEMORY_CPU : kind->vendor;
    snprintf(s->memory[rank], sizeof s->memory[rank], "%s", memory);
    return status;
}

/* ---- the fabric ---- */

struct device {
    char text[FABRIC_DEVICE_MAX], fabric[32];
    uint64_t given;
};

static int read_device(const struct msg *text, struct device *device)
{
    if (msg_value(text, ".device", device->text, sizeof device->text) ||
        msg_value(text, ".fabric", device->fabric, sizeof device->fabric) ||
        msg_number(text, ".given", &device->given))
        return fail(-EPROTO, "a device that cannot be read");
    return 0;
}

static bool named(const struct device *device)
{
    return strcmp(device->fabric, any_fabric) != 0;
}

static int two_fabrics(const struct session *s, const struct device *mine,
                       const struct device *theirs)
{
    bool client = s->peer->rank == PEER_CLIENT;
    const char *here = named(mine) ? mine->fabric : "soft";
    const char *there = named(theirs) ? theirs->fabric : "soft";
    return fail(-ENODEV, "the client's fabric is %s, the server's is %s: give both the same device",
                client ? here : there, client ? there : here);
}

/* Both ends come to the same fabric, each on its own device, or the device of the end that named
 * one. */
static int choose(struct session *s, const struct msg *mine, const struct msg *theirs,
                  struct device *chosen)
{
    struct device here, there;
    int status = read_device(mine, &here);
    if (!status)
        status = read_device(theirs, &there);
    if (status)
        return status;
    s->why = "";
    s->adopted = false;
    if (!named(&here) && !named(&there))
        return fabric_between(mine, theirs, *here.text ? here.text : NULL, s->peer->trusted,
                              chosen->text, sizeof chosen->text, &s->why);
    if (named(&here) && named(&there) && strcmp(here.fabric, there.fabric) != 0)
        return two_fabrics(s, &here, &there);
    /* A bare device is soft's. */
    bool other_soft = strcmp((named(&here) ? &here : &there)->fabric, "soft") == 0;
    if (named(&here) != named(&there) && !other_soft && (named(&here) ? &there : &here)->given)
        return two_fabrics(s, &here, &there);
    bool own = named(&here) || (other_soft && *here.text);
    s->adopted = !own;
    snprintf(chosen->text, sizeof chosen->text, "%s", own ? here.text : there.text);
    snprintf(chosen->fabric, sizeof chosen->fabric, "%s", (named(&here) ? &here : &there)->fabric);
    return 0;
}

/* Loading a module can take seconds. */
static int find(const struct session *s, const struct device *chosen, struct fabric_choice *choice)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, s->peer, KEEPALIVE_LIBRARY_MS);
    int status = fabric_choose(chosen->text, choice);
    keepalive_end(&keepalive);
    if (!status && *chosen->fabric && strcmp(chosen->fabric, choice->ops->name) != 0)
        status = fail(-EPROTO, "fabric \"%s\" does not have %s", chosen->fabric, chosen->text);
    return status;
}

/* Where the server takes no part, the client's device is the one that counts, and the server's
 * header must not show another. */
static int follow_client(struct session *s, const struct msg *theirs, struct opened *wanted)
{
    struct device there;
    char mine[FABRIC_DEVICE_MAX + 40];
    int status = read_device(theirs, &there);
    session_device(s, mine, sizeof mine);
    if (status || !wanted->server || !s->facts.alone || !named(&there) ||
        strcmp(mine, there.text) == 0)
        return status;
    s->adopted = true;
    status = find(s, &there, &wanted->choice);
    return status ? status : session_open_fabric(s, wanted);
}

static unsigned gpus_of(const struct session *s)
{
    return (1U << s->vendors[0] | 1U << s->vendors[1]) & MEMORY_ALL_GPUS;
}

/* Of all that is verified, only active messages are looked at where the fabric has put them. */
static bool looks_at_arrivals(const struct spec *spec)
{
    return (spec->data.verify || spec->data.copies) && op_of(spec)->verbs & VERB(AM);
}

/* Its descriptor costs something, even if nobody sleeps on it. */
static bool wants_events(const struct spec *spec)
{
    return spec->waits.events || spec->waits.wakeup;
}

/* Where both ends are on one machine, the server is the first that lacks huge pages: it says what
 * the two of them need. */
static int place(struct session *s, const struct msg *mine, const struct msg *theirs,
                 const char *memory, size_t length)
{
    int status = session_place(s, memory, length);
    const struct memory_ops *kinds[2];
    unsigned device;
    if (status != -ENOMEM || s->peer->rank != PEER_SERVER || !fabric_one_machine(mine, theirs))
        return status;
    for (int i = 0; i < 2; i++)
        if (memory_choose(s->memory[i], &kinds[i], &device))
            return status;
    return memory_pages_missing(kinds, 2, length);
}

/* Fabric and memory for this run: everything that can fail at one end alone. */
static int get_ready(struct session *s, const struct offer *offer, struct spec *spec,
                     const struct msg *mine, const struct msg *theirs, const char *memory)
{
    const struct op *op = op_of(spec);
    struct opened wanted = {.verbs = op->verbs | offer->verbs,
                            .gpus = gpus_of(s),
                            .looks = looks_at_arrivals(spec) || offer->looks,
                            .events = wants_events(spec),
                            .server = offer->members || s->peer->rank == PEER_SERVER,
                            .threads = (unsigned)spec->threads,
                            .service = offer->service};
    struct device chosen = {.fabric = ""};
    snprintf(wanted.here, sizeof wanted.here, "%s", s->peer->here);
    snprintf(wanted.tunes, sizeof wanted.tunes, "%s", spec->tunes);
    int status = choose(s, mine, theirs, &chosen);
    if (!status)
        status = grant_fabric(s, offer, chosen.text);
    if (!status)
        status = find(s, &chosen, &wanted.choice);
    if (!status)
        status = session_open_fabric(s, &wanted);
    if (!status && !offer->members)
        status = follow_client(s, theirs, &wanted);
    if (status)
        return status;
    spec->data.layout = session_layout(s, spec);
    status = session_can(s, spec);
    if (!status)
        status = session_pin(s, offer->cpus);
    if (!status)
        status = place(s, mine, theirs, memory, run_buffer_bytes(spec));
    unsigned ends = offer->members ? offer->members : fabric_one_machine(mine, theirs) ? 2 : 1;
    return status ? status : threads_ready(s, spec, memory, ends, offer->members);
}

int session_prepare(struct session *s, const struct offer *offer, const struct spec *spec,
                    bool server)
{
    struct opened wanted = {.verbs = op_of(spec)->verbs | offer->verbs,
                            .looks = looks_at_arrivals(spec) || offer->looks,
                            .events = wants_events(spec),
                            .server = server,
                            .threads = (unsigned)spec->threads,
                            .service = offer->service};
    snprintf(wanted.tunes, sizeof wanted.tunes, "%s", spec->tunes);
    int status =
        note_vendor(s, PEER_CLIENT, !server && *offer->memory[0] ? offer->memory[0] : "host");
    if (!status)
        status = note_vendor(s, PEER_SERVER, *offer->memory[1] ? offer->memory[1] : "host");
    if (!status)
        status = fabric_choose(offer->device, &wanted.choice);
    /* A real device is looked at once the other end is known. */
    if (status || (!wanted.choice.named && fabric_real_cxi(offer->device)) ||
        (!server && !fabric_built_in(wanted.choice.ops->name)))
        return status;
    wanted.gpus = gpus_of(s);
    status = session_open_fabric(s, &wanted);
    if (status)
        return status;
    /* Which device it will be is known when the other end is: this one may not be used. */
    if (s->facts.follows_here)
        session_device(s, s->facts.form, sizeof s->facts.form);
    struct spec settled = *spec;
    settled.data.layout = session_layout(s, spec);
    return session_can(s, &settled);
}

/* ---- the server ---- */

/* The client's word on memory counts for a server that has none of its own. */
static int take_memory(struct session *s, const struct offer *offer, const struct msg *proposal,
                       char *memory, size_t room)
{
    char theirs[SESSION_MEMORY] = "", mine[SESSION_MEMORY] = "";
    if (msg_value(proposal, ".memory", theirs, sizeof theirs) ||
        msg_value(proposal, ".your_memory", mine, sizeof mine))
        return fail(-EPROTO, "a kind of memory that cannot be read");
    const char *own = offer->memory[PEER_SERVER];
    snprintf(memory, room, "%s", *own ? own : *mine ? mine : "host");
    int status = note_vendor(s, PEER_CLIENT, theirs);
    return status ? status : note_vendor(s, PEER_SERVER, memory);
}

static int take_spec(const struct msg *proposal, struct spec *spec, bool same)
{
    struct spec theirs = *spec;
    int status = spec_decode(same ? &theirs : spec, proposal);
    return status || !same ? status : spec_compare(&theirs, spec);
}

int session_accept(struct session *s, const struct offer *offer, const struct msg *proposal,
                   struct spec *spec, bool same, struct msg *answer)
{
    struct offer mine = *offer;
    char memory[SESSION_MEMORY];
    struct msg self = {0};
    uint64_t verbs = 0, looks = 0;
    s->refused = false;
    compare_versions(s, proposal);
    int status = between_versions(take_spec(proposal, spec, same), proposal);
    if (!status &&
        (msg_value(proposal, ".nonce", s->nonce, sizeof s->nonce) ||
         msg_number(proposal, ".verbs", &verbs) || msg_number(proposal, ".looks", &looks)))
        status = fail(-EPROTO, "a proposal that cannot be read");
    if (!status)
        status = take_memory(s, offer, proposal, memory, sizeof memory);
    if (!status)
        status = grant_amounts(&offer->most, spec, memory);
    if (status)
        return status;
    s->peer->timeout_ms = spec->timeout_ms;
    mine.verbs |= (unsigned)verbs & ((1U << VERBS) - 1);
    mine.looks |= looks != 0;
    status = describe(s, offer, &self);
    if (!status)
        status = get_ready(s, &mine, spec, &self, proposal, memory);
    /* What was open may have been closed for it. */
    self = (struct msg){0};
    if (!status)
        status = describe(s, offer, &self);
    if (!status)
        status =
            msg_add(answer, ".memory=%s\n.layout=%d\n%s", memory, spec->data.layout, self.bytes);
    return status;
}

/* Both ends keep the connection of the last run only if both still have it. */
static int compare_links(struct session *s, const struct msg *theirs)
{
    uint64_t linked;
    if (msg_number(theirs, ".linked", &linked))
        return fail(-EPROTO, "the %s's answer cannot be read", s->peer->other);
    if (!linked)
        session_unlink(s);
    return 0;
}

int session_await(struct session *s)
{
    struct msg go;
    int status = peer_recv(s->peer, &go, NULL, NULL);
    if (!status)
        status = session_refused(s, &go);
    return status ? status : compare_links(s, &go);
}

/* ---- the client ---- */

static int join(struct session *s, const struct offer *offer, struct spec *spec,
                const struct msg *answer)
{
    char memory[SESSION_MEMORY] = "";
    struct msg self = {0};
    uint64_t layout;
    if (msg_value(answer, ".memory", memory, sizeof memory) ||
        msg_number(answer, ".layout", &layout))
        return fail(-EPROTO, "the server's answer cannot be read");
    compare_versions(s, answer);
    const char *mine = *offer->memory[0] ? offer->memory[0] : "host";
    int status = note_vendor(s, PEER_CLIENT, mine);
    if (!status)
        status = note_vendor(s, PEER_SERVER, memory);
    if (!status)
        status = describe(s, offer, &self);
    if (!status)
        status = get_ready(s, offer, spec, &self, answer, mine);
    /* Each end has looked for itself; a fabric may have other layouts there. */
    if (!status && layout != (uint64_t)spec->data.layout)
        status = fail(-ENOTSUP, "the two ends do not have the same data layouts first: choose one");
    return status ? status : compare_links(s, answer);
}

int session_join(struct session *s, const struct offer *offer, struct spec *spec,
                 const struct msg *answer)
{
    struct msg go;
    int status = session_refused(s, answer);
    if (status)
        return status;
    status = join(s, offer, spec, answer);
    if (status == -EINTR)
        return status;
    int said =
        status ? session_refuse(&go, status) : msg_print(&go, "go=1\n.linked=%d\n", s->connected);
    s->refused = status;
    if (!said)
        said = peer_send(s->peer, &go);
    return said ? said : status;
}
