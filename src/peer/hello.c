/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a TCP connection. Both ends send a nonce, the client first. If they
 * hold a secret, each direction gets a key of its own from it and from both nonces, and every frame
 * a code over its number, head and content: nothing can be changed, repeated, reordered or sent
 * back unnoticed. What is said before that is not trusted. */
#include "peer/channel.h"

#include <errno.h>
#include <string.h>

static const char *const labels[] = {"weft client", "weft server"}; /* by the sender's rank */
static const char required[] = "secret required", wrong[] = "wrong secret";

static int send_nonce(struct channel *c)
{
    struct msg msg;
    int status = msg_print(&msg, "nonce=%s\nsecret=%d\n", c->nonce, c->secret != NULL);
    if (!status && c->ticket)
        status = msg_add(&msg, "ticket=%s\nnumber=%u\n", c->ticket->text, c->ticket->number);
    return status ? status : channel_frame(c, FRAME_NONCE, msg.bytes, msg.length);
}

int hello_begin(struct channel *c, const struct secret *secret)
{
    c->hello = true;
    c->secret = secret;
    int status = random_digits(c->nonce, sizeof c->nonce);
    return status || c->peer.rank == PEER_SERVER ? status : send_nonce(c);
}

/* ---- keys ---- */

static void derive(struct seal *seal, const struct channel *c, int sender, const char *theirs)
{
    bool client = c->peer.rank == PEER_CLIENT;
    const unsigned char version = PROTOCOL;
    struct hmac hmac;
    hmac_begin(&hmac, c->secret->bytes, sizeof c->secret->bytes);
    hmac_add(&hmac, labels[sender], strlen(labels[sender]));
    hmac_add(&hmac, &version, sizeof version);
    hmac_add(&hmac, client ? c->nonce : theirs, NONCE_ROOM - 1);
    hmac_add(&hmac, client ? theirs : c->nonce, NONCE_ROOM - 1);
    hmac_end(&hmac, seal->key);
    seal->on = true;
}

/* ---- hello ---- */

static int read_nonce(const struct channel *c, const struct msg *msg, char nonce[NONCE_ROOM],
                      bool *secret)
{
    uint64_t holds = 0;
    if (msg_value(msg, "nonce", nonce, NONCE_ROOM) || msg_number(msg, "secret", &holds) ||
        strspn(nonce, "0123456789abcdef") != NONCE_ROOM - 1 || holds > 1)
        return fail(-EPROTO, "the %s's nonce cannot be read", c->peer.other);
    *secret = holds;
    return 0;
}

/* One end has a secret and the other has none: it does not go on. */
static int unequal(const struct channel *c)
{
    if (c->peer.rank == PEER_SERVER)
        return fail(-EACCES, "it has no secret, and one is required");
    if (!c->secret)
        return hello_refused(c, required, strlen(required));
    return fail(-EACCES, "the server has no secret: start it with this end's, or leave that out");
}

int hello_ready(struct channel *c)
{
    char theirs[NONCE_ROOM];
    struct msg msg;
    bool holds = false;
    int status = c->hello ? channel_ready(c, FRAME_NONCE) : 1;
    if (status != 1 || !c->hello)
        return status;
    channel_take(c, &msg);
    status = read_nonce(c, &msg, theirs, &holds);
    /* A server without a secret answers: its client decides. */
    bool server = c->peer.rank == PEER_SERVER;
    if (!status && holds != (c->secret != NULL) && (!server || c->secret))
        status = unequal(c);
    if (!status && server)
        status = send_nonce(c);
    if (status)
        return status;
    if (c->secret && holds) {
        derive(server ? &c->ours : &c->theirs, c, PEER_SERVER, theirs);
        derive(server ? &c->theirs : &c->ours, c, PEER_CLIENT, theirs);
    }
    c->secret = NULL;
    c->hello = false;
    return 1;
}

void hello_refuse(struct channel *c)
{
    const struct kept kept = life_keep();
    const char *words = c->theirs.on ? wrong : required;
    channel_frame(c, FRAME_REFUSAL, words, strlen(words));
    life_restore(&kept);
}

int hello_refused(const struct channel *c, const char *words, size_t length)
{
    if (length == strlen(required) && memcmp(words, required, length) == 0)
        return fail(-EACCES, "the %s requires a secret: name its file in WEFT_SECRET",
                    c->peer.other);
    if (length == strlen(wrong) && memcmp(words, wrong, length) == 0)
        return fail(-EACCES, "the %s holds another secret than this end", c->peer.other);
    return fail(-EPROTO, "the %s's refusal cannot be read", c->peer.other);
}

/* ---- codes ---- */

/* Until the server has shown the secret it may still refuse. */
bool hello_sealed(const struct channel *c, char kind)
{
    bool refusal = kind == FRAME_REFUSAL && c->peer.rank == PEER_CLIENT && !c->theirs.count;
    return c->theirs.on && !refusal;
}

static void make_code(const struct seal *seal, const char *frame, size_t length,
                      unsigned char code[FRAME_CODE])
{
    unsigned char number[8];
    struct hmac hmac;
    for (int i = 0; i < 8; i++)
        number[i] = (unsigned char)(seal->count >> (56 - 8 * i));
    hmac_begin(&hmac, seal->key, sizeof seal->key);
    hmac_add(&hmac, number, sizeof number);
    hmac_add(&hmac, frame, length);
    hmac_end(&hmac, code);
}

void hello_seal(struct channel *c, const char *frame, size_t length, unsigned char code[FRAME_CODE])
{
    make_code(&c->ours, frame, length, code);
    c->ours.count++;
}

int hello_check(struct channel *c, const char *frame, size_t length)
{
    unsigned char code[FRAME_CODE];
    make_code(&c->theirs, frame, length, code);
    if (bytes_equal(code, frame + length, sizeof code)) {
        c->theirs.count++;
        c->peer.trusted = true;
        return 0;
    }
    if (c->theirs.count)
        return fail(-EPROTO, "a message of the %s was changed, repeated or reordered on its way",
                    c->peer.other);
    return c->peer.rank == PEER_SERVER
               ? fail(-EACCES, "it holds another secret")
               : fail(-EACCES, "the server did not show that it holds the secret");
}
