/* SPDX-License-Identifier: BSD-3-Clause */
/* The main of every tool in tools.def: meson compiles it once for each, with its name. */
#include "tool/tool.h"

int main(int argc, char **argv)
{
    return tool_main(TOOL_NAME, argc, argv);
}
