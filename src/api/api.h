/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside api: parameters and results of weft.h, and what stands for them in bench. */
#ifndef WEFT_API_ROOM_H
#define WEFT_API_ROOM_H

#include "bench/session.h"

#include <weft.h>

enum {
    API_TIMEOUT_MS = 10000,
    API_STRUCT_MOST = 4096 /* no struct of any version of weft.h has as many bytes */
};

/* What a result of the library points to. */
struct weft_histogram {
    struct stats *stats;
    double us_per_unit;
    char fabric[128], proves[160];
};

/* And of network devices. */
struct weft_counters {
    struct counted counted;
};

/* Copies a struct of a program, which has so many bytes, as far as this version knows it. */
int struct_take(void *known, size_t room, const void *theirs, size_t bytes);

/* The parameters as this version knows them: what the program's do not have yet is as by default.
 */
int params_take(const struct weft_params *params, struct weft_params *whole);

/* Fills a spec from them, by its rows. */
int params_spec(const struct weft_params *whole, struct spec *spec);

/* The report that a run has: calls the program's function, and keeps the last result. */
struct api_report {
    struct report report;
    const struct weft_params *params;
    void (*call)(void *arg, const struct weft_result *result);
    void *arg;
    struct weft_histogram shown; /* of the result that the program is shown */
    struct weft_counters counted;
    struct weft_result last;
};
void api_report_open(struct api_report *report, const struct weft_params *params,
                     void (*call)(void *arg, const struct weft_result *result), void *arg);
void api_report_close(struct api_report *report);

/* Is it one that was set up? Before anything is measured for it. */
int result_check(const struct weft_result *result);

/* Hands over what was kept, as far as the program's struct goes. */
void api_report_take(struct api_report *report, struct weft_result *result);

#endif
