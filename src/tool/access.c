/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret and the networks, from options and environment to the terms of a connection. */
#include "tool/access.h"

#include <errno.h>
#include <stdlib.h>

static bool given(const struct opt_set *set, const char *name)
{
    return opt_origin(set, opt_find(set, name)) == OPT_BY_USER;
}

static int check_role(const struct opt_set *set, const struct role *role)
{
    static const char *const own[] = {"secret-file", "allow"};
    for (size_t i = 0; i < LENGTH(own) && role->local; i++)
        if (given(set, own[i]))
            return fail(-EINVAL,
                        "--%s is not for --local, whose two ends have a secret of their own",
                        own[i]);
    if (role->address && given(set, "allow"))
        return fail(-EINVAL, "--allow is for a server: leave out the address");
    return 0;
}

static int load_secret(struct access *a, const struct opt_set *set)
{
    const char *path = given(set, "secret-file") ? a->secret_file : secure_getenv("WEFT_SECRET");
    if (!path || (!*path && path != a->secret_file))
        return 0;
    /* An empty name is a script's mistake, not a wish for strangers. */
    if (!*path)
        return fail(-EINVAL, "--secret-file: the name is empty");
    a->held = true;
    return secret_read(&a->secret, path);
}

int access_open(struct access *a, const struct opt_set *set, const struct role *role)
{
    int status = check_role(set, role);
    if (!status && given(set, "allow")) {
        a->limited = true;
        status = allow_parse(&a->allow, a->allow_list, "--allow");
    }
    return status || role->local || role->member ? status : load_secret(a, set);
}

int access_renew(struct access *a)
{
    a->held = true;
    return secret_make(&a->secret);
}

void access_terms(const struct access *a, struct peer_terms *terms)
{
    terms->secret = a->held ? &a->secret : NULL;
    terms->allow = a->limited ? &a->allow : NULL;
}
