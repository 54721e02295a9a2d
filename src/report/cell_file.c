/* SPDX-License-Identifier: BSD-3-Clause */
/* The cells of a map as they come in: a line each, in the file itself, so that whatever ends the
 * leader, what was measured before is there. */
#include "report/maps.h"
#include "report/place.h"

#include <errno.h>
#include <string.h>

/* Once writing has failed, the map goes on without. */
static int put_out(struct cell_file *f)
{
    if (!fflush(f->out) && !ferror(f->out))
        return 0;
    f->status = place_fail(f->path);
    snprintf(f->why, sizeof f->why, "%s", fail_reason());
    fclose(f->out);
    f->out = NULL;
    return f->status;
}

int cell_file_open(struct cell_file *f, const struct map_record *r, const char *path)
{
    *f = (struct cell_file){.path = strcmp(path, "-") ? path : "standard output"};
    int status = *path ? save_open(path, &f->out) : 0;
    if (status || !f->out)
        return status;
    errno = 0;
    fputs("# weft-cells 1: stage a b round count min_us p50_us p99_us max_us\n", f->out);
    for (uint32_t i = 0; i < r->nodes; i++)
        fprintf(f->out, "# node %u %s\n", i, r->names[i]);
    return put_out(f);
}

void cell_file_write(struct cell_file *f, const struct map_record *r)
{
    const struct map_cells *stages[] = {&r->first, &r->second, &r->third};
    if (!f->out)
        return;
    errno = 0;
    for (size_t stage = 0; stage < LENGTH(stages); stage++)
        for (size_t *i = &f->written[stage]; *i < stages[stage]->count; ++*i) {
            const struct map_cell *c = &stages[stage]->all[*i];
            fprintf(f->out, "%zu %u %u %u %u %.6g %.6g %.6g %.6g\n", stage + 1, c->a, c->b,
                    c->round, c->count, (double)c->min_us, (double)c->p50_us, (double)c->p99_us,
                    (double)c->max_us);
        }
    put_out(f);
}

int cell_file_close(struct cell_file *f)
{
    errno = 0;
    int status = f->out && fclose(f->out) ? place_fail(f->path) : 0;
    f->out = NULL;
    return f->status ? fail(f->status, "%s", f->why) : status;
}
