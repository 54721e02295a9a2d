/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is: components have memory domains, domains have transports on devices. The text
 * "TL/DEV", "TL" or "/DEV" chooses one of them. */
#include "fabric/choose.h"
#include "fabric/ip.h"
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- going through them all ---- */

/* Returns true to take the place, whose domain then stays open. */
typedef bool visitor(void *arg, const struct weft_uct_place *place);

static bool visit_domain(uct_component_h component, uct_md_h domain, visitor *visit, void *arg)
{
    uct_tl_resource_desc_t *found;
    unsigned count;
    bool taken = false;
    if (uct_md_query_tl_resources(domain, &found, &count) != UCS_OK)
        return false;
    for (unsigned i = 0; i < count && !taken; i++) {
        struct weft_uct_place place = {
            .component = component, .domain = domain, .type = found[i].dev_type};
        snprintf(place.transport, sizeof place.transport, "%s", found[i].tl_name);
        snprintf(place.device, sizeof place.device, "%s", found[i].dev_name);
        taken = visit(arg, &place);
    }
    uct_release_tl_resource_list(found);
    return taken;
}

static uct_md_h open_domain(uct_component_h component, const char *name)
{
    uct_md_config_t *config;
    uct_md_h domain = NULL;
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
        return NULL;
    if (uct_md_open(component, name, config, &domain) != UCS_OK)
        domain = NULL;
    uct_config_release(config);
    return domain;
}

static bool visit_component(uct_component_h component, visitor *visit, void *arg)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    bool taken = false;
    if (uct_component_query(component, &attr) != UCS_OK || !attr.md_resource_count)
        return false;
    unsigned count = attr.md_resource_count;
    uct_md_resource_desc_t *domains = calloc(count, sizeof *domains);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = domains;
    if (domains && uct_component_query(component, &attr) == UCS_OK)
        for (unsigned i = 0; i < count && !taken; i++) {
            uct_md_h domain = open_domain(component, domains[i].md_name);
            taken = domain && visit_domain(component, domain, visit, arg);
            if (domain && !taken)
                uct_md_close(domain);
        }
    free(domains);
    return taken;
}

static bool visit_all(visitor *visit, void *arg)
{
    uct_component_h *components;
    unsigned count;
    bool taken = false;
    if (uct_query_components(&components, &count) != UCS_OK)
        return false;
    for (unsigned i = 0; i < count && !taken; i++)
        taken = visit_component(components[i], visit, arg);
    uct_release_component_list(components);
    return taken;
}

/* ---- a port ---- */

/* A thread of UCX's own would disturb what is measured. Where we know that nothing but accepting
 * a connection needs it, connect does that; networks that retransmit by timer must have it. */
static ucs_async_mode_t async_mode(const struct weft_uct_place *place)
{
    bool quiet = place->type != UCT_DEVICE_TYPE_NET || strcmp(place->transport, "tcp") == 0;
    return quiet ? UCS_ASYNC_MODE_POLL : UCS_ASYNC_MODE_THREAD_SPINLOCK;
}

static ucs_status_t open_iface(struct weft_uct_port *port, uct_error_handler_t lost, void *arg)
{
    const struct weft_uct_place *place = &port->place;
    uct_iface_config_t *config;
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_STATS_ROOT | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                      UCT_IFACE_PARAM_FIELD_CPU_MASK | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = place->transport, .dev_name = place->device},
        .err_handler = lost,
        .err_handler_arg = arg};
    ucs_status_t status =
        uct_md_iface_config_read(place->domain, place->transport, NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    status = uct_iface_open(place->domain, port->worker, &params, config, &port->iface);
    uct_config_release(config);
    return status;
}

ucs_status_t weft_uct_port_renew(struct weft_uct_port *port, uct_error_handler_t lost, void *arg)
{
    if (port->iface)
        uct_iface_close(port->iface);
    port->iface = NULL;
    ucs_status_t status = open_iface(port, lost, arg);
    if (status != UCS_OK)
        return status;
    uct_iface_progress_enable(port->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return uct_iface_query(port->iface, &port->attr);
}

static ucs_status_t open_place(struct weft_uct_port *port, uct_error_handler_t lost, void *arg)
{
    ucs_status_t status = uct_md_query(port->place.domain, &port->domain_attr);
    if (status == UCS_OK)
        status = ucs_async_context_create(async_mode(&port->place), &port->async);
    if (status == UCS_OK)
        status = uct_worker_create(port->async, UCS_THREAD_MODE_SINGLE, &port->worker);
    return status == UCS_OK ? weft_uct_port_renew(port, lost, arg) : status;
}

/* All but the domain. */
static void close_place(struct weft_uct_port *port)
{
    if (port->iface)
        uct_iface_close(port->iface);
    if (port->worker)
        uct_worker_destroy(port->worker);
    if (port->async)
        ucs_async_context_destroy(port->async);
    port->iface = NULL;
    port->worker = NULL;
    port->async = NULL;
}

void weft_uct_port_close(struct weft_uct_port *port)
{
    close_place(port);
    if (port->place.domain)
        uct_md_close(port->place.domain);
    port->place.domain = NULL;
}

/* ---- lists ---- */

struct listing {
    void (*say)(void *arg, const char *device, const char *what);
    void *arg;
};

/* A process talks to itself there: there are not two ends. */
static bool no_two_ends(const struct weft_uct_place *place)
{
    return place->type == UCT_DEVICE_TYPE_SELF;
}

static bool say_place(void *arg, const struct weft_uct_place *place)
{
    struct listing *listing = arg;
    char name[FABRIC_DEVICE_MAX], what[160];
    struct weft_uct_port port = {.place = *place};
    if (!no_two_ends(place) && open_place(&port, NULL, NULL) == UCS_OK) {
        snprintf(name, sizeof name, "%s/%s", place->transport, place->device);
        weft_uct_describe(&port, what, sizeof what);
        listing->say(listing->arg, name, what);
    }
    close_place(&port);
    return false;
}

int weft_uct_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    struct listing listing = {.say = say, .arg = arg};
    visit_all(say_place, &listing);
    return 0;
}

static bool add_name(void *arg, const struct weft_uct_place *place)
{
    char *all = arg;
    size_t used = strlen(all);
    if (!no_two_ends(place))
        snprintf(all + used, (size_t)FABRIC_DEVICE_MAX * 4 - used, "%s%s/%s", used ? " " : "",
                 place->transport, place->device);
    return false;
}

static int no_place(const char *device)
{
    char all[FABRIC_DEVICE_MAX * 4] = "";
    visit_all(add_name, all);
    if (!*device)
        return weft_uct_host->fail(-ENODEV, "uct: which transport and device? There are: %s", all);
    return weft_uct_host->fail(-ENODEV, "uct: there is no \"%s\" here; there are: %s",
                               device + (*device == '/'), all);
}

/* ---- choosing ---- */

struct request {
    char transport[UCT_TL_NAME_MAX], device[UCT_DEVICE_NAME_MAX]; /* "": any */
    struct weft_uct_place *place;
};

static bool matches(void *arg, const struct weft_uct_place *place)
{
    const struct request *request = arg;
    if ((*request->transport && strcmp(request->transport, place->transport) != 0) ||
        (*request->device && strcmp(request->device, place->device) != 0) ||
        (!*request->transport && no_two_ends(place)))
        return false;
    *request->place = *place;
    return true;
}

static int choose(struct weft_uct_place *place, const char *device, const char *here)
{
    struct request request = {.place = place};
    const char *slash = strchr(device, '/');
    size_t length = slash ? (size_t)(slash - device) : strlen(device);
    if (!*device || length >= sizeof request.transport ||
        (slash && strlen(slash + 1) >= sizeof request.device))
        return no_place(device);
    memcpy(request.transport, device, length);
    snprintf(request.device, sizeof request.device, "%s", slash ? slash + 1 : "");
    if (slash && !length && !*request.device)
        return no_place(device);
    if (!*request.device) {
        /* Best the one where the control connection goes. */
        ip_interface(here, request.device, sizeof request.device);
        if (*request.device && visit_all(matches, &request))
            return 0;
        *request.device = '\0';
    }
    if (!visit_all(matches, &request))
        return no_place(device);
    if (*request.device || !*here || !if_nametoindex(place->device))
        return 0;
    /* Another network that nobody named is not listened on: there may be a reason for --bind. */
    uct_md_close(place->domain);
    return weft_uct_host->fail(-ENODEV,
                               "uct: %s has no device with the address %s of the control "
                               "connection; name one: %s/%s",
                               place->transport, here, place->transport, place->device);
}

int weft_uct_port_open(struct weft_uct_port *port, const char *device, const char *here,
                       uct_error_handler_t lost, void *arg)
{
    *port = (struct weft_uct_port){0};
    int status = choose(&port->place, device, here);
    if (status)
        return status;
    const char *slash = strchr(device, '/');
    port->follows_here = (!slash || !slash[1]) && if_nametoindex(port->place.device);
    ucs_status_t opened = open_place(port, lost, arg);
    if (opened == UCS_OK)
        return 0;
    weft_uct_port_close(port);
    return weft_uct_host->fail(weft_uct_errno(opened), "uct: %s/%s cannot be opened: %s",
                               port->place.transport, port->place.device,
                               ucs_status_string(opened));
}
