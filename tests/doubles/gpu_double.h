/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test can ask of the doubles of GPU vendors' libraries. */
#ifndef WEFT_GPU_DOUBLE_H
#define WEFT_GPU_DOUBLE_H

/* The bytes behind an address that only a GPU's calls may name. */
char *gpu_view(char *address);

#endif
