package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
)

// writeConfig writes hdfs-site.xml, the logging configuration and what the
// servers want to find on their class path.
func (h *HDFS) writeConfig() error {
	site := h.site()
	maps.Copy(site, h.options.Site)
	if err := writeSite(filepath.Join(h.dir, "hdfs-site.xml"), site); err != nil {
		return fmt.Errorf("HDFS configuration: %w", err)
	}

	if err := os.WriteFile(filepath.Join(h.dir, "log4j.properties"), []byte(log4j), 0o644); err != nil {
		return fmt.Errorf("HDFS logging: %w", err)
	}

	// Their pages are no part of the artifact; the folders alone let them start.
	for _, name := range []string{"hdfs", "datanode"} {
		if err := os.MkdirAll(filepath.Join(h.dir, "webapps", name), 0o755); err != nil {
			return fmt.Errorf("HDFS pages: %w", err)
		}
	}
	return nil
}

// site returns the properties of name node and data nodes, apart from those of one data node.
func (h *HDFS) site() map[string]string {
	return map[string]string{
		"fs.defaultFS":                                         "hdfs://" + h.address(),
		"hadoop.tmp.dir":                                       filepath.Join(h.dir, "tmp"),
		"dfs.namenode.name.dir":                                "file://" + filepath.Join(h.dir, "name"),
		"dfs.namenode.http-address":                            fmt.Sprintf("127.0.0.1:%d", h.httpPort),
		"dfs.namenode.rpc-bind-host":                           "127.0.0.1",
		"dfs.datanode.http.address":                            "127.0.0.1:0",
		"dfs.datanode.hostname":                                "127.0.0.1",
		"dfs.replication":                                      strconv.Itoa(len(h.data)),
		"dfs.namenode.safemode.extension":                      "0",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",

		// A closed log of a dead region server is read soon only if the data node
		// hears soon that it is to be recovered; and a dead data node is given up
		// after 2 x 2 s and 10 x 1 s instead of ten minutes.
		"dfs.heartbeat.interval":                  "1",
		"dfs.namenode.heartbeat.recheck-interval": "2000",
		"dfs.namenode.stale.datanode.interval":    "3000",
		"dfs.namenode.avoid.read.stale.datanode":  "true",
		"dfs.namenode.avoid.write.stale.datanode": "true",
		"dfs.client.socket-timeout":               socketTimeout,
	}
}

// socketTimeout is the silence in ms after which a data node's connection is
// given up; a minute by default.
const socketTimeout = "8000"

// clientSite is what an HBase on this file system is configured with.
func (h *HDFS) clientSite() map[string]string {
	return map[string]string{
		"hbase.rootdir": h.Root(),
		// The log is HBase's default one, and it checks that flushes are real.
		"hbase.unsafe.stream.capability.enforce": "true",
		"dfs.replication":                        strconv.Itoa(len(h.data)),
		"dfs.client.socket-timeout":              socketTimeout,

		// A data node takes a block only if it has a whole one free in addition to those
		// promised before; those of failed tries count for ten minutes. With blocks of
		// 128 MiB the split of a log into a file for each region fails on a small disk.
		"dfs.blocksize": "16777216",

		// A data node that failed once would be left alone for six hours, and there
		// are few.
		"hbase.regionserver.async.wal.max.exclude.datanode.count": "0",

		// The log of a dead server is requested again this soon; the second is for
		// a recovery that met a dead data node first.
		"hbase.lease.recovery.first.pause": "500",
		"hbase.lease.recovery.dfs.timeout": "20000",
	}
}
