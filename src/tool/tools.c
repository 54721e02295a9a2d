/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of tools, from tools.def. */
#include "tool/cxi.h"
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

#define CXI_TOOL(tool, words, what, how)
#define LOOPBACK_TOOL(tool, words, what, how)
#define TOOL(tool, main) int main(int argc, char **argv);
#include "tool/tools.def"
#undef CXI_TOOL
#undef LOOPBACK_TOOL
#undef TOOL

#define CXI_TOOL(tool, words, what, how)                                                           \
    {.name = #tool, .title = (words), .op = (what), .method = (how)},
#define LOOPBACK_TOOL(tool, words, what, how)                                                      \
    {.name = #tool, .title = (words), .op = (what), .method = (how), .alone = true},
#define TOOL(tool, main)
static const struct cxi_tool cxi_tools[] = {
#include "tool/tools.def"
};
#undef CXI_TOOL
#undef LOOPBACK_TOOL
#undef TOOL

#define CXI_TOOL(tool, words, what, how)
#define LOOPBACK_TOOL(tool, words, what, how)
#define TOOL(tool, main) {#tool, main},
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} tools[] = {
#include "tool/tools.def"
};
#undef CXI_TOOL
#undef LOOPBACK_TOOL
#undef TOOL

bool tool_serves(const char *name)
{
    for (size_t i = 0; i < LENGTH(cxi_tools); i++)
        if (strcmp(cxi_tools[i].name, name) == 0)
            return !cxi_tools[i].alone;
    for (size_t i = 0; i < LENGTH(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return tools[i].run != weft_main;
    return false;
}

const struct cxi_tool *cxi_tool_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(cxi_tools); i++)
        if (strcmp(cxi_tools[i].name, name) == 0)
            return &cxi_tools[i];
    return NULL;
}

int tool_main(const char *name, int argc, char **argv)
{
    const struct cxi_tool *cxi = cxi_tool_find(name);
    if (cxi)
        return cxi_main(cxi, argc, argv);
    for (size_t i = 0; i < LENGTH(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return tools[i].run(argc, argv);
    fprintf(stderr, "%s: no such tool in tools.def\n", name);
    return 1;
}
