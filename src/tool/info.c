/* SPDX-License-Identifier: BSD-3-Clause */
/* weft info: the command line of what host knows about a machine. */
#include "host/host.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <stdlib.h>

static int save_json(struct host_state *state, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for the JSON document");
    host_print_json(state, out);
    int status = fclose(out) ? fail(-ENOMEM, "no memory for the JSON document") : 0;
    if (!status)
        status = weft_save(path, bytes, length);
    free(bytes);
    return status;
}

int info_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    static struct host_state state = {.root = ""};
    const char *places[argc];
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given)
        return fail(-EINVAL, "unexpected argument \"%s\" (--help shows the usage)", places[0]);
    if (*options.json && (status = save_check(options.json)))
        return status;
    state.verbose = options.verbose;
    host_look(&state);
    if (*options.json)
        return save_json(&state, options.json);
    host_print_text(&state, stdout);
    return shell_flush("the results");
}
