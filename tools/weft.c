/* SPDX-License-Identifier: BSD-3-Clause */
/* weft: what is made of results, and of the machine. */
#include "tool/tool.h"

int main(int argc, char **argv)
{
    return weft_main(argc, argv);
}
