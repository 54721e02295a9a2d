/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of runs, curves and families: only the words that distinguish them. */
#include "study/plot.h"

#include <string.h>

static size_t common_folder(const struct plot_data *plots)
{
    size_t length = 0;
    const char *first = plots->runs[0].path ? plots->runs[0].path : "";
    for (const char *slash = strchr(first, '/'); slash; slash = strchr(slash + 1, '/'))
        length = (size_t)(slash - first) + 1;
    for (size_t i = 1; i < plots->run_count; i++) {
        const char *path = plots->runs[i].path ? plots->runs[i].path : "";
        while (length && strncmp(path, first, length) != 0)
            for (length--; length && first[length - 1] != '/';)
                length--;
    }
    return length;
}

/* Cuts at a character boundary of UTF-8. */
static void copy_text(char *to, const char *from, size_t length)
{
    if (length >= LABEL_MAX) {
        length = LABEL_MAX - 4;
        while (length && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
        memcpy(to, from, length);
        memcpy(to + length, "...", 4);
        return;
    }
    memcpy(to, from, length);
    to[length] = 0;
}

void plot_data_name_runs(struct plot_data *plots)
{
    size_t folder = plots->run_count ? common_folder(plots) : 0;
    for (size_t i = 0; i < plots->run_count; i++) {
        const char *path = plots->runs[i].path ? plots->runs[i].path + folder : "";
        size_t length = strlen(path);
        if (length > 5 && strcmp(path + length - 5, ".json") == 0)
            length -= 5;
        copy_text(plots->names[i], path, length);
    }
}

/* The words of the kind that differ between curves; the device only if one run used several. */
static void kind_text(const struct plot_data *plots, const struct curve *curve, int words,
                      char *text, size_t room)
{
    const struct study_result *kind = curve->results[0];
    bool test = false, method = false, device = false, layout = false;
    size_t used = 0;
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct study_result *other = plots->curves[i].results[0];
        test |= !text_same(other->test, kind->test);
        method |= text_same(other->test, kind->test) && !text_same(other->method, kind->method);
        device |= plots->curves[i].run == curve->run && (!text_same(other->device, kind->device) ||
                                                         !text_same(other->fabric, kind->fabric));
        layout |= words > 1 && !text_same(other->layout, kind->layout);
    }
    const char *const parts[] = {test ? kind->test : NULL, method ? kind->method : NULL,
                                 device ? kind->device : NULL, layout ? kind->layout : NULL,
                                 words > 2 ? kind->label : NULL};
    text[0] = 0;
    for (size_t i = 0; i < LENGTH(parts) && used < room; i++)
        if (parts[i] && parts[i][0])
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", parts[i]);
}

static void join(char *label, const char *name, const char *kind)
{
    char text[2 * LABEL_MAX + 3];
    bool included = kind[0] && strstr(name, kind);
    snprintf(text, sizeof text, "%s%s%s", name, name[0] && kind[0] && !included ? ": " : "",
             included ? "" : kind);
    copy_text(label, text, strlen(text));
}

/* The end of a word of a command, which may have quotes in it. */
static const char *word_end(const char *at)
{
    for (bool quoted = false; *at && (quoted || *at != ' '); at++) {
        if (*at == '\'')
            quoted = !quoted;
        else if (*at == '\\' && !quoted && at[1])
            at++;
    }
    return at;
}

/* The number of words, from this one on, that have no influence on results. */
static int incidental_words(const char *word, size_t length)
{
    char name[16];
    if (length < 3 || strncmp(word, "--", 2) != 0)
        return 0;
    const char *equals = memchr(word, '=', length);
    snprintf(name, sizeof name, "%.*s", (int)((equals ? equals : word + length) - word - 2),
             word + 2);
    int words = option_incidental(name);
    return words && equals ? 1 : words;
}

/* The command without the folder of the program and without incidental options. */
static void short_command(const struct study_run *run, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", run->tool ? run->tool : "");
    const char *at = word_end(run->command ? run->command : "");
    while (*at && used < room) {
        const char *word = at + 1, *end = word_end(word);
        int skip = incidental_words(word, (size_t)(end - word));
        if (!skip)
            used += (size_t)snprintf(text + used, room - used, "%.*s", (int)(end - at), at);
        at = skip == 2 && *end ? word_end(end + 1) : end;
    }
}

/* A family of several runs is named by the letter of its command, as in a comparison. */
static void name_family(struct plot_data *plots, struct family *family, int words)
{
    const struct curve *curve = &plots->curves[family->first];
    char text[LABEL_MAX], kind[LABEL_MAX], command[LABEL_MAX];
    if (family->members < 2) {
        copy_text(family->label, curve->label, strlen(curve->label));
        return;
    }
    size_t letter = 0;
    for (size_t i = 0; i < plots->run_count && &plots->runs[i] != curve->run; i++) {
        size_t j = 0;
        while (j < i && !run_same_command(&plots->runs[i], &plots->runs[j]))
            j++;
        letter += j == i && !run_same_command(&plots->runs[i], curve->run);
    }
    short_command(curve->run, command, sizeof command);
    snprintf(text, sizeof text, "%c, %zu runs: %.*s", (char)('A' + letter % 26), family->members,
             LABEL_MAX / 2, command);
    kind_text(plots, curve, words, kind, sizeof kind);
    join(family->label, text, kind);
}

void plot_data_name_curves(struct plot_data *plots, int words)
{
    for (size_t i = 0; i < plots->curve_count; i++) {
        struct curve *curve = &plots->curves[i];
        char kind[LABEL_MAX];
        kind_text(plots, curve, words, kind, sizeof kind);
        const char *name = plots->names[curve->run - plots->runs];
        join(curve->label, plots->run_count > 1 || !kind[0] ? name : "", kind);
    }
    for (size_t i = 0; i < plots->family_count; i++)
        name_family(plots, &plots->families[i], words);
}
