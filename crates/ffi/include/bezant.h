/* The client library of Bezant, for C and for whatever can call C.
 *
 * A call believes what 2f + 1 of the replicas say alike, and ends in time. Any number of threads may use one client.
 *
 * Every call returns a result, which is never a null pointer and is to be freed with bezant_free. What is read from a
 * result belongs to it. Bytes that are given to a call are needed only until it returns.
 *
 *     bezant_client client;
 *     bezant_result *result = bezant_open("net/cluster.toml", NULL, &client);
 *     if (bezant_code(result) != BEZANT_OK) ...
 *     bezant_free(result);
 *
 * Nothing here may be used in a signal handler, and a client not in a process that was forked after it was opened.
 */
#ifndef BEZANT_H
#define BEZANT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define BEZANT_ABI 1
/* That of the library, which must be equal. */
uint32_t bezant_abi(void);

/* How a call ended. */
enum bezant_code {
    BEZANT_OK = 0,
    /* An argument is wrong. Nothing was sent. */
    BEZANT_INVALID = 1,
    /* The client cannot be opened: a file or a key is wrong, or the system refuses something. */
    BEZANT_OPEN = 2,
    /* Not sent: there was no connection, or too much was under way, until the time was over. */
    BEZANT_NOT_SENT = 3,
    /* Not sent: the cluster does not let this client join. */
    BEZANT_NOT_ADMITTED = 4,
    /* The replicas agree that it was not executed and never will be. */
    BEZANT_REFUSED = 5,
    /* The same, because it was asked as a query and writes. */
    BEZANT_NOT_READ_ONLY = 6,
    /* Not enough equal answers in time to something that only reads: nothing has changed. */
    BEZANT_UNANSWERED = 7,
    /* Not enough equal answers in time: it may have been executed, or may be yet. */
    BEZANT_UNKNOWN = 8,
    /* It will not be executed from now on; it may have been before. */
    BEZANT_TOO_LATE = 9,
    /* The client was closed; what was under way may have been executed. */
    BEZANT_CLOSED = 10,
    /* An error of SQL: nothing was changed. */
    BEZANT_SQL = 11,
    /* The service refuses it: no room, too large, not allowed. Nothing was changed. */
    BEZANT_SERVICE = 12,
    /* The replicas agree on an answer that is none of this service's: they run another, or another version. */
    BEZANT_FOREIGN = 13,
    /* A mistake in this library; the outcome is unknown. */
    BEZANT_INTERNAL = 14
};

/* Bytes; if there are none, data may be anything. */
typedef struct bezant_bytes {
    const uint8_t *data;
    size_t length;
} bezant_bytes;

enum bezant_kind {
    BEZANT_NULL = 0,
    BEZANT_INTEGER = 1,
    BEZANT_REAL = 2,
    /* UTF-8, without a zero at its end. */
    BEZANT_TEXT = 3,
    BEZANT_BLOB = 4
};

/* A value of SQL: its kind, and the member that goes with it. A NaN is taken for null. */
typedef struct bezant_value {
    int32_t kind;
    int64_t integer;
    double real;
    bezant_bytes bytes;
} bezant_value;

/* One statement of SQL in UTF-8, with the values of its parameters ?1, ?2 and so on. */
typedef struct bezant_statement {
    bezant_bytes sql;
    const bezant_value *parameters;
    size_t count;
} bezant_statement;

/* A number. 0 is none, and one that was closed does no harm. */
typedef uint64_t bezant_client;

/* What came of a call. */
typedef struct bezant_result bezant_result;

/* Connects to the cluster of this file, with this key or, if that is null, with client.key beside the file. It does
 * not wait for the connections: the first call does. */
bezant_result *bezant_open(const char *cluster, const char *key, bezant_client *client);
/* Calls of other threads that are under way go on to their end. */
void bezant_close(bezant_client client);

/* Time-outs are in milliseconds, and at most a day. */

/* Keys (at most 4 KiB) and values (512 KiB) of a cluster that serves "kv" or "sql". */

/* One value: the bytes, or null if the key has no value. */
bezant_result *bezant_get(bezant_client client, bezant_bytes key, uint64_t timeout_ms);
bezant_result *bezant_set(bezant_client client, bezant_bytes key, bezant_bytes value, uint64_t timeout_ms);
/* One value: 1 if the key had a value, 0 if not. */
bezant_result *bezant_delete(bezant_client client, bezant_bytes key, uint64_t timeout_ms);
/* Gives the key this value (null: none) if it has the expected one (null: none). One value: 1 if so, 0 if not. */
bezant_result *bezant_compare_and_set(bezant_client client, bezant_bytes key, const bezant_bytes *expected,
                                      const bezant_bytes *value, uint64_t timeout_ms);

/* Carries out statements of SQL, all or none, for a cluster that serves "sql": one table for each. */
bezant_result *bezant_sql(bezant_client client, const bezant_statement *statements, size_t count,
                          uint64_t timeout_ms);

/* Operations of a service of one's own. One value: its reply. */

/* Ordered among all others, and executed exactly once if at all. */
bezant_result *bezant_execute(bezant_client client, bezant_bytes operation, uint64_t timeout_ms);
/* For an operation that only reads. */
bezant_result *bezant_query(bezant_client client, bezant_bytes operation, uint64_t timeout_ms);

/* Reading a result. A null pointer and whatever is out of range give nothing, and do no harm. */

/* One of enum bezant_code. */
int32_t bezant_code(const bezant_result *result);
/* Why there is no answer, in UTF-8. */
bezant_bytes bezant_message(const bezant_result *result);

/* With BEZANT_SQL: the five characters that PostgreSQL has for the error, and which statement failed, from 0 on. */
typedef struct bezant_failed {
    bezant_bytes sqlstate;
    size_t statement;
} bezant_failed;
bezant_failed bezant_failure(const bezant_result *result);

/* The measures of a table. Without columns, the statement gives no rows. */
typedef struct bezant_measures {
    size_t rows;
    size_t columns;
    /* Rows that the statement inserted, changed or removed. */
    uint64_t changes;
    /* The rowid of the row that was inserted last; 0 if there is none. */
    int64_t last_insert_rowid;
} bezant_measures;
size_t bezant_tables(const bezant_result *result);
bezant_measures bezant_table(const bezant_result *result, size_t table);
/* The name of a column, in UTF-8. */
bezant_bytes bezant_column(const bezant_result *result, size_t table, size_t column);
/* A value. One value is that in row 0, column 0 of table 0. */
bezant_value bezant_cell(const bezant_result *result, size_t table, size_t row, size_t column);

void bezant_free(bezant_result *result);

#ifdef __cplusplus
}
#endif

#endif
