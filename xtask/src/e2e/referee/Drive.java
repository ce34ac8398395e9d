import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HexFormat;
import java.util.Properties;

/**
 * The same as drive.py for pgjdbc: java -cp JAR Drive.java PORT < STATEMENTS > OUTCOMES. Statements come without
 * parameters, one in each line, with ends of lines as \n and backslashes as \\, as `statements.py` is asked for them.
 */
class Drive {
    /** How long a statement may take, in seconds. */
    static final int ANSWER_MAX = 10;

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char character : text.toCharArray()) {
            if (character == '"' || character == '\\') {
                out.append('\\').append(character);
            } else if (character < ' ') {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        return out.append('"').toString();
    }

    static String shown(Object value) {
        if (value == null) {
            return "null";
        }
        // Zero has no sign in a replicated database.
        if (value instanceof Double number && number == 0 || value instanceof Float small && small == 0) {
            return quoted(value.getClass().getSimpleName() + " 0.0");
        }
        String text = value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : value.toString();
        return quoted(value.getClass().getSimpleName() + " " + text);
    }

    static Connection connect(String port) throws SQLException {
        Properties properties = new Properties();
        properties.put("user", "postgres");
        properties.put("socketTimeout", String.valueOf(ANSWER_MAX));
        // The fifth execution of a statement asks for binary results: from the first one here.
        properties.put("prepareThreshold", "-1");
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/postgres", properties);
    }

    static String ask(Connection connection, String sql) {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            if (!statement.execute()) {
                return "{\"rows\": [], \"types\": [], \"count\": " + statement.getUpdateCount() + "}";
            }
            ResultSet result = statement.getResultSet();
            int width = result.getMetaData().getColumnCount();
            StringBuilder types = new StringBuilder();
            for (int column = 1; column <= width; column++) {
                types.append(column > 1 ? ", " : "").append(quoted(result.getMetaData().getColumnTypeName(column)));
            }
            StringBuilder rows = new StringBuilder();
            int count = 0;
            while (result.next()) {
                rows.append(count++ > 0 ? ", [" : "[");
                for (int column = 1; column <= width; column++) {
                    rows.append(column > 1 ? ", " : "").append(shown(result.getObject(column)));
                }
                rows.append("]");
            }
            return "{\"rows\": [" + rows + "], \"types\": [" + types + "], \"count\": " + count + "}";
        } catch (SQLException error) {
            String state = error.getSQLState() == null ? "client" : error.getSQLState();
            String message = String.valueOf(error.getMessage());
            return "{\"error\": " + quoted(state) + ", \"message\": " + quoted(message) + "}";
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Connection connection = connect(arguments[0]);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(ask(connection, line.translateEscapes()));
            if (connection.isClosed()) {
                connection = connect(arguments[0]);
            }
        }
    }
}
