/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of peer: a group, all ranks of one command. They stand in a tree whose root leads. All of
 * them take the same turns: each gives a value, the root gets all values and gives everybody an
 * answer. A rank that dies, stops or is cut off is struck, with the round and the reason, and the
 * others go on. Between turns nothing of the group runs but heartbeats: a rank measures
 * undisturbed. A group is used by one thread. Functions return 0 or -errno with a sentence. */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include "peer/peer.h"

enum {
    GROUP_RANKS_MAX = 1 << 16,
    GROUP_NAME = 64,           /* room for a node's name, and for the name of its group */
    GROUP_PLACE = 64,          /* room for a numeric address */
    GROUP_REASON = 160,        /* room for why a rank was struck */
    GROUP_VALUE_MAX = 1 << 19, /* bytes of a rank's value */
    GROUP_ANSWER_MAX = 1 << 26 /* bytes of the root's answer */
};

/* The root's look at processes that it has started. */
struct group_watch {
    void *arg;
    /* Has the process of this rank ended, or does it within wait_ms? With how. NULL: not known. */
    bool (*ended)(void *arg, uint32_t rank, uint64_t wait_ms, char reason[GROUP_REASON]);
};

/* What a member brings. All members have the same size, id, secret and timeout. */
struct group_spec {
    uint32_t rank, size;         /* rank == size: the root of a group that it does not measure in */
    bool root;                   /* it leads: exactly one does */
    const char *id;              /* of this group alone, for members that meet another one's port */
    const struct secret *secret; /* NULL: none; strangers can then take part */
    const char *bind;            /* address to listen on; NULL: the site's default, or all */
    unsigned port;               /* to listen on; 0: any */
    const char *node, *label;    /* of this rank's node, and the group that it is in; NULL: the
                                    host's name, no group */
    uint64_t timeout_ms;         /* silence that counts as death */
    uint64_t wait_ms;            /* for all ranks to come */
    const volatile sig_atomic_t *stop; /* not 0: give up with -EINTR; may be NULL */
    const char *nodes; /* root: the list of hosts, one rank on each; NULL: not known */
    struct group_watch watch;
};

struct group;

/* Listens. The strings and the secret of the spec must stay as long as the group. */
int group_open(struct group **group, const struct group_spec *spec);
/* The port that this member listens on. */
unsigned group_port(const struct group *group);
/* Finds the others: the root waits for them, a member dials the root at the first of the addresses,
 * separated by commas, at which it is found. Those that do not come within wait_ms are struck, and
 * those whose process has ended are at once. The root fails, with -ETIMEDOUT, if nobody comes. */
int group_join(struct group *group, const char *addresses, unsigned port);
/* Ends it at this member. status not 0: the others are told the last fail_reason(). Does nothing
 * for NULL. */
void group_leave(struct group *group, int status);

/* ---- who is there ---- */

uint32_t group_rank(const struct group *group);
uint32_t group_size(const struct group *group);
bool group_root(const struct group *group);
/* Does this member measure? Only a root may not. */
bool group_measures(const struct group *group);
/* The name of a rank's node, and of the group that it is in; "" if it did not come. */
const char *group_node(const struct group *group, uint32_t rank);
const char *group_label(const struct group *group, uint32_t rank);

/* The same for a rank that did not come, where the launcher knows it: at the root alone, because
 * the others do not learn it. */
void group_absent_node(const struct group *group, uint32_t rank, char node[GROUP_NAME]);

/* How many ranks are on this one's node. */
uint32_t group_here(const struct group *group);

/* Who was struck, in that order: everybody knows the same after a turn. */
struct group_death {
    uint32_t rank;
    uint32_t round; /* as the root said in that turn; 0 before the first */
    char reason[GROUP_REASON];
};
uint32_t group_deaths(const struct group *group);
const struct group_death *group_death(const struct group *group, uint32_t number);
bool group_alive(const struct group *group, uint32_t rank);

/* ---- turns ---- */

struct group_value {
    const void *bytes;
    size_t length;
};

/* The root's part of a turn: values by rank (bytes NULL: it is struck), size of them; fills the
 * answer, which must stay until the next turn. NULL: the answer is empty. */
typedef int (*group_decide)(void *arg, const struct group_value *values,
                            struct group_value *answer);

/* A turn: a barrier that carries values up and an answer down. allow_ms: the longest time that a
 * rank may be away between the last turn and this one, besides the timeout; the same at every
 * member, or nearly. round: for the deaths of this turn; the root's counts. answer: at every
 * member, until the next turn; may be NULL. decide is called at the root alone; if it fails, so
 * does the turn, everywhere. */
int group_turn(struct group *group, uint64_t allow_ms, uint32_t round,
               const struct group_value *mine, group_decide decide, void *arg,
               struct group_value *answer);

/* All values to all members: table has size entries, valid until the next turn. */
int group_table(struct group *group, uint64_t allow_ms, const struct group_value *mine,
                struct group_value *table);

/* How long a turn may last for ranks that show that they live, where that is longer than allow_ms:
 * the same at every member. 0: it is not. */
void group_patience(struct group *group, uint64_t most_ms);

/* ---- pairs ---- */

/* A connection between two ranks, for a session: an ordinary peer, which the caller closes. Both
 * call it, one as PEER_CLIENT and one as PEER_SERVER, with the same ticket (a number that no other
 * meeting of the two has), within wait_ms. -ETIMEDOUT, -ECONNREFUSED or -ECONNRESET: the other did
 * not come. Its timeout_ms is the group's. While a session looks at it, the group is shown that
 * this rank lives. */
int group_meet(struct group *group, uint32_t other, int as, uint64_t ticket, uint64_t wait_ms,
               struct peer **peer);

#endif
