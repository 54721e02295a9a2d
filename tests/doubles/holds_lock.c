/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into an end on libfabric's shm: it gets a signal, such as SIGKILL, while it holds a
 * spinlock in memory that it shares. WEFT_TEST_HOLDS is the signal's number and a file: as soon as
 * that is there, which it removes. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_PER_LOOK = 64 };

static char file[512];
static int number;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("WEFT_TEST_HOLDS");
    if (text)
        sscanf(text, "%d %511s", &number, file);
}

static bool is_shared(const volatile void *lock)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t from = 0, to = 0;
        found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
                (uintptr_t)lock - from < to - from && strstr(line, "/dev/shm/");
    }
    if (maps)
        fclose(maps);
    return found;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
    static unsigned calls;
    static bool due;
    while (pthread_spin_trylock(lock))
        ;
    if (*file && ++calls % CALLS_PER_LOOK == 0)
        due = access(file, F_OK) == 0;
    if (due && is_shared(lock)) {
        unlink(file);
        *file = '\0';
        due = false;
        kill(getpid(), number);
    }
    return 0;
}
