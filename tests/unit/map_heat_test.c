/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps as text: tiles, colours, tables, and names that others chose. */
#include "map/map.h"
#include "support/unit.h"

#include <stdlib.h>

static struct map_cells cells;

/* All pairs at 2 us, those of the last node at 3 us; two of them are missing. */
static void fill(uint32_t nodes)
{
    cells = (struct map_cells){.nodes = nodes};
    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = a + 1; b < nodes; b++) {
            float us = b == nodes - 1 ? 3 : 2;
            struct map_cell cell = {a, b, 1, us, us * 2, us * 4, 100, 0};
            if (!(a == 0 && b == 1))
                assert_int_equal(map_cells_add(&cells, &cell), 0);
        }
}

static char *draw(struct map_heat heat)
{
    static char *text;
    static size_t length;
    FILE *out = open_memstream(&text, &length);
    heat.cells = &cells;
    assert_int_equal(map_heat(&heat, out), 0);
    fclose(out);
    map_cells_free(&cells);
    return text;
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void a_pipe_gets_a_table(void **state)
{
    (void)state;
    static const char *const names[] = {"n0", "n1", "n2"};
    fill(3);
    char *text = draw((struct map_heat){.columns = 80, .names = names});
    assert_string_equal(text, "p50[us]            n0       n1       n2\n"
                              "n0                  -        -     3.00\n"
                              "n1                  -        -     3.00\n"
                              "n2               3.00     3.00        -\n"
                              "p50 3.00 us to 3.30 us\n");
    free(text);
    fill(3);
    text = draw((struct map_heat){.columns = 80, .order = (uint32_t[]){2, 0, 1}});
    assert_string_equal(text, "p50[us]             2        0        1\n"
                              "2                   -     3.00     3.00\n"
                              "0                3.00        -        -\n"
                              "1                3.00        -        -\n"
                              "p50 3.00 us to 3.30 us\n");
    free(text);
}

static void a_terminal_gets_half_blocks(void **state)
{
    (void)state;
    fill(5);
    char *text = draw((struct map_heat){.columns = 80, .colour = true, .metric = MAP_P99});
    /* Three lines for five nodes, the slow node in red, the others in blue. */
    assert_int_equal(occurrences(text, "\n"), 4);
    /* The nodes of the lower rows are named after them. */
    assert_contains(text, "\033[0m 1\n");
    assert_contains(text, "\033[0m 3\n");
    assert_int_equal(occurrences(text, "\033[0m\n"), 1);
    assert_contains(text, "38;5;17;48;5;17m\u2580");
    assert_int_equal(occurrences(text, "38;5;196"), 6);
    assert_contains(text, "\033[0m ");
    assert_contains(text, "\u2584");
    assert_contains(text, "p99 4.00 us ");
    free(text);
}

static void many_nodes_share_tiles(void **state)
{
    (void)state;
    fill(100);
    char *text = draw((struct map_heat){.columns = 74, .colour = true});
    assert_int_equal(occurrences(text, "\n"), 26);
    /* One slow node of two in a tile is seen: 49 tiles of its row, 49 of its column, its own. */
    assert_true(occurrences(text, "38;5;196") + occurrences(text, "48;5;196m\u2580") >= 99);
    assert_contains(text, "upper quartile of 2 nodes per tile");
    free(text);
    fill(100);
    text = draw((struct map_heat){.columns = 0});
    assert_int_equal(occurrences(text, "\n"), 3);
    free(text);
}

static void names_of_others_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"\033[31mred", "a\nb", "a name that is far too long \xff"};
    fill(3);
    char *text = draw((struct map_heat){.columns = 80, .names = names});
    assert_null(strchr(text, 27));
    assert_int_equal(occurrences(text, "\n"), 5);
    assert_null(strstr(text, "too long"));
    free(text);
}

static void nothing_measured_is_nothing_drawn(void **state)
{
    (void)state;
    cells = (struct map_cells){.nodes = 3};
    char *text = draw((struct map_heat){.columns = 80});
    assert_string_equal(text, "");
    free(text);
}

static void nodes_stand_by_group_and_effect(void **state)
{
    (void)state;
    uint32_t order[12], groups[12], place[12];
    struct map_model model;
    fill(12);
    for (uint32_t i = 0; i < 12; i++)
        groups[i] = i % 2;
    assert_int_equal(map_fit(&model, &cells, MAP_P50, groups, 2, 0.05), 0);
    assert_int_equal(map_order(&model, order), 0);
    for (uint32_t i = 0; i < 12; i++) {
        place[order[i]] = i;
        assert_int_equal(groups[order[i]], i / 6);
    }
    assert_int_equal(place[11], 11);
    map_model_free(&model);
    map_cells_free(&cells);
    fill(12);
    char *text = draw((struct map_heat){.columns = 200, .order = order});
    /* The slow node is the last row, before the legend. */
    const char *row = strstr(text, "\n11 ");
    assert_non_null(row);
    assert_int_equal(occurrences(row, "\n"), 3);
    assert_int_equal(occurrences(row, "     3.00"), 11);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_a_table),
        cmocka_unit_test(a_terminal_gets_half_blocks),
        cmocka_unit_test(many_nodes_share_tiles),
        cmocka_unit_test(names_of_others_do_no_harm),
        cmocka_unit_test(nothing_measured_is_nothing_drawn),
        cmocka_unit_test(nodes_stand_by_group_and_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
