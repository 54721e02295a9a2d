/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside host: what distorts results, one check per row. */
#ifndef WEFT_HOST_CHECKS_H
#define WEFT_HOST_CHECKS_H

#include "host/host.h"
#include "host/printer.h"

/* What a check found. */
struct finding {
    bool hint;      /* worth knowing, harmless by itself; otherwise a warning */
    char what[256]; /* what is so, with the numbers */
    char fix[320];  /* what to type, or to do */
};

struct check {
    const char *name; /* as JSON has it */
    bool hint;        /* unless run decides otherwise */
    const char *why;  /* why it matters: one sentence */
    /* True if it is so; fills what and fix. False if it is not, or cannot be known. */
    bool (*run)(const struct host_state *state, struct finding *finding);
};

/* For run. */
#define WHAT(finding, ...) snprintf((finding)->what, sizeof(finding)->what, __VA_ARGS__)
#define FIX(finding, ...)  snprintf((finding)->fix, sizeof(finding)->fix, __VA_ARGS__)

/* Each list ends with a row without a name. */
extern const struct check checks_cpu[], checks_memory[];

/* Runs one check; true if it found something. */
bool check_run(const struct check *check, const struct host_state *state, struct finding *finding);

/* All findings, warnings first. */
void checks_section(const struct host_state *state, struct printer *printer);

#endif
