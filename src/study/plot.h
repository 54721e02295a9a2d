/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: plots as SVG, and the page around them. A curve holds the results of one run for
 * one kind of test; curves of the same command and kind form a family and share a colour. Every
 * text of a document goes through html_text. */
#ifndef WEFT_STUDY_PLOT_H
#define WEFT_STUDY_PLOT_H

#include "study/page.h"

/* ---- text (html.c) ---- */

/* Escaped for text and for attributes in quotes, in HTML and in XML; NULL is written as "-". */
void html_text(FILE *out, const char *text);
void html_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* With as many digits as the exact number needs; "-" if it is not finite. */
void html_number(FILE *out, double value);

/* NULL equals "". */
bool text_same(const char *a, const char *b);
/* The value of the option or fact of that name; NULL if it is not there. */
const char *pair_value(const struct study_pair *pairs, size_t count, const char *name);

/* 8, 64K, 1M: as on a command line. */
void size_text(uint64_t size, char *text, size_t room);
/* 8 B, 64 KiB, 1 MiB. */
void size_words(uint64_t size, char *text, size_t room);
/* 0.12 us, 2.5 us: up to three digits. */
void time_text(double us, char *text, size_t room);
/* The same, always with three digits or more: 2.50 us. */
void time_figure(double us, char *text, size_t room);

/* ---- what is drawn (curve.c, family.c, label.c, result.c) ---- */

enum { HUES = 8, FEW = 8, MANY = 64, LABEL_MAX = 160 };

struct curve {
    const struct study_run *run;
    const struct study_result **results; /* by size */
    size_t count;
    size_t family;
    char label[LABEL_MAX];
};

struct family {
    size_t members, first; /* the first of its curves */
    char label[LABEL_MAX];
};

struct plot_data {
    const struct study_run *runs;
    size_t run_count;
    struct curve *curves;
    size_t curve_count;
    struct family *families;
    size_t family_count;
    uint64_t *sizes; /* ascending */
    size_t size_count;
    char (*names)[LABEL_MAX]; /* of the runs */
    const struct study_result **pool;
};

int plot_data_open(struct plot_data *plots, const struct study_run *runs, size_t n);
void plot_data_close(struct plot_data *plots);

/* Steps of plot_data_open. words: how many words identify a kind. */
void plot_data_group(struct plot_data *plots, int words);
void plot_data_name_runs(struct plot_data *plots);
void plot_data_name_curves(struct plot_data *plots, int words);
bool result_same_kind(const struct study_result *a, const struct study_result *b, int words);

/* The same program, options and machines: repeated runs of one command. */
bool run_same_command(const struct study_run *a, const struct study_run *b);

/* Too many curves to distinguish: they are drawn thin, with one thick line per family. */
bool plot_data_crowded(const struct plot_data *plots);

/* Too many to draw or to describe each: what is drawn are medians of families. */
bool plot_data_many(const struct plot_data *plots);

/* Index of the size that the page opens with: the smallest one that most curves have samples of. */
size_t plot_data_first_size(const struct plot_data *plots);

/* The result of that size; NULL if there is none. */
const struct study_result *curve_at(const struct curve *curve, uint64_t size);

/* Its representative time: the median; of a stream 1 / message rate, because posts may follow each
 * other much faster than messages are transferred. NAN if there is none. */
double result_time(const struct study_result *result);

/* Messages per second; of lists both ways, in both directions together. */
double result_rate(const struct study_result *result);

/* From the document, or else from its histogram if ten samples lie beyond; NAN otherwise. */
double result_percentile(const struct study_result *result, double percent);

/* The value below which that share of the samples lies; NAN without samples. */
double result_below(const struct study_result *result, double share);
uint64_t result_samples(const struct study_result *result);

/* Values at ascending percents, as long as ten samples lie beyond; returns how many. Percentiles
 * that the document has are taken from it. */
size_t result_curve(const struct study_result *result, const double *percents, size_t count,
                    double *values);

/* ---- axes (axis.c) ---- */

enum axis_kind { AXIS_TIME, AXIS_SIZE, AXIS_NUMBER, AXIS_PERCENTILE, AXIS_SLOT };
enum axis_form { AXIS_LINEAR, AXIS_LOG, AXIS_EITHER };

struct axis {
    const char *title;
    enum axis_kind kind;
    enum axis_form form;
    bool from_zero, settled;
    double low, high, least; /* least: the smallest above zero */
    double from, to;         /* where low and high are drawn */
};

struct tick {
    double value;
    bool spare; /* its label is left out where there is little room */
    char text[24];
};

void axis_open(struct axis *axis, const char *title, enum axis_kind kind, enum axis_form form);
/* Extends the axis to a value; values that are not finite are ignored. */
void axis_fit(struct axis *axis, double value);
/* Chooses linear or logarithmic and round ends, once. */
void axis_settle(struct axis *axis);
/* The position of a value, never outside the plot. */
double axis_place(const struct axis *axis, double value);
size_t axis_ticks(const struct axis *axis, struct tick *ticks, size_t room);

/* The position of a percentile on its axis: its number of nines. */
double axis_nines(double percent);

/* ---- plots (svg.c) ---- */

enum { PLOT_WIDTH = 640, PLOT_HEIGHT = 400 };

struct plot {
    FILE *out;
    struct axis x, y;
    const char *value; /* what y is, in the hover: "median" */
    const char *unit;  /* of y, in the hover */
    bool crowded;
    bool many; /* lines of single runs do not carry their values */
};

/* NAN in low or high: no band there. */
struct point {
    double x, y, low, high;
    char at[40];   /* text of x; empty: the shared words of the plot */
    char more[48]; /* after y in the hover */
};

enum {
    DRAW_MARKERS = 1,
    DRAW_BOLD = 2,   /* the median of its family */
    DRAW_ALONE = 4,  /* no line between points */
    DRAW_ROUGHLY = 8 /* values are approximate: four digits */
};

/* Begins the plot: settles and draws the axes. words: texts of x, if all curves share them. */
void plot_open(struct plot *plot, const char *name, const char *const *words, size_t count);
void plot_curve(struct plot *plot, size_t family, const char *label, const struct point *points,
                size_t count, unsigned how);
void plot_trace(struct plot *plot, size_t family, const struct point *points, size_t count);
/* Columns from x[0] to x[count]; first is the index of the first one among the shared words. */
void plot_columns(struct plot *plot, size_t family, const char *label, const double *x,
                  const double *y, size_t count, size_t first);
/* What no curve can be above, with its name. */
enum ceiling { CEILING_MEMCPY, CEILING_LINK, CEILINGS };
void plot_ceiling(struct plot *plot, enum ceiling what, const char *label,
                  const struct point *points, size_t count);
void plot_close(struct plot *plot);
/* The shape of the family's markers, relative to the current point of the path. */
const char *plot_marker(size_t family);

/* ---- figures (picture.c, sweep.c, spread.c, over_time.c) ---- */

/* Where figures go: into the page, or each into an SVG file with its own legend and colours. */
struct canvas {
    const struct plot_data *plots;
    const char *title; /* before that of every file; or NULL */
    FILE *page;        /* NULL: files, given to save */
    int (*save)(void *arg, const char *name, const char *bytes, size_t length);
    void *arg;
    size_t saved;
};

/* A plot is drawn to out between open and close. Name and title are ours; so is the caption. */
struct picture {
    struct canvas *canvas;
    FILE *out;
    char name[64], title[96];
    char *bytes;
    size_t length;
};
int picture_open(struct picture *picture, struct canvas *canvas, const char *heading,
                 const char *name, const char *title);
int picture_close(struct picture *picture, const char *caption);
/* Instead of closing it: there is no plot, and why. A file is not written. */
void picture_none(struct picture *picture, const char *why);

enum sweep {
    SWEEP_LATENCY,
    SWEEP_STREAM_TIME,
    SWEEP_LIST_BANDWIDTH,
    SWEEP_BANDWIDTH,
    SWEEP_RATE,
    SWEEPS
};

/* One plot; drawn is false if there is nothing to show. */
int sweep_draw(struct canvas *canvas, enum sweep what, bool *drawn);

/* Percentiles, histogram and the run over time, of one size. */
int spread_draw(struct canvas *canvas, uint64_t size);

/* The results of one size, and memory for their points. */
struct spread {
    struct canvas *canvas;
    const struct plot_data *plots;
    uint64_t size;
    const struct study_result **results; /* per curve; NULL if it has none */
    bool *families;                      /* which are drawn */
    size_t left_out;                     /* families that are not */
    struct point *points;
    double *values; /* of all curves at all percents */
    struct spread_words *words;
};

/* "Latency [us]", or what samples are; and the last sentence of a caption on them. */
const char *spread_title(const struct spread *spread);
const char *spread_note(const struct spread *spread);

int spread_open(const struct spread *spread, struct picture *picture, const char *name,
                const char *title);
int over_time_draw(struct spread *spread);

/* ---- text of the page (figures.c, describe.c) ---- */

void figures_headline(const struct plot_data *plots, const char *title, FILE *out);
void figures_table(const struct plot_data *plots, FILE *out);
/* Which of two sets is faster; nothing if they are not compared (verdict.c). */
void verdict_section(const struct study_subject *subject, FILE *out);
/* What the machine did to the results: a line per run that was disturbed. */
void describe_disturbance(const struct plot_data *plots, FILE *out);
/* The same of one run, size by size. */
void disturbance_of(const struct study_run *run, FILE *out);
void describe_differences(const struct plot_data *plots, FILE *out);
void describe_runs(const struct plot_data *plots, FILE *out);

/* Options without influence on results: output files, output formats, ports. Returns the number of
 * words that the option takes on a command line, itself included; 0 if it has influence. */
int option_incidental(const char *name);

/* The first and the last lines of a page (page.c). */
void page_open(const char *title, FILE *out);
void page_end(FILE *out);

/* Generated from the .css files and page.js by the build. */
extern const char plot_style[], file_style[], page_style[], page_script[], page_script_hash[];

#endif
