/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside ofi: tagged messages of the caller. They are libfabric's own, in a class of their own
 * below the bits that tell our classes apart. */
#ifndef WEFT_FABRIC_OFI_TAG_H
#define WEFT_FABRIC_OFI_TAG_H

#include "fabric/ofi/ofi.h"

/* A posted receive. */
struct weft_ofi_tagged {
    struct weft_ofi_context context;
    struct weft_ofi_tagged *next; /* that is free */
    struct region *region;
    char *to;
    char *own; /* WEFT_OFI_TAGGED bytes: what comes is copied from there, or says where it is */
    uint64_t id, tag, length;
    size_t room;
    uint64_t pull; /* which of the sender's slots, to be told when it is pulled */
    bool posted;   /* the provider has it */
    bool waits;    /* for its pull to begin */
};

/* What stands in a message whose bytes are to be pulled. */
struct weft_ofi_from {
    uint64_t entry, at, length;
};

struct weft_ofi_tags {
    struct weft_ofi_tagged receives[WEFT_OFI_RECEIVES];
    struct weft_ofi_tagged *free;
    uint32_t
        owed[WEFT_OFI_SLOTS]; /* synchronous sends of theirs that we have, and are yet to say */
    uint64_t owed_head, owed_tail;
    struct {
        struct weft_ofi_context context;
        uint64_t tag, mask;
        enum { PEEK_IDLE, PEEK_ASKED, PEEK_FOUND, PEEK_NONE } state;
    } peek;
};

int weft_ofi_tags_open(struct weft_ofi *ofi);
void weft_ofi_tags_leave(struct weft_ofi *ofi);

/* Takes back all receives that are posted: how many. */
int weft_ofi_tags_cancel(struct weft_ofi *ofi);

int weft_ofi_tsend(struct fabric *fabric, const struct xfer *x);
int weft_ofi_trecv(struct fabric *fabric, const struct xfer *x);
int weft_ofi_tprobe(struct fabric *fabric, const struct xfer *x);

/* A synchronous send: our buffer is free, or the other end has matched it. The caller of the second
 * completes it: true. */
bool weft_ofi_tag_left(struct weft_ofi_slot *slot);
/* The other end has matched the send in this slot. False: it makes no sense. */
bool weft_ofi_note_matched(struct weft_ofi *ofi, uint64_t slot);
/* What we are yet to say: 0 or why not. */
int weft_ofi_tell_matched(struct weft_ofi *ofi);

void weft_ofi_tagged_came(struct weft_ofi *ofi, struct weft_ofi_tagged *receive,
                          const struct fi_cq_tagged_entry *entry, int status);
void weft_ofi_peeked(struct weft_ofi *ofi, bool found);
/* A pull is done, or failed. */
void weft_ofi_tagged_pulled(struct weft_ofi *ofi, struct weft_ofi_tagged *receive, int status);
/* Begins those that wait. */
void weft_ofi_tagged_work(struct weft_ofi *ofi);

#endif
