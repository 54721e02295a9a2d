/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's parameters and the spec: the rows say which parameter is which field, so that a
 * value is checked by the same limits wherever it comes from. */
#include "api/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const double usual_percentiles[] = {50, 90, 99, 99.9};

/* ---- out of a spec ---- */

static void to_param(const struct opt *row, const struct spec *spec, struct weft_params *params)
{
    const char *field = (const char *)spec + row->field;
    char *param = (char *)params + row->param - 1;
    const char *name;
    switch (row->type) {
    case OPT_CHOICE:
        name = opt_choice_name(row, *(const int *)field);
        memcpy(param, &name, sizeof name);
        break;
    case OPT_AMOUNTS:
    case OPT_TEXT: /* none by default */
        break;
    case OPT_FLAG:
        *(int *)param = *(const bool *)field;
        break;
    case OPT_SIZES:
        *(uint64_t *)param = ((const struct opt_range *)field)->min;
        break;
    default:
        *(uint64_t *)param = *(const uint64_t *)field;
    }
}

static void fill_defaults(struct weft_params *params)
{
    struct spec spec;
    spec_defaults(&spec);
    *params = (struct weft_params){.memory = "host", .service = 1, .cpu = -1};
    memcpy(params->percentiles, usual_percentiles, sizeof usual_percentiles);
    for (const struct opt *row = spec_rows; row->name; row++)
        if (row->param)
            to_param(row, &spec, params);
}

void weft_params_init_sized(struct weft_params *params, size_t bytes)
{
    struct weft_params whole;
    if (!params || bytes < sizeof params->bytes) {
        fail(-EINVAL,
             "weft_params_init: params must not be NULL, nor smaller than its first member");
        return;
    }
    fill_defaults(&whole);
    memset(params, 0, bytes);
    memcpy(params, &whole, bytes < sizeof whole ? bytes : sizeof whole);
    params->bytes = bytes;
}

/* ---- into a spec ---- */

int struct_take(void *known, size_t room, const void *theirs, size_t bytes)
{
    /* A newer program may leave what this library does not know at 0. */
    for (size_t i = room; i < bytes; i++)
        if (((const char *)theirs)[i])
            return fail(-E2BIG, "parameters of a newer weft.h than this library's, %s",
                        core_version());
    memcpy(known, theirs, bytes < room ? bytes : room);
    return 0;
}

int params_take(const struct weft_params *params, struct weft_params *whole)
{
    fill_defaults(whole);
    if (params->bytes < offsetof(struct weft_params, size) || params->bytes > API_STRUCT_MOST)
        return fail(-EINVAL, "parameters of %zu bytes: begin with weft_params_init", params->bytes);
    return struct_take(whole, sizeof *whole, params, params->bytes);
}

/* The parameter as one would type it; false: it was left open. */
static bool typed(const struct opt *row, const struct weft_params *params, char *text, size_t room)
{
    const char *param = (const char *)params + row->param - 1, *name;
    const uint64_t *number = (const uint64_t *)(const void *)param;
    switch (row->type) {
    case OPT_CHOICE:
    case OPT_AMOUNTS:
    case OPT_TEXT:
        memcpy(&name, param, sizeof name);
        snprintf(text, room, "%s", name ? name : "");
        return name;
    case OPT_FLAG:
        snprintf(text, room, "%d", *(const int *)param != 0);
        return true;
    case OPT_SIZES:
        if (params->size_max && params->size_max != params->size)
            snprintf(text, room, "%" PRIu64 ":%" PRIu64, params->size, params->size_max);
        else
            snprintf(text, room, "%" PRIu64, *number);
        return true;
    default:
        snprintf(text, room, "%" PRIu64, *number);
        return true;
    }
}

static int check_percentiles(const struct weft_params *params)
{
    for (size_t i = 0; i < WEFT_PERCENTILES && params->percentiles[i] != 0; i++)
        if (!(params->percentiles[i] > 0 && params->percentiles[i] < 100))
            return fail(-EINVAL, "percentile %g is not between 0 and 100", params->percentiles[i]);
    return 0;
}

int params_spec(const struct weft_params *params, struct spec *spec)
{
    struct opt_set set = {.rows = spec_rows, .base = spec};
    int status = check_percentiles(params);
    spec_defaults(spec);
    for (const struct opt *row = spec_rows; row->name && !status; row++) {
        char text[512];
        if (row->param && typed(row, params, text, sizeof text))
            status = opt_assign(&set, row, text, OPT_BY_USER);
    }
    spec->local.ignore_mismatch = true;
    spec_settle(spec);
    return status ? status : spec_check(spec);
}
