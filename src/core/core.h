/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of core: what every room uses, without any network. Errors (one idiom), messages,
 * modules, units. child.h, clock.h, counters.h, cpu.h, machine.h, opt.h and secret.h are the
 * other doors.
 * Functions return 0 or -errno unless stated otherwise. */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* "0.1.0": weft_version() of the library. */
const char *core_version(void);

/* What it was built from and how: the commit, with a + where files were changed, "unknown" in a
 * tree that has neither git nor a file COMMIT; "gcc 12.2.0"; "-O2 -g". */
const char *core_commit(void);
const char *core_compiler(void);
const char *core_flags(void);

/* ---- errors ---------------------------------------------------------------- */

/* Keeps the error message for this thread and returns status. The function that first knows the
 * reason calls it; its callers only pass the status on. A tool turns statuses into exit codes:
 * -EINVAL is a usage error; -ETIMEDOUT, -ECONNREFUSED and -ECONNRESET mean no peer; -EINTR means
 * interrupted; everything else failed or is impossible here. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message of this thread's last fail(); "" before the first. */
const char *fail_reason(void);

/* A warning for the user that does not end the run. Goes to the sink, or is dropped without one. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn_to(void (*sink)(const char *sentence));
/* This thread's go nowhere from now on: another one says the same. */
void warn_mute(void);

/* ---- text that others wrote -------------------------------------------------- */

/* The number of bytes of the UTF-8 character at text; 0 if it is not one. */
int text_character(const char *text);

/* Is the character at text one that a terminal obeys? */
bool text_control(const char *text);

/* Replaces such characters, and what is not UTF-8, by "?"; line ends and tabs by blanks. */
void text_clean(char *text);

/* What begins and ends a style on a terminal that shows it; "" elsewhere, with TERM=dumb and with
 * NO_COLOR. */
enum text_style { TEXT_PLAIN, TEXT_BOLD, TEXT_GOOD, TEXT_BAD, TEXT_DOUBT };
const char *text_style(FILE *out, enum text_style style);

/* ---- messages between two ends ---------------------------------------------- */

enum { MSG_MAX = 8192 };
struct msg {
    size_t length;
    char bytes[MSG_MAX]; /* text ends with a NUL that length does not count */
};

/* Replaces the msg with text; -EMSGSIZE if it does not fit. */
int msg_print(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text at the end; -EMSGSIZE if it does not fit. */
int msg_add(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In text of lines "key=value": copies the value of key. -ENOENT without an error message if
 * absent, -EMSGSIZE if value is too long for the room given. */
int msg_value(const struct msg *msg, const char *key, char *value, size_t room);

/* The same for a number, decimal or 0x; -EINVAL if it is not one. */
int msg_number(const struct msg *msg, const char *key, uint64_t *number);

/* Bytes as lower-case hexadecimal digits, "key=00ff": added as a line; and read back, at most room
 * of them, *length says how many. */
int msg_add_hex(struct msg *msg, const char *key, const void *bytes, size_t length);
int msg_hex(const struct msg *msg, const char *key, void *bytes, size_t room, size_t *length);

/* Identifies this boot of this machine; "" if unknown. */
void host_id(char *id, size_t room);

/* The network namespace of this process; "" if unknown. */
void host_network(char *id, size_t room);

/* Unpredictable digits, as many as fit. */
int random_digits(char *text, size_t room);

/* An unpredictable number; never 0. */
int random_word(uint64_t *word);

/* The next number of a sequence that its seed decides: the same on every machine. No secret. */
uint64_t random_next(uint64_t *state);

/* ---- modules ---------------------------------------------------------------- */

/* Save and restore all signal handlers around calls of a vendor library. Calls may be nested and
 * may come from several threads at once: handlers belong to the process, so the first call saves
 * and the last restores them. */
void signals_keep(void);
void signals_restore(void);

/* Is there a weft-NAME.so in WEFT_MODULE_PATH, beside the tools, or in the installed module folder?
 * Loads nothing. */
bool module_exists(const char *name);

/* Loads it and finds its one symbol. It is never unloaded; global: the symbols of its libraries are
 * visible to its own plug-ins too. */
int module_load(const char *name, const char *symbol, bool global, void **entry);

/* ---- lists of hosts ---------------------------------------------------------- */

/* The name with that number, from 0, in a list such as "n[08-10,12],other"; -ENOENT without a
 * message: there are fewer. And how many there are. */
int hostlist_name(const char *list, uint32_t number, char *name, size_t room);
int hostlist_count(const char *list, uint32_t most, uint32_t *count);

/* ---- words ------------------------------------------------------------------ */

/* The edit distance of two words; more than the limit is limit + 1. */
unsigned word_distance(const char *a, const char *b, unsigned limit);

/* ---- units ------------------------------------------------------------------ */

/* Strict decimal: no sign, blanks, trailing characters or overflow. -EINVAL without a message. */
int unit_number(const char *text, uint64_t *number);

/* The same with an optional K, M or G (1024s). */
int unit_bytes(const char *text, uint64_t *bytes);

/* A duration with its unit: 250ps, 40ns, 2us, 1ms, 3s; 0 needs none. */
int unit_time(const char *text, uint64_t *ps);

/* Microseconds as every table prints them: three decimals below 1 us, else two. */
void unit_us(double us, char *text, size_t room);

/* Bytes for humans: 4.0 GiB, 512 B. */
void unit_bytes_text(uint64_t bytes, char *text, size_t room);

#endif
