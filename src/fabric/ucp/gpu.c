/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose GPU memory UCX reaches: asked of the context, since a release may be built without, find no
 * driver, or lack the transport where a user names them. What it does not know as a GPU's it would
 * read with the CPU. */
#include "fabric/ucp/ucp.h"

#include <stdio.h>
#include <string.h>

/* Of vendors: what UCX calls their memory, what its users do, and the transport that copies it. */
static const struct {
    const char *type, *called, *transport;
} kinds[MEMORY_VENDORS] = {[MEMORY_AMD] = {"rocm", "ROCm", "rocm_copy"},
                           [MEMORY_NVIDIA] = {"cuda", "CUDA", "cuda_copy"},
                           [MEMORY_INTEL] = {"ze-device", "Level Zero", "ze_copy"}};

static uint64_t types_of(ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    return ucp_context_query(context, &attr) == UCS_OK ? attr.memory_types : 0;
}

/* Names, because later releases have more types among them. */
static unsigned vendors_of(uint64_t types, unsigned char numbers[MEMORY_VENDORS])
{
    unsigned vendors = 0;
    for (unsigned type = 0; types >> type && type < 64; type++)
        for (unsigned vendor = MEMORY_CPU + 1; vendor < MEMORY_VENDORS; vendor++) {
            if (!(types >> type & 1) ||
                strcmp(ucs_memory_type_names[type], kinds[vendor].type) != 0)
                continue;
            vendors |= 1U << vendor;
            numbers[vendor] = (unsigned char)type;
        }
    return vendors;
}

/* With every transport there is. */
static bool could_reach(unsigned vendor)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM};
    unsigned char numbers[MEMORY_VENDORS];
    ucp_config_t *config;
    ucp_context_h context;
    bool could = false;
    if (ucp_config_read(NULL, NULL, &config) != UCS_OK)
        return false;
    if (ucp_config_modify(config, "TLS", "all") == UCS_OK &&
        ucp_init(&params, config, &context) == UCS_OK) {
        could = vendors_of(types_of(context), numbers) & 1U << vendor;
        ucp_cleanup(context);
    }
    ucp_config_release(config);
    return could;
}

static void say_why(struct weft_ucp_port *port, unsigned vendor)
{
    const char *called = kinds[vendor].called, *transport = kinds[vendor].transport;
    if (could_reach(vendor))
        snprintf(port->why_no_gpu, sizeof port->why_no_gpu,
                 "its transports have none for %s memory: name %s too", called, transport);
    else
        snprintf(port->why_no_gpu, sizeof port->why_no_gpu,
                 "this UCX has no support for %s memory, or finds no driver for it", called);
}

void weft_ucp_gpus(struct weft_ucp_port *port, unsigned wanted)
{
    uint64_t types = types_of(port->context);
    snprintf(port->why_no_gpu, sizeof port->why_no_gpu, "UCX has no support for its memory");
    port->gpus = vendors_of(types, port->memory_types);
    for (unsigned vendor = MEMORY_CPU + 1; vendor < MEMORY_VENDORS; vendor++) {
        if (port->gpus & 1U << vendor)
            port->key_types |= UINT64_C(1) << port->memory_types[vendor];
        else if (wanted & 1U << vendor)
            say_why(port, vendor);
    }
}
