package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HBaseOptions says what kind of cluster StartHBase makes. The zero value is
// two region servers with small heaps.
type HBaseOptions struct {
	RegionServers   int           // 0 means 2
	RegionServerMiB int           // heap of each region server, 0 means 768
	SessionTimeout  time.Duration // ZooKeeper session: how soon a dead server is noticed; 0 means 10 s
	ScannerTimeout  time.Duration // lease of a scanner; 0 means 60 s, HBase's default

	// QuickStart has region servers compile less, and collect garbage with one thread: they serve
	// sooner, and are slower for ever.
	QuickStart bool

	// HDFS keeps the cluster's files, logs of edits included; nil means a local
	// directory. It must outlive the cluster.
	HDFS *HDFS

	// KDC secures the cluster with Kerberos; nil does without. It must outlive the
	// cluster.
	KDC *KDC

	// TLS encrypts the connections to the servers; nil does without.
	TLS *HBaseTLS

	// Version is one of HBaseVersions; empty means the first of them.
	Version string

	// Front is called for each region server before it is first started: clients learn the address
	// front, and the server listens at behind. It makes what passes connections on from one to the other.
	// Nil makes both the same.
	Front func(front, behind string) error

	// Site holds further hbase-site.xml properties; they win over ours.
	Site map[string]string
}

func (o HBaseOptions) withDefaults() HBaseOptions {
	if o.RegionServers == 0 {
		o.RegionServers = 2
	}
	if o.RegionServerMiB == 0 {
		o.RegionServerMiB = 768
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 10 * time.Second
	}
	if o.ScannerTimeout == 0 {
		o.ScannerTimeout = time.Minute
	}
	return o
}

// HBase is a running distributed cluster: one ZooKeeper, one master and some
// region servers, each a process. On local files a killed region server may lose
// acknowledged edits that were not flushed, because these files cannot sync; on
// HDFS it must not.
type HBase struct {
	Admin *Admin

	dir        string
	options    HBaseOptions
	class      string
	zkPort     int
	masterPort int
	zk         *Process
	master     *Process
	regions    []*regionServer
}

// behindFront is where region servers listen that have a front: an address of loopback to which the
// name that hbase:meta has of them does not lead.
const behindFront = "127.0.0.2"

type regionServer struct {
	port    int
	process *Process
}

// StartHBase starts a cluster and returns when every region server is live and
// the master takes admin calls. On an error everything is ended again; the
// error says where the logs are.
func StartHBase(ctx context.Context, o HBaseOptions) (*HBase, error) {
	class, err := hbaseClassPath(o.Version)
	if err != nil {
		return nil, fmt.Errorf("start HBase: %w", err)
	}
	dir, err := runDir("hbase")
	if err != nil {
		return nil, fmt.Errorf("start HBase: %w", err)
	}
	h := &HBase{dir: dir, options: o.withDefaults(), class: class}
	if err := h.start(ctx); err != nil {
		h.kill()
		return nil, fmt.Errorf("start HBase, logs kept in %s: %w", dir, err)
	}
	return h, nil
}

// start starts ZooKeeper, the admin program, the master and the region servers, and waits until they serve.
func (h *HBase) start(ctx context.Context) error {
	n := h.options.RegionServers
	ports, err := freePorts(n + 2)
	if err != nil {
		return err
	}
	h.zkPort, h.masterPort = ports[0], ports[1]
	if err := h.writeConfig(ctx); err != nil {
		return err
	}
	if h.zk, err = h.java(ctx, "zookeeper", zookeeperMain, 128); err != nil {
		return err
	}
	// The admin program starts in the meantime, and retries.
	if h.Admin, err = newAdmin(ctx, h); err != nil {
		return err
	}
	err = UntilProcess(ctx, h.zk, 50*time.Millisecond, func(ctx context.Context) error {
		return dials(ctx, h.Quorum())
	})
	if err != nil {
		return err
	}
	if h.master, err = h.java(ctx, "master", masterMain, 384); err != nil {
		return err
	}
	for i := range n {
		h.regions = append(h.regions, &regionServer{port: ports[2+i]})
		if h.options.Front != nil {
			port := strconv.Itoa(ports[2+i])
			if err := h.options.Front(net.JoinHostPort("127.0.0.1", port),
				net.JoinHostPort(behindFront, port)); err != nil {
				return fmt.Errorf("front of region server %d: %w", i, err)
			}
		}
		if err := h.StartRegionServer(ctx, i); err != nil {
			return err
		}
	}
	return h.WaitReady(ctx, n)
}

// WaitReady waits until n region servers are live, the master takes admin calls
// and no region is in transition.
func (h *HBase) WaitReady(ctx context.Context, n int) error {
	return UntilProcess(ctx, h.master, 100*time.Millisecond, func(ctx context.Context) error {
		return h.Admin.Ready(ctx, n)
	})
}

// Quorum returns the ZooKeeper address host:port that clients are given.
func (h *HBase) Quorum() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(h.zkPort)) }

// Dir returns the directory of the cluster's files and logs.
func (h *HBase) Dir() string { return h.dir }

// Durable reports whether acknowledged edits survive a region server that is
// killed, without a flush: the cluster's log lies on HDFS.
func (h *HBase) Durable() bool { return h.options.HDFS != nil }

// Len returns the number of region servers, dead ones included.
func (h *HBase) Len() int { return len(h.regions) }

// MasterAddr returns host:port of the master.
func (h *HBase) MasterAddr() string { return net.JoinHostPort("localhost", strconv.Itoa(h.masterPort)) }

// RegionServerAddr returns host:port of region server i as HBase names it in
// hbase:meta.
func (h *HBase) RegionServerAddr(i int) string {
	return net.JoinHostPort("localhost", strconv.Itoa(h.regions[i].port))
}

// StartRegionServer starts region server i, again on its old port if it was
// killed. WaitReady waits until it serves.
func (h *HBase) StartRegionServer(ctx context.Context, i int) error {
	r := h.regions[i]
	p, err := h.java(ctx, fmt.Sprintf("regionserver-%d", i), regionServerMain, h.options.RegionServerMiB,
		"-D", fmt.Sprintf("hbase.regionserver.port=%d", r.port))
	if err != nil {
		return err
	}
	r.process = p
	return nil
}

// KillRegionServer ends region server i as kill -9 does.
func (h *HBase) KillRegionServer(i int) { h.regions[i].process.Kill() }

// PauseRegionServer freezes region server i (SIGSTOP); its connections stay
// open and answer nothing.
func (h *HBase) PauseRegionServer(i int) error { return h.regions[i].process.Signal(syscall.SIGSTOP) }

// ResumeRegionServer thaws region server i. If it slept longer than the session
// timeout it finds itself declared dead and exits.
func (h *HBase) ResumeRegionServer(i int) error { return h.regions[i].process.Signal(syscall.SIGCONT) }

// Close ends the cluster and removes its files.
func (h *HBase) Close() error {
	h.kill()
	if err := os.RemoveAll(h.dir); err != nil {
		return fmt.Errorf("close HBase: %w", err)
	}
	return nil
}

// CloseKeeping ends the cluster and returns the directory with its logs, for a
// test that has failed. The data is removed.
func (h *HBase) CloseKeeping() (logs string, err error) {
	h.kill()
	err = errors.Join(os.RemoveAll(filepath.Join(h.dir, "root")), os.RemoveAll(filepath.Join(h.dir, "zookeeper")))
	return h.dir, err
}

// kill ends everything at once: the files are thrown away, so there is nothing
// that an orderly end would save.
func (h *HBase) kill() {
	if h.Admin != nil {
		h.Admin.Close()
	}
	processes := []*Process{h.master, h.zk}
	for _, r := range h.regions {
		processes = append(processes, r.process)
	}
	for _, p := range processes {
		if p != nil {
			p.Kill()
		}
	}
}

// dials returns an error unless something accepts connections on addr.
func dials(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

const (
	zookeeperMain    = "org.apache.hadoop.hbase.zookeeper.HQuorumPeer"
	masterMain       = "org.apache.hadoop.hbase.master.HMaster"
	regionServerMain = "org.apache.hadoop.hbase.regionserver.HRegionServer"
)

// sparing are flags of Java for fewer threads, less memory and a sooner start, where speed is not the point.
var sparing = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// java starts one of HBase's servers with the given heap.
func (h *HBase) java(ctx context.Context, name, main string, heapMiB int, args ...string) (*Process, error) {
	flags := append(javaFlags(h.dir, h.class, heapMiB), h.securedFlags()...)
	if main != regionServerMain || h.options.QuickStart {
		flags = append(flags, sparing...)
	}
	flags = append(flags, main)
	return Start(ctx, Command{Name: name, Path: "java", Args: append(append(flags, args...), "start"), Dir: h.dir})
}

// javaFlags are those of HBase's and HDFS's programs: dir holds their
// configuration.
func javaFlags(dir, class string, heapMiB int) []string {
	flags := []string{
		fmt.Sprintf("-Xmx%dm", heapMiB),
		"-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.admin.enableServer=false", // it would open port 8080
		"-Dlog4j.configuration=file:" + filepath.Join(dir, "log4j.properties"),
		"-Djava.io.tmpdir=" + dir,
		"-XX:-UsePerfData",
		"-cp", dir + ":" + class,
	}
	return append(flags, opened()...)
}

// opened lists the parts of Java 17 that Hadoop and HBase reach into.
func opened() []string {
	var flags []string
	for _, p := range strings.Fields("java.lang java.lang.reflect java.nio java.util java.util.concurrent " +
		"sun.nio.ch jdk.internal.ref jdk.internal.misc") {
		flags = append(flags, "--add-opens", "java.base/"+p+"=ALL-UNNAMED",
			"--add-exports", "java.base/"+p+"=ALL-UNNAMED")
	}
	return flags
}
