/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: the tree of a group. Places are numbered as members come, the root's is 0; the
 * parent of place p is (p - 1) / FANOUT. A member whose parent is lost dials the root. */
#ifndef WEFT_PEER_TREE_H
#define WEFT_PEER_TREE_H

#include "peer/channel.h"
#include "peer/group.h"
#include "peer/wire.h"

#define GROUP_DOWN_MAX                                                                             \
    ((size_t)GROUP_ANSWER_MAX + ((size_t)1 << 25)) /* members and deaths, too                      \
                                                    */

enum {
    FANOUT = 16,
    GREETING_ROOM = 256, /* connections that have not yet greeted */
    EARLY_MAX = 64,      /* pairs that wait for this member */
    LEVELS = 6,          /* of a tree, at most */
    NOBODY = UINT32_MAX
};

/* What everybody knows of a rank. */
struct member {
    char address[GROUP_PLACE]; /* "": that of the root */
    unsigned port;
    char node[GROUP_NAME], label[GROUP_NAME];
    uint32_t place; /* NOBODY: it did not come */
    bool dead;
    bool got;              /* in this turn its value is here, or the reason why there is none */
    uint64_t uncovered_ms; /* root: since when no link leads to it; 0: one does */
};

/* A connection to a child. */
struct link {
    struct channel *channel;
    uint32_t rank;
    bool have; /* its message of this turn is complete */
    uint64_t turn;
    struct bytes in;
};

/* A partner that came before it was asked for. */
struct early {
    struct peer *peer;
    uint32_t rank;
    uint64_t ticket;
};

struct group {
    struct group_spec spec;
    struct peer_terms terms;
    struct listener *listener;
    char root_address[256]; /* at which this member has found it */
    unsigned root_port;
    uint32_t count, came;   /* members, the root among them; those that have a place */
    uint32_t place;         /* of this one */
    struct member *members; /* by rank, count of them */
    uint32_t *rank_at;      /* by place */
    struct channel *parent; /* NULL: the root, or lost */
    bool adopted;           /* the root is the parent */
    struct bytes from_parent;
    uint64_t parent_turn;
    struct link *links;
    uint32_t links_count, links_room;
    bool started;  /* the table is known */
    bool settled;  /* all children that come have come */
    bool collects; /* this turn waits for the children's messages */
    bool sent;     /* and has sent its own */
    bool arrived;  /* the parent's is complete, in from_parent */
    bool answered; /* the root: the answer of this turn is in down */
    uint64_t turn, began_ms, allow_ms;
    uint64_t patience_ms; /* for ranks that live; 0: allow_ms */
    uint64_t attended_ms; /* when this one showed last that it lives, between turns */
    uint32_t round;
    struct bytes up, losses, down; /* of this turn; losses wait for the next message up */
    struct group_value *values;    /* root: by rank */
    struct bytes all;              /* group_table's */
    struct group_death *deaths;
    uint32_t deaths_count, deaths_told;
    struct parting {
        struct channel *channel;
    } * parting; /* nothing is awaited from them but that they close */
    uint32_t parting_count, parting_room;
    struct early early[EARLY_MAX];
    unsigned early_count;
};

/* How long a turn may last, besides the time for the tree itself. */
static inline uint64_t turn_most_ms(const struct group *group)
{
    return group->patience_ms > group->allow_ms ? group->patience_ms : group->allow_ms;
}

/* ---- tree.c ---- */

/* Looks at every connection, once, after sleeping until one has something, or for a moment. */
int tree_pump(struct group *group);
/* A new child, or an orphan at the root. Takes the channel over. */
void tree_attach(struct group *group, struct channel *channel, const struct msg *greeting);
/* Root: strikes a rank. */
int tree_strike(struct group *group, uint32_t rank, const char *reason);
/* Takes in the complete message of a child. */
int tree_take(struct group *group, struct link *link);
/* Sends the bytes to all children, the lost among them noticed. */
void tree_down(struct group *group);
/* Sends this turn's message to the parent. */
int tree_up(struct group *group);
/* Waits for the parent's, into down. A parent lost on the way is replaced by the root. */
int tree_await(struct group *group, uint64_t most_ms);
/* Have all children of this member attached? Root and others, once the table is known. */
bool tree_attached(const struct group *group);
struct link *tree_link(const struct group *group, uint32_t rank);
/* A child that did not attach. */
int tree_miss(struct group *group);

/* Takes the channel over and closes it once the other end has, or has been silent: closed before,
 * it would lose what was sent. why: the final message; NULL: there is none. */
void tree_part(struct group *group, struct channel *channel, const char *why);

/* ---- turn.c ---- */

/* Root: the table goes down. */
int turn_start(struct group *group);
/* Takes in what the root sent: members, deaths. */
int turn_learn(struct group *group);

/* ---- group.c ---- */

/* One connection that has greeted, to whom it concerns. */
int group_greet(struct group *group);
/* Dials the root with a question; an answer follows unless it is NULL. */
int group_ask_root(struct group *group, const struct msg *question, uint64_t wait_ms,
                   struct msg *answer, struct channel **channel);

#endif
