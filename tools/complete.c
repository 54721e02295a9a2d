/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the completion of a tool for a shell, when Weft is built; not installed. */
#include "tool/tool.h"

int main(int argc, char **argv)
{
    return complete_main(argc, argv);
}
