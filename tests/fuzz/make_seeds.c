/* SPDX-License-Identifier: BSD-3-Clause */
/* make_seeds FOLDER: seeds of which every row counts, so that none is out of date: specs as they
 * are sent, proposals, and the answers to them. */
#include "fuzz/agree.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The byte first, if there is one; texts, of which the second may be NULL, with a NUL between. */
static int put(const char *folder, const char *target, const char *name, int first,
               const struct msg *text, const struct msg *second)
{
    char path[PATH_MAX];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return fail(-errno, "%s: %s", path, strerror(errno));
    if (first >= 0)
        fputc(first, file);
    fwrite(text->bytes, 1, text->length, file);
    if (second) {
        fputc('\0', file);
        fwrite(second->bytes, 1, second->length, file);
    }
    return fclose(file) ? fail(-EIO, "%s cannot be written", path) : 0;
}

/* A proposal, and the answer that it gets. */
static int agree(const char *folder, const char *name, const struct spec *spec, unsigned what)
{
    struct session client, server;
    struct offer mine, theirs;
    struct spec own;
    struct msg asked = {0}, proposal = {0}, answer = {0};
    char answered[80];
    spec_defaults(&own);
    int status = agree_open(&client, &mine, what | AS_CLIENT);
    if (status)
        return status;
    status = agree_open(&server, &theirs, what);
    if (status) {
        agree_close(&client);
        return status;
    }
    status = session_propose(&client, &mine, spec, &proposal);
    if (!status)
        status = session_accept(&server, &theirs, &proposal, &own, false, &answer);
    if (!status)
        status = put(folder, "agree", name, (int)what, &proposal, NULL);
    if (!status)
        status = spec_encode(spec, &asked);
    snprintf(answered, sizeof answered, "%s_answer", name);
    if (!status)
        status = put(folder, "agree", answered, (int)(what | AS_CLIENT), &asked, &answer);
    agree_close(&client);
    agree_close(&server);
    return status;
}

int main(int argc, char **argv)
{
    int status = argc == 2 ? 0 : fail(-EINVAL, "usage: make_seeds FOLDER");
    for (int op = 0; op_names[op] && !status; op++)
        for (int method = 0; method_names[method] && !status; method++) {
            struct spec spec;
            struct msg text = {0};
            char name[64];
            spec_defaults(&spec);
            spec.op = op + 1;
            spec.method = method + 1;
            spec_settle(&spec);
            if (spec_check(&spec))
                continue;
            snprintf(name, sizeof name, "%s_%s", op_names[op], method_names[method]);
            status = spec_encode(&spec, &text);
            if (!status)
                status = put(argv[1], "options", name, -1, &text, NULL);
            for (unsigned device = 0; device < LENGTH(agree_devices) && !status; device++) {
                snprintf(name, sizeof name, "%s_%s_%u", op_names[op], method_names[method], device);
                if (agree(argv[1], name, &spec, device << DEVICE_BIT))
                    printf("%s: %s\n", name, fail_reason());
            }
        }
    if (status)
        fprintf(stderr, "make_seeds: %s\n", fail_reason());
    return status ? 1 : 0;
}
