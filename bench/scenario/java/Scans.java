import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Scans with HBase's own client, as it is set up by itself, over connections that are protected as the property
 * scans.protection says: simple, TLS, or a protection of Kerberos. Reads one command a line, words parted
 * by tabs: TABLE, START and STOP, keys in hex. Answers with
 * "-&lt;tab&gt;NANOSECONDS&lt;tab&gt;ROWS&lt;tab&gt;CELLS" and "ok", or "error&lt;tab&gt;MESSAGE". Connections
 * stay open, so the first scan makes them. A process has one protection, because the client chooses its way to
 * authenticate once.
 */
public class Scans {
  private final Connection connection;

  private Scans(Connection connection) {
    this.connection = connection;
  }

  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
    System.setOut(System.err); // nothing but answers may reach the pipe
    Configuration site = HBaseConfiguration.create();
    UserGroupInformation.setConfiguration(site);
    UserGroupInformation.loginUserFromKeytab(
        site.get("hbase.client.keytab.principal"), site.get("hbase.client.keytab.file"));
    protect(site, System.getProperty("scans.protection"));

    Scans scans = new Scans(ConnectionFactory.createConnection(site));
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        String[] w = line.split("\t", -1);
        out.print("-\t" + scans.scan(w[0], Bytes.fromHex(w[1]), Bytes.fromHex(w[2])) + "\nok\n");
      } catch (Exception e) {
        out.print("error\t" + String.valueOf(e).replace('\n', ' ') + "\n");
      }
      out.flush();
    }
  }

  private String scan(String table, byte[] start, byte[] stop) throws IOException {
    long began = System.nanoTime();
    long rows = 0;
    long cells = 0;
    Scan scan = new Scan().withStartRow(start).withStopRow(stop).addFamily(Bytes.toBytes("t"));
    try (Table t = connection.getTable(TableName.valueOf(table));
        ResultScanner results = t.getScanner(scan)) {
      for (Result r = results.next(); r != null; r = results.next()) {
        rows++;
        cells += r.rawCells().length;
      }
    }
    return (System.nanoTime() - began) + "\t" + rows + "\t" + cells;
  }

  /** The cluster's servers take all kinds of connections; what a client chooses stands in its configuration. */
  private static void protect(Configuration c, String protection) {
    boolean kerberos = !protection.equals("simple") && !protection.equals("TLS");
    c.set("hbase.security.authentication", kerberos ? "kerberos" : "simple");
    if (kerberos) {
      c.set("hbase.rpc.protection", protection);
    }
    c.setBoolean("hbase.client.netty.tls.enabled", protection.equals("TLS"));
  }
}
