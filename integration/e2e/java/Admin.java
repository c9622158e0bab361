import java.io.BufferedReader;
import java.io.BufferedOutputStream;
import java.io.InputStreamReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.exceptions.MergeRegionException;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBase administration for the integration tests. Reads one command a line, words parted by tabs,
 * keys and values in hex; answers with lines "-&lt;tab&gt;DATA" and then "ok" or
 * "error&lt;tab&gt;MESSAGE". Each command waits until what it asked for is done.
 */
public class Admin {
  private static final long WAIT_MS = 60_000;
  private final Configuration conf = HBaseConfiguration.create();
  private final PrintStream out;
  private Connection connection;

  private Admin(PrintStream out) {
    this.out = out;
    // A look at a cluster that is still starting should fail soon and be asked for again.
    conf.setInt("hbase.client.retries.number", 4);
    conf.setInt("hbase.client.pause", 50);
    conf.setInt("hbase.rpc.timeout", 20_000);
    conf.setInt("hbase.client.operation.timeout", 60_000);
    conf.setInt("zookeeper.recovery.retry", 1);
    // A server that hangs holds its connections open: a call to it must end by itself.
    conf.setInt("hbase.rpc.read.timeout", 5_000);
    conf.setInt("hbase.client.scanner.timeout.period", 5_000);
    conf.setInt("hbase.client.meta.scanner.timeout.period", 5_000);
    conf.setInt("hbase.client.meta.operation.timeout", 10_000);
  }

  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "UTF-8");
    System.setOut(System.err); // nothing but answers may reach the pipe
    Admin admin = new Admin(out);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        admin.run(line.split("\t", -1));
        out.print("ok\n");
      } catch (Exception e) {
        out.print("error\t" + oneLine(e) + "\n");
        admin.forget(line);
      }
      out.flush();
    }
  }

  /**
   * After a failed read, drops the connection with what it remembers of regions that have moved
   * away from a server that hangs: it would time out once for each of them.
   */
  private void forget(String line) throws IOException {
    if (connection != null && (line.startsWith("scan") || line.startsWith("regions"))) {
      connection.close();
      connection = null;
    }
  }

  private static String oneLine(Throwable e) {
    String message = String.valueOf(e.getMessage());
    int end = message.indexOf('\n');
    return e.getClass().getSimpleName() + ": " + (end < 0 ? message : message.substring(0, end));
  }

  private void run(String[] w) throws Exception {
    if (connection == null) {
      connection = ConnectionFactory.createConnection(conf);
    }
    try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
      switch (w[0]) {
        case "ready": ready(admin, Integer.parseInt(w[1])); break;
        case "create": create(admin, w); break;
        case "drop": drop(admin, table(w)); break;
        case "snapshot": admin.snapshot(w[2], table(w)); break;
        case "restore": restore(admin, table(w), w[2]); break;
        case "clone": clone(admin, table(w), w[2]); break;
        case "truncate": truncate(admin, table(w), Boolean.parseBoolean(w[2])); break;
        case "tables": for (TableName t : admin.listTableNames()) data(t.getNameAsString()); break;
        case "describe": describe(admin, table(w)); break;
        case "flush": admin.flush(table(w)); break;
        case "compact": compact(admin, table(w)); break;
        case "split": split(admin, table(w), Bytes.fromHex(w[2])); break;
        case "merge": merge(admin, table(w), w[2], w[3]); break;
        case "move": move(admin, table(w), w[2], w[3]); break;
        case "regions": regions(table(w)); break;
        case "scan": scan(table(w)); break;
        case "put": put(table(w), w); break;
        case "change": change(table(w), w); break;
        case "region": region(admin, w[2], Bytes.toBytes(w[3])); break;
        case "bulk load": bulkLoad(table(w), w); break;
        case "configure": configure(admin, table(w), w[2], w[3]); break;
        case "reads": reads(admin, table(w)); break;
        case "files": files(admin, table(w)); break;
        case "version": version(admin); break;
        case "grant": grant(admin, w[1], w[2], w[3]); break;
        case "grant column": grantColumn(admin, w); break;
        case "throttle": throttle(admin, table(w), Integer.parseInt(w[2])); break;
        case "create with": createWith(admin, w); break;
        case "durability": durability(admin, table(w), w[2]); break;
        default: throw new IllegalArgumentException("no such command: " + w[0]);
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
    ClusterMetrics m =
        admin.getClusterMetrics(
            EnumSet.of(
                ClusterMetrics.Option.LIVE_SERVERS, ClusterMetrics.Option.REGIONS_IN_TRANSITION));
    int live = m.getLiveServerMetrics().size();
    int moving = m.getRegionStatesInTransition().size();
    if (live != want || moving != 0) {
      throw new IOException(
          live + " live region servers, want " + want + "; " + moving + " regions in transition");
    }
  }

  private void create(org.apache.hadoop.hbase.client.Admin admin, String[] w) throws IOException {
    TableDescriptorBuilder b = TableDescriptorBuilder.newBuilder(table(w));
    for (String family : w[3].split(",")) {
      b.setColumnFamily(
          ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(family))
              .setBloomFilterType(BloomType.ROW)
              .setMaxVersions(1)
              .setDataBlockEncoding(DataBlockEncoding.DIFF)
              .setCompressionType(Compression.Algorithm.valueOf(w[2]))
              .build());
    }
    byte[][] splits = new byte[w.length - 4][];
    for (int i = 0; i < splits.length; i++) {
      splits[i] = Bytes.fromHex(w[i + 4]);
    }
    if (splits.length == 0) {
      admin.createTable(b.build());
    } else {
      admin.createTable(b.build(), splits);
    }
  }

  private void drop(org.apache.hadoop.hbase.client.Admin admin, TableName table)
      throws IOException {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }

  private void restore(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, String snapshot)
      throws Exception {
    admin.disableTable(table);
    admin.restoreSnapshot(snapshot);
    admin.enableTable(table);
    await("all regions of " + table, () -> served(table));
  }

  private void clone(org.apache.hadoop.hbase.client.Admin admin, TableName table, String snapshot)
      throws Exception {
    admin.cloneSnapshot(snapshot, table);
    await("all regions of " + table, () -> served(table));
  }

  private void truncate(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, boolean preserveSplits)
      throws Exception {
    // TruncateTableProcedure deletes the files of a region that was split and that the janitor has
    // not cleared away yet, instead of archiving them: snapshots that refer to them are lost.
    await(
        "no parent of a split in " + table,
        () -> {
          admin.runCatalogJanitor();
          return !hasSplitParent(table);
        });
    admin.disableTable(table);
    admin.truncateTable(table, preserveSplits);
    await("all regions of " + table, () -> served(table));
  }

  /** hbase:meta has a region of the table that was split into two. */
  private boolean hasSplitParent(TableName table) throws IOException {
    Scan rows = new Scan().addColumn(HConstants.CATALOG_FAMILY, HConstants.SPLITA_QUALIFIER);
    rows.setRowPrefixFilter(Bytes.toBytes(table + ","));
    try (Table meta = connection.getTable(TableName.META_TABLE_NAME);
        ResultScanner found = meta.getScanner(rows)) {
      return found.next() != null;
    }
  }

  private void describe(org.apache.hadoop.hbase.client.Admin admin, TableName table)
      throws IOException {
    for (ColumnFamilyDescriptor f : admin.getDescriptor(table).getColumnFamilies()) {
      f.getValues()
          .forEach(
              (k, v) ->
                  data(f.getNameAsString(), Bytes.toString(k.get()), Bytes.toString(v.get())));
    }
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void await(String what, Condition condition) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new IOException("not within " + WAIT_MS + " ms: " + what);
      }
      Thread.sleep(20);
    }
  }

  /** A request is made again after this long, if nothing compacts any more. */
  private static final long COMPACT_AGAIN_MS = 2_000;

  /**
   * Compacts until each family of each region has one file. One request may not do: a region that
   * is being flushed as it comes in, because its memory was full, has a file more afterwards.
   */
  private void compact(org.apache.hadoop.hbase.client.Admin admin, TableName table)
      throws Exception {
    int families = admin.getDescriptor(table).getColumnFamilyCount();
    admin.flush(table);
    admin.majorCompact(table);
    long[] asked = {System.nanoTime()};
    await(
        "one file a region and family",
        () -> {
          // The request is queued at the servers; the state alone may still say NONE.
          if (admin.getCompactionState(table) != CompactionState.NONE) {
            return false;
          }
          if (metrics(admin, table).stream().allMatch(m -> m.getStoreFileCount() <= families)) {
            return true;
          }
          if (System.nanoTime() - asked[0] > TimeUnit.MILLISECONDS.toNanos(COMPACT_AGAIN_MS)) {
            admin.flush(table);
            admin.majorCompact(table);
            asked[0] = System.nanoTime();
          }
          return false;
        });
  }

  private List<RegionMetrics> metrics(
      org.apache.hadoop.hbase.client.Admin admin, TableName table) throws IOException {
    List<RegionMetrics> all = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      all.addAll(admin.getRegionMetrics(server, table));
    }
    return all;
  }

  private List<HRegionLocation> locations(TableName table) throws IOException {
    List<HRegionLocation> all;
    try (RegionLocator locator = connection.getRegionLocator(table)) {
      locator.clearRegionLocationCache();
      all = new ArrayList<>(locator.getAllRegionLocations());
    }
    all.sort(Comparator.comparing(l -> l.getRegion().getStartKey(), Bytes.BYTES_COMPARATOR));
    return all;
  }

  private void regions(TableName table) throws IOException {
    for (HRegionLocation l : locations(table)) {
      RegionInfo r = l.getRegion();
      data(
          r.getEncodedName(), Bytes.toHex(r.getStartKey()), Bytes.toHex(r.getEndKey()),
          l.getHostnamePort());
    }
  }

  /** There are so many regions, and each has a server that answers a read. */
  private boolean served(TableName table, int regions) throws IOException {
    return locations(table).size() == regions && served(table);
  }

  /** All regions have a server that answers a read. */
  private boolean served(TableName table) throws IOException {
    List<HRegionLocation> all = locations(table);
    try (Table t = connection.getTable(table)) {
      for (HRegionLocation l : all) {
        if (l == null || l.getServerName() == null) {
          return false;
        }
        Scan one = new Scan().withStartRow(l.getRegion().getStartKey()).setLimit(1);
        if (l.getRegion().getEndKey().length > 0) {
          one.withStopRow(l.getRegion().getEndKey());
        }
        try (ResultScanner s = t.getScanner(one)) {
          s.next();
        }
      }
    } catch (IOException e) {
      return false;
    }
    return true;
  }

  private void split(org.apache.hadoop.hbase.client.Admin admin, TableName table, byte[] key)
      throws Exception {
    int before = locations(table).size();
    admin.split(table, key);
    await("one region more", () -> served(table, before + 1));
  }

  private void merge(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, String a, String b)
      throws Exception {
    int before = locations(table).size();
    await(
        "regions " + a + " and " + b + " mergeable",
        () -> {
          // A half of a split cannot be merged before the janitor has cleared its parent away.
          admin.runCatalogJanitor();
          try {
            admin
                .mergeRegionsAsync(new byte[][] {Bytes.toBytes(a), Bytes.toBytes(b)}, false)
                .get(WAIT_MS, TimeUnit.MILLISECONDS);
            return true;
          } catch (ExecutionException e) {
            if (e.getCause() instanceof MergeRegionException) {
              return false;
            }
            throw e;
          }
        });
    await("one region less", () -> served(table, before - 1));
  }

  private void move(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, String region, String address)
      throws Exception {
    ServerName target = null;
    for (ServerName s : admin.getRegionServers()) {
      if (s.getAddress().toString().equals(address)) {
        target = s;
      }
    }
    if (target == null) {
      throw new IOException("no live region server " + address);
    }
    admin.move(Bytes.toBytes(region), target);
    int regions = locations(table).size();
    await(
        "region on " + address,
        () -> {
          for (HRegionLocation l : locations(table)) {
            if (l.getRegion().getEncodedName().equals(region)
                && address.equals(l.getHostnamePort())) {
              return served(table, regions);
            }
          }
          return false;
        });
  }

  private void scan(TableName table) throws IOException {
    connection.clearRegionLocationCache();
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

  private void put(TableName table, String[] w) throws IOException {
    try (Table t = connection.getTable(table)) {
      t.put(
          new Put(Bytes.fromHex(w[2]))
              .addColumn(Bytes.toBytes(w[3]), Bytes.fromHex(w[4]), Bytes.fromHex(w[5])));
    }
  }

  /**
   * Changes a row of family t in one of the ways of HBase: kind, row, qualifier, value, time or -1
   * for the server's.
   */
  private void change(TableName table, String[] w) throws IOException {
    byte[] family = Bytes.toBytes("t");
    byte[] row = Bytes.fromHex(w[3]);
    byte[] qualifier = Bytes.fromHex(w[4]);
    byte[] value = Bytes.fromHex(w[5]);
    long time = Long.parseLong(w[6]);
    try (Table t = connection.getTable(table)) {
      switch (w[2]) {
        case "put":
          t.put(time < 0 ? new Put(row).addColumn(family, qualifier, value) : new Put(row).addColumn(family, qualifier, time, value));
          break;
        case "put without log":
          t.put((Put) new Put(row).addColumn(family, qualifier, value).setDurability(Durability.SKIP_WAL));
          break;
        case "append": t.append(new Append(row).addColumn(family, qualifier, value)); break;
        case "increment": t.increment(new Increment(row).addColumn(family, qualifier, 1)); break;
        case "check and put":
          t.checkAndMutate(CheckAndMutate.newBuilder(row).ifNotExists(family, Bytes.toBytes("none")).build(new Put(row).addColumn(family, qualifier, value)));
          break;
        case "delete column":
          t.delete(time < 0 ? new Delete(row).addColumns(family, qualifier) : new Delete(row).addColumns(family, qualifier, time));
          break;
        case "delete version": t.delete(new Delete(row).addColumn(family, qualifier)); break;
        case "delete family": t.delete(new Delete(row).addFamily(family)); break;
        case "delete row": t.delete(new Delete(row)); break;
        default: throw new IllegalArgumentException("no such change: " + w[2]);
      }
    }
  }

  /** Flushes or compacts one region and waits until nothing of it is being compacted. */
  private void region(org.apache.hadoop.hbase.client.Admin admin, String what, byte[] region)
      throws Exception {
    switch (what) {
      case "flush": admin.flushRegion(region); break;
      case "minor compaction": admin.compactRegion(region); break;
      case "major compaction": admin.majorCompactRegion(region); break;
      case "files": break;
      default: throw new IllegalArgumentException("no such command for a region: " + what);
    }
    await(
        "end of a compaction",
        () -> admin.getCompactionStateForRegion(region) == CompactionState.NONE);
    for (ServerName server : admin.getRegionServers()) {
      for (RegionMetrics m : admin.getRegionMetrics(server)) {
        if (RegionInfo.encodeRegionName(m.getRegionName()).equals(Bytes.toString(region))) {
          data(m.getStoreFileCount());
        }
      }
    }
  }

  /** Loads a file with one cell of family t into a table: row, qualifier, value, time. */
  private void bulkLoad(TableName table, String[] w) throws IOException {
    byte[] family = Bytes.toBytes("t");
    Path file =
        new Path(connection.getConfiguration().get(HConstants.HBASE_DIR), "load-" + System.nanoTime());
    FileSystem fs = file.getFileSystem(conf);
    try (HFile.Writer writer =
        HFile.getWriterFactory(conf, CacheConfig.DISABLED)
            .withPath(fs, file)
            .withFileContext(new HFileContextBuilder().build())
            .create()) {
      writer.append(
          new KeyValue(
              Bytes.fromHex(w[2]),
              family,
              Bytes.fromHex(w[3]),
              Long.parseLong(w[5]),
              Bytes.fromHex(w[4])));
    }
    BulkLoadHFiles.create(conf).bulkLoad(table, Map.of(family, List.of(file)));
  }

  private void configure(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, String key, String value)
      throws IOException {
    admin.modifyTable(
        TableDescriptorBuilder.newBuilder(admin.getDescriptor(table)).setValue(key, value).build());
  }

  private void reads(org.apache.hadoop.hbase.client.Admin admin, TableName table)
      throws IOException {
    long read = 0;
    long filtered = 0;
    for (RegionMetrics m : metrics(admin, table)) {
      read += m.getReadRequestCount();
      filtered += m.getFilteredReadRequestCount();
    }
    data(read);
    data(filtered);
  }

  private void files(org.apache.hadoop.hbase.client.Admin admin, TableName table)
      throws IOException {
    data(metrics(admin, table).stream().mapToInt(RegionMetrics::getStoreFileCount).sum());
  }

  private void durability(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, String durability)
      throws IOException {
    admin.modifyTable(
        TableDescriptorBuilder.newBuilder(admin.getDescriptor(table))
            .setDurability(Durability.valueOf(durability))
            .build());
  }

  /**
   * Gives a user exactly these rights (letters of RWXCA) on a table, on a namespace (@name) or, with
   * no name, on everything.
   */
  private static void grant(
      org.apache.hadoop.hbase.client.Admin admin, String user, String where, String letters)
      throws IOException {
    Permission.Builder of =
        where.isEmpty()
            ? Permission.newBuilder()
            : where.startsWith("@")
                ? Permission.newBuilder(where.substring(1))
                : Permission.newBuilder(TableName.valueOf(where));
    if (letters.isEmpty()) {
      Permission all = of.withActions(Permission.Action.values()).build();
      admin.revoke(new UserPermission(user, all));
    } else {
      Permission these = of.withActionCodes(Bytes.toBytes(letters)).build();
      admin.grant(new UserPermission(user, these), false);
    }
  }

  /** Gives a user the right to read one column of family t. */
  private static void grantColumn(org.apache.hadoop.hbase.client.Admin admin, String[] w)
      throws IOException {
    Permission read =
        Permission.newBuilder(TableName.valueOf(w[2]))
            .withFamily(Bytes.toBytes("t"))
            .withQualifier(Bytes.fromHex(w[3]))
            .withActions(Permission.Action.READ)
            .build();
    admin.grant(new UserPermission(w[1], read), false);
  }

  /** Allows so many requests to a table a second, at each server; 0 ends that. */
  private static void throttle(
      org.apache.hadoop.hbase.client.Admin admin, TableName table, int requests)
      throws IOException {
    admin.setQuota(
        requests == 0
            ? QuotaSettingsFactory.unthrottleTable(table)
            : QuotaSettingsFactory.throttleTable(
                table, ThrottleType.REQUEST_NUMBER, requests, TimeUnit.SECONDS));
  }

  /** Creates a table with family t: its replicas, and values of the family, NAME=VALUE. */
  private void createWith(org.apache.hadoop.hbase.client.Admin admin, String[] w)
      throws Exception {
    ColumnFamilyDescriptorBuilder family =
        ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes("t"))
            .setBloomFilterType(BloomType.ROW)
            .setMaxVersions(1)
            .setDataBlockEncoding(DataBlockEncoding.DIFF);
    for (int i = 3; i < w.length; i++) {
      String[] pair = w[i].split("=", 2);
      family.setValue(Bytes.toBytes(pair[0]), Bytes.toBytes(pair[1]));
    }
    admin.createTable(
        TableDescriptorBuilder.newBuilder(table(w))
            .setRegionReplication(Integer.parseInt(w[2]))
            .setColumnFamily(family.build())
            .build());
  }

  /** The version of the master. */
  private void version(org.apache.hadoop.hbase.client.Admin admin) throws IOException {
    data(admin.getClusterMetrics().getHBaseVersion());
  }
}
