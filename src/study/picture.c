/* SPDX-License-Identifier: BSD-3-Clause */
/* A picture is a plot with its title and caption: a part of the page, or an SVG file of its own
 * with a legend and literal colours. A file is collected first: its height depends on the caption.
 */
#include "study/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lines of text below the plot, in a file. */
enum { FILE_LEFT = 104, FILE_LINE = 22, FILE_WIDTH = 72, FILE_NOTES = 6, FILE_KEYS = 24 };

int picture_open(struct picture *f, struct canvas *canvas, const char *heading, const char *name,
                 const char *title)
{
    *f = (struct picture){.canvas = canvas, .out = canvas->page};
    snprintf(f->name, sizeof f->name, "%s.svg", name);
    snprintf(f->title, sizeof f->title, "%s", title);
    if (!f->out)
        f->out = open_memstream(&f->bytes, &f->length);
    if (!f->out)
        return fail(-ENOMEM, "no memory for a plot");
    if (canvas->page)
        fprintf(f->out, "<figure>\n<%s>%s</%s>\n", heading, title, heading);
    return 0;
}

/* ---- files ---- */

static int line_at(size_t number)
{
    return PLOT_HEIGHT + 50 + FILE_LINE * (int)number;
}

/* Breaks a caption into lines; returns how many. */
static size_t wrap(const char *text, const char *begins[FILE_NOTES], int lengths[FILE_NOTES])
{
    size_t count = 0;
    while (*text && count < FILE_NOTES) {
        size_t length = strlen(text);
        if (length > FILE_WIDTH)
            for (length = FILE_WIDTH; length > 1 && text[length] != ' ';)
                length--;
        begins[count] = text;
        lengths[count++] = (int)length;
        text += length;
        text += strspn(text, " ");
    }
    return count;
}

static void file_key(const struct plot_data *plots, size_t family, size_t line, FILE *out)
{
    int y = line_at(line);
    fprintf(out, "<g class=\"c f%zu h%zu d%zu\"><path class=\"l\" d=\"M%d %dh34\"/>", family,
            family % HUES, family / HUES % 4, FILE_LEFT, y - 5);
    fprintf(out, "<path class=\"m\" d=\"M%d %d%s\"/>", FILE_LEFT + 17, y - 5, plot_marker(family));
    fprintf(out, "<text class=\"key\" x=\"%d\" y=\"%d\">", FILE_LEFT + 44, y);
    html_text(out, plots->families[family].label);
    fputs("</text></g>\n", out);
}

static void file_write(const struct picture *f, const char *caption, FILE *out)
{
    const struct plot_data *plots = f->canvas->plots;
    const char *begins[FILE_NOTES];
    int lengths[FILE_NOTES];
    size_t notes = wrap(caption, begins, lengths);
    size_t keys = plots->family_count > FILE_KEYS ? FILE_KEYS : plots->family_count;
    int height = line_at(notes + keys + (keys < plots->family_count)) + 4;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\">\n<style>%s</style>\n",
            PLOT_WIDTH, height, PLOT_WIDTH, height, file_style);
    fprintf(out, "<rect class=\"card\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
            PLOT_WIDTH - 1, height - 1);
    fputs("<text class=\"head\" x=\"18\" y=\"28\">", out);
    if (f->canvas->title)
        html_print(out, "%s: ", f->canvas->title);
    fprintf(out, "%s</text>\n<svg x=\"6\" y=\"40\" width=\"%d\" height=\"%d\">", f->title,
            PLOT_WIDTH, PLOT_HEIGHT);
    fwrite(f->bytes, 1, f->length, out);
    fputs("</svg>\n", out);
    for (size_t i = 0; i < notes; i++)
        fprintf(out, "<text x=\"%d\" y=\"%d\">%.*s</text>\n", FILE_LEFT, line_at(i), lengths[i],
                begins[i]);
    for (size_t i = 0; i < keys; i++)
        file_key(plots, i, notes + i, out);
    if (keys < plots->family_count)
        fprintf(out, "<text x=\"%d\" y=\"%d\">and %zu more</text>\n", FILE_LEFT,
                line_at(notes + keys), plots->family_count - keys);
    fputs("</svg>\n", out);
}

static int file_save(const struct picture *f, const char *caption)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for a plot");
    file_write(f, caption, out);
    int status = fclose(out) ? fail(-ENOMEM, "no memory for a plot")
                             : f->canvas->save(f->canvas->arg, f->name, bytes, length);
    free(bytes);
    return status;
}

/* ---- the end ---- */

int picture_close(struct picture *f, const char *caption)
{
    if (f->canvas->page) {
        fprintf(f->out, "<figcaption>%s</figcaption>\n</figure>\n", caption);
        return 0;
    }
    int status = fclose(f->out) ? fail(-ENOMEM, "no memory for a plot") : file_save(f, caption);
    f->canvas->saved += !status;
    free(f->bytes);
    return status;
}

void picture_none(struct picture *f, const char *why)
{
    if (f->canvas->page) {
        fprintf(f->out, "<p class=\"none\">%s</p></figure>\n", why);
    } else {
        fclose(f->out);
        free(f->bytes);
    }
}
