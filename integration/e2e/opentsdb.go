package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OpenTSDBOptions says which tables one OpenTSDB serves and in which layout.
// Zero widths mean OpenTSDB's defaults (no salt, UIDs of 3 bytes).
type OpenTSDBOptions struct {
	Quorum string // ZooKeeper host:port of the HBase it uses
	Tables Tables // they must exist

	SaltWidth, SaltBuckets               int // bytes, and how many values of them are used
	UIDMetricWidth, TagKWidth, TagVWidth int // bytes
	Appends                              bool
	HeapMiB                              int // Java heap; 0 means 512

	// QuickStart has it compile less: it answers sooner, and is slower for ever.
	QuickStart bool

	// Config holds further opentsdb.conf keys; they win over ours.
	Config map[string]string
}

// OpenTSDB is a running TSD.
type OpenTSDB struct {
	URL     string // http://127.0.0.1:PORT, no slash at the end
	Addr    string // the same as host:port, for telnet
	Process *Process

	dir string
}

// StartOpenTSDB starts a TSD and returns when it answers /api/version. Metrics
// are created on put unless Config says otherwise.
func StartOpenTSDB(ctx context.Context, o OpenTSDBOptions) (*OpenTSDB, error) {
	class, err := classPath("opentsdb")
	if err != nil {
		return nil, fmt.Errorf("start OpenTSDB: %w", err)
	}
	port, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("start OpenTSDB: %w", err)
	}
	dir, err := runDir("opentsdb")
	if err != nil {
		return nil, fmt.Errorf("start OpenTSDB: %w", err)
	}
	t := &OpenTSDB{Addr: fmt.Sprintf("127.0.0.1:%d", port), dir: dir}
	t.URL = "http://" + t.Addr
	if err := t.start(ctx, o, class, port); err != nil {
		t.kill()
		return nil, fmt.Errorf("start OpenTSDB, logs kept in %s: %w", dir, err)
	}
	return t, nil
}

// start starts the TSD's process and waits until it answers.
func (t *OpenTSDB) start(ctx context.Context, o OpenTSDBOptions, class string, port int) error {
	config, err := t.writeConfig(o, port)
	if err != nil {
		return err
	}
	heap := 512
	if o.HeapMiB != 0 {
		heap = o.HeapMiB
	}
	args := []string{
		fmt.Sprintf("-Xmx%dm", heap), "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true",
		"-Djava.io.tmpdir=" + t.dir,
	}
	if o.QuickStart {
		args = append(args, sparing...)
	}
	args = append(args, "-cp", t.dir+":"+class, "net.opentsdb.tools.TSDMain", "--config="+config)
	t.Process, err = Start(ctx, Command{Name: "opentsdb", Path: "java", Dir: t.dir, Args: args})
	if err != nil {
		return err
	}
	return UntilProcess(ctx, t.Process, 100*time.Millisecond, func(ctx context.Context) error {
		return answers(ctx, t.URL+"/api/version")
	})
}

// writeConfig writes opentsdb.conf and logback.xml and returns the path of the
// first.
func (t *OpenTSDB) writeConfig(o OpenTSDBOptions, port int) (string, error) {
	conf := map[string]string{
		"tsd.network.port":                strconv.Itoa(port),
		"tsd.network.bind":                "127.0.0.1",
		"tsd.http.staticroot":             filepath.Join(t.dir, "static"),
		"tsd.http.cachedir":               filepath.Join(t.dir, "cache"),
		"tsd.http.request.enable_chunked": "true",
		"tsd.http.request.max_chunk":      "10485760",
		"tsd.core.auto_create_metrics":    "true",
		"tsd.storage.hbase.zk_quorum":     o.Quorum,
		"tsd.storage.hbase.data_table":    o.Tables.Data,
		"tsd.storage.hbase.uid_table":     o.Tables.UID,
		"tsd.storage.hbase.meta_table":    o.Tables.Meta,
		"tsd.storage.hbase.tree_table":    o.Tables.Tree,
		// Milliseconds for which the client gathers puts; its default of a second
		// only makes tests wait.
		"hbase.rpcs.buffered_flush_interval": "50",
		"tsd.storage.enable_appends":         strconv.FormatBool(o.Appends),
	}
	setInt(conf, "tsd.storage.salt.width", o.SaltWidth)
	setInt(conf, "tsd.storage.salt.buckets", o.SaltBuckets)
	setInt(conf, "tsd.storage.uid.width.metric", o.UIDMetricWidth)
	setInt(conf, "tsd.storage.uid.width.tagk", o.TagKWidth)
	setInt(conf, "tsd.storage.uid.width.tagv", o.TagVWidth)
	maps.Copy(conf, o.Config)

	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s = %s\n", key, conf[key])
	}
	path := filepath.Join(t.dir, "opentsdb.conf")
	err := errors.Join(
		os.MkdirAll(filepath.Join(t.dir, "static"), 0o755),
		os.MkdirAll(filepath.Join(t.dir, "cache"), 0o755),
		os.WriteFile(path, []byte(b.String()), 0o644),
		os.WriteFile(filepath.Join(t.dir, "logback.xml"), []byte(logback), 0o644),
	)
	if err != nil {
		return "", fmt.Errorf("OpenTSDB configuration: %w", err)
	}
	return path, nil
}

// setInt sets a key unless the value is the zero that stands for the default.
func setInt(conf map[string]string, key string, value int) {
	if value != 0 {
		conf[key] = strconv.Itoa(value)
	}
}

// LoadNames fills the UID caches of the TSD at url with all names of its tables.
// A query whose filters compare names loses rows while a name is not cached:
// SaltScanner closes before names that are still being resolved have let their
// rows pass (OpenTSDB issue 2175). On a busy machine that can happen again when
// the query is repeated, so a reference is asked once its names are loaded.
//
// suggest caches what it scans, in both directions (UniqueId.SuggestCB).
func LoadNames(ctx context.Context, url string) error {
	for _, kind := range []string{"metrics", "tagk", "tagv"} {
		a, err := Get(ctx, url+"/api/suggest?max=10000&type="+kind)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("status %d: %.200s", a.Status, a.Body)
		}
		if err != nil {
			return fmt.Errorf("cannot load names of kind %s into the UID cache of OpenTSDB: %w", kind, err)
		}
	}
	return nil
}

// Tool runs one of OpenTSDB's command line tools, a class of net.opentsdb.tools,
// with the TSD's settings, and returns what it wrote to standard output.
func (t *OpenTSDB) Tool(ctx context.Context, class string, args ...string) ([]byte, error) {
	path, err := classPath("opentsdb")
	if err != nil {
		return nil, err
	}
	java := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
		"-Djava.io.tmpdir=" + t.dir, "-cp", t.dir + ":" + path, "net.opentsdb.tools." + class,
		"--config=" + filepath.Join(t.dir, "opentsdb.conf")}
	return runScript(ctx, nil, "java", append(java, args...))
}

// Close ends the TSD, with SIGTERM first so that it writes what it buffers, and
// removes its files.
func (t *OpenTSDB) Close() error {
	err := stopWithin(t.Process, time.Minute)
	return errors.Join(err, os.RemoveAll(t.dir))
}

// CloseKeeping is Close, but leaves the files and returns where they are.
func (t *OpenTSDB) CloseKeeping() (logs string, err error) {
	return t.dir, stopWithin(t.Process, time.Minute)
}

func (t *OpenTSDB) kill() {
	if t.Process != nil {
		t.Process.Kill()
	}
}

// logback stops OpenTSDB from logging every row it reads. What its fsck finds is in its
// log alone.
const logback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level [%thread] %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <logger name="QueryLog" level="OFF"/>
  <logger name="net.opentsdb.tools.Fsck" level="INFO"/>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`
