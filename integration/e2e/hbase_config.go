package e2e

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeConfig writes hbase-site.xml and the logging configuration into the
// cluster's directory, which is the first entry of every class path.
func (h *HBase) writeConfig(ctx context.Context) error {
	site := h.site()
	maps.Copy(site, h.filesSite())
	if h.options.KDC != nil {
		secured, err := h.secure(ctx)
		if err != nil {
			return fmt.Errorf("HBase configuration: %w", err)
		}
		maps.Copy(site, secured)
	}
	if h.options.TLS != nil {
		maps.Copy(site, h.options.TLS.site())
	}
	maps.Copy(site, h.options.Site)

	if err := writeSite(filepath.Join(h.dir, "hbase-site.xml"), site); err != nil {
		return fmt.Errorf("HBase configuration: %w", err)
	}

	if err := os.WriteFile(filepath.Join(h.dir, "log4j.properties"), []byte(log4j), 0o644); err != nil {
		return fmt.Errorf("HBase logging: %w", err)
	}
	return nil
}

// writeSite writes properties as the XML file that Hadoop's programs read.
func writeSite(path string, properties map[string]string) error {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		b.WriteString("  <property><name>")
		writeText(&b, name)
		b.WriteString("</name><value>")
		writeText(&b, properties[name])
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func writeText(b *strings.Builder, s string) {
	_ = xml.EscapeText(b, []byte(s)) // a strings.Builder never fails
}

// site returns the properties of the cluster, without those of its files.
func (h *HBase) site() map[string]string {
	n := strconv.Itoa(h.options.RegionServers)
	session := h.options.SessionTimeout.Milliseconds()
	regionServers := "127.0.0.1"
	if h.options.Front != nil {
		regionServers = behindFront
	}
	// ZooKeeper grants sessions of 2 to 20 ticks: a tenth of the wanted one is a good tick.
	return map[string]string{
		"hbase.cluster.distributed":                  "true",
		"hbase.tmp.dir":                              filepath.Join(h.dir, "tmp"),
		"hbase.zookeeper.quorum":                     "127.0.0.1",
		"hbase.zookeeper.property.clientPort":        strconv.Itoa(h.zkPort),
		"hbase.zookeeper.property.dataDir":           filepath.Join(h.dir, "zookeeper"),
		"hbase.zookeeper.property.tickTime":          strconv.FormatInt(max(session/10, 100), 10),
		"hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
		"zookeeper.session.timeout":                  strconv.FormatInt(session, 10),
		"hbase.master.port":                          strconv.Itoa(h.masterPort),
		"hbase.master.hostname":                      "localhost",
		"hbase.regionserver.hostname":                "localhost",
		"hbase.master.ipc.address":                   "127.0.0.1",
		"hbase.regionserver.ipc.address":             regionServers,
		"hbase.master.info.port":                     "-1",
		"hbase.regionserver.info.port":               "-1",
		"hbase.client.scanner.timeout.period":        strconv.FormatInt(h.options.ScannerTimeout.Milliseconds(), 10),
		// The master begins as soon as all servers have reported, instead of
		// waiting to see whether more come.
		"hbase.master.wait.on.regionservers.mintostart": n,
		"hbase.master.wait.on.regionservers.maxtostart": n,
		// Regions move when a test moves them.
		"hbase.balancer.period":            "86400000",
		"hbase.master.loadbalance.bytable": "false",
		"hbase.regions.slop":               "1000",
		"hbase.normalizer.period":          "86400000",
		// A half of a split stays unmergeable while files of before its compaction
		// lie about; two minutes by default.
		"hbase.hfile.compaction.discharger.interval": "1000",
		"hbase.regionserver.handler.count":           "10",
		"hbase.hregion.majorcompaction":              "0",
	}
}

// filesSite says where the files lie and how the log of edits is written.
func (h *HBase) filesSite() map[string]string {
	if h.options.HDFS != nil {
		return h.options.HDFS.clientSite()
	}

	return map[string]string{
		"hbase.rootdir": "file://" + filepath.Join(h.dir, "root"),
		// Local files cannot promise a sync to disk; HBase refuses to start on
		// them unless it is told not to ask.
		"hbase.wal.provider":                     "filesystem",
		"hbase.unsafe.stream.capability.enforce": "false",
	}
}

// log4j keeps warnings of the servers and nothing of what they do normally.
const log4j = `log4j.rootLogger=WARN,err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p [%t] %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
`
