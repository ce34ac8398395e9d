// What programs do through pgjdbc: java -cp DRIVER Cases.java PORT. Each line of the output is `pass NAME` or
// `fail NAME: why`.

import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;

public class Cases {
    interface Case {
        void run(Connection connection) throws Exception;
    }

    static String url;

    static Connection open() throws SQLException {
        return DriverManager.getConnection(url, "postgres", "");
    }

    static void check(Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(found + " is not " + wanted);
        }
    }

    static List<String> all(ResultSet rows, String... columns) throws SQLException {
        List<String> lines = new ArrayList<>();
        while (rows.next()) {
            StringJoiner line = new StringJoiner(" ");
            for (String column : columns) {
                line.add(String.valueOf(rows.getString(column)));
            }
            lines.add(line.toString());
        }
        return lines;
    }

    static void state(String wanted, Case work, Connection connection) throws Exception {
        try {
            work.run(connection);
        } catch (SQLException error) {
            check(error.getSQLState(), wanted);
            return;
        }
        throw new AssertionError("there was no error " + wanted);
    }

    static void make(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table jdbc_owner(id serial primary key, name varchar(40) not null unique)");
            statement.execute("create table jdbc_item(id bigint primary key, owner integer not null"
                + " references jdbc_owner(id) on delete cascade, price numeric(10, 2) default 0, label text,"
                + " sold boolean, made timestamp, seen timestamptz, day date, raw bytea, id2 uuid, weight float8)");
            statement.execute("create index jdbc_by_label on jdbc_item(label)");
            statement.execute("create view jdbc_view as select id, label from jdbc_item");
        }
    }

    static void preparedStatements(Connection connection) throws Exception {
        String sql = "insert into jdbc_owner(name) values (?)";
        try (PreparedStatement insert = connection.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
            // More than the five after which the driver prepares on the server.
            for (int number = 1; number <= 12; number++) {
                insert.setString(1, "owner " + number);
                check(insert.executeUpdate(), 1);
                ResultSet keys = insert.getGeneratedKeys();
                keys.next();
                check(keys.getInt("id"), number);
            }
        }
        try (PreparedStatement select = connection.prepareStatement("select name from jdbc_owner where id = ?")) {
            for (int number = 1; number <= 12; number++) {
                select.setInt(1, number);
                check(all(select.executeQuery(), "name"), List.of("owner " + number));
            }
        }
    }

    static void types(Connection connection) throws Exception {
        UUID uuid = UUID.fromString("01234567-89ab-cdef-0123-456789abcdef");
        LocalDateTime moment = LocalDateTime.of(2024, 2, 29, 13, 14, 15, 678_901_000);
        OffsetDateTime zoned = moment.atOffset(ZoneOffset.ofHours(2));
        String sql = "insert into jdbc_item values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            insert.setLong(1, 1);
            insert.setInt(2, 1);
            insert.setBigDecimal(3, new BigDecimal("12.34"));
            insert.setString(4, "it's");
            insert.setBoolean(5, true);
            insert.setObject(6, moment);
            insert.setObject(7, zoned);
            insert.setObject(8, LocalDate.of(2024, 2, 29));
            insert.setBytes(9, new byte[] {0, 1, -1});
            insert.setObject(10, uuid);
            insert.setDouble(11, 0.1);
            check(insert.executeUpdate(), 1);
        }
        for (int round = 0; round < 8; round++) {
            try (PreparedStatement select = connection.prepareStatement("select * from jdbc_item where id = ?")) {
                select.setLong(1, 1);
                ResultSet row = select.executeQuery();
                row.next();
                check(row.getBigDecimal("price"), new BigDecimal("12.34"));
                check(row.getString("label"), "it's");
                check(row.getBoolean("sold"), true);
                check(row.getObject("made", LocalDateTime.class), moment);
                check(row.getObject("seen", OffsetDateTime.class).toInstant(), zoned.toInstant());
                check(row.getObject("day", LocalDate.class), LocalDate.of(2024, 2, 29));
                check(Arrays.toString(row.getBytes("raw")), "[0, 1, -1]");
                check(row.getObject("id2"), uuid);
                check(row.getDouble("weight"), 0.1);
            }
        }
    }

    static void timestamps(Connection connection) throws Exception {
        Timestamp moment = Timestamp.valueOf("2024-03-31 02:30:00.5");
        try (PreparedStatement update = connection.prepareStatement("update jdbc_item set made = ?, seen = ?")) {
            update.setTimestamp(1, moment);
            update.setTimestamp(2, moment);
            check(update.executeUpdate(), 1);
        }
        ResultSet row = connection.createStatement().executeQuery("select made, seen from jdbc_item");
        row.next();
        check(row.getTimestamp(1), moment);
        check(row.getTimestamp(2), moment);
    }

    static void batch(Connection connection) throws Exception {
        try (PreparedStatement insert = connection.prepareStatement("insert into jdbc_item(id, owner) values (?, 2)")) {
            for (int number = 100; number < 400; number++) {
                insert.setLong(1, number);
                insert.addBatch();
            }
            check(Arrays.stream(insert.executeBatch()).sum(), 300);
        }
    }

    static void rewrittenBatch(Connection connection) throws Exception {
        try (Connection other = DriverManager.getConnection(url + "&reWriteBatchedInserts=true", "postgres", "")) {
            String sql = "insert into jdbc_item(id, owner) values (?, 3)";
            try (PreparedStatement insert = other.prepareStatement(sql)) {
                for (int number = 1000; number < 1300; number++) {
                    insert.setLong(1, number);
                    insert.addBatch();
                }
                check(insert.executeBatch().length, 300);
            }
        }
    }

    static void failedBatch(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        Statement statement = connection.createStatement();
        statement.addBatch("insert into jdbc_owner(name) values ('batch')");
        statement.addBatch("insert into jdbc_owner(name) values ('owner 1')");
        try {
            statement.executeBatch();
            throw new AssertionError("it is unique");
        } catch (BatchUpdateException error) {
            check(error.getSQLState(), "23505");
        }
        connection.rollback();
        connection.setAutoCommit(true);
        String sql = "select name from jdbc_owner where name = 'batch'";
        check(all(statement.executeQuery(sql), "name"), List.of());
    }

    static void tables(Connection connection) throws Exception {
        DatabaseMetaData meta = connection.getMetaData();
        check(all(meta.getTables(null, "public", "jdbc%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE"),
            List.of("jdbc_item TABLE", "jdbc_owner TABLE"));
        check(all(meta.getTables(null, null, "jdbc%", new String[] {"VIEW"}), "TABLE_NAME"), List.of("jdbc_view"));
    }

    static void everyTable(Connection connection) throws Exception {
        String[] kinds = {"TABLE"};
        check(all(connection.getMetaData().getTables(null, null, "%", kinds), "TABLE_NAME"),
            List.of("jdbc_item", "jdbc_owner"));
    }

    static void columns(Connection connection) throws Exception {
        ResultSet rows = connection.getMetaData().getColumns(null, "public", "jdbc_item", "%");
        List<String> found = all(rows, "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE");
        check(found.subList(0, 5), List.of("id int8 19 0 NO", "owner int4 10 0 NO", "price numeric 10 2 YES",
            "label text 2147483647 0 YES", "sold bool 1 0 YES"));
    }

    static void autoincrement(Connection connection) throws Exception {
        ResultSet rows = connection.getMetaData().getColumns(null, "public", "jdbc_owner", "%");
        check(all(rows, "COLUMN_NAME", "TYPE_NAME", "IS_AUTOINCREMENT"), List.of("id serial YES", "name varchar NO"));
    }

    static void primaryKeys(Connection connection) throws Exception {
        check(all(connection.getMetaData().getPrimaryKeys(null, "public", "jdbc_item"), "COLUMN_NAME", "PK_NAME"),
            List.of("id jdbc_item_pkey"));
    }

    static void importedKeys(Connection connection) throws Exception {
        ResultSet rows = connection.getMetaData().getImportedKeys(null, "public", "jdbc_item");
        check(all(rows, "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "FK_NAME", "DELETE_RULE"),
            List.of("jdbc_owner id owner jdbc_item_owner_fkey " + DatabaseMetaData.importedKeyCascade));
    }

    static void exportedKeys(Connection connection) throws Exception {
        ResultSet rows = connection.getMetaData().getExportedKeys(null, "public", "jdbc_owner");
        check(all(rows, "FKTABLE_NAME", "FKCOLUMN_NAME"), List.of("jdbc_item owner"));
    }

    static void indexInfo(Connection connection) throws Exception {
        ResultSet rows = connection.getMetaData().getIndexInfo(null, "public", "jdbc_item", false, false);
        check(all(rows, "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE"),
            List.of("jdbc_item_pkey id f", "jdbc_by_label label t"));
    }

    static void schemas(Connection connection) throws Exception {
        List<String> found = all(connection.getMetaData().getSchemas(), "TABLE_SCHEM");
        check(found.contains("public"), true);
        check(connection.getSchema(), "public");
    }

    static void typeInfo(Connection connection) throws Exception {
        check(all(connection.getMetaData().getTypeInfo(), "TYPE_NAME").contains("int8"), true);
    }

    static void resultSetMetaData(Connection connection) throws Exception {
        Statement statement = connection.createStatement();
        ResultSetMetaData meta = statement.executeQuery("select id, price as p, label from jdbc_item").getMetaData();
        check(meta.getColumnType(1), Types.BIGINT);
        check(meta.getColumnLabel(2), "p");
        check(meta.getScale(2), 2);
    }

    static void originOfColumns(Connection connection) throws Exception {
        Statement statement = connection.createStatement();
        ResultSetMetaData meta = statement.executeQuery("select id, price as p from jdbc_item").getMetaData();
        check(meta.getTableName(1), "jdbc_item");
        check(meta.isNullable(1), ResultSetMetaData.columnNoNulls);
    }

    static void updatableResultSet(Connection connection) throws Exception {
        int scrolls = ResultSet.TYPE_SCROLL_INSENSITIVE;
        Statement statement = connection.createStatement(scrolls, ResultSet.CONCUR_UPDATABLE);
        ResultSet row = statement.executeQuery("select id, label from jdbc_item where id = 1");
        row.next();
        row.updateString("label", "updated");
        row.updateRow();
        check(all(statement.executeQuery("select label from jdbc_item where id = 1"), "label"), List.of("updated"));
    }

    static void savepoints(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        Statement statement = connection.createStatement();
        statement.execute("update jdbc_item set label = 'a' where id = 1");
        Savepoint savepoint = connection.setSavepoint();
        state("23505", one -> statement.execute("insert into jdbc_owner(name) values ('owner 1')"), connection);
        state("25P02", one -> statement.execute("select 1"), connection);
        connection.rollback(savepoint);
        Savepoint named = connection.setSavepoint("named");
        statement.execute("update jdbc_item set label = 'b' where id = 1");
        connection.releaseSavepoint(named);
        connection.commit();
        connection.setAutoCommit(true);
        check(all(statement.executeQuery("select label from jdbc_item where id = 1"), "label"), List.of("b"));
    }

    static void isolation(Connection connection) throws Exception {
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        check(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE);
        connection.setReadOnly(true);
        connection.setAutoCommit(false);
        state("25006", one -> one.createStatement().execute("delete from jdbc_item"), connection);
        connection.rollback();
    }

    static void fetchSize(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (PreparedStatement select = connection.prepareStatement("select id from jdbc_item order by id")) {
            select.setFetchSize(50);
            check(all(select.executeQuery(), "id").size(), 601);
        }
        connection.commit();
    }

    static void scrolling(Connection connection) throws Exception {
        int scrolls = ResultSet.TYPE_SCROLL_INSENSITIVE;
        Statement statement = connection.createStatement(scrolls, ResultSet.CONCUR_READ_ONLY);
        ResultSet rows = statement.executeQuery("select id from jdbc_item order by id");
        rows.last();
        check(rows.getRow(), 601);
        rows.absolute(2);
        check(rows.getInt(1), 100);
    }

    static void arrays(Connection connection) throws Exception {
        Array ids = connection.createArrayOf("bigint", new Long[] {1L, 100L, 7L});
        try (PreparedStatement select = connection.prepareStatement("select id from jdbc_item where id = any (?)")) {
            select.setArray(1, ids);
            check(all(select.executeQuery(), "id").size(), 2);
        }
    }

    static void largeObjects(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        Blob blob = connection.createBlob();
        blob.setBytes(1, new byte[] {1, 2, 3});
        check(blob.length(), 3L);
        connection.rollback();
    }

    static void copy(Connection connection) throws Exception {
        var copies = connection.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
        check(copies.copyIn("copy jdbc_owner(name) from stdin", new java.io.StringReader("copied\nagain\n")), 2L);
        var out = new java.io.StringWriter();
        copies.copyOut("copy (select name from jdbc_owner"
            + " where name in ('copied', 'again') order by 1) to stdout", out);
        check(out.toString(), "again\ncopied\n");
    }

    static void queryTimeout(Connection connection) throws Exception {
        Statement statement = connection.createStatement();
        statement.setQueryTimeout(1);
        state("57014", one -> statement.execute("with recursive n(i) as (select 1 union all select i + 1 from n"
            + " where i < 2000000000) select count(*) from n"), connection);
        check(all(connection.createStatement().executeQuery("select 1 as one"), "one"), List.of("1"));
    }

    static void warnings(Connection connection) throws Exception {
        check(connection.isValid(2), true);
        Statement statement = connection.createStatement();
        statement.execute("drop table if exists jdbc_nothing");
        check(statement.getWarnings() != null, true);
    }

    static void callFunctions(Connection connection) throws Exception {
        try (PreparedStatement call = connection.prepareStatement(
            "select {fn ucase(?)} as up, {d '2024-01-01'} as d")) {
            call.setString(1, "abc");
            check(all(call.executeQuery(), "up", "d"), List.of("ABC 2024-01-01"));
        }
    }

    static void drop(Connection connection) throws Exception {
        Statement statement = connection.createStatement();
        statement.execute("drop view jdbc_view");
        statement.execute("drop table jdbc_item, jdbc_owner");
    }

    public static void main(String[] arguments) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/postgres?sslmode=disable";
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("make", Cases::make);
        cases.put("prepared_statements", Cases::preparedStatements);
        cases.put("types", Cases::types);
        cases.put("timestamps", Cases::timestamps);
        cases.put("batch", Cases::batch);
        cases.put("rewritten_batch", Cases::rewrittenBatch);
        cases.put("failed_batch", Cases::failedBatch);
        cases.put("tables", Cases::tables);
        cases.put("every_table", Cases::everyTable);
        cases.put("columns", Cases::columns);
        cases.put("autoincrement", Cases::autoincrement);
        cases.put("primary_keys", Cases::primaryKeys);
        cases.put("imported_keys", Cases::importedKeys);
        cases.put("exported_keys", Cases::exportedKeys);
        cases.put("index_info", Cases::indexInfo);
        cases.put("schemas", Cases::schemas);
        cases.put("type_info", Cases::typeInfo);
        cases.put("result_set_meta_data", Cases::resultSetMetaData);
        cases.put("origin_of_columns", Cases::originOfColumns);
        cases.put("updatable_result_set", Cases::updatableResultSet);
        cases.put("savepoints", Cases::savepoints);
        cases.put("isolation", Cases::isolation);
        cases.put("fetch_size", Cases::fetchSize);
        cases.put("scrolling", Cases::scrolling);
        cases.put("arrays", Cases::arrays);
        cases.put("large_objects", Cases::largeObjects);
        cases.put("copy", Cases::copy);
        cases.put("query_timeout", Cases::queryTimeout);
        cases.put("warnings", Cases::warnings);
        cases.put("call_functions", Cases::callFunctions);
        cases.put("drop", Cases::drop);
        cases.forEach((name, work) -> {
            try (Connection connection = open()) {
                work.run(connection);
                System.out.println("pass " + name);
            } catch (Throwable error) {
                System.out.println("fail " + name + ": " + String.valueOf(error.getMessage()).replace('\n', ' '));
            }
        });
    }
}
