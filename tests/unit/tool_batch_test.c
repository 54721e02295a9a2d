/* SPDX-License-Identifier: BSD-3-Clause */
/* Batch files: what is in a line comes back word for word, what is wrong with one stays with that
 * line, and no file is too strange to be read or refused. */
#include "support/unit.h"
#include "tool/batch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void parse(struct batch *batch, const char *text)
{
    assert_int_equal(batch_parse(batch, text, strlen(text)), 0);
}

/* A line that can be read, with these words. */
static void expect_words(const struct batch_line *line, unsigned number, int count, ...)
{
    va_list words;
    assert_null(line->error);
    assert_int_equal(line->number, number);
    assert_int_equal(line->count, count);
    va_start(words, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(line->words[i], va_arg(words, const char *));
    va_end(words);
    assert_null(line->words[count]);
}

/* A line that cannot be read, and the others are still there. */
static void expect_error(const char *text, size_t length, const char *error)
{
    struct batch batch;
    assert_int_equal(batch_parse(&batch, text, length), 0);
    assert_int_equal(batch.count, 3);
    expect_words(&batch.lines[0], 1, 2, "before", "-t");
    assert_int_equal(batch.lines[1].number, 2);
    assert_non_null(batch.lines[1].error);
    assert_string_equal(batch.lines[1].error, error);
    expect_words(&batch.lines[2], 3, 2, "after", "-n");
    batch_free(&batch);
}

/* ---- what lines hold ---- */

static void the_first_word_is_the_label_and_the_rest_are_options(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "small -t put_lat -s 8\nlarge\t-t  get -s 64K \n");
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[0], 1, 5, "small", "-t", "put_lat", "-s", "8");
    expect_words(&batch.lines[1], 2, 5, "large", "-t", "get", "-s", "64K");
    batch_free(&batch);
}

static void a_label_may_stand_alone(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "  plain  \n");
    assert_int_equal(batch.count, 1);
    expect_words(&batch.lines[0], 1, 1, "plain");
    batch_free(&batch);
}

static void blank_lines_and_comments_are_skipped_but_counted(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "# heading\n\n   \t\na -n 1 # the rest of it\n  # indented \"open\nb -n 2\n\n");
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[0], 4, 3, "a", "-n", "1");
    expect_words(&batch.lines[1], 6, 3, "b", "-n", "2");
    batch_free(&batch);
}

static void a_hash_inside_a_word_or_quotes_is_no_comment(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "a#1 '#' \"# b\" c#\n");
    assert_int_equal(batch.count, 1);
    expect_words(&batch.lines[0], 1, 4, "a#1", "#", "# b", "c#");
    batch_free(&batch);
}

static void quotes_group_words(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "\"two words\" '-d' 'it is \"so\"' \"it's\" a\"b c\"d'e f'g \"\" ''\n");
    assert_int_equal(batch.count, 1);
    expect_words(&batch.lines[0], 1, 7, "two words", "-d", "it is \"so\"", "it's", "ab cde fg", "",
                 "");
    batch_free(&batch);
}

static void lines_may_end_like_those_of_another_system(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "a -t get\r\n\r\n# no\r\nb -t put_lat \"-s\" '8'\r\n");
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[0], 1, 3, "a", "-t", "get");
    expect_words(&batch.lines[1], 4, 5, "b", "-t", "put_lat", "-s", "8");
    batch_free(&batch);
}

static void the_last_line_needs_no_end(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "a -n 1\nb -n 'x y'");
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[1], 2, 3, "b", "-n", "x y");
    batch_free(&batch);
}

static void letters_beyond_ascii_stay_as_they_are(void **state)
{
    struct batch batch;
    (void)state;
    parse(&batch, "größe \xff\xfe -n 1\n");
    assert_int_equal(batch.count, 1);
    expect_words(&batch.lines[0], 1, 4, "größe", "\xff\xfe", "-n", "1");
    batch_free(&batch);
}

static void an_empty_text_has_no_lines(void **state)
{
    static const char *const texts[] = {"", "\n", "\n\n\n", " ", "#", "\r\n", "# a\n#b"};
    (void)state;
    for (size_t i = 0; i < LENGTH(texts); i++) {
        struct batch batch;
        parse(&batch, texts[i]);
        assert_int_equal(batch.count, 0);
        batch_free(&batch);
    }
}

/* ---- what is wrong with a line ---- */

static void an_unclosed_quote_spoils_its_line_alone(void **state)
{
    static const char *const texts[] = {"before -t\nx \"-t get\nafter -n\n",
                                        "before -t\nx -t 'get\nafter -n\n",
                                        "before -t\n\"\nafter -n\n", "before -t\nx'\nafter -n\n",
                                        "before -t\nx -t get'\"\nafter -n\n"};
    (void)state;
    for (size_t i = 0; i < LENGTH(texts); i++)
        expect_error(texts[i], strlen(texts[i]), "a quote that is not closed");
}

static void a_control_character_spoils_its_line_alone(void **state)
{
    char text[] = "before -t\nx -t g.t\nafter -n\n", *hole = strchr(text, '.');
    (void)state;
    for (int c = 0; c < ' '; c++) {
        if (c == '\t' || c == '\r' || c == '\n')
            continue;
        *hole = c;
        expect_error(text, sizeof text - 1, "a control character");
    }
}

static void bytes_of_nothing_hide_nothing(void **state)
{
    static const char text[] = "before -t\n\0x -t get\nafter -n\n";
    static const char comment[] = "before -t\n# \0 hidden\nafter -n\n";
    (void)state;
    expect_error(text, sizeof text - 1, "a control character");
    expect_error(comment, sizeof comment - 1, "a control character");
}

static void more_words_than_fit_spoil_their_line_alone(void **state)
{
    struct batch batch;
    char text[2048] = "";
    (void)state;
    for (int words = BATCH_WORDS; words <= BATCH_WORDS + 1; words++) {
        size_t used = (size_t)snprintf(text, sizeof text, "before -t\n");
        for (int i = 0; i < words; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%sw%d", i ? " " : "", i);
        snprintf(text + used, sizeof text - used, " # and so on\nafter -n\n");
        if (words > BATCH_WORDS) {
            expect_error(text, strlen(text), "more than 64 words");
            continue;
        }
        parse(&batch, text);
        assert_int_equal(batch.lines[1].count, BATCH_WORDS);
        assert_null(batch.lines[1].error);
        assert_string_equal(batch.lines[1].words[BATCH_WORDS - 1], "w63");
        batch_free(&batch);
    }
}

static void more_lines_than_there_is_room_for_are_refused(void **state)
{
    struct batch batch;
    size_t length = 2 * ((size_t)BATCH_LINES + 1);
    char *text = malloc(length);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < length; i += 2)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a string */
        memcpy(text + i, "a\n", 2);
    assert_int_equal(batch_parse(&batch, text, length - 2), 0);
    assert_int_equal(batch.count, BATCH_LINES);
    assert_int_equal(batch.lines[BATCH_LINES - 1].number, BATCH_LINES);
    batch_free(&batch);
    assert_int_equal(batch_parse(&batch, text, length), -EINVAL);
    assert_string_equal(fail_reason(), "more than 10000 tests");
    assert_null(batch.lines);
    free(text);
}

/* ---- files ---- */

struct temporary {
    char path[64];
};

static void write_file(struct temporary *file, const char *bytes, size_t length)
{
    strcpy(file->path, "/tmp/weft-batch-XXXXXX");
    int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
}

static void a_file_is_read_like_its_text(void **state)
{
    static const char text[] = "a -t get\n'b c' -t put_lat";
    struct temporary file;
    struct batch batch;
    (void)state;
    write_file(&file, text, sizeof text - 1);
    assert_int_equal(batch_read(&batch, file.path), 0);
    assert_string_equal(batch.path, file.path);
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[0], 1, 3, "a", "-t", "get");
    expect_words(&batch.lines[1], 2, 3, "b c", "-t", "put_lat");
    batch_free(&batch);
    unlink(file.path);
}

static void an_empty_file_has_no_tests(void **state)
{
    struct temporary file;
    struct batch batch;
    (void)state;
    write_file(&file, "", 0);
    assert_int_equal(batch_read(&batch, file.path), 0);
    assert_int_equal(batch.count, 0);
    batch_free(&batch);
    unlink(file.path);
}

static void a_file_of_one_mebibyte_is_read_and_a_longer_one_is_not(void **state)
{
    char *text = malloc(BATCH_BYTES + 1);
    struct temporary file;
    struct batch batch;
    (void)state;
    assert_non_null(text);
    memset(text, '#', BATCH_BYTES + 1);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a string */
    memcpy(text, "a -n 1\n", 7);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a string */
    memcpy(text + BATCH_BYTES - 7, "\nb -n 2", 7);
    write_file(&file, text, BATCH_BYTES);
    assert_int_equal(batch_read(&batch, file.path), 0);
    assert_int_equal(batch.count, 2);
    expect_words(&batch.lines[1], 3, 3, "b", "-n", "2");
    batch_free(&batch);
    unlink(file.path);
    write_file(&file, text, BATCH_BYTES + 1);
    assert_int_equal(batch_read(&batch, file.path), -EINVAL);
    assert_non_null(strstr(fail_reason(), file.path));
    assert_non_null(strstr(fail_reason(), "longer than 1 MiB"));
    unlink(file.path);
    free(text);
}

static void a_file_that_cannot_be_had_is_named(void **state)
{
    static const struct {
        const char *path, *why;
    } cases[] = {{"/nonexistent/tests", "No such file or directory"}, {"/tmp", "it is a folder"}};
    struct batch batch;
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        assert_int_equal(batch_read(&batch, cases[i].path), -EINVAL);
        assert_non_null(strstr(fail_reason(), cases[i].path));
        assert_non_null(strstr(fail_reason(), cases[i].why));
    }
}

static void a_file_with_too_many_lines_is_named(void **state)
{
    size_t length = 2 * ((size_t)BATCH_LINES + 1);
    char *text = malloc(length);
    struct temporary file;
    struct batch batch;
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < length; i += 2)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a string */
        memcpy(text + i, "a\n", 2);
    write_file(&file, text, length);
    assert_int_equal(batch_read(&batch, file.path), -EINVAL);
    assert_non_null(strstr(fail_reason(), file.path));
    assert_non_null(strstr(fail_reason(), "more than 10000 tests"));
    unlink(file.path);
    free(text);
}

/* ---- for all words ---- */

enum { ROUNDS = 3000, LETTERS = 12, LINES = 4, WORDS = 8, ROOM = 8192 };

static char random_letter(uint64_t *seed)
{
    static const char usual[] = "abc-=#\"' \t,/\\$\xc3\xb6";
    return usual[next_random(seed) % (sizeof usual - 1)];
}

static void put(char *text, size_t *used, char c)
{
    assert_true(*used + 1 < ROOM);
    text[(*used)++] = c;
    text[*used] = '\0';
}

/* A letter in one of the ways it may be written; quote is the one that is open. */
static void write_letter(char *text, size_t *used, char *quote, char c, bool first, uint64_t *seed)
{
    bool must = c == ' ' || c == '\t' || c == '"' || c == '\'' || (first && c == '#');
    if (*quote && (*quote == c || next_random(seed) % 4 == 0)) {
        put(text, used, *quote);
        *quote = 0;
    }
    if (!*quote && (must || next_random(seed) % 4 == 0)) {
        *quote = c == '"' || (c != '\'' && next_random(seed) % 2) ? '\'' : '"';
        put(text, used, *quote);
    }
    put(text, used, c);
}

static void write_word(char *text, size_t *used, const char *word, uint64_t *seed)
{
    char quote = 0;
    if (!*word) {
        put(text, used, '"');
        put(text, used, '"');
    }
    for (const char *at = word; *at; at++)
        write_letter(text, used, &quote, *at, at == word, seed);
    if (quote)
        put(text, used, quote);
}

static void write_blanks(char *text, size_t *used, size_t least, uint64_t *seed)
{
    static const char blanks[] = " \t\r";
    for (size_t n = least + next_random(seed) % 3; n; n--)
        put(text, used, blanks[next_random(seed) % 3]);
}

static void words_come_back_however_they_were_quoted(void **state)
{
    static char text[ROOM], words[LINES][WORDS][LETTERS + 1];
    uint64_t seed = 20150212;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int counts[LINES];
        size_t used = 0;
        struct batch batch;
        for (int i = 0; i < LINES; i++) {
            counts[i] = 1 + (int)(next_random(&seed) % WORDS);
            for (int k = 0; k < counts[i]; k++) {
                size_t length = next_random(&seed) % (LETTERS + 1);
                for (size_t j = 0; j < length; j++)
                    words[i][k][j] = random_letter(&seed);
                words[i][k][length] = '\0';
                write_blanks(text, &used, k ? 1 : 0, &seed);
                write_word(text, &used, words[i][k], &seed);
            }
            write_blanks(text, &used, 0, &seed);
            put(text, &used, '\n');
        }
        assert_int_equal(batch_parse(&batch, text, used), 0);
        assert_int_equal(batch.count, LINES);
        for (int i = 0; i < LINES; i++) {
            if (batch.lines[i].error || batch.lines[i].count != counts[i])
                fail_msg("line %d of round %d: %s", i, round, text);
            for (int k = 0; k < counts[i]; k++)
                assert_string_equal(batch.lines[i].words[k], words[i][k]);
        }
        batch_free(&batch);
    }
}

static void any_bytes_are_lines_or_errors(void **state)
{
    static const char usual[] = "a-#\"' \t\n\r\\\x01\0";
    char text[256];
    uint64_t seed = 64;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = next_random(&seed) % sizeof text, ends = 0;
        struct batch batch;
        for (size_t i = 0; i < length; i++) {
            text[i] = usual[next_random(&seed) % (sizeof usual - 1)];
            ends += text[i] == '\n';
        }
        assert_int_equal(batch_parse(&batch, text, length), 0);
        assert_true(batch.count <= ends + 1);
        unsigned before = 0;
        for (size_t i = 0; i < batch.count; i++) {
            const struct batch_line *line = &batch.lines[i];
            assert_true(line->number > before && line->number <= ends + 1);
            before = line->number;
            assert_true(line->error || line->count > 0);
            for (int k = 0; k < line->count && !line->error; k++)
                assert_true(strlen(line->words[k]) <= length);
        }
        batch_free(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_word_is_the_label_and_the_rest_are_options),
        cmocka_unit_test(a_label_may_stand_alone),
        cmocka_unit_test(blank_lines_and_comments_are_skipped_but_counted),
        cmocka_unit_test(a_hash_inside_a_word_or_quotes_is_no_comment),
        cmocka_unit_test(quotes_group_words),
        cmocka_unit_test(lines_may_end_like_those_of_another_system),
        cmocka_unit_test(the_last_line_needs_no_end),
        cmocka_unit_test(letters_beyond_ascii_stay_as_they_are),
        cmocka_unit_test(an_empty_text_has_no_lines),
        cmocka_unit_test(an_unclosed_quote_spoils_its_line_alone),
        cmocka_unit_test(a_control_character_spoils_its_line_alone),
        cmocka_unit_test(bytes_of_nothing_hide_nothing),
        cmocka_unit_test(more_words_than_fit_spoil_their_line_alone),
        cmocka_unit_test(more_lines_than_there_is_room_for_are_refused),
        cmocka_unit_test(a_file_is_read_like_its_text),
        cmocka_unit_test(an_empty_file_has_no_tests),
        cmocka_unit_test(a_file_of_one_mebibyte_is_read_and_a_longer_one_is_not),
        cmocka_unit_test(a_file_that_cannot_be_had_is_named),
        cmocka_unit_test(a_file_with_too_many_lines_is_named),
        cmocka_unit_test(words_come_back_however_they_were_quoted),
        cmocka_unit_test(any_bytes_are_lines_or_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
