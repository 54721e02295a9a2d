/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of core: what every room uses and what knows no network.
 * Errors (one idiom), clocks, option rows, units, small blobs of bytes.
 * Functions return 0 or -errno unless said otherwise. */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- errors ---------------------------------------------------------------- */

/* Keeps the sentence for this thread and returns status. Whoever first knows the reason says it;
 * callers above only pass the status on. The statuses a tool turns into an exit code:
 * -EINVAL is wrong on every machine; -ETIMEDOUT, -ECONNREFUSED and -ECONNRESET mean no peer;
 * -EINTR interrupted; everything else failed or is impossible here. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The sentence of this thread's last fail(); "" before the first. */
const char *fail_reason(void);

/* Something the user should know that does not end the run. Goes to the sink, or nowhere. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn_to(void (*sink)(const char *sentence));

/* ---- bytes that travel between two ends ------------------------------------- */

enum { BLOB_MAX = 8192 };
struct blob {
    size_t length;
    char bytes[BLOB_MAX]; /* text is kept with a NUL behind it, not counted in length */
};

/* Replaces the blob by text; -EMSGSIZE if it does not fit. */
int blob_print(struct blob *blob, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text at the end; -EMSGSIZE if it does not fit. */
int blob_add(struct blob *blob, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In text of lines "key=value": copies the value of key. -ENOENT without a sentence if absent,
 * -EMSGSIZE if value is too long for the room given. */
int blob_value(const struct blob *blob, const char *key, char *value, size_t room);

/* The same for a number, decimal or 0x; -EINVAL if it is not one. */
int blob_number(const struct blob *blob, const char *key, uint64_t *number);

/* What tells this boot of this machine from every other; "" if it cannot be known. */
void host_id(char *id, size_t room);

/* The network namespace that this process is in; "" if it cannot be known. */
void host_network(char *id, size_t room);

/* Digits that nobody else can know: as many as fit. */
int random_digits(char *text, size_t room);

/* ---- the machine -------------------------------------------------------------- */

/* Small files of /proc and /sys. root stands before every path: "", or a folder that shows another
 * machine. What is read is cut to its room, and control characters in it are blanks. All of these
 * are false, and their text empty, where there is no such file or nothing in it. */

/* The first line of a file. */
bool system_line(const char *root, char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The number a file begins with, decimal or 0x. */
bool system_number(const char *root, uint64_t *number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What stands behind name in the first line that begins with it: "name: value", "name value". */
bool system_value(const char *root, const char *name, char *value, size_t room, const char *format,
                  ...) __attribute__((format(printf, 5, 6)));

/* Visits the names in a folder, numbers in their order; how many there were. */
int system_each(const char *root, void (*visit)(void *arg, const char *name), void *arg,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Visits the folder, root left out, of every control group that rules this process by the
 * controller, from its own to the topmost. unified: of the newer kind, whose files have other
 * names. */
typedef void system_group(void *arg, const char *folder, bool unified);
void system_groups(const char *root, const char *controller, system_group *visit, void *arg);

/* Lists of CPUs, "0-3,8". Takes the next stretch off the list; false at the end. */
enum { CPUS_MOST = 65535 };
bool cpus_next(const char **list, unsigned *first, unsigned *last);
unsigned cpus_count(const char *list);
bool cpus_has(const char *list, unsigned cpu);

/* What this machine is. What cannot be found out is 0 or "". */
struct machine {
    char host[66], system[132], architecture[66], cpu[128];
    char clocksource[64], governor[64], hypervisor[64], container[64];
    char online[256], allowed[256]; /* CPUs: of the machine, and of this process */
    uint64_t memory;                /* bytes */
};
void machine_look(struct machine *machine, const char *root);

/* The same for whoever reads a result later: lines "host=...", "cpu=..." as the schema of results
 * names them, added to the text. */
int machine_describe(struct blob *text);

/* How the CPUs that are online belong together. */
struct topology {
    unsigned sockets, cores, cpus, nodes;
};
void topology_look(struct topology *topology, const char *root);

/* The caches of a CPU, the nearest first; how many there were. */
struct cache {
    char name[16]; /* L1d, L2 */
    char size[32]; /* as the kernel says it, 32K */
    char shared[256];
    unsigned count; /* of this kind in the machine */
};
size_t caches_look(struct cache *caches, size_t room, const char *root);

/* ---- modules ---------------------------------------------------------------- */

/* What every signal does, to be put back after a vendor's library had its way. Both may be nested,
 * and be called by several threads at a time: signals are the process's, so the first keeps and
 * the last puts back. */
void signals_keep(void);
void signals_restore(void);

/* Is there a weft-NAME.so in WEFT_MODULE_PATH, beside the tools, or in the installed module folder?
 * Loads nothing. */
bool module_exists(const char *name);

/* Loads it and finds its one symbol. It stays loaded for good; global: its libraries' symbols are
 * for its own plug-ins too. */
int module_load(const char *name, const char *symbol, bool global, void **entry);

/* ---- clocks ----------------------------------------------------------------- */

enum clock_kind { CLOCK_GETTIME = 1, CLOCK_CYCLES = 2 };

struct clock {
    enum clock_kind kind;
    double ps_per_tick;
    uint64_t cost_ps;                   /* what two reads back to back show: the clock's own cost */
    uint64_t first_ticks, first_raw_ns; /* for the second look at the calibration */
};

/* Prepares a clock and measures its cost. Cycles are calibrated against MONOTONIC_RAW for 100 ms,
 * once a process; -ENOTSUP if the CPU's counter is not invariant. */
int clock_open(struct clock *clock, enum clock_kind kind);

/* Compares the calibration with what the whole time since clock_open shows. -ERANGE, and a
 * sentence, if they differ by more than one in a thousand. */
int clock_check(const struct clock *clock);

/* Now, for deadlines: never goes back, not for samples. */
uint64_t clock_ms(void);
uint64_t clock_ns(void);

static inline uint64_t clock_raw_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#define CLOCK_HAS_CYCLES 1
static inline uint64_t clock_cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
#define CLOCK_HAS_CYCLES 1
static inline uint64_t clock_cycles(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}
#else
#define CLOCK_HAS_CYCLES 0
static inline uint64_t clock_cycles(void)
{
    return clock_raw_ns();
}
#endif

/* A read that may drift a little among the instructions around it: for intervals of which many
 * follow each other without a gap, so that what one loses the next gains. */
static inline uint64_t clock_glance(const struct clock *clock)
{
#if defined(__x86_64__)
    return clock->kind == CLOCK_CYCLES ? __builtin_ia32_rdtsc() : clock_raw_ns();
#elif defined(__aarch64__)
    uint64_t ticks;
    if (clock->kind != CLOCK_CYCLES)
        return clock_raw_ns();
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    (void)clock;
    return clock_raw_ns();
#endif
}

/* One read, in ticks of this clock. */
static inline uint64_t clock_read(const struct clock *clock)
{
    return clock->kind == CLOCK_CYCLES ? clock_cycles() : clock_raw_ns();
}

static inline uint64_t clock_to_ps(const struct clock *clock, uint64_t ticks)
{
    /* Signed, because that conversion is one instruction. */
    return (uint64_t)(int64_t)((double)(int64_t)ticks * clock->ps_per_tick + 0.5);
}

/* How many ticks last at least this long. */
static inline uint64_t clock_from_ps(const struct clock *clock, uint64_t ps)
{
    double ticks = (double)ps / clock->ps_per_tick;
    uint64_t whole = (uint64_t)ticks;
    return whole + ((double)whole < ticks);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- units ------------------------------------------------------------------ */

/* Strict decimal: no sign, no blanks, nothing behind, no wrap. -EINVAL without a sentence. */
int unit_number(const char *text, uint64_t *number);

/* The same with an optional K, M or G (1024s). */
int unit_bytes(const char *text, uint64_t *bytes);

/* A duration with its unit: 250ps, 40ns, 2us, 1ms, 3s; 0 needs none. */
int unit_time(const char *text, uint64_t *ps);

/* Microseconds as every table prints them: three decimals below 1 us, else two. */
void unit_us(double us, char *text, size_t room);

/* Bytes as people say them: 4.0 GiB, 512 B. */
void unit_bytes_text(uint64_t bytes, char *text, size_t room);

/* ---- option rows ------------------------------------------------------------ */

enum opt_type {
    OPT_FLAG,   /* bool */
    OPT_NUMBER, /* uint64_t within min..max; 0 when neither given nor defaulted */
    OPT_AMOUNT, /* the same, with K, M or G for 1024s */
    OPT_INDEX,  /* int64_t within min..max; -1 when not given */
    OPT_PAIR,   /* int64_t[2], "A" or "A,B"; -1 when not given */
    OPT_SIZES,  /* struct opt_range, "MIN" or "MIN:MAX" */
    OPT_TIME,   /* uint64_t picoseconds */
    OPT_CHOICE, /* int: 1 + place in choices, any case; 0 when not given */
    OPT_TEXT,   /* char[max], max counting the NUL */
    OPT_LINE    /* no option: a line of the header only */
};

struct opt_range {
    uint64_t min, max;
};

enum {
    OPT_SHARED = 1,  /* the client decides it and tells the server */
    OPT_OURS = 2,    /* not in the command line people know: helped under its own heading */
    OPT_SETTING = 4, /* stands in a device name, without dashes */
    OPT_BARE = 8,    /* help does not show that it takes a value */
    OPT_REPEATS = 16 /* a text that may be given again: one a line */
};

/* One option, all of it. Parsing, --help, defaults, the text on the wire and the line of the
 * header come from here. In help and label {default}, {Op} and {ops} are replaced. */
struct opt {
    char letter;      /* 0: long only */
    const char *name; /* NULL only for OPT_LINE */
    enum opt_type type;
    size_t field;         /* offset in the struct that is filled */
    const char *fallback; /* the default as one would type it; NULL: not given */
    const char *word;     /* the argument's word in help; NULL for flags */
    const char *help;     /* lines separated by \n */
    uint64_t min, max;
    const char *const *choices; /* ends with NULL */
    unsigned flags;
    unsigned takes;    /* which tools of a family have this row: bits of the family's own */
    int header;        /* place in the header, 0: none */
    const char *label; /* in the header */
    /* The header's value when it is not simply the option's; returns < 0 for "no line". The
     * argument is what the report was given. */
    int (*show)(const void *facts, char *text, size_t room);
};

enum opt_origin { OPT_BY_DEFAULT, OPT_BY_USER, OPT_BY_PEER };
enum { OPT_MAX = 64 };

/* Rows bound to the struct they fill. Rows end with one that has neither name nor label. */
struct opt_set {
    const struct opt *rows;
    unsigned takes; /* rows whose takes share no bit with this are not there; 0: all are */
    void *base;
    uint8_t origin[OPT_MAX];
};

/* The next row of the set behind row (NULL: the first), NULL at the end. */
const struct opt *opt_next(const struct opt_set *set, const struct opt *row);

/* The row of that name or letter, or NULL. */
const struct opt *opt_find(const struct opt_set *set, const char *name);

enum opt_origin opt_origin(const struct opt_set *set, const struct opt *row);

void opt_defaults(struct opt_set *set);

/* Sets one row from text; -EINVAL and the sentence with the value and what is accepted. */
int opt_assign(struct opt_set *set, const struct opt *row, const char *text,
               enum opt_origin origin);

/* The argument vector, argv[0] left out. Words that are no option are kept in places, -EINVAL if
 * there are more than room; *given says how many. */
int opt_parse(struct opt_set *set, int argc, char *const *argv, const char **places, int room,
              int *given);

/* "delay=2us,jitter=100ns": the same rows, as the tail of a device name. */
int opt_parse_list(struct opt_set *set, const char *text);

/* The value as one would type it. */
void opt_format(const struct opt *row, const void *base, char *text, size_t room);

/* All shared rows as lines "name=value". */
int opt_encode(const struct opt_set *set, struct blob *text);

/* Fills shared rows from such lines, which come from outside: anything else is -EINVAL, but for
 * lines that begin with a full stop, which are the caller's. Calls
 * overridden for every row the user had set to another value; was is what he had set. */
int opt_decode(struct opt_set *set, const struct blob *text,
               void (*overridden)(const struct opt *row, const char *was, const char *now));

/* What {Op} and {ops} stand for. */
struct opt_words {
    const char *Op, *ops;
};

/* Puts template with its placeholders replaced into text. */
void opt_expand(const struct opt *row, const char *template, const struct opt_words *words,
                char *text, size_t room);

/* Adds the help of all rows that have (flags & OPT_OURS) == ours. */
int opt_help(const struct opt_set *set, const struct opt_words *words, unsigned ours,
             struct blob *text);

#endif
