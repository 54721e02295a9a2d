/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of /proc and /sys. Their text is cut to its room, ends with a NUL and contains no
 * control characters; root is prepended to every path, so that tests can show another machine. */
#include "core/core.h"
#include "core/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MOST = 16384 };

static bool full_path(char *path, size_t room, const char *root, const char *format, va_list words)
{
    int used = snprintf(path, room, "%s", root);
    if (used < 0 || (size_t)used >= room)
        return false;
    int n = vsnprintf(path + used, room - (size_t)used, format, words);
    return n > 0 && (size_t)n < room - (size_t)used;
}

static void disarm(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' ? text[i] != '\n' : (unsigned char)text[i] >= 127)
            text[i] = ' ';
    text[length] = '\0';
}

static bool read_file(const char *path, char *text, size_t room)
{
    size_t have = 0;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    text[0] = '\0';
    if (fd < 0)
        return false;
    while (have + 1 < room && (n = read(fd, text + have, room - 1 - have)) > 0)
        have += (size_t)n;
    close(fd);
    disarm(text, have);
    return n >= 0;
}

bool system_line(const char *root, char *text, size_t room, const char *format, ...)
{
    char path[PATH_MAX];
    va_list words;
    text[0] = '\0';
    va_start(words, format);
    bool fits = full_path(path, sizeof path, root, format, words);
    va_end(words);
    if (!fits || !read_file(path, text, room))
        return false;
    size_t length = strcspn(text, "\n");
    while (length && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return length > 0;
}

bool system_number(const char *root, uint64_t *number, const char *format, ...)
{
    char path[PATH_MAX], text[64], *end;
    va_list words;
    va_start(words, format);
    bool fits = full_path(path, sizeof path, root, format, words);
    va_end(words);
    if (!fits || !read_file(path, text, sizeof text) || !isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0;
}

bool system_value(const char *root, const char *name, char *value, size_t room, const char *format,
                  ...)
{
    char path[PATH_MAX], text[FILE_MOST], *rest = text, *line;
    size_t length = strlen(name);
    va_list words;
    value[0] = '\0';
    va_start(words, format);
    bool fits = full_path(path, sizeof path, root, format, words);
    va_end(words);
    if (!fits || !read_file(path, text, sizeof text))
        return false;
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, name, length) != 0 || !strchr(" :=", line[length]))
            continue;
        const char *at = line + length;
        snprintf(value, room, "%s", at + strspn(at, " :="));
        return *value != '\0';
    }
    return false;
}

static int shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int system_each(const char *root, void (*visit)(void *arg, const char *name), void *arg,
                const char *format, ...)
{
    char path[PATH_MAX];
    struct dirent **entries;
    va_list words;
    va_start(words, format);
    bool fits = full_path(path, sizeof path, root, format, words);
    va_end(words);
    int count = fits ? scandir(path, &entries, shown, versionsort) : -1;
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        visit(arg, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return count;
}

/* ---- lists of CPUs ---- */

bool cpus_next(const char **list, unsigned *first, unsigned *last)
{
    char *end;
    if (!isdigit((unsigned char)**list))
        return false;
    unsigned long from = strtoul(*list, &end, 10), to = from;
    if (*end == '-' && isdigit((unsigned char)end[1]))
        to = strtoul(end + 1, &end, 10);
    *list = end + (*end == ',');
    *first = from < CPUS_MOST ? (unsigned)from : CPUS_MOST;
    *last = to < CPUS_MOST ? (unsigned)to : CPUS_MOST;
    return *first <= *last;
}

unsigned cpus_count(const char *list)
{
    unsigned first, last, count = 0;
    while (cpus_next(&list, &first, &last))
        count += last - first + 1;
    return count;
}

bool cpus_has(const char *list, unsigned cpu)
{
    unsigned first, last;
    while (cpus_next(&list, &first, &last))
        if (cpu >= first && cpu <= last)
            return true;
    return false;
}

/* ---- control groups ---- */

/* The folder of the group and its parents. */
static void climb(char *folder, size_t top, bool unified, system_group *visit, void *arg)
{
    while (strlen(folder) >= top) {
        visit(arg, folder, unified);
        *strrchr(folder, '/') = '\0';
    }
}

void system_groups(const char *root, const char *controller, system_group *visit, void *arg)
{
    static const char mount[] = "/sys/fs/cgroup";
    char path[PATH_MAX], text[FILE_MOST], folder[PATH_MAX], *rest = text, *line;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_file(path, text, sizeof text))
        return;
    while ((line = strsep(&rest, "\n"))) {
        /* "0::/path" is the unified kind, "4:memory:/path" or "1:cpu,cpuacct:/path" the older. */
        const char *kinds = strchr(line, ':');
        const char *at = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!at || at[1] != '/')
            continue;
        bool unified = at == kinds + 1;
        bool named = false;
        for (const char *kind = kinds + 1; !unified && kind < at && !named;) {
            size_t length = strcspn(kind, ",:");
            named = length == strlen(controller) && strncmp(kind, controller, length) == 0;
            kind += length + 1;
        }
        if (!unified && !named)
            continue;
        int n = snprintf(folder, sizeof folder, "%s%s%s%s", mount, unified ? "" : "/",
                         unified ? "" : controller, at[2] ? at + 1 : "");
        if (n > 0 && (size_t)n < sizeof folder)
            climb(folder, strlen(mount) + (unified ? 0 : 1 + strlen(controller)), unified, visit,
                  arg);
    }
}
