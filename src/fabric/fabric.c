/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of built-in fabrics, and the choice of one from a device as typed. */
#include "fabric/fabric.h"
#include "fabric/choose.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MODULES_MOST = 16 };

#define FABRIC_MODULE(...)
#define FABRIC_BUILT_IN(name, ...) &fabric_##name,
static const struct fabric_ops *const built_in[] = {
#include "fabric/fabrics.def"
};
#undef FABRIC_BUILT_IN
#undef FABRIC_MODULE

/* Those that may be there as modules, and what they stand on. */
#define FABRIC_BUILT_IN(...)
#define FABRIC_MODULE(name, package, library, ...) {#name, library},
static const struct {
    const char *name, *needs;
} loadable[] = {
#include "fabric/fabrics.def"
};
#undef FABRIC_MODULE
#undef FABRIC_BUILT_IN

const char *fabric_verb_name(enum verb verb)
{
    static const char *const names[VERBS] = {[VERB_WRITE] = "write",
                                             [VERB_READ] = "read",
                                             [VERB_SEND] = "send",
                                             [VERB_RECV] = "receive",
                                             [VERB_ATOMIC] = "do atomics",
                                             [VERB_AM] = "send active messages",
                                             [VERB_TSEND] = "send tagged messages",
                                             [VERB_TRECV] = "receive tagged messages",
                                             [VERB_STREAM_SEND] = "send a stream of bytes",
                                             [VERB_STREAM_RECV] = "receive a stream of bytes"};
    return names[verb];
}

const char *const fabric_layout_names[] = {"short", "bcopy", "zcopy", NULL};

static const struct fabric_host host = {.abi = FABRIC_ABI,
                                        .find = fabric_find,
                                        .fail = fail,
                                        .warn = warn,
                                        .msg_print = msg_print,
                                        .msg_add = msg_add,
                                        .msg_value = msg_value,
                                        .msg_number = msg_number,
                                        .msg_add_hex = msg_add_hex,
                                        .msg_hex = msg_hex,
                                        .random_word = random_word,
                                        .memory_enough = memory_enough};

bool fabric_built_in(const char *name)
{
    for (size_t i = 0; i < LENGTH(built_in); i++)
        if (strcmp(built_in[i]->name, name) == 0)
            return true;
    return false;
}

/* A module is entered once, however often it is asked for, and in whatever thread. */
static const struct fabric_ops *enter(fabric_entry *entry)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        fabric_entry *entry;
        const struct fabric_ops *ops;
    } entered[MODULES_MOST];
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < MODULES_MOST - 1 && entered[i].entry && entered[i].entry != entry)
        i++;
    if (entered[i].entry != entry) {
        entered[i].ops = entry(&host);
        entered[i].entry = entry;
    }
    const struct fabric_ops *ops = entered[i].ops;
    pthread_mutex_unlock(&lock);
    return ops;
}

static const struct fabric_ops *load(const char *name)
{
    /* A function's address from dlsym, as POSIX means it. */
    union {
        void *object;
        fabric_entry *function;
    } entry = {NULL};
    int status = module_load(name, "weft_fabric", false, &entry.object);
    if (status == -ENOENT) {
        fail(-ENODEV, "no fabric \"%s\": neither built in nor found as weft-%s.so", name, name);
        return NULL;
    }
    const struct fabric_ops *ops = status ? NULL : enter(entry.function);
    if (!status && (!ops || ops->abi != FABRIC_ABI))
        status = fail(-ENODEV, "weft-%s.so is not a module of this version", name);
    if (status)
        fail(-ENODEV, "fabric %s: %s", name, fail_reason());
    return status ? NULL : ops;
}

const struct fabric_ops *fabric_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(built_in); i++)
        if (strcmp(built_in[i]->name, name) == 0)
            return built_in[i];
    return load(name);
}

struct search {
    const char *device;
    bool found;
    char all[400];
    size_t used;
};

static void look_for(void *arg, const char *device, const char *what)
{
    struct search *s = arg;
    (void)what;
    if (s->device && strcmp(s->device, device) == 0)
        s->found = true;
    int n = snprintf(s->all + s->used, sizeof s->all - s->used, "%s%s", s->used ? " " : "", device);
    if (n > 0 && s->used + (size_t)n < sizeof s->all)
        s->used += (size_t)n;
}

const char *fabric_name(size_t number)
{
    if (number < LENGTH(built_in))
        return built_in[number]->name;
    number -= LENGTH(built_in);
    return number < LENGTH(loadable) ? loadable[number].name : NULL;
}

/* A fabric that is known, but not here. */
static int no_module(const char *text)
{
    for (size_t i = 0; i < LENGTH(loadable); i++) {
        size_t length = strlen(loadable[i].name);
        if (strncmp(text, loadable[i].name, length) == 0 && (text[length] == ':' || !text[length]))
            return fail(-ENODEV, "fabric %s is not installed: it is the module weft-%s.so, on %s",
                        loadable[i].name, loadable[i].name, loadable[i].needs);
    }
    return 0;
}

struct guess {
    char text[FABRIC_DEVICE_MAX], nearest[FABRIC_DEVICE_MAX];
    unsigned distance;
};

static void compare(void *arg, const char *device, const char *what)
{
    struct guess *guess = arg;
    unsigned distance = word_distance(guess->text, device, 2);
    (void)what;
    if (distance >= guess->distance)
        return;
    guess->distance = distance;
    snprintf(guess->nearest, sizeof guess->nearest, "%s", device);
}

void fabric_guess(const char *text, char *words, size_t room)
{
    struct guess guess = {.distance = 3};
    snprintf(guess.text, sizeof guess.text, "%.*s", (int)strcspn(text, ":"), text);
    for (size_t i = 0; fabric_name(i); i++)
        compare(&guess, fabric_name(i), NULL);
    fabric_soft.list(compare, &guess);
    snprintf(words, room, *guess.nearest ? " (did you mean %s?)" : "%s", guess.nearest);
}

static int no_device(const char *text)
{
    char guess[FABRIC_DEVICE_MAX + 24];
    if (no_module(text))
        return -ENODEV;
    struct search all = {0};
    for (size_t i = 0; i < LENGTH(built_in); i++)
        built_in[i]->list(look_for, &all);
    fabric_guess(text, guess, sizeof guess);
    return fail(-ENODEV, "no device \"%s\" here%s; there are: %s", text, guess, all.all);
}

/* A prefix counts only if it names a fabric: mlx5_1:1 is a device. */
static bool names_fabric(const char *text, char *name, size_t room)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (!length || length >= room)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return fabric_built_in(name) || module_exists(name);
}

bool fabric_named(const char *text)
{
    char name[32];
    return names_fabric(text, name, sizeof name);
}

struct listing {
    const char *fabric;
    void (*say)(void *arg, const char *device, const char *what);
    void *arg;
};

static void with_prefix(void *arg, const char *device, const char *what)
{
    const struct listing *l = arg;
    char text[FABRIC_DEVICE_MAX + 40];
    bool alone = strcmp(device, l->fabric) == 0;
    snprintf(text, sizeof text, "%s%s%s", l->fabric, alone ? "" : ":", alone ? "" : device);
    l->say(l->arg, text, what);
}

void fabric_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    for (size_t i = 0; i < LENGTH(built_in); i++)
        built_in[i]->list(with_prefix, &(struct listing){built_in[i]->name, say, arg});
    for (size_t i = 0; i < LENGTH(loadable); i++) {
        const struct fabric_ops *ops =
            module_exists(loadable[i].name) ? fabric_find(loadable[i].name) : NULL;
        if (ops)
            ops->list(with_prefix, &(struct listing){ops->name, say, arg});
    }
}

int fabric_choose(const char *text, struct fabric_choice *choice)
{
    char name[32];
    const char *colon = strchr(text, ':');
    *choice = (struct fabric_choice){0};
    if (names_fabric(text, name, sizeof name)) {
        const char *device = colon ? colon + 1 : "";
        choice->ops = fabric_find(name);
        choice->named = true;
        if (!choice->ops)
            return -ENODEV;
        if (strlen(device) >= sizeof choice->device)
            return fail(-EINVAL, "a device name of more than %d characters", FABRIC_DEVICE_MAX - 1);
        memcpy(choice->device, device, strlen(device) + 1);
        return 0;
    }
    struct search s = {.device = text};
    fabric_soft.list(look_for, &s);
    if ((!s.found && !fabric_real_cxi(text)) || strlen(text) >= sizeof choice->device)
        return no_device(text);
    choice->ops = &fabric_soft;
    memcpy(choice->device, text, strlen(text) + 1);
    return 0;
}

int fabric_open(const struct fabric_ops *ops, struct fabric **fabric,
                const struct fabric_want *want, struct fabric_facts *facts)
{
    if (fabric_built_in(ops->name))
        return ops->open(fabric, want, facts);
    fabric_sweep("/dev/shm");
    signals_keep();
    int status = ops->open(fabric, want, facts);
    signals_restore();
    return status;
}

int fabric_try(const struct fabric_choice *choice, uint64_t service, unsigned gpus,
               struct fabric_facts *facts)
{
    struct fabric_want want = {
        .device = choice->device, .here = "", .service = service, .gpus = gpus};
    struct fabric *handle;
    int status = fabric_open(choice->ops, &handle, &want, facts);
    if (!status)
        choice->ops->close(handle);
    return status;
}
