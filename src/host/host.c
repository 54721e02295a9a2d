/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole picture of a machine, section by section. Noise is measured after the fabrics were
 * asked, so that their child processes have exited. */
#include "host/host.h"
#include "core/cpu.h"
#include "host/checks.h"
#include "host/sections.h"

void host_look(struct host_state *state)
{
    static const enum clock_kind kinds[] = {CLOCK_GETTIME, CLOCK_CYCLES};
    machine_look(&state->machine, state->root);
    topology_look(&state->topology, state->root);
    state->usable = cpu_pair(state->pair);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct host_clock *clock = &state->clocks[kinds[i]];
        clock->available = !clock_open(&clock->clock, kinds[i]);
    }
}

static void print_all(struct host_state *state, struct printer *printer)
{
    if (printer->format == PRINT_JSON) {
        typed_section(state, &printer->json);
    } else {
        machine_section(state, printer);
        caches_section(state, printer);
        clocks_section(state, printer);
        memory_section(state, printer);
    }
    gpus_section(state, printer);
    network_section(state, printer);
    cxi_section(state, printer);
    fabrics_section(state, printer);
    noise_measure(&state->noise, state->pair, state->usable);
    noise_section(state, printer);
    checks_section(state, printer);
}

void host_print_text(struct host_state *state, FILE *out)
{
    print_all(state, &(struct printer){.format = PRINT_TEXT, .out = out});
}

void host_print_json(struct host_state *state, FILE *out)
{
    struct printer printer = {.format = PRINT_JSON, .out = out, .json = {.out = out, .lines = 2}};
    json_open(&printer.json, NULL, '{');
    json_text(&printer.json, "schema", "weft-info");
    json_count(&printer.json, "version", 3);
    json_text(&printer.json, "weft", core_version());
    json_text(&printer.json, "commit", core_commit());
    print_all(state, &printer);
    json_close(&printer.json, '}');
    fputc('\n', out);
}
