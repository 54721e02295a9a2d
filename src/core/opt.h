/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: option rows. One row is an option with its parsing, its help, its default, its
 * text between two ends and its line in a header. */
#ifndef WEFT_OPT_H
#define WEFT_OPT_H

#include "core/core.h"

enum opt_type {
    OPT_SAME,   /* in a row with `of`: the type of that row */
    OPT_FLAG,   /* bool */
    OPT_NUMBER, /* uint64_t within min..max; 0 when neither given nor defaulted */
    OPT_AMOUNT, /* the same, with K, M or G for 1024s */
    OPT_INDEX,  /* int64_t within min..max; -1 when not given */
    OPT_PAIR,  /* int64_t[2], "A" or "A,B"; -1 when not given; where there are choices, A may be one
                  of them: OPT_WORD minus its place */
    OPT_SIZES, /* struct opt_range, "MIN" or "MIN:MAX" */
    OPT_AMOUNTS, /* struct opt_amounts, "A,B:N,...": amounts, one of them N times */
    OPT_TIME,    /* uint64_t picoseconds */
    OPT_CHOICE,  /* int: 1 + place in choices, any case; 0 when not given */
    OPT_TEXT,    /* char[max], max counting the NUL */
    OPT_LINE     /* no option: a line of the header only */
};

enum { OPT_WORD = -2 };

struct opt_range {
    uint64_t min, max;
};

enum { OPT_AMOUNTS_MOST = 32 };
struct opt_amounts {
    uint64_t count, list[OPT_AMOUNTS_MOST];
};

enum {
    OPT_SHARED = 1,   /* the client decides it and sends it to the server */
    OPT_OURS = 2,     /* not in the original command line: under its own heading in help */
    OPT_SETTING = 4,  /* part of a device name, without dashes */
    OPT_BARE = 8,     /* help does not show that it takes a value */
    OPT_REPEATS = 16, /* a text that may be given again: one per line */
    OPT_ACTION = 32   /* no option of a run: prints something and exits */
};

/* One option, all of it. Parsing, --help, defaults, the text on the wire and the line of the
 * header come from here. In help and label {default}, {Op} and {ops} are replaced. */
struct opt {
    char letter;      /* 0: long only */
    const char *name; /* NULL only for OPT_LINE */
    enum opt_type type;
    size_t field;         /* offset in the struct that is filled */
    const struct opt *of; /* this is a tool's name for that row: missing members come from there */
    uint64_t scale;       /* numbers: the field is what is typed times this; 0: 1 */
    const char *fallback; /* the default, as typed; NULL: not given */
    const char *word;     /* the argument in help; NULL for flags */
    const char *bare;     /* what --name alone stands for; NULL: it needs its argument */
    const char *help;     /* lines separated by \n; NULL: not shown */
    const char *refusal;  /* how the sentence on a bad value begins, with {value}; NULL: as usual */
    uint64_t min, max;
    const char *const *choices; /* ends with NULL */
    unsigned flags;
    size_t param;      /* 1 + offset in the library's parameters; 0: not one of them */
    unsigned takes;    /* which tools of a family have this row: bits of the family's own */
    int header;        /* place in the header, 0: none */
    const char *label; /* in the header; "": the value is the whole line */
    /* The header's value when it is not simply the option's; returns < 0 for "no line". The
     * argument is what the report was given. */
    int (*show)(const void *facts, char *text, size_t room);
};

enum opt_origin { OPT_BY_DEFAULT, OPT_BY_USER, OPT_BY_PEER, OPT_BY_OPTION };
enum { OPT_MAX = 96 };

/* After every table of rows: there is room for the origins of so many rows only. */
#define OPT_FITS(rows) _Static_assert(LENGTH(rows) <= OPT_MAX, "more option rows than OPT_MAX")

/* Rows bound to the struct they fill. Rows end with one that has neither name nor label. */
struct opt_set {
    const struct opt *rows;
    unsigned takes; /* rows whose takes share no bit with this are left out; 0: none are */
    void *base;
    uint8_t origin[OPT_MAX];
    const char *cause[OPT_MAX]; /* OPT_BY_OPTION: which one */
};

/* The next row of the set after row (NULL: the first), NULL at the end. */
const struct opt *opt_next(const struct opt_set *set, const struct opt *row);

/* The row of that name or letter, or NULL. */
const struct opt *opt_find(const struct opt_set *set, const char *name);

enum opt_origin opt_origin(const struct opt_set *set, const struct opt *row);

/* The option called cause has decided this one: its field has been set to what holds. */
void opt_resolved(struct opt_set *set, const char *name, const char *cause);

void opt_defaults(struct opt_set *set);

/* Sets one row to what it is when it is neither given nor defaulted. */
void opt_clear(struct opt_set *set, const struct opt *row, enum opt_origin origin);

/* Sets one row from text; -EINVAL and a message with the value and what is accepted. */
int opt_assign(struct opt_set *set, const struct opt *row, const char *text,
               enum opt_origin origin);

/* The argument vector without argv[0]. Long names may be cut short, to two letters at
 * least, where one row alone begins so; otherwise the message lists those that do. Words that are
 * not options are kept in places; more than room are -EINVAL, once all options are known to be
 * good. *given is their number. */
int opt_parse(struct opt_set *set, int argc, char *const *argv, const char **places, int room,
              int *given);

/* "delay=2us,jitter=100ns": the same rows, as the tail of a device name. */
int opt_parse_list(struct opt_set *set, const char *text);

/* The value as it would be typed. */
void opt_format(const struct opt *row, const void *base, char *text, size_t room);

/* The row, completed from the row in `of`. */
struct opt opt_whole(const struct opt *row);

/* The name of a choice, as typed; NULL for 0. */
const char *opt_choice_name(const struct opt *row, int choice);

/* All shared rows as lines "name=value". */
int opt_encode(const struct opt_set *set, struct msg *text);

/* Fills shared rows from such lines, which come from outside: anything else is -EINVAL, except
 * lines that begin with a full stop, which are the caller's. */
int opt_decode(struct opt_set *set, const struct msg *text);

/* For rows with `of`, after the shared rows were filled from the other end: they become
 * OPT_BY_PEER. before is the struct as it was; overridden is called for every row that the user had
 * set to another value. */
void opt_adopt(struct opt_set *set, const void *before,
               void (*overridden)(const struct opt *row, const char *was, const char *now));

/* What {Op} and {ops} stand for. */
struct opt_words {
    const char *Op, *ops;
    int column; /* where the help of an option begins; 0: the usual */
};

/* Puts template with its placeholders replaced into text. */
void opt_expand(const struct opt *row, const char *template, const struct opt_words *words,
                char *text, size_t room);

/* Adds the help of all rows that have (flags & OPT_OURS) == ours. */
int opt_help(const struct opt_set *set, const struct opt_words *words, unsigned ours,
             struct msg *text);

#endif
