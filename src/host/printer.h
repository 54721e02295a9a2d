/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside host: sections of names and values, as text or as JSON. */
#ifndef WEFT_HOST_PRINTER_H
#define WEFT_HOST_PRINTER_H

#include "report/report.h"

/* Text for people, JSON; or what a child process writes to its parent: lines "NAME\tTEXT", or an
 * object of JSON in each line. */
enum printer_format { PRINT_TEXT, PRINT_JSON, PRINT_LINES, PRINT_OBJECTS };

struct printer {
    enum printer_format format;
    FILE *out;
    struct json json; /* for PRINT_JSON */
    bool begun;       /* a section was printed: text puts an empty line before the next */
};

/* Begins a section: title in text; in JSON key, with an object or a list by its bracket. */
void print_section(struct printer *printer, const char *title, const char *key, char bracket);
void print_section_end(struct printer *printer, char bracket);

/* One line of text. A line without a name is a remark. JSON has neither. */
void print_value(struct printer *printer, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends to a list in text; the separator stands before every entry but the first. What does not
 * fit is cut. */
void list_add(char *text, size_t room, const char *separator, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
