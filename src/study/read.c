/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents read back. They come from outside: length, memory and depth are bounded, and every
 * value is checked against the schema before it is used. The parsed tree is freed at once, because
 * histograms are large in it. */
#include "study/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCHEMA_FIRST = 1, SCHEMA_LAST = 2, READ_FIRST = 1 << 16 };
static const size_t file_max = (size_t)256 << 20, memory_max = (size_t)1 << 30;

/* ---- the parsed tree ---- */

/* A short text can make a large tree, so the memory that jansson takes is bounded. The tree is
 * freed as a whole, not node by node. The hooks have no argument, hence the thread-local state. */
static _Thread_local struct {
    struct chunk *chunks;
    size_t left;
    bool exhausted;
} tree;

static void *tree_malloc(size_t length)
{
    tree.exhausted = tree.exhausted || length > tree.left;
    if (tree.exhausted)
        return NULL;
    tree.left -= length;
    return chunk_alloc(&tree.chunks, length);
}

static void tree_free(void *place)
{
    (void)place;
}

static json_t *tree_parse(const char *text, size_t length, json_error_t *error)
{
    tree.left = memory_max;
    tree.exhausted = false;
    json_set_alloc_funcs(tree_malloc, tree_free);
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
}

static void tree_drop(void)
{
    chunk_free(tree.chunks);
    tree.chunks = NULL;
}

/* ---- the document ---- */

static int check_schema(struct reader *r, const json_t *root)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *version = json_object_get(root, "version");
    if (schema && strcmp(schema, "weft-map") == 0)
        return fail(-EINVAL, "%s: a map, not a result: maps go with maps alone", r->path);
    if (!schema || strcmp(schema, "weft-result") != 0 || !json_is_integer(version))
        return fail(-EINVAL, "%s: not a result of a Weft tool", r->path);
    json_int_t number = json_integer_value(version);
    if (number < SCHEMA_FIRST || number > SCHEMA_LAST)
        return fail(-EINVAL,
                    "%s: schema version %" JSON_INTEGER_FORMAT ", this weft reads %d to %d",
                    r->path, number, SCHEMA_FIRST, SCHEMA_LAST);
    r->version = (int)number;
    return 0;
}

/* jansson's own sentence quotes the file, which must not reach a terminal. */
static int not_json(const struct reader *r, const json_error_t *error)
{
    static const struct {
        enum json_error_code code;
        const char *what;
    } reasons[] = {
        {json_error_premature_end_of_input, "is cut short"},
        {json_error_duplicate_key, "has a duplicate key"},
        {json_error_stack_overflow, "is nested too deeply"},
        {json_error_numeric_overflow, "has a number that is too large"},
        {json_error_invalid_utf8, "is not UTF-8"},
        {json_error_null_character, "has a NUL in a text"},
    };
    if (tree.exhausted)
        return fail(-EINVAL, "%s: needs more than the %zu MiB allowed for a result", r->path,
                    memory_max >> 20);
    for (size_t i = 0; i < LENGTH(reasons); i++)
        if (reasons[i].code == json_error_code(error))
            return fail(-EINVAL, "%s: line %d %s", r->path, error->line, reasons[i].what);
    return fail(-EINVAL, "%s: not JSON, at line %d, column %d", r->path, error->line,
                error->column);
}

int reader_parse(struct reader *r, const char *text, size_t length,
                 int (*take)(struct reader *r, json_t *root, void *into), void *into)
{
    json_error_t error;
    if (!length)
        return fail(-EINVAL, "%s: the file is empty", r->path);
    json_t *root = tree_parse(text, length, &error);
    int status = root ? take(r, root, into) : not_json(r, &error);
    tree_drop();
    return status;
}

static int take_run(struct reader *r, json_t *root, void *into)
{
    struct study_run *run = into;
    int status = check_schema(r, root);
    if (!status && !(run->path = reader_text(r, r->path)))
        status = reader_no_memory(r);
    return status ? status : read_run(r, root, run);
}

int study_parse(struct study_run *run, const char *path, const char *text, size_t length)
{
    struct reader r = {.path = path};
    *run = (struct study_run){0};
    int status = reader_parse(&r, text, length, take_run, run);
    run->own = r.chunks;
    if (status)
        study_free(run);
    return status;
}

void study_free(struct study_run *run)
{
    chunk_free(run->own);
    *run = (struct study_run){0};
}

static int too_long(const char *path, size_t length)
{
    char size[32], max[32];
    unit_bytes_text(length, size, sizeof size);
    unit_bytes_text(file_max, max, sizeof max);
    return fail(-EINVAL, "%s: the file has %s; the maximum is %s", path, size, max);
}

/* The length of a pipe is known only after it was read. */
static int read_stream(FILE *file, const char *path, char **text, size_t *length)
{
    size_t room = 0;
    *text = NULL;
    *length = 0;
    do {
        room = room ? 2 * room : READ_FIRST;
        if (room > file_max)
            room = file_max + 1;
        char *larger = realloc(*text, room);
        if (!larger)
            return fail(-ENOMEM, "%s: no memory", path);
        *text = larger;
        *length += fread(*text + *length, 1, room - *length, file);
    } while (*length == room && *length <= file_max);
    if (ferror(file))
        return fail(-EINVAL, "%s: %s", path, strerror(errno));
    if (*length > file_max)
        return fail(-EINVAL, "%s: longer than %zu MiB", path, file_max >> 20);
    return 0;
}

/* To open a pipe without a writer would wait for one. */
static FILE *open_document(const char *path, bool regular)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

int reader_load(const char *path, bool regular, char **text, size_t *length, struct stat *facts)
{
    FILE *file = open_document(path, regular);
    *text = NULL;
    if (!file)
        return fail(-EINVAL, "%s: %s", path, strerror(errno));
    int status = 0;
    if (fstat(fileno(file), facts))
        status = fail(-EINVAL, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(facts->st_mode))
        status = fail(-EINVAL, "%s: is a folder, not a file", path);
    else if (regular && !S_ISREG(facts->st_mode))
        status = fail(-EINVAL, "%s: is a pipe or a device, not a file", path);
    else if (facts->st_size > (off_t)file_max)
        status = too_long(path, (size_t)facts->st_size);
    if (!status)
        status = read_stream(file, path, text, length);
    fclose(file);
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}

int study_read(struct study_run *run, const char *path, bool regular)
{
    struct stat facts = {0};
    char *text;
    size_t length = 0;
    int status = reader_load(path, regular, &text, &length, &facts);
    if (!status)
        status = study_parse(run, path, text, length);
    free(text);
    if (status)
        return status;
    run->file[0] = facts.st_dev;
    run->file[1] = facts.st_ino;
    return 0;
}
