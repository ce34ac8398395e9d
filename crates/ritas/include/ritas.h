/* Bezant RITAS: broadcasts and agreement between n processes, of which f may be faulty in any way, n >= 3f + 1. No
 * leaders, no clocks, no signatures: nothing here depends on how fast the network is.
 *
 * The functions are those of section 4.3 of the thesis on RITAS (Moniz, 2007), and mean the same. What differs:
 *
 * - Lengths are size_t and identifiers uint64_t: a u_short ends at 65,535.
 * - Keys are pairs. The thesis has one secret for each two processes; here every process has a secret key, and all
 *   know the public ones. So a pair is made once, with ritas_keygen, and nobody else sees its secret half.
 * - Any number of threads may use a context. When it is destroyed, calls that wait fail with RITAS_CLOSED; so does
 *   every later call with it, for contexts are numbers that are never given twice. No function may be called in a
 *   signal handler, and no context be used in a process that was forked after ritas_init.
 * - The thesis has local coins only. Processes may toss a common one, whose keys somebody deals: ritas_coin_deal and
 *   ritas_set_coin. Then agreement takes a few rounds, whatever the network does. Shares of a coin are signatures.
 * - A multi-valued consensus that decides ⊥ says so: RITAS_BOTTOM.
 * - A buffer that is too short loses nothing: RITAS_TOO_SHORT. Call again with ritas_needed() bytes.
 * - Calls may have a time-out. One that has passed loses nothing either: call again, with the same identifier, and
 *   wait for the same result. What such a call proposes is not looked at.
 *
 * Identifiers of each kind, and of each broadcaster, begin at 0 and leave none out. All processes use the same one for
 * the same consensus. 64 of them may be under way, and 16 of vector consensuses: later ones wait for the first whose
 * result was not taken, of all that a process broadcasts too, itself included.
 *
 * A group lives in an epoch. It ends when a process has lost its memory: whoever crashed counts as one of the f until
 * all begin again in a later epoch. Never use an epoch twice: a process that begins again would contradict itself.
 *
 * A process that is destroyed answers nobody any more. It should be, when all the others have what they need.
 *
 * Functions return 1 or what is described if they succeed, and RITAS_FAILURE (-1) otherwise; then ritas_error()
 * says why. Null pointers are allowed where the length is 0. */
#ifndef RITAS_H
#define RITAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a key, secret or public. */
#define RITAS_KEY_SIZE 32

/* Bytes of a public key for common coins. Secrets have as many as those of other keys. */
#define RITAS_COIN_KEY_SIZE 96

/* Bytes of the longest message that ritas_init may write, with the zero at its end. */
#define RITAS_ERRBUF_SIZE 256

/* Processes of the largest group. */
#define RITAS_PROCESSES_MAX 32

/* Bytes of the longest message, proposal or broadcast. */
#define RITAS_MESSAGE_MAX 1048576

/* What a failed call returns; ritas_error says why. */
#define RITAS_FAILURE (-1)

/* What ritas_mvc returns when it decides ⊥: there is no value that enough processes have proposed. */
#define RITAS_BOTTOM (-2)

/* Links are encrypted (TLS 1.3). All processes of a group have the same setting. */
#define RITAS_TLS 0

/* Links are not encrypted. Messages have a MAC all the same. */
#define RITAS_PLAIN 1

/* A process in a group. Nothing is behind the pointer that a program could read. */
typedef struct ritas ritas_t;

/* What is known of a message of the atomic broadcast besides its bytes. */
typedef struct ritas_ab_header_t {
    /* Its place in the order, from 0: the same at all correct processes. */
    uint64_t number;
    /* The process that has sent it. */
    size_t sender;
} ritas_ab_header_t;

/* What a process has proposed to a vector consensus. */
typedef struct ritas_value_t {
    /* Where it begins, in the decision that was given to ritas_vector_extract; a null pointer if it is ⊥. */
    const uint8_t *data;
    /* How many bytes. */
    size_t length;
} ritas_value_t;

/* A decision vector. */
typedef struct ritas_vector_t {
    /* How many processes the group has. */
    size_t count;
    /* The value of each process, by its number; ⊥ above them. */
    ritas_value_t values[RITAS_PROCESSES_MAX];
} ritas_vector_t;

/* How a call ended. The numbers are part of the interface. */
enum ritas_code {
    /* It was done. */
    RITAS_OK = 0,
    /* An argument is wrong. Nothing was done. */
    RITAS_INVALID = 1,
    /* The context was destroyed, or never was one. */
    RITAS_CLOSED = 2,
    /* Not all n processes were added. */
    RITAS_INCOMPLETE = 3,
    /* Communication has begun: it is too late for this. */
    RITAS_BEGUN = 4,
    /* The system refuses a port, a thread, or randomness. */
    RITAS_SYSTEM = 5,
    /* Not in time. What was sent counts, and the same call may be made again to wait longer. */
    RITAS_TIMED_OUT = 6,
    /* The value is longer than RITAS_MESSAGE_MAX. Nothing was sent. */
    RITAS_TOO_LONG = 7,
    /* The result does not fit into the buffer. It is kept: ritas_needed says how many bytes the next call must have. */
    RITAS_TOO_SHORT = 8,
    /* The identifier was used before: each is good for one broadcast, one receipt or one consensus. */
    RITAS_USED = 9,
    /* The group has no such process. */
    RITAS_NO_MEMBER = 10,
    /* The others have gone on, and nobody keeps what this process misses. It can do no more in this epoch. */
    RITAS_LEFT_BEHIND = 11,
    /* A mistake in this library. */
    RITAS_INTERNAL = 12
};

/* Makes a key pair from the system's randomness. The secret half is for ritas_init of one process, and nobody else
 * may see it; the public one is for ritas_proc_add_ipv4 and ritas_proc_add_ipv6 of all. Returns 1. */
int ritas_keygen(uint8_t secret[RITAS_KEY_SIZE], uint8_t public_key[RITAS_KEY_SIZE]);

/* Deals a common coin to a group of n processes, of which f may be faulty, from the system's randomness. Writes n
 * secrets of RITAS_KEY_SIZE bytes, one after the other, by the number of their process: each is for ritas_set_coin of
 * that one, and nobody else may see it. Writes n public keys of RITAS_COIN_KEY_SIZE bytes: all are for ritas_set_coin
 * of all. There is room for secrets_s and public_keys_s bytes, at least so many. Whoever deals foresees every coin,
 * and so does whoever sees f + 1 of the secrets. Who decides besides when messages arrive can then keep agreement from
 * ending, but not make it wrong. So overwrite the secrets when they are where they belong. Returns 1. */
int ritas_coin_deal(
    size_t n,
    size_t f,
    uint8_t *secrets,
    size_t secrets_s,
    uint8_t *public_keys,
    size_t public_keys_s);

/* Makes a context for process pid of a group of n processes, of which f may be faulty. Processes have the numbers 0 to
 * n - 1. It listens to this port on all addresses of the machine; if port is 0, to one that the system chooses.
 * Returns a null pointer if it fails, and writes why into errbuf, with a zero at its end; errbuf may be null. */
ritas_t *ritas_init(
    size_t pid,
    size_t n,
    size_t f,
    uint16_t port,
    const uint8_t secret[RITAS_KEY_SIZE],
    char errbuf[RITAS_ERRBUF_SIZE]);

/* Destroys a context: leaves its group, and closes its port. Calls of other threads that wait fail with RITAS_CLOSED.
 * A context that was destroyed, and a null pointer, are left alone. */
void ritas_destroy(ritas_t *ctx);

/* The port that a context listens to, from 1 to 65,535. */
int ritas_port(ritas_t *ctx);

/* Says in which epoch the group is: 0 if it is not said. All processes have the same. Only before communication
 * begins. Returns 1. */
int ritas_set_epoch(ritas_t *ctx, uint64_t epoch);

/* Says what links run over, RITAS_TLS or RITAS_PLAIN: RITAS_TLS if it is not said. All processes have the same. Only
 * before communication begins. Returns 1. */
int ritas_set_channel(ritas_t *ctx, int channel);

/* Has this process toss the common coin that ritas_coin_deal has dealt to its group: with its own secret, and with the
 * public keys of all n processes, one after the other, which are public_keys_s bytes. All processes of a group have
 * keys of one dealing, or none has any: who has others is not heard. They are good for every epoch. Only before
 * communication begins. Returns 1. */
int ritas_set_coin(
    ritas_t *ctx,
    const uint8_t secret[RITAS_KEY_SIZE],
    const uint8_t *public_keys,
    size_t public_keys_s);

/* Says how long calls that begin from now on may wait, in milliseconds; 0 means for ever, as if it is not said.
 * Returns 1. */
int ritas_set_timeout(ritas_t *ctx, uint64_t timeout_ms);

/* Adds a process to the context: its number, its address such as "192.0.2.1", its port and its public key. All n are
 * added, this one too, before communication begins, which it does with the first broadcast, receipt or consensus.
 * Returns 1. */
int ritas_proc_add_ipv4(
    ritas_t *ctx,
    size_t pid,
    const char *ip,
    uint16_t port,
    const uint8_t public_key[RITAS_KEY_SIZE]);

/* The same with an address such as "2001:db8::1". */
int ritas_proc_add_ipv6(
    ritas_t *ctx,
    size_t pid,
    const char *ip,
    uint16_t port,
    const uint8_t public_key[RITAS_KEY_SIZE]);

/* Broadcasts a message reliably, as broadcast rbid of this process: all correct processes receive the same message, or
 * none does; and they do receive it if this process is correct. Returns 1. */
int ritas_rb_bcast(ritas_t *ctx, uint64_t rbid, const uint8_t *buf, size_t buf_s);

/* Waits for broadcast rbid of process txid, and returns its length in bytes. Each is received once. */
ptrdiff_t ritas_rb_recv(ritas_t *ctx, size_t txid, uint64_t rbid, uint8_t *buf, size_t buf_s);

/* Broadcasts a message by echo, as broadcast ebid of this process: no two correct processes receive different
 * messages. It costs less than ritas_rb_bcast, but if this process is faulty some may receive none. Returns 1. */
int ritas_eb_bcast(ritas_t *ctx, uint64_t ebid, const uint8_t *buf, size_t buf_s);

/* Waits for broadcast ebid by echo of process txid, and returns its length in bytes. Each is received once. */
ptrdiff_t ritas_eb_recv(ritas_t *ctx, size_t txid, uint64_t ebid, uint8_t *buf, size_t buf_s);

/* Binary consensus bcid: proposes 0 or 1, waits for the decision and returns it, 0 or 1. A correct process has
 * proposed it. */
int ritas_bc(ritas_t *ctx, uint64_t bcid, int proposal);

/* Multi-valued consensus mvcid: proposes a value, waits for the decision and returns its length in bytes, or
 * RITAS_BOTTOM. If all correct processes propose the same, it is decided; a decision other than RITAS_BOTTOM is what a
 * correct process has proposed. */
ptrdiff_t ritas_mvc(
    ritas_t *ctx,
    uint64_t mvcid,
    const uint8_t *prop,
    size_t prop_s,
    uint8_t *decision,
    size_t decision_s);

/* Vector consensus vcid: proposes a value, waits for the decision and returns its length in bytes. The decision has a
 * value or ⊥ for each process: n - f values at least, of which at least f + 1 are of correct processes. It takes
 * four bytes for each process besides the values; ritas_vector_extract reads it. A proposal has at most 4 MiB / n - 16
 * bytes, and RITAS_MESSAGE_MAX. */
ptrdiff_t ritas_vc(
    ritas_t *ctx,
    uint64_t vcid,
    const uint8_t *prop,
    size_t prop_s,
    uint8_t *decision,
    size_t decision_s);

/* Finds the values in a decision of ritas_vc. They are not copied: the vector points into the decision, and is good
 * for as long as that. Needs no context. Returns 1. */
int ritas_vector_extract(const uint8_t *decision, size_t decision_s, ritas_vector_t *vector);

/* Broadcasts a message atomically: all correct processes receive the messages of all in one order, in which those of
 * each correct process come in the order in which it broadcast them. Returns 1. */
int ritas_ab_bcast(ritas_t *ctx, const uint8_t *buf, size_t buf_s);

/* Waits for the next message in the order, and returns its length in bytes. Its number and its sender go into abh,
 * which may be null. A process that does not receive takes no part in further rounds once 32 MiB wait. */
ptrdiff_t ritas_ab_recv(ritas_t *ctx, uint8_t *buf, size_t buf_s, ritas_ab_header_t *abh);

/* How the last call of this thread ended: one of enum ritas_code. The functions from here on are no such calls. */
int ritas_error(void);

/* The same in words, in UTF-8. Good until the next call of this thread. */
const char *ritas_error_message(void);

/* With RITAS_TOO_SHORT: how many bytes the buffer must have. */
size_t ritas_needed(void);

#ifdef __cplusplus
}
#endif

#endif
