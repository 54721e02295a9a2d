/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is: providers have domains. The text "PROVIDER" or "PROVIDER/DOMAIN" chooses one of
 * them; nothing chooses hardware if there is some, or else tcp. */
#include "fabric/choose.h"
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 64, NAME = 64 };

/* Of networks, the ones that are worth their price come first. */
static const char *const hardware[] = {"cxi", "psm3", "psm2", "opx", "efa", "verbs"};

bool weft_ofi_is(const struct fi_info *info, const char *provider)
{
    const char *name = info->fabric_attr->prov_name;
    return strcspn(name, ";") == strlen(provider) && strncmp(name, provider, strlen(provider)) == 0;
}

/* A trial of tcp's successor in libfabric 1.17: its delivered writes never complete. */
static bool unfit(const struct fi_info *info)
{
    return weft_ofi_is(info, "net");
}

/* ---- asking libfabric ---- */

/* From the most to the least: all that can be had, then without what may be missing. */
static const struct {
    uint64_t caps, order;
} grades[] = {
    {FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_ORDER_SAS | FI_ORDER_RMA_WAW},
    {FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_ORDER_SAS},
    {FI_MSG | FI_TAGGED | FI_RMA, FI_ORDER_SAS | FI_ORDER_RMA_WAW},
    {FI_MSG | FI_TAGGED | FI_RMA, FI_ORDER_SAS},
    {FI_MSG | FI_TAGGED, FI_ORDER_SAS},
};

static int request_for(struct fi_info *hints, size_t grade, const char *provider,
                       const struct fabric_want *want)
{
    hints->caps = grades[grade].caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = grades[grade].order;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    if (want && want->gpus) {
        hints->caps |= FI_HMEM;
        hints->domain_attr->mr_mode |= FI_MR_HMEM;
    }
    if (provider) {
        hints->fabric_attr->prov_name = strdup(provider);
        if (!hints->fabric_attr->prov_name)
            return -ENOMEM;
    }
#ifdef WEFT_SLINGSHOT
    if (want && provider && strcmp(provider, "cxi") == 0)
        return weft_ofi_slingshot_request(hints, want);
#endif
    return 0;
}

/* NULL: there is nothing of this grade. */
static struct fi_info *query(size_t grade, const char *provider, const char *node,
                             const struct fabric_want *want)
{
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    if (hints && !request_for(hints, grade, provider, want) &&
        fi_getinfo(FI_VERSION(1, 17), node, NULL, node ? FI_SOURCE : 0, hints, &found))
        found = NULL;
    if (hints)
        fi_freeinfo(hints);
    return found;
}

/* ---- lists ---- */

/* "tcp/lo"; a provider whose only domain has its own name is called by that. */
static void name_of(const struct fi_info *info, char *name, size_t room)
{
    const char *provider = info->fabric_attr->prov_name, *domain = info->domain_attr->name;
    int length = (int)strcspn(provider, ";");
    if (strlen(domain) == (size_t)length && strncmp(domain, provider, (size_t)length) == 0)
        snprintf(name, room, "%s", domain);
    else
        snprintf(name, room, "%.*s/%s", length, provider, domain);
}

struct listing {
    char names[NAMES][NAME];
    int count;
    void (*say)(void *arg, const char *device, const char *what);
    void *arg;
};

static void list_one(struct listing *l, const struct fi_info *info)
{
    char name[NAME], what[160];
    name_of(info, name, sizeof name);
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->names[i], name) == 0)
            return;
    if (l->count == NAMES)
        return;
    memcpy(l->names[l->count++], name, sizeof name);
    weft_ofi_describe(info, what, sizeof what);
    l->say(l->arg, name, what);
}

int weft_ofi_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    struct listing listing = {.say = say, .arg = arg};
    for (size_t grade = 0; grade < LENGTH(grades); grade++) {
        struct fi_info *all = query(grade, NULL, NULL, NULL);
        for (const struct fi_info *one = all; one; one = one->next)
            if (!unfit(one))
                list_one(&listing, one);
        if (all)
            fi_freeinfo(all);
    }
    return 0;
}

struct sentence {
    char text[FABRIC_DEVICE_MAX * 4];
};

static void add_name(void *arg, const char *device, const char *what)
{
    struct sentence *all = arg;
    size_t used = strlen(all->text);
    (void)what;
    snprintf(all->text + used, sizeof all->text - used, "%s%s", used ? " " : "", device);
}

static int no_place(const char *device)
{
    struct sentence all = {""};
    weft_ofi_list(add_name, &all);
    return weft_ofi_host->fail(-ENODEV, "ofi: there is no \"%s\" here; there are: %s", device,
                               *all.text ? all.text : "none");
}

/* ---- choosing ---- */

struct request {
    char provider[NAME], domain[NAME]; /* "": any */
    bool elsewhere;                    /* found, but not where the control connection goes */
};

static bool matches(const struct request *request, const struct fi_info *info)
{
    return (!*request->provider || weft_ofi_is(info, request->provider) ||
            strcmp(request->provider, info->fabric_attr->prov_name) == 0) &&
           (!*request->domain || strcmp(request->domain, info->domain_attr->name) == 0);
}

static struct fi_info *first_match(const struct request *request, const char *node,
                                   const struct fabric_want *want)
{
    for (size_t grade = 0; grade < LENGTH(grades); grade++) {
        struct fi_info *all =
            query(grade, *request->provider ? request->provider : NULL, node, want);
        struct fi_info *found = NULL;
        for (const struct fi_info *one = all; one && !found; one = one->next)
            if (!unfit(one) && matches(request, one))
                found = fi_dupinfo(one);
        if (all)
            fi_freeinfo(all);
        if (found)
            return found;
    }
    return NULL;
}

/* On networks the one where the control connection goes; elsewhere a node would be taken for the
 * name of the endpoint. */
static struct fi_info *find(struct request *request, const struct fabric_want *want)
{
    struct fi_info *found = first_match(request, NULL, want), *nearer;
    if (!found || !weft_ofi_on_ip(found) || !*want->here)
        return found;
    nearer = first_match(request, want->here, want);
    if (!nearer && *request->domain)
        return found;
    /* What nobody named is not listened on: there may be a reason for --bind. */
    request->elsewhere = !nearer;
    fi_freeinfo(found);
    return nearer;
}

static struct fi_info *find_best(const struct fabric_want *want)
{
    struct request request = {.domain = ""};
    struct fi_info *found = NULL;
    for (size_t i = 0; i < LENGTH(hardware) && !found; i++) {
        snprintf(request.provider, sizeof request.provider, "%s", hardware[i]);
        found = find(&request, want);
    }
    snprintf(request.provider, sizeof request.provider, "tcp");
    return found ? found : find(&request, want);
}

static int not_found(const struct fabric_want *want, const struct request *request)
{
    if (!request->elsewhere)
        return no_place(want->device);
    return weft_ofi_host->fail(-ENODEV,
                               "ofi: %s has no device with the address %s of the control "
                               "connection: name one",
                               request->provider, want->here);
}

static int choose(struct fi_info **info, const struct fabric_want *want)
{
    /* One that does not reach GPUs is refused by what its facts say. */
    struct fabric_want less = *want;
    struct request request = {.domain = ""};
    const char *slash = strchr(want->device, '/');
    size_t length = slash ? (size_t)(slash - want->device) : strlen(want->device);
    if (!*want->device) {
        *info = find_best(want);
        less.gpus = 0;
        if (!*info && want->gpus)
            *info = find_best(&less);
        return *info ? 0 : no_place(want->device);
    }
    if (!length || length >= sizeof request.provider ||
        (slash && (!slash[1] || strlen(slash + 1) >= sizeof request.domain)))
        return no_place(want->device);
    memcpy(request.provider, want->device, length);
    snprintf(request.domain, sizeof request.domain, "%s", slash ? slash + 1 : "");
    *info = find(&request, want);
    less.gpus = 0;
    if (!*info && want->gpus)
        *info = find(&request, &less);
    return *info ? 0 : not_found(want, &request);
}

/* ---- a port ---- */

static void close_one(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

void weft_ofi_port_part(struct weft_ofi_port *port)
{
    close_one(port->ep ? &port->ep->fid : NULL);
    close_one(port->cq ? &port->cq->fid : NULL);
    close_one(port->av ? &port->av->fid : NULL);
    port->ep = NULL;
    port->cq = NULL;
    port->av = NULL;
}

/* With a descriptor to sleep on, every completion costs more: only if it is asked for. */
static int open_queue(struct weft_ofi_port *port)
{
    struct fi_cq_attr cq = {
        .size = (size_t)2 * WEFT_OFI_EVENTS, .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
    if (port->waits && !port->no_wait) {
        if (!fi_cq_open(port->domain, &cq, &port->cq, NULL))
            return 0;
        port->no_wait = true;
    }
    cq.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(port->domain, &cq, &port->cq, NULL);
}

static int open_domain(struct weft_ofi_port *port)
{
    int status = port->fabric ? 0 : fi_fabric(port->info->fabric_attr, &port->fabric, NULL);
    return status ? status : fi_domain(port->fabric, port->info, &port->domain, NULL);
}

int weft_ofi_port_meet(struct weft_ofi_port *port)
{
    struct fi_av_attr av = {.type = port->info->domain_attr->av_type, .count = 4};
    if (av.type == FI_AV_UNSPEC)
        av.type = FI_AV_TABLE;
    int status = port->domain ? 0 : open_domain(port);
    if (!status)
        status = open_queue(port);
    if (!status)
        status = fi_av_open(port->domain, &av, &port->av, NULL);
    if (!status)
        status = fi_endpoint(port->domain, port->info, &port->ep, NULL);
    if (!status)
        status = fi_ep_bind(port->ep, &port->cq->fid, FI_TRANSMIT | FI_RECV);
    if (!status)
        status = fi_ep_bind(port->ep, &port->av->fid, 0);
    if (!status)
        status = fi_enable(port->ep);
    if (status)
        weft_ofi_port_part(port);
    return status;
}

int weft_ofi_port_open(struct weft_ofi_port *port, const struct fabric_want *want)
{
    *port = (struct weft_ofi_port){.waits = want->events};
    int status = choose(&port->info, want);
    if (status)
        return status;
    /* Also a domain has addresses of two families. */
    port->follows_here = weft_ofi_on_ip(port->info);
    snprintf(port->name, sizeof port->name, "%s/%s", port->info->fabric_attr->prov_name,
             port->info->domain_attr->name);
    status = weft_ofi_port_meet(port);
    if (!status)
        return 0;
    weft_ofi_port_close(port);
    return weft_ofi_host->fail(status > -256 ? status : -EIO, "ofi: %s cannot be opened: %s",
                               port->name, fi_strerror(-status));
}

void weft_ofi_port_close(struct weft_ofi_port *port)
{
    weft_ofi_port_part(port);
    close_one(port->domain ? &port->domain->fid : NULL);
    close_one(port->fabric ? &port->fabric->fid : NULL);
    if (port->info)
        fi_freeinfo(port->info);
    port->domain = NULL;
    port->fabric = NULL;
    port->info = NULL;
}
