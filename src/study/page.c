/* SPDX-License-Identifier: BSD-3-Clause */
/* The page: one HTML file that loads nothing and runs no script but ours, whatever a document
 * contains: its content security policy names the script by its hash. Legend and sizes are inputs
 * that style rules refer to. */
#include "study/plot.h"

#include <errno.h>
#include <string.h>

/* Converts the hash from hexadecimal digits to base64, as the policy needs it. */
static void script_hash(FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, value = 0;
    for (const char *at = page_script_hash; *at; at++) {
        value = (value << 4 | (unsigned)(*at <= '9' ? *at - '0' : *at - 'a' + 10)) & 0xfff;
        bits += 4;
        if (bits >= 6) {
            bits -= 6;
            fputc(digits[value >> bits & 63], out);
        }
    }
    if (bits)
        fprintf(out, "%c=", digits[value << (6 - bits) & 63]);
}

/* Up to the title. */
static void begin(FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-",
          out);
    script_hash(out);
    fputs("'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"generator\" content=\"weft\">\n<title>",
          out);
}

void page_open(const char *title, FILE *out)
{
    begin(out);
    html_text(out, title);
    fprintf(out, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n", plot_style, page_style);
}

void page_end(FILE *out)
{
    fprintf(out,
            "<footer>Made by weft " WEFT_VERSION ". Times are in microseconds (us) as the tools "
            "print them; 1 MB is 10<sup>6</sup> bytes, 1 MiB "
            "2<sup>20</sup>.</footer>\n<script>%s</script>\n</body>\n"
            "</html>\n",
            page_script);
}

static void head(const struct plot_data *plots, const char *title, FILE *out)
{
    begin(out);
    if (title)
        html_text(out, title);
    else
        html_text(out, plots->run_count == 1 && plots->runs[0].tool ? plots->runs[0].tool : "Weft");
    if (title)
        ;
    else if (plots->run_count == 1)
        html_print(out, ", %s", plots->names[0]);
    else
        fprintf(out, ", %zu runs", plots->run_count);
    fprintf(out, "</title>\n<style>\n%s%s", plot_style, page_style);
    for (size_t i = 0; i < plots->family_count; i++)
        fprintf(out, "body:has(#k%zu:not(:checked)) .c.f%zu{display:none}\n", i, i);
    for (size_t i = 0; i < plots->size_count; i++)
        fprintf(out, "body:has(#z%zu:checked) .z%zu{display:grid}\n", i, i);
    fputs("</style>\n</head>\n<body>\n", out);
}

static void legend(const struct plot_data *plots, FILE *out)
{
    fprintf(out, "<fieldset class=\"legend%s\" aria-label=\"Legend\">\n",
            plots->family_count > FEW ? " many" : "");
    for (size_t i = 0; i < plots->family_count; i++) {
        fprintf(
            out,
            "<label class=\"h%zu\"><input type=\"checkbox\" id=\"k%zu\" checked "
            "autocomplete=\"off\"><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"c "
            "h%zu d%zu\"><path class=\"l\" d=\"M0 6H34\"/></g></svg><span class=\"name\" title=\"",
            i % HUES, i, i % HUES, i / HUES % 4);
        html_text(out, plots->families[i].label);
        fputs("\">", out);
        html_text(out, plots->families[i].label);
        fputs("</span></label>\n", out);
    }
    fputs("</fieldset>\n", out);
}

static int sweeps(struct canvas *canvas)
{
    FILE *out = canvas->page;
    int status = 0, drawn = 0;
    fputs("<section class=\"plots\" id=\"sweeps\">\n", out);
    for (int what = 0; what < SWEEPS && !status; what++) {
        bool one;
        status = sweep_draw(canvas, (enum sweep)what, &one);
        drawn += one;
    }
    if (!drawn)
        fputs("<p class=\"sub\">Nothing to draw versus size.</p>\n", out);
    fputs("</section>\n", out);
    return status;
}

static bool any_intervals(const struct plot_data *plots)
{
    for (size_t i = 0; i < plots->run_count; i++)
        for (size_t j = 0; j < plots->runs[i].result_count; j++)
            if (plots->runs[i].results[j].interval_count)
                return true;
    return false;
}

static void size_choice(const struct plot_data *plots, FILE *out)
{
    size_t chosen = plot_data_first_size(plots);
    char text[24];
    fputs("<fieldset class=\"sizes\" aria-label=\"Size\">\n", out);
    for (size_t i = 0; i < plots->size_count; i++) {
        size_words(plots->sizes[i], text, sizeof text);
        fprintf(out,
                "<label><input type=\"radio\" name=\"size\" id=\"z%zu\" "
                "autocomplete=\"off\"%s>%s</label>\n",
                i, i == chosen ? " checked" : "", text);
    }
    fputs("</fieldset>\n", out);
}

/* Curves of the legend that have no samples at this size. */
static void missing_curves(const struct plot_data *plots, uint64_t size, FILE *out)
{
    size_t found = 0;
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct study_result *result = curve_at(&plots->curves[i], size);
        if ((result && result->count) || found++ >= FEW)
            continue;
        fputs(found > 1 ? ", " : "<p class=\"sub wide\">No samples at this size: ", out);
        html_text(out, plots->curves[i].label);
    }
    if (found > FEW)
        fprintf(out, " and %zu more", found - FEW);
    fputs(found ? "</p>\n" : "", out);
}

static int spreads(struct canvas *canvas)
{
    const struct plot_data *plots = canvas->plots;
    FILE *out = canvas->page;
    bool choice = plots->size_count > 1;
    int status = 0;
    fputs("<section id=\"spreads\">\n<h2>Distribution of samples</h2>\n", out);
    if (!any_intervals(plots))
        fputs("<p class=\"sub\">No plot over time: no run was limited by a duration or reported "
              "intervals.</p>\n",
              out);
    if (choice)
        size_choice(plots, out);
    for (size_t i = 0; i < plots->size_count && !status; i++) {
        char text[24];
        size_words(plots->sizes[i], text, sizeof text);
        if (choice)
            fprintf(out, "<div class=\"plots spread z%zu\"><h3>%s</h3>\n", i, text);
        else
            fputs("<div class=\"plots\">\n", out);
        missing_curves(plots, plots->sizes[i], out);
        status = spread_draw(canvas, plots->sizes[i]);
        fputs("</div>\n", out);
    }
    fputs("</section>\n", out);
    return status;
}

static int body(const struct study_subject *subject, const struct plot_data *plots, FILE *out)
{
    struct canvas canvas = {.plots = plots, .page = out};
    int status = 0;
    figures_headline(plots, subject->title, out);
    verdict_section(subject, out);
    if (plots->curve_count) {
        legend(plots, out);
        status = sweeps(&canvas);
        if (!status)
            status = spreads(&canvas);
        if (!status)
            figures_table(plots, out);
    }
    describe_differences(plots, out);
    describe_runs(plots, out);
    page_end(out);
    return status;
}

static int check_written(FILE *out, int status)
{
    if (!status && (fflush(out) || ferror(out)))
        return fail(-EIO, "writing the page: %s", strerror(errno));
    return status;
}

int study_page(const struct study_subject *subject, FILE *out)
{
    struct plot_data plots;
    int status = plot_data_open(&plots, subject->runs, subject->count);
    if (status)
        return status;
    head(&plots, subject->title, out);
    status = body(subject, &plots, out);
    plot_data_close(&plots);
    return check_written(out, status);
}

int study_plots(const struct study_subject *subject, bool first,
                int (*save)(void *arg, const char *name, const char *bytes, size_t length),
                void *arg)
{
    struct plot_data plots;
    struct canvas canvas = {.plots = &plots, .title = subject->title, .save = save, .arg = arg};
    bool drawn;
    int status = plot_data_open(&plots, subject->runs, subject->count);
    if (status)
        return status;
    for (int what = 0; what < SWEEPS && !status && !(first && canvas.saved); what++)
        status = sweep_draw(&canvas, (enum sweep)what, &drawn);
    for (size_t i = 0; i < plots.size_count && !status && !first; i++)
        status = spread_draw(&canvas, plots.sizes[i]);
    if (!status && !canvas.saved)
        status = fail(-ENODATA, "nothing to plot: the runs have no results");
    plot_data_close(&plots);
    return status;
}
