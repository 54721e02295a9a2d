/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of core: what every room uses and what knows no network. Errors (one idiom), messages,
 * modules, units. clock.h, opt.h and machine.h beside it are the other doors.
 * Functions return 0 or -errno unless said otherwise. */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum { MSG_MAX = 8192 };
struct msg {
    size_t length;
    char bytes[MSG_MAX]; /* text is kept with a NUL behind it, not counted in length */
};

/* Replaces the msg by text; -EMSGSIZE if it does not fit. */
int msg_print(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text at the end; -EMSGSIZE if it does not fit. */
int msg_add(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In text of lines "key=value": copies the value of key. -ENOENT without a sentence if absent,
 * -EMSGSIZE if value is too long for the room given. */
int msg_value(const struct msg *msg, const char *key, char *value, size_t room);

/* The same for a number, decimal or 0x; -EINVAL if it is not one. */
int msg_number(const struct msg *msg, const char *key, uint64_t *number);

/* Bytes as lower-case hexadecimal digits, "key=00ff": added as a line; and read back, at most room
 * of them, *length says how many. */
int msg_add_hex(struct msg *msg, const char *key, const void *bytes, size_t length);
int msg_hex(const struct msg *msg, const char *key, void *bytes, size_t room, size_t *length);

/* What tells this boot of this machine from every other; "" if it cannot be known. */
void host_id(char *id, size_t room);

/* The network namespace that this process is in; "" if it cannot be known. */
void host_network(char *id, size_t room);

/* Digits that nobody else can know: as many as fit. */
int random_digits(char *text, size_t room);

/* A number that nobody else can know; never 0. */
int random_word(uint64_t *word);

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

#endif
