/* Wrong use gives errors and no crash. Nobody else is needed. */
#include "common.h"

static void contexts(const uint8_t *secret) {
    const uint8_t *none = NULL;
    char errbuf[RITAS_ERRBUF_SIZE];
    ritas_t *ctx, *other;
    EXPECT(ritas_init(0, 4, 1, 0, none, errbuf) == NULL && ritas_error() == RITAS_INVALID && *errbuf != 0);
    EXPECT(ritas_init(4, 4, 1, 0, secret, errbuf) == NULL && ritas_error() == RITAS_NO_MEMBER && *errbuf != 0);
    EXPECT(ritas_init((size_t)-1, 4, 1, 0, secret, errbuf) == NULL && ritas_error() == RITAS_NO_MEMBER);
    EXPECT(ritas_init(0, 3, 1, 0, secret, errbuf) == NULL && ritas_error() == RITAS_INVALID);
    EXPECT(ritas_init(0, (size_t)-1, (size_t)-1, 0, secret, errbuf) == NULL && ritas_error() == RITAS_INVALID);
    ctx = ritas_init(0, 4, 1, 0, secret, errbuf);
    EXPECT(ctx != NULL && ritas_port(ctx) > 0);
    other = ritas_init(1, 4, 1, (uint16_t)ritas_port(ctx), secret, errbuf);
    EXPECT(other == NULL && ritas_error() == RITAS_SYSTEM && strcmp(errbuf, ritas_error_message()) == 0);
    ritas_destroy(ctx);
    FAILS(ritas_port(ctx), RITAS_CLOSED);
    FAILS(ritas_set_timeout(ctx, 1), RITAS_CLOSED);
    ritas_destroy(ctx);
    ritas_destroy(NULL);
    ritas_destroy((ritas_t *)secret);
    FAILS(ritas_bc(NULL, 0, 1), RITAS_CLOSED);
    FAILS(ritas_bc((ritas_t *)secret, 0, 1), RITAS_CLOSED);
}

static void members(ritas_t *ctx, const uint8_t *key) {
    const uint8_t *none = NULL;
    uint8_t other[RITAS_KEY_SIZE] = {1};
    FAILS(ritas_proc_add_ipv4(ctx, 4, "127.0.0.1", 9, key), RITAS_NO_MEMBER);
    FAILS(ritas_proc_add_ipv4(ctx, (size_t)-1, "127.0.0.1", 9, key), RITAS_NO_MEMBER);
    FAILS(ritas_proc_add_ipv4(ctx, 1, "::1", 9, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv4(ctx, 1, "localhost", 9, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv6(ctx, 1, "127.0.0.1", 9, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv6(ctx, 1, "\xff", 9, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv6(ctx, 1, NULL, 9, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv4(ctx, 1, "127.0.0.1", 0, key), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv4(ctx, 1, "127.0.0.1", 9, none), RITAS_INVALID);
    FAILS(ritas_proc_add_ipv4(ctx, 0, "127.0.0.1", 9, other), RITAS_INVALID);
    EXPECT(ritas_proc_add_ipv4(ctx, 0, "127.0.0.1", 9, key) == 1);
    FAILS(ritas_proc_add_ipv4(ctx, 0, "127.0.0.1", 9, key), RITAS_INVALID);
    EXPECT(ritas_proc_add_ipv6(ctx, 1, "::1", 9, key) == 1);
    EXPECT(ritas_proc_add_ipv4(ctx, 2, "127.0.0.1", 9, key) == 1);
    FAILS(ritas_bc(ctx, 0, 1), RITAS_INCOMPLETE);
    FAILS(ritas_set_channel(ctx, 5), RITAS_INVALID);
}

/* Process 0 of 4. The keys are right in the end. */
static void coins(ritas_t *ctx, uint8_t *secrets, uint8_t *keys, size_t keys_s) {
    uint8_t *none = NULL, other[RITAS_KEY_SIZE] = {0};
    size_t secrets_s = 4 * RITAS_KEY_SIZE;
    FAILS(ritas_coin_deal(4, 1, none, secrets_s, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_coin_deal(4, 1, secrets, secrets_s, none, keys_s), RITAS_INVALID);
    FAILS(ritas_coin_deal(4, 1, secrets, secrets_s - 1, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_coin_deal(4, 1, secrets, secrets_s, keys, keys_s - 1), RITAS_INVALID);
    FAILS(ritas_coin_deal(5, 1, secrets, secrets_s, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_coin_deal(3, 1, secrets, secrets_s, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_coin_deal((size_t)-1, 0, secrets, secrets_s, keys, keys_s), RITAS_INVALID);
    EXPECT(ritas_coin_deal(4, 1, secrets, secrets_s, keys, keys_s) == 1);
    FAILS(ritas_set_coin(NULL, secrets, keys, keys_s), RITAS_CLOSED);
    FAILS(ritas_set_coin(ctx, none, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, other, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets + RITAS_KEY_SIZE, keys, keys_s), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets, none, keys_s), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets, keys, 0), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets, keys, keys_s - 1), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets, keys, keys_s - RITAS_COIN_KEY_SIZE), RITAS_INVALID);
    FAILS(ritas_set_coin(ctx, secrets, keys, (size_t)-1), RITAS_TOO_LONG);
    keys[keys_s - 1] ^= 1;
    FAILS(ritas_set_coin(ctx, secrets, keys, keys_s), RITAS_INVALID);
    keys[keys_s - 1] ^= 1;
    EXPECT(ritas_set_coin(ctx, secrets, keys, keys_s) == 1);
}

static void calls(ritas_t *ctx) {
    uint8_t buffer[8], *none = NULL;
    ritas_vector_t vector;
    EXPECT(ritas_set_timeout(ctx, 30) == 1);
    FAILS(ritas_bc(ctx, 0, 2), RITAS_INVALID);
    FAILS(ritas_bc(ctx, 0, -1), RITAS_INVALID);
    FAILS(ritas_rb_bcast(ctx, 0, none, 8), RITAS_INVALID);
    FAILS(ritas_rb_bcast(ctx, 0, buffer, RITAS_MESSAGE_MAX + 1), RITAS_TOO_LONG);
    FAILS(ritas_eb_bcast(ctx, 0, buffer, (size_t)-1), RITAS_TOO_LONG);
    FAILS(ritas_ab_bcast(ctx, buffer, RITAS_MESSAGE_MAX + 1), RITAS_TOO_LONG);
    FAILS(ritas_mvc(ctx, 0, buffer, RITAS_MESSAGE_MAX + 1, buffer, 8), RITAS_TOO_LONG);
    FAILS(ritas_vc(ctx, 0, NULL, 0, none, 8), RITAS_INVALID);
    FAILS(ritas_rb_recv(ctx, 0, 0, none, 8), RITAS_INVALID);
    FAILS(ritas_rb_recv(ctx, 4, 0, buffer, 8), RITAS_NO_MEMBER);
    FAILS(ritas_eb_recv(ctx, 256, 0, buffer, 8), RITAS_NO_MEMBER);
    FAILS(ritas_ab_recv(ctx, none, 8, NULL), RITAS_INVALID);
    FAILS(ritas_vector_extract(none, 8, &vector), RITAS_INVALID);
    FAILS(ritas_vector_extract(buffer, 0, &vector), RITAS_INVALID);
    FAILS(ritas_vector_extract(buffer, 3, NULL), RITAS_INVALID);
    FAILS(ritas_vector_extract(buffer, 3, &vector), RITAS_INVALID);
    /* Nobody else is there. What timed out may be called again; what was broadcast may not. */
    FAILS(ritas_bc(ctx, 0, 1), RITAS_TIMED_OUT);
    FAILS(ritas_bc(ctx, 0, 1), RITAS_TIMED_OUT);
    FAILS(ritas_ab_recv(ctx, buffer, 8, NULL), RITAS_TIMED_OUT);
    EXPECT(ritas_rb_bcast(ctx, 0, buffer, 0) == 1 && ritas_error() == RITAS_OK && *ritas_error_message() == 0);
    FAILS(ritas_rb_bcast(ctx, 0, buffer, 0), RITAS_USED);
    FAILS(ritas_rb_bcast(ctx, (uint64_t)-1, buffer, 0), RITAS_INVALID);
    FAILS(ritas_mvc(ctx, (uint64_t)1 << 56, buffer, 0, buffer, 8), RITAS_INVALID);
}

int misuse(void) {
    uint8_t secret[RITAS_KEY_SIZE], key[RITAS_KEY_SIZE], wrong[RITAS_KEY_SIZE], *none = NULL;
    uint8_t coin_secrets[4 * RITAS_KEY_SIZE], coin_keys[4 * RITAS_COIN_KEY_SIZE];
    ritas_t *ctx;
    FAILS(ritas_keygen(none, key), RITAS_INVALID);
    FAILS(ritas_keygen(secret, none), RITAS_INVALID);
    EXPECT(ritas_keygen(secret, key) == 1);
    contexts(secret);
    ctx = ritas_init(0, 4, 1, 0, secret, NULL);
    EXPECT(ctx != NULL);
    members(ctx, key);
    /* No point of the curve: it is noticed when communication should begin. */
    memset(wrong, 0, sizeof wrong);
    EXPECT(ritas_proc_add_ipv4(ctx, 3, "127.0.0.1", 9, wrong) == 1);
    FAILS(ritas_bc(ctx, 0, 1), RITAS_INVALID);
    ritas_destroy(ctx);
    ctx = ritas_init(0, 1, 0, 0, secret, NULL);
    if (ctx != NULL) ritas_destroy(ctx);
    ctx = ritas_init(0, 4, 1, 0, secret, NULL);
    EXPECT(ritas_proc_add_ipv4(ctx, 0, "127.0.0.1", 9, key) == 1);
    EXPECT(ritas_proc_add_ipv4(ctx, 1, "127.0.0.1", 9, key) == 1);
    EXPECT(ritas_proc_add_ipv4(ctx, 2, "127.0.0.1", 9, key) == 1);
    EXPECT(ritas_proc_add_ipv4(ctx, 3, "127.0.0.1", 9, key) == 1);
    coins(ctx, coin_secrets, coin_keys, sizeof coin_keys);
    calls(ctx);
    FAILS(ritas_set_coin(ctx, coin_secrets, coin_keys, sizeof coin_keys), RITAS_BEGUN);
    FAILS(ritas_proc_add_ipv4(ctx, 3, "127.0.0.1", 9, key), RITAS_BEGUN);
    ritas_destroy(ctx);
    return 0;
}
