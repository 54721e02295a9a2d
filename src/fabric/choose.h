/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of fabric: which fabrics there are, and which one a run uses. */
#ifndef WEFT_CHOOSE_H
#define WEFT_CHOOSE_H

#include "fabric/fabric.h"

enum { FABRIC_DEVICE_MAX = 128 };

struct fabric_choice {
    const struct fabric_ops *ops;
    char device[FABRIC_DEVICE_MAX]; /* what follows the prefix */
    bool named;                     /* the user named the fabric */
};

/* From a device as typed: "soft:cxi1", "null:delay=2us", or a bare device, which is looked for on
 * the fabrics in order. -ENODEV and a sentence that lists what there is. */
int fabric_choose(const char *text, struct fabric_choice *choice);

/* The fabrics that may be there, those that are built in first; NULL after the last. */
const char *fabric_name(size_t number);
bool fabric_built_in(const char *name);

/* Does it begin with the name of a fabric that is built in or can be loaded? */
bool fabric_named(const char *text);

/* " (did you mean soft?)", if a fabric or a device of soft is nearly called so; otherwise "". */
void fabric_guess(const char *text, char *words, size_t room);

/* Is it one of the fabrics of fabrics.def? Any other module is loaded only for the user who named
 * it. */
bool fabric_ours(const char *text);

/* Does the fabric of this device text protect the memory of a target: does it check key, bounds and
 * rights of all that an initiator sends? By fabrics.def: what is not listed there does not. */
bool fabric_guarded(const char *text);

/* All of them: "soft, null, ofi:tcp". */
void fabric_guarded_names(char *text, size_t room);

/* Does the device text name a network interface of this machine, and not the one with the address
 * here? carrier gets the name of that one, or "". */
bool fabric_elsewhere(const char *text, const char *here, char *carrier, size_t room);

/* Says every device of every fabric there is, "soft:cxi0". */
void fabric_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Is there a CXI device of that name on this machine? Looks, loads nothing. */
bool fabric_real_cxi(const char *device);

/* What this end is and has, as lines that begin with a full stop: its machine and network, which
 * modules, and whether the bare device (or NULL) is a real CXI device. Added to the text. */
int fabric_describe(const char *device, struct msg *text);

/* Are the ends that two such texts describe on one machine, maybe in two networks of it? */
bool fabric_one_machine(const struct msg *mine, const struct msg *theirs);

/* Where neither end names a fabric: what to choose here, from two such texts; both ends come to the
 * same. With a bare device: a real CXI device, through libcxi if both ends have
 * that, else through libfabric; else soft on one machine, else libfabric over TCP;
 * without one: soft, else libfabric over TCP, or UCX over TCP if the ends trust each other. why is
 * "" or says more than that. */
int fabric_between(const struct msg *mine, const struct msg *theirs, const char *device,
                   bool trusted, char *text, size_t room, const char **why);

/* Removes the segments of UCX and libfabric in this folder, /dev/shm, that belong to this user and
 * that no process has open or mapped. */
void fabric_sweep(const char *place);

/* Opens a fabric; for a module, what killed processes have left is removed before. Vendors'
 * libraries take signals over when they are opened: every handler is put back. */
int fabric_open(const struct fabric_ops *ops, struct fabric **fabric,
                const struct fabric_want *want, struct fabric_facts *facts);

/* Can it be opened at all, with this service, and what could it do, with memory of these GPUs?
 * Opens and closes it. */
int fabric_try(const struct fabric_choice *choice, uint64_t service, unsigned gpus,
               struct fabric_facts *facts);

/* A built-in fabric, or weft-NAME.so from WEFT_MODULE_PATH, from beside the tools, or from the
 * installed module folder. NULL, and a sentence, if there is none. */
const struct fabric_ops *fabric_find(const char *name);

/* The names of verbs and hints, for sentences. */
const char *fabric_verb_name(enum verb verb);
extern const char *const fabric_layout_names[]; /* ends with NULL */

#endif
