import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Records in which names java.util.regex finds expressions, as OpenTSDB's filter looks for them:
 *
 *   java Regexps.java regexps.txt regexpnames.txt | gzip -9n > regexps.txt.gz
 *
 * Both files have one a line. For each expression a line is written, of a digit for each name (1: it is found), a blank and the
 * expression, or - in place of the digits for one that Java refuses. regexps.txt may also be such lines: their digits are left out.
 */
public class Regexps {
    public static void main(String[] args) throws Exception {
        List<String> names = Files.readAllLines(Path.of(args[1]), StandardCharsets.UTF_8);
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.UTF_8)) {
            String text = line.matches("([01]{" + names.size() + "}|-) .*") ? line.substring(line.indexOf(' ') + 1) : line;
            out.println(record(text, names) + " " + text);
        }
        out.flush();
    }

    static String record(String text, List<String> names) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(text);
        } catch (PatternSyntaxException e) {
            return "-";
        }
        StringBuilder found = new StringBuilder();
        for (String name : names) {
            found.append(pattern.matcher(name).find() ? '1' : '0');
        }
        return found.toString();
    }
}
