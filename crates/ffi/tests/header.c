/* Compiled by header.rs against the header and the library. Its arguments are a cluster's file and a service: kv or
 * sql are used, and anything else is not asked for, so that nobody need be there. Prints what went wrong. */
#include "bezant.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                          \
    do {                                                           \
        if (!(condition)) {                                        \
            printf("line %d: not %s\n", __LINE__, #condition);     \
            return 1;                                              \
        }                                                          \
    } while (0)

static const uint64_t TIMEOUT_MS = 20000;

static bezant_bytes bytes(const char *text) {
    bezant_bytes made = {(const uint8_t *)text, strlen(text)};
    return made;
}

static int same(bezant_bytes found, const char *wanted) {
    return found.length == strlen(wanted) && memcmp(found.data, wanted, found.length) == 0;
}

/* Wrong use gives errors and no crash. */
static int misuse(void) {
    bezant_result *result = bezant_get(77, bytes("key"), TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_CLOSED);
    EXPECT(bezant_message(result).length > 0);
    EXPECT(bezant_tables(result) == 0);
    EXPECT(bezant_table(result, 3).rows == 0);
    EXPECT(bezant_cell(result, 0, 0, 0).kind == BEZANT_NULL);
    EXPECT(bezant_column(result, 0, 9).length == 0);
    EXPECT(bezant_failure(result).sqlstate.length == 0);
    bezant_free(result);
    result = bezant_open(NULL, NULL, NULL);
    EXPECT(bezant_code(result) == BEZANT_INVALID);
    bezant_free(result);
    result = bezant_sql(77, NULL, 2, TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_INVALID);
    bezant_free(result);
    {
        bezant_bytes nowhere = {NULL, 3};
        result = bezant_get(77, nowhere, TIMEOUT_MS);
        EXPECT(bezant_code(result) != BEZANT_OK);
        bezant_free(result);
    }
    EXPECT(bezant_code(NULL) == BEZANT_INVALID);
    bezant_free(NULL);
    bezant_close(77);
    return 0;
}

static int keys(bezant_client client) {
    bezant_bytes one = bytes("1"), two = bytes("2");
    bezant_result *result = bezant_set(client, bytes("key"), one, TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_OK);
    bezant_free(result);
    result = bezant_compare_and_set(client, bytes("key"), &one, &two, TIMEOUT_MS);
    EXPECT(bezant_cell(result, 0, 0, 0).integer == 1);
    bezant_free(result);
    result = bezant_get(client, bytes("key"), TIMEOUT_MS);
    EXPECT(same(bezant_cell(result, 0, 0, 0).bytes, "2"));
    bezant_free(result);
    result = bezant_delete(client, bytes("key"), TIMEOUT_MS);
    EXPECT(bezant_cell(result, 0, 0, 0).integer == 1);
    bezant_free(result);
    result = bezant_get(client, bytes("key"), TIMEOUT_MS);
    EXPECT(bezant_table(result, 0).rows == 1);
    EXPECT(bezant_cell(result, 0, 0, 0).kind == BEZANT_NULL);
    bezant_free(result);
    return 0;
}

static int tables(bezant_client client) {
    bezant_value values[2] = {{BEZANT_INTEGER, 7, 0.0, {NULL, 0}}, {BEZANT_TEXT, 0, 0.0, {(const uint8_t *)"a", 1}}};
    bezant_statement many[3] = {
        {bytes("create table c(n integer primary key, t text)"), NULL, 0},
        {bytes("insert into c values (?1, ?2)"), values, 2},
        {bytes("select n, t, 0.5 as half from c"), NULL, 0},
    };
    bezant_statement wrong = {bytes("select missing from c"), NULL, 0};
    bezant_result *result = bezant_sql(client, many, 3, TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_OK);
    EXPECT(bezant_tables(result) == 3);
    EXPECT(bezant_table(result, 1).changes == 1);
    EXPECT(bezant_table(result, 1).last_insert_rowid == 7);
    EXPECT(bezant_table(result, 2).rows == 1 && bezant_table(result, 2).columns == 3);
    EXPECT(same(bezant_column(result, 2, 2), "half"));
    EXPECT(bezant_cell(result, 2, 0, 0).integer == 7);
    EXPECT(same(bezant_cell(result, 2, 0, 1).bytes, "a"));
    EXPECT(bezant_cell(result, 2, 0, 2).real == 0.5);
    bezant_free(result);
    result = bezant_sql(client, &wrong, 1, TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_SQL);
    EXPECT(same(bezant_failure(result).sqlstate, "42703"));
    bezant_free(result);
    return 0;
}

int main(int count, char **arguments) {
    bezant_client client = 0;
    bezant_result *result;
    EXPECT(count == 3);
    EXPECT(bezant_abi() == BEZANT_ABI);
    if (misuse()) return 1;
    result = bezant_open(arguments[1], NULL, &client);
    if (strcmp(arguments[2], "none") == 0) {
        EXPECT(bezant_code(result) == BEZANT_OPEN);
        EXPECT(client == 0);
        bezant_free(result);
        return 0;
    }
    EXPECT(bezant_code(result) == BEZANT_OK);
    bezant_free(result);
    if (keys(client)) return 1;
    if (strcmp(arguments[2], "sql") == 0 && tables(client)) return 1;
    bezant_close(client);
    result = bezant_get(client, bytes("key"), TIMEOUT_MS);
    EXPECT(bezant_code(result) == BEZANT_CLOSED);
    bezant_free(result);
    return 0;
}
