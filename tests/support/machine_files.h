/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine made of files: a folder stands for the root of it. */
#ifndef WEFT_TEST_MACHINE_FILES_H
#define WEFT_TEST_MACHINE_FILES_H

#include "support/unit.h"

#include <stdbool.h>

/* The folder; there while a test runs that is listed with ON_FILES. */
extern char root[64];

int machine_begin(void **state);
int machine_end(void **state);
#define ON_FILES(test) cmocka_unit_test_setup_teardown(test, machine_begin, machine_end)

/* A file below root, with the folders it needs. */
void put_bytes(const char *path, const void *bytes, size_t length);
void put(const char *path, const char *text);
void put_for_cpu(int cpu, const char *file, const char *text);

/* Two sockets of two cores of two threads: 0 and 4 are one core. */
void put_eight_cpus(void);

#endif
