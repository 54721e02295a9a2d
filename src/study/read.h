/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: reading the values of a document. Every function that reads a value checks it
 * against the schema first and fails with a sentence that names the file and the key. */
#ifndef WEFT_STUDY_READ_H
#define WEFT_STUDY_READ_H

#include "study/study.h"

#include <jansson.h>
#include <sys/stat.h>

/* Longest name of an object in sentences: "results[12].". */
enum { WHERE = 96 };

/* ---- memory (read_fields.c) ---- */

/* A heap of chunks that is freed as a whole. */
struct chunk;
void *chunk_alloc(struct chunk **chunks, size_t length);
void chunk_free(struct chunk *chunks);

struct reader {
    const char *path;     /* of the file, for sentences */
    int version;          /* of the schema */
    struct chunk *chunks; /* what is kept of the document */
};

/* Zeroed memory that lives as long as the run; NULL if there is none. */
void *reader_alloc(struct reader *r, size_t length);

/* A copy without control characters; NULL if there is no memory. */
const char *reader_text(struct reader *r, const char *text);

/* "FILE: WHERE.KEY WHAT", and -EINVAL. */
int reader_wrong(const struct reader *r, const char *where, const char *key, const char *what);
int reader_no_memory(const struct reader *r);

/* ---- documents (read.c) ---- */

/* Parses a document within the bounds of memory and gives it to take, which copies what is kept. */
int reader_parse(struct reader *r, const char *text, size_t length,
                 int (*take)(struct reader *r, json_t *root, void *into), void *into);

/* The bytes of a file, which the caller frees; regular: a pipe is refused. */
int reader_load(const char *path, bool regular, char **text, size_t *length, struct stat *facts);

/* For scandir: *.json that is not hidden (set.c). */
struct dirent;
int reader_is_document(const struct dirent *entry);

/* ---- objects, row by row (read_fields.c) ---- */

enum field_kind {
    TEXT,
    TEXT_OR_NULL,
    TIME,
    COUNT,
    POSITIVE,
    NUMBER,
    NUMBER_OR_NULL,
    NUMBER_IF_ANY,  /* older documents may lack it */
    SIGNED_OR_NULL, /* may be below 0 */
    PERCENT,
    FLAG
};

/* One key of an object; a table of them ends with a row without a key. */
struct field {
    const char *key;
    enum field_kind kind;
    size_t at;                /* offset of the member that takes the value */
    const char *const *words; /* the values a text may have; NULL: any */
};

/* Reads every row of an object into the struct at base. where names the object, with a dot at its
 * end; "" is the document itself. */
int read_object(struct reader *r, const json_t *object, const char *where,
                const struct field *fields, void *base);

/* The same for the object at a key of an object. */
int read_member(struct reader *r, const json_t *object, const char *where, const char *key,
                const struct field *fields, void *base);

/* Allocates *list for the items of a list, each of size bytes, and sets *count. */
int read_list(struct reader *r, const json_t *object, const char *where, const char *key,
              size_t size, void *list, size_t *count);

/* The same for a list of objects, which are read too. */
int read_objects(struct reader *r, const json_t *object, const char *where, const char *key,
                 const struct field *fields, size_t size, void *list, size_t *count);

/* The counters of a result, if it has any (read_counters.c). */
int read_counters(struct reader *r, const json_t *object, const char *where,
                  struct study_result *result);

/* ---- the document (read_run.c) ---- */

int read_run(struct reader *r, json_t *root, struct study_run *run);

/* The tool's command, quoted for a shell. */
int read_command(struct reader *r, const json_t *tool, struct study_run *run);

#endif
