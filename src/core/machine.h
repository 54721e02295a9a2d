/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: facts about this machine from /proc and /sys. */
#ifndef WEFT_MACHINE_H
#define WEFT_MACHINE_H

#include "core/core.h"

/* Small files of /proc and /sys. root is prepended to every path: "", or a folder with the files of
 * another machine. Text is cut to its room, and control characters become blanks. All of these
 * return false and an empty text if the file is missing or empty. */

/* The first line of a file. */
bool system_line(const char *root, char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The number a file begins with, decimal or 0x. */
bool system_number(const char *root, uint64_t *number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value in the first line that begins with name: "name: value", "name value". */
bool system_value(const char *root, const char *name, char *value, size_t room, const char *format,
                  ...) __attribute__((format(printf, 5, 6)));

/* Visits the names in a folder, numbers in numeric order; returns how many. */
int system_each(const char *root, void (*visit)(void *arg, const char *name), void *arg,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Visits the folder, without root, of every control group of this process for the controller, from
 * its own to the topmost. unified: control groups version 2, whose files have other names. */
typedef void system_group(void *arg, const char *folder, bool unified);
void system_groups(const char *root, const char *controller, system_group *visit, void *arg);

/* Lists of CPUs, "0-3,8". Takes the next interval off the list; false at the end. */
enum { CPUS_MOST = 65535 };
bool cpus_next(const char **list, unsigned *first, unsigned *last);
unsigned cpus_count(const char *list);
bool cpus_has(const char *list, unsigned cpu);

/* A description of this machine. Unknown facts are 0 or "". */
struct machine {
    char host[66], system[132], architecture[66], cpu[128];
    char clocksource[64], governor[64], hypervisor[64], container[64];
    char online[256], allowed[256]; /* CPUs: of the machine, and of this process */
    uint64_t memory;                /* bytes */
};
void machine_look(struct machine *machine, const char *root);

/* The same for readers of a result: lines "host=...", "cpu=..." with the names of the result
 * schema, added to the text. */
int machine_describe(struct msg *text);

/* Sockets, cores and threads of the online CPUs. */
struct topology {
    unsigned sockets, cores, cpus, nodes;
};
void topology_look(struct topology *topology, const char *root);

/* The caches of a CPU, the nearest first; returns how many. */
struct cache {
    char name[16]; /* L1d, L2 */
    char size[32]; /* as the kernel writes it, 32K */
    char shared[256];
    unsigned count; /* of this kind in the machine */
};
size_t caches_look(struct cache *caches, size_t room, const char *root);

#endif
