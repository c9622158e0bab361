import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterStatus;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * What Admin.java is for HBase 2, for HBase 1: commands and answers are the same, but only those that
 * the matrix of versions needs.
 */
public class Admin1 {
  private static final long WAIT_MS = 60_000;
  private final Configuration conf = HBaseConfiguration.create();
  private final PrintStream out;
  private Connection connection;

  private Admin1(PrintStream out) {
    this.out = out;
    conf.setInt("hbase.client.retries.number", 4);
    conf.setInt("hbase.client.pause", 50);
    conf.setInt("hbase.rpc.timeout", 20_000);
    conf.setInt("hbase.client.operation.timeout", 60_000);
    conf.setInt("zookeeper.recovery.retry", 1);
  }

  /** Has this client's keys used; the client of HBase 2 does that by itself. */
  private void login() throws IOException {
    if (User.isHBaseSecurityEnabled(conf)) {
      UserGroupInformation.setConfiguration(conf);
      UserGroupInformation.loginUserFromKeytab(
          conf.get("hbase.client.keytab.principal"), conf.get("hbase.client.keytab.file"));
    }
  }

  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "UTF-8");
    System.setOut(System.err); // nothing but answers may reach the pipe
    Admin1 admin = new Admin1(out);
    admin.login();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        admin.run(line.split("\t", -1));
        out.print("ok\n");
      } catch (Exception e) {
        String message = String.valueOf(e.getMessage());
        int end = message.indexOf('\n');
        out.print("error\t" + e.getClass().getSimpleName() + ": " + (end < 0 ? message : message.substring(0, end)) + "\n");
      }
      out.flush();
    }
  }

  private void run(String[] w) throws Exception {
    if (connection == null) {
      connection = ConnectionFactory.createConnection(conf);
    }
    try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
      switch (w[0]) {
        case "ready": ready(admin, Integer.parseInt(w[1])); break;
        case "create": create(admin, w); break;
        case "flush": admin.flush(table(w)); break;
        case "split": split(admin, table(w), Bytes.fromHex(w[2])); break;
        case "scan": scan(table(w)); break;
        case "version": data(admin.getClusterStatus().getHBaseVersion()); break;
        default: throw new IllegalArgumentException("no such command for HBase 1: " + w[0]);
      }
    }
  }

  private static TableName table(String[] w) {
    return TableName.valueOf(w[1]);
  }

  private void data(Object... fields) {
    StringBuilder line = new StringBuilder("-");
    for (Object field : fields) {
      line.append('\t').append(field);
    }
    out.print(line.append('\n'));
  }

  private void ready(org.apache.hadoop.hbase.client.Admin admin, int want) throws IOException {
    admin.listNamespaceDescriptors(); // refused until the master is initialised
    ClusterStatus s = admin.getClusterStatus();
    int moving = s.getRegionsInTransition().size();
    if (s.getServersSize() != want || moving != 0) {
      throw new IOException(
          s.getServersSize() + " live region servers, want " + want + "; " + moving + " regions in transition");
    }
  }

  private void create(org.apache.hadoop.hbase.client.Admin admin, String[] w) throws IOException {
    HTableDescriptor t = new HTableDescriptor(table(w));
    for (String family : w[3].split(",")) {
      t.addFamily(
          new HColumnDescriptor(family)
              .setBloomFilterType(BloomType.ROW)
              .setMaxVersions(1)
              .setDataBlockEncoding(DataBlockEncoding.DIFF)
              .setCompressionType(Compression.Algorithm.valueOf(w[2])));
    }
    byte[][] splits = new byte[w.length - 4][];
    for (int i = 0; i < splits.length; i++) {
      splits[i] = Bytes.fromHex(w[i + 4]);
    }
    if (splits.length == 0) {
      admin.createTable(t);
    } else {
      admin.createTable(t, splits);
    }
  }

  private List<HRegionLocation> locations(TableName table) throws IOException {
    connection.close(); // with what it remembers of regions
    connection = ConnectionFactory.createConnection(conf);
    try (RegionLocator locator = connection.getRegionLocator(table)) {
      return new ArrayList<>(locator.getAllRegionLocations());
    }
  }

  private void split(org.apache.hadoop.hbase.client.Admin admin, TableName table, byte[] key)
      throws Exception {
    int want = locations(table).size() + 1;
    try (org.apache.hadoop.hbase.client.Admin fresh = connection.getAdmin()) {
      fresh.split(table, key);
    }
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
    while (!served(table, want)) {
      if (System.nanoTime() > deadline) {
        throw new IOException("not within " + WAIT_MS + " ms: one region more");
      }
      Thread.sleep(50);
    }
  }

  /** There are so many regions, and each has a server that answers a read. */
  private boolean served(TableName table, int regions) {
    try {
      List<HRegionLocation> all = locations(table);
      if (all.size() != regions) {
        return false;
      }
      try (Table t = connection.getTable(table)) {
        for (HRegionLocation l : all) {
          Scan one = new Scan(l.getRegionInfo().getStartKey(), l.getRegionInfo().getEndKey());
          try (ResultScanner s = t.getScanner(one.setCaching(1))) {
            s.next();
          }
        }
      }
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private void scan(TableName table) throws IOException {
    try (Table t = connection.getTable(table);
        ResultScanner s = t.getScanner(new Scan().setCaching(1000))) {
      for (Result r : s) {
        for (Cell c : r.rawCells()) {
          data(
              Bytes.toHex(CellUtil.cloneRow(c)),
              Bytes.toString(CellUtil.cloneFamily(c)),
              Bytes.toHex(CellUtil.cloneQualifier(c)),
              Bytes.toHex(CellUtil.cloneValue(c)));
        }
      }
    }
  }
}
