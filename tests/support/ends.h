/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of the library, each in a thread, and what must hold of their results. */
#ifndef WEFT_TEST_ENDS_H
#define WEFT_TEST_ENDS_H

#include "support/unit.h"
#include <weft.h>

#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#define LENGTH(list) (sizeof(list) / sizeof *(list))

enum { SIZES_MOST = 16 };

/* What is still true of the reports that came. */
struct reports {
    unsigned count, finals, after_final;
    uint64_t iterations;
    double elapsed_s;
    double left_s;                  /* when the last one was over */
    double wall_s, counted_s;       /* between two reports; and by how much elapsed_s grew */
    bool grows;                     /* each has as much as the one before it, or more */
    volatile sig_atomic_t *stop_at; /* set by the second report */
    cpu_set_t cpus;                 /* where the last was made */
    uint64_t sizes[SIZES_MOST];     /* of the finals */
};

struct end {
    struct weft_params params;
    const struct weft_bootstrap *bootstrap;
    struct weft_session *session; /* not NULL: the test is run on it */
    struct reports reports;
    struct weft_result result;
    int status;
    char reason[1024];
};

bool sanitized(void);

double seconds(void);

/* One end, for a thread; both ends, each in its own. */
void *run_end(void *arg);
void run_ends(struct end ends[2]);

/* Two threads that wait for each other by turns are slow on one CPU: a CPU each, if there are two,
 * counted from the last. */
int cpu_of(int index);

/* Both ends with the same parameters, each over its half of the pair. */
void prepare(struct end ends[2], const struct weft_params *params,
             const struct weft_bootstrap pair[2]);

void release(struct end ends[2]);

/* A few iterations on soft. Method "both ways" is a stream from both ends; layout may be NULL. */
struct weft_params small(const char *op, const char *method, const char *layout);
struct weft_params small_atomic(const char *amo_op, bool fetching, const char *method);

void expect_done(const struct end ends[2]);

void expect_figures(const struct end *end);

/* Reports went to end 0 alone: one a test where there are no intervals, and the last one last. */
void expect_reports(const struct end ends[2]);

void expect_good(const struct weft_params *params, const struct weft_bootstrap pair[2]);

/* One test after the other on one session, each as good as alone. */
struct sessions {
    struct weft_session *ends[2];
};
void sessions_open(struct sessions *sessions, const struct weft_bootstrap pair[2]);
void sessions_close(struct sessions *sessions);
void expect_good_on(const struct sessions *sessions, const struct weft_params *params);

/* Both ends return the same status and the same sentence, with these words in it, and can go on. */
void expect_refused(struct end ends[2], int status, const char *words);

/* A test that the two threads begin and end with. */
void with_threads(void (*what)(const struct weft_bootstrap pair[2]));

#endif
