/* SPDX-License-Identifier: BSD-3-Clause */
/* The command of a run, from a list of words to one line that a shell would take. */
#include "study/read.h"

#include <string.h>

/* True if a shell needs no quotes around the word. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    return *word && word[strspn(word, plain)] == '\0';
}

/* Writes the word, quoted if needed, and a space. Returns the end. */
static char *add_word(char *to, const char *word)
{
    bool quoted = !is_plain(word);
    if (quoted)
        *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'')
            to = stpcpy(to, "'\\'");
        *to++ = *word;
    }
    if (quoted)
        *to++ = '\'';
    *to++ = ' ';
    return to;
}

int read_command(struct reader *r, const json_t *tool, struct study_run *run)
{
    const json_t *list = json_object_get(tool, "command");
    size_t count = json_array_size(list), room = 1;
    for (size_t i = 0; i < count; i++) {
        if (!json_is_string(json_array_get(list, i)))
            return reader_wrong(r, "tool.", "command", "has a word that is not a string");
        room += 4 * json_string_length(json_array_get(list, i)) + 3;
    }
    if (!count)
        return reader_wrong(r, "tool.", "command", "has no words");
    char *command = reader_alloc(r, room), *to = command;
    if (!command)
        return reader_no_memory(r);
    for (size_t i = 0; i < count; i++)
        to = add_word(to, json_string_value(json_array_get(list, i)));
    to[-1] = '\0';
    text_clean(command);
    run->command = command;
    return 0;
}
