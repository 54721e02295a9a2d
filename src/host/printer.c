/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections of names and values, as text or as JSON. */
#include "host/printer.h"

#include <stdarg.h>
#include <string.h>

void print_section(struct printer *printer, const char *title, const char *key, char bracket)
{
    if (printer->format == PRINT_JSON)
        json_open(&printer->json, key, bracket);
    else
        fprintf(printer->out, "%s%s%s%s\n", printer->begun ? "\n" : "",
                text_style(printer->out, TEXT_BOLD), title, text_style(printer->out, TEXT_PLAIN));
    printer->begun = true;
}

void print_section_end(struct printer *printer, char bracket)
{
    if (printer->format == PRINT_JSON)
        json_close(&printer->json, bracket);
}

void print_value(struct printer *printer, const char *name, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (printer->format == PRINT_LINES)
        fprintf(printer->out, "%s\t%s\n", name, text);
    else if (printer->format == PRINT_TEXT)
        fprintf(printer->out, *name ? "  %-15s %s\n" : "  %s%s\n", name, text);
}

void list_add(char *text, size_t room, const char *separator, const char *format, ...)
{
    size_t used = strlen(text), gap = strlen(separator);
    va_list arguments;
    if (used && used + gap < room) {
        memcpy(text + used, separator, gap + 1);
        used += gap;
    }
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}
