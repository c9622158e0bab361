package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// HDFSOptions says what kind of file system StartHDFS makes. The zero value is
// one data node.
type HDFSOptions struct {
	// DataNodes is also on how many of them each block lies; 0 means 1.
	DataNodes int

	// Site holds further hdfs-site.xml properties; they win over ours.
	Site map[string]string
}

// HDFS is a running distributed file system: one name node and some data nodes,
// each a process. What a client has flushed lies in the data nodes' memory or
// files, so it survives every client's death, and a data node's death as long as
// another one has the block.
type HDFS struct {
	dir      string
	options  HDFSOptions
	class    string
	rpcPort  int
	httpPort int
	name     *Process
	data     []*Process
	ports    []int // two of each data node: for blocks and for calls
}

const (
	nameNodeMain = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeMain = "org.apache.hadoop.hdfs.server.datanode.DataNode"

	// hdfsHeapMiB is enough for some ten thousand blocks.
	hdfsHeapMiB = 160
)

// StartHDFS formats and starts a file system and returns when every data node is
// live and files may be written. On an error everything is ended again; the
// error says where the logs are.
func StartHDFS(ctx context.Context, o HDFSOptions) (*HDFS, error) {
	class, err := classPath("hbase") // HBase's class path holds HDFS's servers
	if err != nil {
		return nil, fmt.Errorf("start HDFS: %w", err)
	}

	dir, err := runDir("hdfs")
	if err != nil {
		return nil, fmt.Errorf("start HDFS: %w", err)
	}

	if o.DataNodes == 0 {
		o.DataNodes = 1
	}
	h := &HDFS{dir: dir, options: o, class: class, data: make([]*Process, o.DataNodes)}
	if err := h.start(ctx); err != nil {
		h.kill()
		return nil, fmt.Errorf("start HDFS, logs kept in %s: %w", dir, err)
	}
	return h, nil
}

func (h *HDFS) start(ctx context.Context) error {
	ports, err := freePorts(2 + 2*len(h.data))
	if err != nil {
		return err
	}
	h.rpcPort, h.httpPort, h.ports = ports[0], ports[1], ports[2:]
	if err := h.writeConfig(); err != nil {
		return err
	}

	if err := h.format(ctx); err != nil {
		return err
	}

	// Data nodes ask for the name node until it is there.
	if h.name, err = h.java(ctx, "namenode", nameNodeMain); err != nil {
		return err
	}
	for i := range h.data {
		if err := h.StartDataNode(ctx, i); err != nil {
			return err
		}
	}
	return h.WaitReady(ctx, len(h.data))
}

// format makes an empty file system in the name node's directory.
func (h *HDFS) format(ctx context.Context) error {
	p, err := h.java(ctx, "format", nameNodeMain, "-format", "-force", "-nonInteractive")
	if err != nil {
		return err
	}
	defer p.Kill() // if ctx ends first

	if code := p.ExitCode(ctx); code != 0 {
		return fmt.Errorf("format: exit status %d\n%s", code, p.LogTail(20))
	}
	return nil
}

func (h *HDFS) java(ctx context.Context, name, main string, args ...string) (*Process, error) {
	flags := append(javaFlags(h.dir, h.class, hdfsHeapMiB), "-XX:+UseSerialGC", main)
	return Start(ctx, Command{Name: name, Path: "java", Args: append(flags, args...), Dir: h.dir})
}

// WaitReady waits until the name node counts n live data nodes and takes writes.
// A data node that died counts as live for some ten seconds more.
func (h *HDFS) WaitReady(ctx context.Context, n int) error {
	return UntilProcess(ctx, h.name, httpInterval, func(ctx context.Context) error {
		state, err := h.state(ctx)
		if err != nil {
			return err
		}
		if state.FSState != "Operational" || state.NumLiveDataNodes != n {
			return fmt.Errorf("HDFS is %s with %d live data nodes, want Operational with %d", state.FSState, state.NumLiveDataNodes, n)
		}
		return nil
	})
}

// fileSystemState is what the name node tells of itself at /jmx.
type fileSystemState struct {
	FSState          string // "safeMode" or "Operational"
	NumLiveDataNodes int
}

func (h *HDFS) state(ctx context.Context) (fileSystemState, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", h.httpPort)
	a, err := Get(ctx, url)
	if err != nil {
		return fileSystemState{}, err
	}

	var answer struct{ Beans []fileSystemState }
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK || len(answer.Beans) != 1 {
		return fileSystemState{}, fmt.Errorf("state of HDFS: status %d, %d beans, want 200 and 1: %.200s", a.Status, len(answer.Beans), a.Body)
	}
	return answer.Beans[0], nil
}

// Root returns the directory of an HBase on this file system, as
// "hdfs://127.0.0.1:15000/hbase".
func (h *HDFS) Root() string { return "hdfs://" + h.address() + "/hbase" }

func (h *HDFS) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(h.rpcPort)) }

// Len returns the number of data nodes, dead ones included.
func (h *HDFS) Len() int { return len(h.data) }

// Dir returns the directory of the file system's files and logs.
func (h *HDFS) Dir() string { return h.dir }

// StartDataNode starts data node i, again on its old ports and files if it was
// killed. WaitReady tells when the name node has it.
func (h *HDFS) StartDataNode(ctx context.Context, i int) error {
	p, err := h.java(ctx, fmt.Sprintf("datanode-%d", i), dataNodeMain,
		"-D", "dfs.datanode.data.dir=file://"+filepath.Join(h.dir, fmt.Sprintf("data-%d", i)),
		"-D", fmt.Sprintf("dfs.datanode.address=127.0.0.1:%d", h.ports[2*i]),
		"-D", fmt.Sprintf("dfs.datanode.ipc.address=127.0.0.1:%d", h.ports[2*i+1]))
	if err != nil {
		return err
	}
	h.data[i] = p
	return nil
}

// KillDataNode ends data node i as kill -9 does; its files stay.
func (h *HDFS) KillDataNode(i int) { h.data[i].Kill() }

// PauseDataNode freezes data node i (SIGSTOP); its connections stay open and
// answer nothing.
func (h *HDFS) PauseDataNode(i int) error { return h.data[i].Signal(syscall.SIGSTOP) }

// ResumeDataNode thaws data node i.
func (h *HDFS) ResumeDataNode(i int) error { return h.data[i].Signal(syscall.SIGCONT) }

// Close ends the file system and removes its files.
func (h *HDFS) Close() error {
	h.kill()
	if err := os.RemoveAll(h.dir); err != nil {
		return fmt.Errorf("close HDFS: %w", err)
	}
	return nil
}

// CloseKeeping ends the file system and returns the directory with its logs, for
// a test that has failed. The data is removed.
func (h *HDFS) CloseKeeping() (logs string, err error) {
	h.kill()
	for _, pattern := range []string{"name", "data-*"} {
		dirs, _ := filepath.Glob(filepath.Join(h.dir, pattern)) // the pattern is well formed
		for _, dir := range dirs {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return h.dir, err
}

func (h *HDFS) kill() {
	for _, p := range append([]*Process{h.name}, h.data...) {
		if p != nil {
			p.Kill()
		}
	}
}
