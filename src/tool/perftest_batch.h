/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the product of batch files. Every line of a file is a set of options on top of a
 * line of each file before it. */
#ifndef WEFT_TOOL_PERFTEST_BATCH_H
#define WEFT_TOOL_PERFTEST_BATCH_H

#include "tool/batch.h"
#include "tool/perftest.h"

enum {
    PRODUCT_FILES = 8,
    PRODUCT_LABEL = 128, /* characters at most */
    PRODUCT_LABELS = PRODUCT_FILES * (PRODUCT_LABEL + 1)
};

struct product {
    char paths[sizeof((struct perftest *)0)->batch]; /* taken apart; the option stays whole */
    struct batch files[PRODUCT_FILES];
    int count;
    const struct batch_line *at[PRODUCT_FILES]; /* the line of each that the test comes from */
};

/* Reads the files; paths has one per line. */
int product_read(struct product *product, const char *paths);
/* One more file of it, as it were: a line for each power of two. */
int product_sizes(struct product *product, const struct opt_range *sizes);
void product_free(struct product *product);

/* Says lines that can never run, once, and leaves them out. Returns how many there are. */
unsigned product_check(struct product *product, const struct opt_set *set);

/* Visits every test with its options and labels, one per file and line, until visit is false. */
void product_each(struct product *product, const struct opt_set *set,
                  bool (*visit)(void *arg, struct opt_set *set, const char *labels), void *arg);

/* How many tests there are. */
unsigned product_tests(const struct product *product);

/* The names of the files head their columns: one per line. */
void product_columns(const struct product *product, char *columns, size_t room);

/* A sentence about the test being visited, with the lines that it comes from. */
void product_say(const struct product *product, const char *why);

#endif
