/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs all checks and prints what they found. */
#include "host/checks.h"

#include <string.h>
#include <unistd.h>

bool check_run(const struct check *check, const struct host_state *state, struct finding *finding)
{
    *finding = (struct finding){.hint = check->hint};
    return check->run(state, finding);
}

/* Root needs no sudo, and containers often have none. */
static void remove_sudo(char *fix)
{
    char *at;
    while (geteuid() == 0 && (at = strstr(fix, "sudo ")))
        memmove(at, at + strlen("sudo "), strlen(at + strlen("sudo ")) + 1);
}

static void print_finding(const struct check *check, struct finding *finding,
                          struct printer *printer)
{
    static const char *const severities[] = {"warning", "hint"};
    const char *severity = severities[finding->hint];
    struct json *json = &printer->json;
    remove_sudo(finding->fix);
    if (printer->format != PRINT_JSON) {
        fprintf(printer->out, "  %s%-7s%s  %s\n           %s\n           fix: %s\n",
                text_style(printer->out, TEXT_DOUBT), severity,
                text_style(printer->out, TEXT_PLAIN), finding->what, check->why, finding->fix);
        return;
    }
    json_open(json, NULL, '{');
    json_text(json, "check", check->name);
    json_text(json, "severity", severity);
    json_text(json, "what", finding->what);
    json_text(json, "why", check->why);
    json_text(json, "fix", finding->fix);
    json_close(json, '}');
}

static int print_findings(const struct host_state *state, struct printer *printer, bool hints)
{
    static const struct check *const lists[] = {checks_cpu, checks_memory};
    int count = 0;
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct check *check = lists[i]; check->name; check++) {
            struct finding finding;
            if (!check_run(check, state, &finding) || finding.hint != hints)
                continue;
            print_finding(check, &finding, printer);
            count++;
        }
    return count;
}

void checks_section(const struct host_state *state, struct printer *printer)
{
    print_section(printer, "What will distort results", "findings", '[');
    int count = print_findings(state, printer, false);
    count += print_findings(state, printer, true);
    if (!count && printer->format == PRINT_TEXT)
        print_value(printer, "", "nothing found");
    print_section_end(printer, ']');
}
