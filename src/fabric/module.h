/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside fabric: fabrics that are loaded when asked for. */
#ifndef WEFT_FABRIC_MODULE_H
#define WEFT_FABRIC_MODULE_H

#include "fabric/fabric.h"

#include <signal.h>

/* What every signal does, to be put back after a vendor's library had its way. */
struct signals {
    struct sigaction actions[NSIG];
};
void signals_keep(struct signals *kept);
void signals_restore(const struct signals *kept);

/* Is there a weft-NAME.so? Loads nothing. */
bool module_exists(const char *name);

/* Loads it, once; NULL and a sentence if it cannot be. It stays loaded for good. */
const struct fabric_ops *module_load(const char *name);

#endif
