/* One process of a group, which calls every function. Run by programs.rs with its number, an address, how links are
 * protected and which coin is tossed. It says its port and its public key, and is told those of all, and what it tosses
 * with; then it says what it has come to. It leaves when its input ends, since the others may need it until then. With
 * "deal" it deals a common coin, and without arguments wrong use is tried instead. */
#include "common.h"

#include <pthread.h>

#define N 4
#define MESSAGES 10

static size_t me;
static ritas_t *ctx;

static const uint8_t *bytes(const char *text) {
    return (const uint8_t *)text;
}

static int is(const uint8_t *found, ptrdiff_t length, const char *wanted) {
    return length == (ptrdiff_t)strlen(wanted) && memcmp(found, wanted, strlen(wanted)) == 0;
}

static void put_hex(const uint8_t *key, size_t size) {
    size_t at;
    for (at = 0; at < size; at++) printf("%02x", key[at]);
    printf("\n");
}

static void get_hex(const char *hex, uint8_t *key, size_t size) {
    size_t at;
    for (at = 0; at < size; at++) {
        unsigned byte;
        EXPECT(sscanf(hex + 2 * at, "%2x", &byte) == 1);
        key[at] = (uint8_t)byte;
    }
}

static int deal(void) {
    uint8_t secrets[N * RITAS_KEY_SIZE], keys[N * RITAS_COIN_KEY_SIZE];
    size_t pid;
    EXPECT(ritas_coin_deal(N, 1, secrets, sizeof secrets, keys, sizeof keys) == 1);
    for (pid = 0; pid < N; pid++) put_hex(secrets + pid * RITAS_KEY_SIZE, RITAS_KEY_SIZE);
    put_hex(keys, sizeof keys);
    return 0;
}

/* What was dealt: a line with the own secret, and one with all public keys. */
static void toss_together(void) {
    uint8_t secret[RITAS_KEY_SIZE], keys[N * RITAS_COIN_KEY_SIZE];
    char line[2 * sizeof keys + 2];
    EXPECT(fgets(line, sizeof line, stdin) != NULL);
    get_hex(line, secret, sizeof secret);
    EXPECT(fgets(line, sizeof line, stdin) != NULL);
    get_hex(line, keys, sizeof keys);
    EXPECT(ritas_set_coin(ctx, secret, keys, sizeof keys) == 1);
}

static void join(const char *ip, int is_plain) {
    uint8_t secret[RITAS_KEY_SIZE], key[RITAS_KEY_SIZE];
    char errbuf[RITAS_ERRBUF_SIZE], line[128], hex[80];
    size_t pid;
    EXPECT(ritas_keygen(secret, key) == 1);
    ctx = ritas_init(me, N, 1, 0, secret, errbuf);
    EXPECT(ctx != NULL);
    printf("%d ", ritas_port(ctx));
    put_hex(key, sizeof key);
    fflush(stdout);
    FAILS(ritas_bc(ctx, 0, 1), RITAS_INCOMPLETE);
    EXPECT(ritas_set_epoch(ctx, 7) == 1);
    EXPECT(ritas_set_channel(ctx, is_plain ? RITAS_PLAIN : RITAS_TLS) == 1);
    EXPECT(ritas_set_timeout(ctx, 20000) == 1);
    for (pid = 0; pid < N; pid++) {
        unsigned port;
        EXPECT(fgets(line, sizeof line, stdin) != NULL);
        EXPECT(sscanf(line, "%u %79s", &port, hex) == 2);
        get_hex(hex, key, sizeof key);
        if (strchr(ip, ':') != NULL)
            EXPECT(ritas_proc_add_ipv6(ctx, pid, ip, (uint16_t)port, key) == 1);
        else
            EXPECT(ritas_proc_add_ipv4(ctx, pid, ip, (uint16_t)port, key) == 1);
    }
}

static void broadcasts(void) {
    uint8_t buffer[64];
    char text[64];
    size_t of;
    sprintf(text, "rb of %u", (unsigned)me);
    EXPECT(ritas_rb_bcast(ctx, 0, bytes(text), strlen(text)) == 1);
    FAILS(ritas_rb_bcast(ctx, 0, bytes(text), strlen(text)), RITAS_USED);
    FAILS(ritas_set_epoch(ctx, 8), RITAS_BEGUN);
    sprintf(text, "eb of %u", (unsigned)me);
    EXPECT(ritas_eb_bcast(ctx, 0, bytes(text), strlen(text)) == 1);
    EXPECT(ritas_eb_bcast(ctx, 1, NULL, 0) == 1);
    for (of = 0; of < N; of++) {
        sprintf(text, "rb of %u", (unsigned)of);
        FAILS(ritas_rb_recv(ctx, of, 0, buffer, 6), RITAS_TOO_SHORT);
        EXPECT(ritas_needed() == 7);
        EXPECT(is(buffer, ritas_rb_recv(ctx, of, 0, buffer, 7), text));
        FAILS(ritas_rb_recv(ctx, of, 0, buffer, sizeof buffer), RITAS_USED);
        sprintf(text, "eb of %u", (unsigned)of);
        EXPECT(is(buffer, ritas_eb_recv(ctx, of, 0, buffer, sizeof buffer), text));
        EXPECT(ritas_eb_recv(ctx, of, 1, NULL, 0) == 0);
    }
}

static void vectors(void) {
    uint8_t decision[256];
    char text[64];
    ritas_vector_t vector;
    ptrdiff_t length;
    size_t of, values = 0;
    sprintf(text, "vc of %u", (unsigned)me);
    FAILS(ritas_vc(ctx, 0, bytes(text), strlen(text), decision, 9), RITAS_TOO_SHORT);
    EXPECT(ritas_needed() <= sizeof decision);
    length = ritas_vc(ctx, 0, NULL, 0, decision, ritas_needed());
    EXPECT(length > 0);
    EXPECT(ritas_vector_extract(decision, (size_t)length, &vector) == 1);
    EXPECT(vector.count == N);
    printf("vc");
    for (of = 0; of < RITAS_PROCESSES_MAX; of++) {
        if (vector.values[of].data == NULL) continue;
        sprintf(text, "vc of %u", (unsigned)of);
        EXPECT(is(vector.values[of].data, (ptrdiff_t)vector.values[of].length, text));
        printf(" %u", (unsigned)of);
        values++;
    }
    EXPECT(values >= N - 1);
    printf("\n");
}

static void agreements(void) {
    static uint8_t large[100000], decided[100000];
    uint8_t decision[16];
    char text[64];
    EXPECT(ritas_bc(ctx, 0, 1) == 1);
    EXPECT(ritas_bc(ctx, 1, 0) == 0);
    printf("bc %d\n", ritas_bc(ctx, 2, (int)me % 2));
    EXPECT(is(decision, ritas_mvc(ctx, 0, bytes("the same"), 8, decision, sizeof decision), "the same"));
    sprintf(text, "mvc of %u", (unsigned)me);
    EXPECT(ritas_mvc(ctx, 1, bytes(text), strlen(text), decision, sizeof decision) == RITAS_BOTTOM);
    FAILS(ritas_mvc(ctx, 2, bytes("too long"), 8, decision, 3), RITAS_TOO_SHORT);
    EXPECT(ritas_needed() == 8);
    EXPECT(is(decision, ritas_mvc(ctx, 2, NULL, 0, decision, 8), "too long"));
    FAILS(ritas_mvc(ctx, 2, NULL, 0, decision, 8), RITAS_USED);
    memset(large, 7, sizeof large);
    EXPECT(ritas_mvc(ctx, 3, large, sizeof large, decided, sizeof decided) == (ptrdiff_t)sizeof large);
    EXPECT(memcmp(large, decided, sizeof large) == 0);
    vectors();
}

/* The order, which must be the same everywhere. */
static void *order(void *unused) {
    uint8_t buffer[64];
    char text[64], wanted[64];
    ritas_ab_header_t header;
    unsigned at, next[N] = {0};
    (void)unused;
    for (at = 0; at < MESSAGES; at++) {
        sprintf(text, "ab %u of %u", at, (unsigned)me);
        EXPECT(ritas_ab_bcast(ctx, bytes(text), strlen(text)) == 1);
    }
    FAILS(ritas_ab_recv(ctx, buffer, 8, &header), RITAS_TOO_SHORT);
    EXPECT(ritas_needed() == 9);
    strcpy(text, "ab");
    for (at = 0; at < N * MESSAGES; at++) {
        ptrdiff_t length = ritas_ab_recv(ctx, buffer, sizeof buffer, &header);
        EXPECT(header.number == at && header.sender < N);
        sprintf(wanted, "ab %u of %u", next[header.sender]++, (unsigned)header.sender);
        EXPECT(is(buffer, length, wanted));
        sprintf(text + strlen(text), "%u", (unsigned)header.sender);
    }
    printf("%s\n", text);
    return NULL;
}

/* Waits for what nobody says, until the context is destroyed. */
static void *endless(void *unused) {
    uint8_t buffer[8];
    (void)unused;
    FAILS(ritas_rb_recv(ctx, 1, 1, buffer, sizeof buffer), RITAS_CLOSED);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    uint8_t buffer[8];
    if (count == 1) return misuse();
    if (count == 2 && strcmp(arguments[1], "deal") == 0) return deal();
    EXPECT(count == 5);
    me = (size_t)atoi(arguments[1]);
    join(arguments[2], strcmp(arguments[3], "plain") == 0);
    if (strcmp(arguments[4], "common") == 0) toss_together();
    broadcasts();
    if (me == 0) {
        /* All at once. */
        EXPECT(pthread_create(&threads[0], NULL, order, NULL) == 0);
        agreements();
        EXPECT(pthread_join(threads[0], NULL) == 0);
    } else {
        agreements();
        order(NULL);
    }
    EXPECT(ritas_set_timeout(ctx, 20) == 1);
    FAILS(ritas_rb_recv(ctx, 1, 1, buffer, sizeof buffer), RITAS_TIMED_OUT);
    /* Here, not in the thread: that may run for the first time when the context is gone. */
    EXPECT(ritas_set_timeout(ctx, 0) == 1);
    EXPECT(pthread_create(&threads[0], NULL, endless, NULL) == 0);
    printf("done\n");
    fflush(stdout);
    while (fgets((char *)buffer, sizeof buffer, stdin) != NULL) continue;
    ritas_destroy(ctx);
    EXPECT(pthread_join(threads[0], NULL) == 0);
    FAILS(ritas_bc(ctx, 3, 1), RITAS_CLOSED);
    ritas_destroy(ctx);
    return 0;
}
