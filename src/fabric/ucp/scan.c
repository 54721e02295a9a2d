/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is: a context on the transports and devices that the text "TLS/DEVICE" names, as
 * UCX_TLS and UCX_NET_DEVICES would. UCX tells which it found by printing them. */
#include "fabric/ip.h"
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Transports, and what UCX calls several of them. */
static const char *const shared_memory[] = {"posix", "sysv", "xpmem", "cma", "knem",
                                            "self",  "shm",  "sm",    "mm"};

/* ---- what UCX prints ---- */

static bool begins_with_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == '/';
}

static bool in_shared_memory(const char *name)
{
    for (size_t i = 0; i < LENGTH(shared_memory); i++)
        if (begins_with_name(name, shared_memory[i]))
            return true;
    return false;
}

/* They copy to and from a GPU on this machine, for other transports: none goes without one. */
static bool serves_gpus(const char *name)
{
    static const char *const families[] = {"cuda_", "gdr_", "rocm_", "ze_"};
    for (size_t i = 0; i < LENGTH(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

/* Of a context's lines those of resources, of an endpoint's those of lanes: a word with a slash. */
void weft_ucp_each(const char *text, void (*found)(void *arg, const char *name), void *arg)
{
    char line[512];
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        int length = (int)strcspn(text, "\n");
        char *rest = line, *word;
        snprintf(line, sizeof line, "%.*s", length, text);
        if (!strstr(line, " resource ") && !strstr(line, " lane["))
            continue;
        while ((word = strsep(&rest, " "))) {
            char *slash = strchr(word, '/');
            /* A lane's begins with its number, "2:tcp/lo.0", and ends with the path's. */
            char *colon = strchr(word, ':'), *dot = strrchr(word, '.');
            if (!slash || slash == word || !slash[1])
                continue;
            if (dot && strstr(line, " lane["))
                *dot = '\0';
            found(arg, colon && colon < slash ? colon + 1 : word);
            break;
        }
    }
}

static char *print_context(ucp_context_h context)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    if (!stream)
        return NULL;
    ucp_context_print_info(context, stream);
    fclose(stream);
    return text;
}

static void each_resource(ucp_context_h context, void (*found)(void *arg, const char *name),
                          void *arg)
{
    char *text = print_context(context);
    if (text)
        weft_ucp_each(text, found, arg);
    free(text);
}

/* ---- a context ---- */

/* Since release 1.16. They have no atomics for an endpoint that handles errors: those that are
 * asked of it never complete. */
bool weft_ucp_new_protocols(void)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return major > 1 || minor > 13;
}

/* Active messages carry the first word of a meeting. */
static uint64_t features(unsigned verbs)
{
    uint64_t wanted = UCP_FEATURE_AM;
    if (!verbs || verbs & (VERB(WRITE) | VERB(READ)))
        wanted |= UCP_FEATURE_RMA;
    if (!verbs || verbs & VERB(ATOMIC))
        wanted |= UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 | UCP_FEATURE_RMA;
    if (!verbs || verbs & (VERB(SEND) | VERB(RECV) | VERB(TSEND) | VERB(TRECV)))
        wanted |= UCP_FEATURE_TAG;
    if (!verbs || verbs & (VERB(STREAM_SEND) | VERB(STREAM_RECV)))
        wanted |= UCP_FEATURE_STREAM;
    return wanted;
}

static ucs_status_t modify(ucp_config_t *config, const char *name, const char *value)
{
    return *value ? ucp_config_modify(config, name, value) : UCS_OK;
}

/* Of UCX's own part of a request, the same in all contexts; 0: not known yet. */
static _Atomic size_t request_bytes;

/* UCX looks at parts of a request that it has not set when it drops what waits for a connection
 * that is lost; it asks only for ours, which follows, to be prepared. */
static void clear_request(void *ours)
{
    memset((char *)ours - request_bytes, 0, request_bytes);
}

static void learn_request_bytes(ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
    if (ucp_context_query(context, &attr) == UCS_OK)
        request_bytes = attr.request_size;
}

/* "memory" is what every transport of shared memory calls its device. The addresses of workers are
 * checked before UCX sees them: in this form. */
static ucs_status_t open_context(struct weft_ucp_port *port, unsigned verbs, bool events)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_INIT |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = features(verbs) | (events ? UCP_FEATURE_WAKEUP : 0),
                           .request_init = clear_request,
                           .estimated_num_eps = 1};
    const char *which = strcmp(port->device, "memory") == 0 ? "SHM_DEVICES" : "NET_DEVICES";
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    status = modify(config, "TLS", port->transports);
    if (status == UCS_OK)
        status = modify(config, which, port->device);
    if (status == UCS_OK)
        status = modify(config, "ADDRESS_VERSION", "v1");
    if (status == UCS_OK)
        status = modify(config, "UNIFIED_MODE", "n");
    /* The control connection tells of an end that is dead; UCX would read a clock in every poll. */
    if (!getenv("UCX_KEEPALIVE_INTERVAL"))
        (void)modify(config, "KEEPALIVE_INTERVAL", "inf");
    /* Otherwise UCX does not let go of an end in shared memory that is dead. */
    (void)modify(config, "MM_ERROR_HANDLING", "y");
    if (status == UCS_OK)
        status = ucp_init(&params, config, &port->context);
    ucp_config_release(config);
    if (status == UCS_OK)
        learn_request_bytes(port->context);
    return status;
}

void weft_ucp_port_close(struct weft_ucp_port *port)
{
    if (port->context && !port->relics)
        ucp_cleanup(port->context);
    port->context = NULL;
}

/* ---- lists ---- */

struct listing {
    void (*say)(void *arg, const char *device, const char *what);
    void *arg;
};

/* A process talks to itself there: there are not two ends. */
static bool no_two_ends(const char *name)
{
    return begins_with_name(name, "self");
}

static void say_resource(void *arg, const char *name)
{
    const struct listing *listing = arg;
    if (!no_two_ends(name) && !serves_gpus(name))
        listing->say(listing->arg, name, in_shared_memory(name) ? "shared memory" : "network");
}

int weft_ucp_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    struct weft_ucp_port port = {.context = NULL};
    struct listing listing = {say, arg};
    if (open_context(&port, 0, false) == UCS_OK)
        each_resource(port.context, say_resource, &listing);
    weft_ucp_port_close(&port);
    return 0;
}

static void add_name(void *arg, const char *name, const char *what)
{
    char *all = arg;
    size_t used = strlen(all);
    (void)what;
    snprintf(all + used, (size_t)FABRIC_DEVICE_MAX * 4 - used, "%s%s", used ? " " : "", name);
}

static int refuse(const char *device, ucs_status_t status)
{
    char all[FABRIC_DEVICE_MAX * 4] = "";
    weft_ucp_list(add_name, all);
    return weft_ucp_host->fail(status == UCS_ERR_NO_DEVICE ? -ENODEV : weft_ucp_errno(status),
                               "ucp: %s%s%s cannot be opened: %s; there are: %s",
                               *device ? "\"" : "UCX", device, *device ? "\"" : "",
                               ucs_status_string(status), all);
}

/* ---- choosing ---- */

static void look(void *arg, const char *name)
{
    struct weft_ucp_port *port = arg;
    if (serves_gpus(name))
        return;
    port->shared &= in_shared_memory(name);
    port->places |= in_shared_memory(name) && !no_two_ends(name);
    port->unwatched |= in_shared_memory(name) && !no_two_ends(name) &&
                       !begins_with_name(name, "posix") && !begins_with_name(name, "sysv");
}

static int split(struct weft_ucp_port *port, const char *device)
{
    const char *slash = strchr(device, '/');
    size_t length = slash ? (size_t)(slash - device) : strlen(device);
    if (length >= sizeof port->transports || (slash && strlen(slash + 1) >= sizeof port->device))
        return weft_ucp_host->fail(-EINVAL, "ucp: a device name that is too long");
    memcpy(port->transports, device, length);
    snprintf(port->device, sizeof port->device, "%s", slash ? slash + 1 : "");
    return 0;
}

/* Of transports that are named without a device, those of the interface where the control
 * connection goes: another network is not listened on. A user's UCX_NET_DEVICES stays. */
int weft_ucp_port_open(struct weft_ucp_port *port, const struct fabric_want *want)
{
    *port = (struct weft_ucp_port){.shared = true};
    int status = split(port, want->device);
    if (status)
        return status;
    bool tcp = strcmp(port->transports, "tcp") == 0 && !*port->device;
    if (tcp && !getenv("UCX_NET_DEVICES")) {
        port->follows_here = true;
        ip_interface(want->here, port->device, sizeof port->device);
    }
    ucs_status_t opened = open_context(port, want->verbs, want->events);
    if (opened != UCS_OK)
        return refuse(want->device, opened);
    each_resource(port->context, look, port);
    weft_ucp_gpus(port, want->gpus);
    return 0;
}
