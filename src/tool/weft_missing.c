/* SPDX-License-Identifier: BSD-3-Clause */
/* In a build without jansson, in place of weft's commands: the list of tools names weft_main. */
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>

const struct opt weft_rows[] = {{0}};
OPT_FITS(weft_rows);

const struct command *weft_commands(size_t *count)
{
    *count = 0;
    return NULL;
}

int weft_main(int argc, char **argv);

int weft_main(int argc, char **argv)
{
    shell_open(argc, argv);
    int status = fail(-ENOTSUP, "this build has no weft: it was made without jansson");
    shell_say(fail_reason());
    return shell_exit_code(status);
}
