/*
 * A meter in SQLite: what a statement copies, compares, goes through and allocates.
 *
 * SQLite counts the steps of its virtual machine, but one step may go through a megabyte, or through a megabyte for
 * each byte of another. And it bounds the heap of the process, but never that of one statement. A replicated database
 * needs both, and the same at every replica. So this file is compiled into SQLite, by its own option
 * SQLITE_CUSTOM_INCLUDE, before everything else (.cargo/config.toml), and src/meter.rs reads the meter.
 *
 *  - Copies and comparisons: memcpy, memmove, memcmp and memset are macros that count, from BULK bytes on. What is
 *    shorter is paid for by the step.
 *  - Functions: a function of SQL that loops over its arguments is replaced by one that counts their bytes and then
 *    calls it. SQLite's tables name a function without parentheses, its definition has them: a macro with arguments
 *    renames the definition and leaves the tables to what is defined here. If SQLite renames one, this does not link.
 *  - What SQLite calls itself: where a step, or a name in a statement, goes through digits, pages or lists, the call is
 *    replaced by one that counts them first.
 *  - Memory: so are the functions that allocate. Pages in the cache do not count, for it depends on the past how many
 *    there are, and they are bounded by the cache's size and by what a statement writes.
 *
 * Nothing is counted unless the meter runs, and it runs for the thread that started it.
 */

#ifndef BEZANT_METER_H
#define BEZANT_METER_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* From how many bytes on a copy or a comparison is counted; zeroed pages of the file, of 4,096 bytes, are not. */
#define BEZANT_BULK 512
#define BEZANT_BULK_SET 4096

/* From how many bytes on an allocation counts as bytes gone through, too: somebody fills it. */
#define BEZANT_BULK_NEW 8192

/* src/meter.rs has the same layout. */
typedef struct {
  long long bytes;    /* bytes that may still be gone through */
  long long memory;   /* bytes that may still be allocated */
  long long least;    /* the least that `memory` was, or would have been */
  long long price;    /* bytes that an allocation costs now */
  int runs;           /* the meter runs */
  int pages;          /* inside the cache of pages, where nothing counts */
  int refused;        /* an allocation was refused */
  int depth;          /* selects that are being prepared, each for the one before it */
} bezant_meter;

static _Thread_local bezant_meter bezant_the_meter;

/* This thread's meter. */
bezant_meter *bezant_meter_of_thread(void);
bezant_meter *bezant_meter_of_thread(void) { return &bezant_the_meter; }

static void bezant_go_through(long long bytes) {
  if (bezant_the_meter.runs) bezant_the_meter.bytes -= bytes;
}

static inline size_t bezant_bulk(size_t bytes, size_t from) {
  if (bytes > from) bezant_go_through((long long)bytes);
  return bytes;
}

#define memcpy(to, from, n) memcpy(to, from, bezant_bulk(n, BEZANT_BULK))
#define memmove(to, from, n) memmove(to, from, bezant_bulk(n, BEZANT_BULK))
#define memcmp(a, b, n) memcmp(a, b, bezant_bulk(n, BEZANT_BULK))
#define memset(to, byte, n) memset(to, byte, bezant_bulk(n, BEZANT_BULK_SET))

/* ---- Memory ---- */

static void *bezant_plain_malloc(int);
static void *bezant_plain_realloc(void *, int);
static void bezant_plain_free(void *);
static int sqlite3MemSize(void *);

static int bezant_counts(void) { return bezant_the_meter.runs && !bezant_the_meter.pages; }

/* Whether so much more may be allocated. It says no once: what SQLite does about that needs memory. Who has gone
 * through too much gets nothing either, so that what allocates on and on without a step ends. */
static int bezant_admits(long long bytes) {
  bezant_meter *meter = &bezant_the_meter;
  if (!bezant_counts()) return 1;
  meter->bytes -= meter->price;
  if (bytes > BEZANT_BULK_NEW) meter->bytes -= bytes;
  if (meter->memory - bytes < meter->least) meter->least = meter->memory - bytes;
  if ((bytes > meter->memory || meter->bytes < 0) && !meter->refused) {
    meter->refused = 1;
    return 0;
  }
  meter->memory -= bytes;
  return 1;
}

static void *sqlite3MemMalloc(int bytes) { return bezant_admits(bytes) ? bezant_plain_malloc(bytes) : 0; }

static void *sqlite3MemRealloc(void *prior, int bytes) {
  return bezant_admits((long long)bytes - sqlite3MemSize(prior)) ? bezant_plain_realloc(prior, bytes) : 0;
}

static void sqlite3MemFree(void *prior) {
  if (bezant_counts()) bezant_the_meter.memory += sqlite3MemSize(prior);
  bezant_plain_free(prior);
}

#define sqlite3MemMalloc(n) bezant_plain_malloc(n)
#define sqlite3MemRealloc(p, n) bezant_plain_realloc(p, n)
#define sqlite3MemFree(p) bezant_plain_free(p)

/* The methods of the cache of pages: result, name, arguments, and the same without types. */
typedef struct sqlite3_pcache sqlite3_pcache;
typedef struct sqlite3_pcache_page sqlite3_pcache_page;

#define BEZANT_CACHE(name, arguments, call)           \
  static void bezant_plain_##name arguments;          \
  static void name arguments {                        \
    bezant_the_meter.pages++;                         \
    bezant_plain_##name call;                         \
    bezant_the_meter.pages--;                         \
  }
#define BEZANT_CACHE_GIVES(result, name, arguments, call) \
  static result bezant_plain_##name arguments;            \
  static result name arguments {                          \
    result given;                                         \
    bezant_the_meter.pages++;                             \
    given = bezant_plain_##name call;                     \
    bezant_the_meter.pages--;                             \
    return given;                                         \
  }

BEZANT_CACHE_GIVES(sqlite3_pcache *, pcache1Create, (int page, int extra, int purgeable), (page, extra, purgeable))
BEZANT_CACHE_GIVES(sqlite3_pcache_page *, pcache1Fetch, (sqlite3_pcache *c, unsigned key, int make), (c, key, make))
BEZANT_CACHE(pcache1Cachesize, (sqlite3_pcache *c, int most), (c, most))
BEZANT_CACHE(pcache1Unpin, (sqlite3_pcache *c, sqlite3_pcache_page *page, int discard), (c, page, discard))
BEZANT_CACHE(pcache1Rekey, (sqlite3_pcache *c, sqlite3_pcache_page *p, unsigned old, unsigned key), (c, p, old, key))
BEZANT_CACHE(pcache1Truncate, (sqlite3_pcache *c, unsigned limit), (c, limit))
BEZANT_CACHE(pcache1Destroy, (sqlite3_pcache *c), (c))
BEZANT_CACHE(pcache1Shrink, (sqlite3_pcache *c), (c))

#define pcache1Create(a, b, c) bezant_plain_pcache1Create(a, b, c)
#define pcache1Fetch(a, b, c) bezant_plain_pcache1Fetch(a, b, c)
#define pcache1Cachesize(a, b) bezant_plain_pcache1Cachesize(a, b)
#define pcache1Unpin(a, b, c) bezant_plain_pcache1Unpin(a, b, c)
#define pcache1Rekey(a, b, c, d) bezant_plain_pcache1Rekey(a, b, c, d)
#define pcache1Truncate(a, b) bezant_plain_pcache1Truncate(a, b)
#define pcache1Destroy(a) bezant_plain_pcache1Destroy(a)
#define pcache1Shrink(a) bezant_plain_pcache1Shrink(a)

/* ---- Functions of SQL ---- */

typedef struct sqlite3_context sqlite3_context;
typedef struct sqlite3_value sqlite3_value;
int sqlite3_value_type(sqlite3_value *);
int sqlite3_value_bytes(sqlite3_value *);
void sqlite3_result_error_code(sqlite3_context *, int);

/* Bytes of a text or blob. A number is not asked: it would become a text. */
static long long bezant_bytes_of(sqlite3_value *value) {
  const int text = 3, blob = 4;
  int type = sqlite3_value_type(value);
  return type == text || type == blob ? sqlite3_value_bytes(value) : 0;
}

/* What a function does with its arguments. */
typedef enum {
  BEZANT_ONCE,    /* goes through them */
  BEZANT_SEARCH,  /* holds each byte of one against a run of another, 64 at a time */
  BEZANT_MATCH,   /* holds each byte of one against each of another */
  BEZANT_WALK,    /* goes through the first for each other one, as JSON with paths */
  BEZANT_MERGE,   /* looks for each part among all, as JSON with JSON */
  BEZANT_DATE     /* reckons with each */
} bezant_work;

/* Counts the arguments of a function. */
static int bezant_may(sqlite3_context *context, int count, sqlite3_value **values, bezant_work work) {
  const int interrupt = 9;
  const long long argument = 32, date = 512;
  long long all = 0, product = 0;
  int i;
  if (!bezant_the_meter.runs) return 1;
  for (i = 0; i < count; i++) all += bezant_bytes_of(values[i]);
  if (count > 1) product = bezant_bytes_of(values[0]) * bezant_bytes_of(values[1]);
  switch (work) {
    case BEZANT_ONCE: break;
    case BEZANT_SEARCH: all += product / 64; break;
    case BEZANT_MATCH: all += product; break;
    case BEZANT_WALK: all *= 1 + count; break;
    case BEZANT_MERGE: all *= 1 + all / 64; break;
    case BEZANT_DATE: all = all * 16 + count * date; break;
  }
  bezant_go_through(all + count * argument);
  if (bezant_the_meter.bytes >= 0) return 1;
  sqlite3_result_error_code(context, interrupt);
  return 0;
}

#define BEZANT_FUNCTION(name, work)                                                        \
  static void bezant_plain_##name(sqlite3_context *, int, sqlite3_value **);             \
  static void name(sqlite3_context *context, int count, sqlite3_value **values) {        \
    if (bezant_may(context, count, values, work)) bezant_plain_##name(context, count, values); \
  }

BEZANT_FUNCTION(absFunc, BEZANT_ONCE)
BEZANT_FUNCTION(concatFunc, BEZANT_ONCE)
BEZANT_FUNCTION(concatwsFunc, BEZANT_ONCE)
BEZANT_FUNCTION(groupConcatInverse, BEZANT_ONCE)
BEZANT_FUNCTION(groupConcatStep, BEZANT_ONCE)
BEZANT_FUNCTION(hexFunc, BEZANT_ONCE)
BEZANT_FUNCTION(jsonArrayStep, BEZANT_ONCE)
BEZANT_FUNCTION(jsonObjectStep, BEZANT_ONCE)
BEZANT_FUNCTION(lengthFunc, BEZANT_ONCE)
BEZANT_FUNCTION(lowerFunc, BEZANT_ONCE)
BEZANT_FUNCTION(minmaxFunc, BEZANT_ONCE)
BEZANT_FUNCTION(minmaxStep, BEZANT_ONCE)
BEZANT_FUNCTION(nullifFunc, BEZANT_ONCE)
BEZANT_FUNCTION(printfFunc, BEZANT_ONCE)
BEZANT_FUNCTION(quoteFunc, BEZANT_ONCE)
BEZANT_FUNCTION(roundFunc, BEZANT_ONCE)
BEZANT_FUNCTION(substrFunc, BEZANT_ONCE)
BEZANT_FUNCTION(sumInverse, BEZANT_ONCE)
BEZANT_FUNCTION(sumStep, BEZANT_ONCE)
BEZANT_FUNCTION(unistrFunc, BEZANT_ONCE)
BEZANT_FUNCTION(upperFunc, BEZANT_ONCE)
BEZANT_FUNCTION(instrFunc, BEZANT_SEARCH)
BEZANT_FUNCTION(replaceFunc, BEZANT_SEARCH)
BEZANT_FUNCTION(likeFunc, BEZANT_MATCH)
BEZANT_FUNCTION(trimFunc, BEZANT_MATCH)
BEZANT_FUNCTION(unhexFunc, BEZANT_MATCH)
BEZANT_FUNCTION(jsonArrayFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonArrayLengthFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonErrorFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonExtractFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonObjectFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonPrettyFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonQuoteFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonRemoveFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonReplaceFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonSetFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonTypeFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonValidFunc, BEZANT_WALK)
BEZANT_FUNCTION(jsonPatchFunc, BEZANT_MERGE)
BEZANT_FUNCTION(dateFunc, BEZANT_DATE)
BEZANT_FUNCTION(datetimeFunc, BEZANT_DATE)
BEZANT_FUNCTION(juliandayFunc, BEZANT_DATE)
BEZANT_FUNCTION(strftimeFunc, BEZANT_DATE)
BEZANT_FUNCTION(timeFunc, BEZANT_DATE)
BEZANT_FUNCTION(timediffFunc, BEZANT_DATE)
BEZANT_FUNCTION(unixepochFunc, BEZANT_DATE)

/* A table function that walks to its path. */
typedef struct sqlite3_vtab_cursor sqlite3_vtab_cursor;
static int bezant_plain_jsonEachFilter(sqlite3_vtab_cursor *, int, const char *, int, sqlite3_value **);
static int jsonEachFilter(sqlite3_vtab_cursor *cursor, int number, const char *text, int count,
                          sqlite3_value **values) {
  int i;
  for (i = 0; i < count; i++) bezant_go_through(2 * bezant_bytes_of(values[i]));
  return bezant_plain_jsonEachFilter(cursor, number, text, count, values);
}
#define jsonEachFilter(c, n, t, k, v) bezant_plain_jsonEachFilter(c, n, t, k, v)

#define absFunc(c, n, v) bezant_plain_absFunc(c, n, v)
#define concatFunc(c, n, v) bezant_plain_concatFunc(c, n, v)
#define concatwsFunc(c, n, v) bezant_plain_concatwsFunc(c, n, v)
#define groupConcatInverse(c, n, v) bezant_plain_groupConcatInverse(c, n, v)
#define groupConcatStep(c, n, v) bezant_plain_groupConcatStep(c, n, v)
#define hexFunc(c, n, v) bezant_plain_hexFunc(c, n, v)
#define jsonArrayStep(c, n, v) bezant_plain_jsonArrayStep(c, n, v)
#define jsonObjectStep(c, n, v) bezant_plain_jsonObjectStep(c, n, v)
#define lengthFunc(c, n, v) bezant_plain_lengthFunc(c, n, v)
#define lowerFunc(c, n, v) bezant_plain_lowerFunc(c, n, v)
#define minmaxFunc(c, n, v) bezant_plain_minmaxFunc(c, n, v)
#define minmaxStep(c, n, v) bezant_plain_minmaxStep(c, n, v)
#define nullifFunc(c, n, v) bezant_plain_nullifFunc(c, n, v)
#define printfFunc(c, n, v) bezant_plain_printfFunc(c, n, v)
#define quoteFunc(c, n, v) bezant_plain_quoteFunc(c, n, v)
#define roundFunc(c, n, v) bezant_plain_roundFunc(c, n, v)
#define substrFunc(c, n, v) bezant_plain_substrFunc(c, n, v)
#define sumInverse(c, n, v) bezant_plain_sumInverse(c, n, v)
#define sumStep(c, n, v) bezant_plain_sumStep(c, n, v)
#define unistrFunc(c, n, v) bezant_plain_unistrFunc(c, n, v)
#define upperFunc(c, n, v) bezant_plain_upperFunc(c, n, v)
#define instrFunc(c, n, v) bezant_plain_instrFunc(c, n, v)
#define replaceFunc(c, n, v) bezant_plain_replaceFunc(c, n, v)
#define likeFunc(c, n, v) bezant_plain_likeFunc(c, n, v)
#define trimFunc(c, n, v) bezant_plain_trimFunc(c, n, v)
#define unhexFunc(c, n, v) bezant_plain_unhexFunc(c, n, v)
#define jsonArrayFunc(c, n, v) bezant_plain_jsonArrayFunc(c, n, v)
#define jsonArrayLengthFunc(c, n, v) bezant_plain_jsonArrayLengthFunc(c, n, v)
#define jsonErrorFunc(c, n, v) bezant_plain_jsonErrorFunc(c, n, v)
#define jsonExtractFunc(c, n, v) bezant_plain_jsonExtractFunc(c, n, v)
#define jsonObjectFunc(c, n, v) bezant_plain_jsonObjectFunc(c, n, v)
#define jsonPrettyFunc(c, n, v) bezant_plain_jsonPrettyFunc(c, n, v)
#define jsonQuoteFunc(c, n, v) bezant_plain_jsonQuoteFunc(c, n, v)
#define jsonRemoveFunc(c, n, v) bezant_plain_jsonRemoveFunc(c, n, v)
#define jsonReplaceFunc(c, n, v) bezant_plain_jsonReplaceFunc(c, n, v)
#define jsonSetFunc(c, n, v) bezant_plain_jsonSetFunc(c, n, v)
#define jsonTypeFunc(c, n, v) bezant_plain_jsonTypeFunc(c, n, v)
#define jsonValidFunc(c, n, v) bezant_plain_jsonValidFunc(c, n, v)
#define jsonPatchFunc(c, n, v) bezant_plain_jsonPatchFunc(c, n, v)
#define dateFunc(c, n, v) bezant_plain_dateFunc(c, n, v)
#define datetimeFunc(c, n, v) bezant_plain_datetimeFunc(c, n, v)
#define juliandayFunc(c, n, v) bezant_plain_juliandayFunc(c, n, v)
#define strftimeFunc(c, n, v) bezant_plain_strftimeFunc(c, n, v)
#define timeFunc(c, n, v) bezant_plain_timeFunc(c, n, v)
#define timediffFunc(c, n, v) bezant_plain_timediffFunc(c, n, v)
#define unixepochFunc(c, n, v) bezant_plain_unixepochFunc(c, n, v)

/* Two collations go through their texts byte by byte, and a step may search an index. */
#define BEZANT_COLLATION(name)                                                                           \
  static int bezant_plain_##name(void *, int, const void *, int, const void *);                          \
  static int name(void *unused, int bytes1, const void *text1, int bytes2, const void *text2) {          \
    bezant_go_through((long long)bytes1 + bytes2);                                                       \
    return bezant_plain_##name(unused, bytes1, text1, bytes2, text2);                                    \
  }
BEZANT_COLLATION(nocaseCollatingFunc)
BEZANT_COLLATION(rtrimCollFunc)
#define nocaseCollatingFunc(u, n1, t1, n2, t2) bezant_plain_nocaseCollatingFunc(u, n1, t1, n2, t2)
#define rtrimCollFunc(u, n1, t1, n2, t2) bezant_plain_rtrimCollFunc(u, n1, t1, n2, t2)

/* ---- What SQLite calls itself ---- */

/* A macro renames the definition of a function and its calls alike. But where it is defined, or declared, an argument
 * begins with its type. So what an argument is pasted to tells them apart: BEZANT_TYPE_Pager is a comma, and moves
 * the third place of a list to the plain name; BEZANT_TYPE_pPager is nothing, and the third place is what pays. */
#define BEZANT_THIRD(a, b, c, ...) c
#define BEZANT_CASE(...) BEZANT_THIRD(__VA_ARGS__, ~, ~)
#define BEZANT_TYPE_BtShared ,
#define BEZANT_TYPE_Mem ,
#define BEZANT_TYPE_Pager ,
#define BEZANT_TYPE_Parse ,
#define BEZANT_TYPE_PgHdr ,
#define BEZANT_TYPE_Table ,
#define BEZANT_TYPE_With ,
#define BEZANT_TYPE_int ,
#define BEZANT_TYPE_sqlite3 ,
#define BEZANT_TYPE_u8 ,

/* Counts, and says whether there was enough. If not, what was asked for is not done, and anything may be given instead:
 * whatever the statement comes to then, src/engine.rs says that it takes too much. */
static int bezant_pays(long long bytes) {
  bezant_go_through(bytes);
  return !bezant_the_meter.runs || bezant_the_meter.bytes >= 0;
}

/* Texts that are read as numbers, digit by digit, and a zeroblob that is compared with a blob. */
#define BEZANT_LONG(n, times) ((n) > BEZANT_BULK ? (long long)(n) * (times) : 0)
#define sqlite3MemRealValueRC(m, r)                                          \
  BEZANT_CASE(BEZANT_TYPE_##m, bezant_plain_sqlite3MemRealValueRC(m, r),     \
              (bezant_pays(BEZANT_LONG((m)->n, 2)) ? bezant_plain_sqlite3MemRealValueRC(m, r) : (*(r) = 0, 0)))
#define sqlite3Atoi64(z, i, n, e)                                            \
  BEZANT_CASE(BEZANT_TYPE_##e, bezant_plain_sqlite3Atoi64(z, i, n, e),       \
              (bezant_pays(BEZANT_LONG(n, 2)) ? bezant_plain_sqlite3Atoi64(z, i, n, e) : (*(i) = 0, 0)))
#define isAllZero(z, n)                                                      \
  BEZANT_CASE(BEZANT_TYPE_##n, bezant_plain_isAllZero(z, n),                 \
              (bezant_pays(BEZANT_LONG(n, 1)) ? bezant_plain_isAllZero(z, n) : 1))

/* Pages: one that is asked for, which may be in the cache or not; one of a chain, as of a long value, of which a step
 * may walk through all; and one that is written for the first time, which is kept twice and hashed. */
#define BEZANT_PAGE 128
#define BEZANT_PAGE_OF_CHAIN 1024
#define BEZANT_PAGE_WRITTEN 4096
#define sqlite3PagerGet(p, n, page, flags)                                   \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_sqlite3PagerGet(p, n, page, flags), \
              (bezant_go_through(BEZANT_PAGE), bezant_plain_sqlite3PagerGet(p, n, page, flags)))
#define getOverflowPage(b, n, page, next)                                    \
  BEZANT_CASE(BEZANT_TYPE_##b, bezant_plain_getOverflowPage(b, n, page, next), \
              (bezant_go_through(BEZANT_PAGE_OF_CHAIN), bezant_plain_getOverflowPage(b, n, page, next)))
#define pager_write(p)                                                       \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_pager_write(p),                  \
              (bezant_go_through(BEZANT_PAGE_WRITTEN), bezant_plain_pager_write(p)))

/* Preparing takes no steps: it is paid for by what it allocates, within a step too, as in CREATE TABLE. */
#define BEZANT_PLANNED 128
#define sqlite3Prepare(db, sql, n, flags, old, statement, tail)              \
  BEZANT_CASE(BEZANT_TYPE_##db, bezant_plain_sqlite3Prepare(db, sql, n, flags, old, statement, tail), \
              (BEZANT_PRICED(bezant_plain_sqlite3Prepare(db, sql, n, flags, old, statement, tail))))
#define BEZANT_PRICED(call)                                                  \
  ({                                                                         \
    long long price = bezant_the_meter.price;                                \
    int given;                                                               \
    bezant_the_meter.price = BEZANT_PLANNED;                                 \
    given = call;                                                            \
    bezant_the_meter.price = price;                                          \
    given;                                                                   \
  })

/* A select in a select, and a term of a union before another one, are prepared one within the other. SQLite bounds the
 * terms of one union and the depth of an expression, and together they fill any stack. There may be one union of as
 * many terms as there may be, and a hundred selects around it. */
#define BEZANT_DEPTH_MAX 600
static int bezant_enters(void) {
  if (!bezant_the_meter.runs) return 1;
  if (bezant_the_meter.depth >= BEZANT_DEPTH_MAX) return 0;
  bezant_the_meter.depth++;
  return 1;
}
#define BEZANT_LEAVES(call)                                                  \
  ({                                                                         \
    int given = call;                                                        \
    if (bezant_the_meter.runs) bezant_the_meter.depth--;                     \
    given;                                                                   \
  })
#define sqlite3Select(p, s, d)                                               \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_sqlite3Select(p, s, d),          \
              (bezant_enters() ? BEZANT_LEAVES(bezant_plain_sqlite3Select(p, s, d)) \
                               : (sqlite3ErrorMsg(p, "too many selects within one another"), 1)))

/* So is what ALTER TABLE asks about each table, view and trigger: its functions prepare them, with what they read. */
#define BEZANT_PREPARES(name)                                                \
  static void bezant_plain_##name(sqlite3_context *, int, sqlite3_value **); \
  static void name(sqlite3_context *context, int count, sqlite3_value **values) { \
    long long price = bezant_the_meter.price;                                \
    bezant_the_meter.price = BEZANT_PLANNED;                                 \
    bezant_plain_##name(context, count, values);                             \
    bezant_the_meter.price = price;                                          \
  }
BEZANT_PREPARES(renameColumnFunc)
BEZANT_PREPARES(renameTableFunc)
BEZANT_PREPARES(renameTableTest)
BEZANT_PREPARES(renameQuotefixFunc)
BEZANT_PREPARES(dropColumnFunc)
#define renameColumnFunc(c, n, v) bezant_plain_renameColumnFunc(c, n, v)
#define renameTableFunc(c, n, v) bezant_plain_renameTableFunc(c, n, v)
#define renameTableTest(c, n, v) bezant_plain_renameTableTest(c, n, v)
#define renameQuotefixFunc(c, n, v) bezant_plain_renameQuotefixFunc(c, n, v)
#define dropColumnFunc(c, n, v) bezant_plain_dropColumnFunc(c, n, v)

/* A column of a row is found behind all those before it, in one step. */
#define BEZANT_FIELD 16
#define sqlite3VdbeOneByteSerialTypeLen(t)                                   \
  BEZANT_CASE(BEZANT_TYPE_##t, bezant_plain_sqlite3VdbeOneByteSerialTypeLen(t), \
              (bezant_go_through(BEZANT_FIELD), bezant_plain_sqlite3VdbeOneByteSerialTypeLen(t)))

/* Lists that are searched while a statement is prepared: columns, which have a hash; common tables, outer ones too;
 * windows; and constants, of which there may be one already. Who has nothing left finds nothing. */
#define BEZANT_COLUMN 2
#define BEZANT_NAME 16
#define sqlite3ColumnIndex(t, name)                                          \
  BEZANT_CASE(BEZANT_TYPE_##t, bezant_plain_sqlite3ColumnIndex(t, name),     \
              (bezant_pays(BEZANT_COLUMN * (t)->nCol) ? bezant_plain_sqlite3ColumnIndex(t, name) : -1))
#define searchWith(w, item, context)                                         \
  BEZANT_CASE(BEZANT_TYPE_##w, bezant_plain_searchWith(w, item, context),    \
              (bezant_pays(BEZANT_TABLES(w)) ? bezant_plain_searchWith(w, item, context) : 0))
#define sqlite3WithAdd(p, w, c)                                              \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_sqlite3WithAdd(p, w, c),         \
              (BEZANT_PARSES(p, BEZANT_TABLES(w)), bezant_plain_sqlite3WithAdd(p, w, c)))
#define windowFind(p, list, name)                                            \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_windowFind(p, list, name),       \
              (BEZANT_PARSES(p, BEZANT_WINDOWS(list)) ? bezant_plain_windowFind(p, list, name) : 0))
#define sqlite3ExprCodeRunJustOnce(p, e, r)                                  \
  BEZANT_CASE(BEZANT_TYPE_##p, bezant_plain_sqlite3ExprCodeRunJustOnce(p, e, r), \
              (BEZANT_PARSES(p, BEZANT_CONSTANTS(p)) ? bezant_plain_sqlite3ExprCodeRunJustOnce(p, e, r) : 0))

/* Pays, or ends the preparing as SQLite's own look at the progress does. */
#define BEZANT_PARSES(p, bytes) (bezant_pays(bytes) || ((p)->nErr++, (p)->rc = SQLITE_INTERRUPT, 0))
#define BEZANT_CONSTANTS(p) ((p)->pConstExpr ? (long long)BEZANT_NAME * (p)->pConstExpr->nExpr : 0)
#define BEZANT_TABLES(list)                                                  \
  ({                                                                         \
    const With *with = (list);                                               \
    long long bytes = 0;                                                     \
    for (; with; with = with->pOuter) bytes += (long long)BEZANT_NAME * with->nCte; \
    bytes;                                                                   \
  })
#define BEZANT_WINDOWS(list)                                                 \
  ({                                                                         \
    const Window *window = (list);                                           \
    long long bytes = 0;                                                     \
    for (; window; window = window->pNextWin) bytes += BEZANT_NAME;          \
    bytes;                                                                   \
  })

#endif
