/* SPDX-License-Identifier: BSD-3-Clause */
/* A placeholder, to be replaced by the page. */
#include "study/study.h"

#include <errno.h>

int study_page(const struct study_run *runs, size_t count, FILE *out)
{
    (void)runs;
    if (fprintf(out, "<!DOCTYPE html>\n<title>%zu runs</title>\n", count) < 0)
        return fail(-EIO, "writing the page failed");
    return 0;
}
