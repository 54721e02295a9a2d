/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: option rows. One row is an option with its parsing, its help, its default, its
 * text between two ends and its line in a header. */
#ifndef WEFT_OPT_H
#define WEFT_OPT_H

#include "core/core.h"

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
int opt_encode(const struct opt_set *set, struct msg *text);

/* Fills shared rows from such lines, which come from outside: anything else is -EINVAL, but for
 * lines that begin with a full stop, which are the caller's. Calls
 * overridden for every row the user had set to another value; was is what he had set. */
int opt_decode(struct opt_set *set, const struct msg *text,
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
             struct msg *text);

#endif
