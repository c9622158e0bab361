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
	"slices"
	"strconv"
	"syscall"
	"time"
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
	ports    []dataNodePorts
}

type dataNodePorts struct{ blocks, calls, http int }

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

// start writes the configuration, formats, starts the servers, and waits until files may be written.
func (h *HDFS) start(ctx context.Context) error {
	ports, err := freePorts(2 + 3*len(h.data))
	if err != nil {
		return err
	}
	h.rpcPort, h.httpPort = ports[0], ports[1]
	for own := range slices.Chunk(ports[2:], 3) {
		h.ports = append(h.ports, dataNodePorts{blocks: own[0], calls: own[1], http: own[2]})
	}
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
	return h.WaitReady(ctx)
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
	// Small and soon there: neither is busy in a test.
	flags := append(append(javaFlags(h.dir, h.class, hdfsHeapMiB), sparing...), main)
	return Start(ctx, Command{Name: name, Path: "java", Args: append(flags, args...), Dir: h.dir})
}

// WaitReady waits until the name node takes writes and every data node, one that
// was started again too, has registered there.
func (h *HDFS) WaitReady(ctx context.Context) error {
	return UntilProcess(ctx, h.name, 100*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()

		if err := h.nameNodeReady(ctx); err != nil {
			return err
		}
		for i := range h.data {
			if err := h.dataNodeReady(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// nameNodeReady returns an error unless the name node takes writes and counts all data nodes as live.
func (h *HDFS) nameNodeReady(ctx context.Context) error {
	var state struct {
		FSState          string // "safeMode" or "Operational"
		NumLiveDataNodes int
	}
	if err := bean(ctx, h.httpPort, "NameNode", "FSNamesystemState", &state); err != nil {
		return err
	}
	if state.FSState != "Operational" || state.NumLiveDataNodes != len(h.data) {
		return fmt.Errorf("HDFS is %s with %d live data nodes, want Operational with %d",
			state.FSState, state.NumLiveDataNodes, len(h.data))
	}
	return nil
}

// dataNodeReady asks the data node itself: the name node counts one that died as
// live for a while.
func (h *HDFS) dataNodeReady(ctx context.Context, i int) error {
	var info struct{ BPServiceActorInfo string } // JSON once more
	if err := bean(ctx, h.ports[i].http, "DataNode", "DataNodeInfo", &info); err != nil {
		return err
	}

	var actors []struct{ ActorState string }
	if err := json.Unmarshal([]byte(info.BPServiceActorInfo), &actors); err != nil {
		return fmt.Errorf("state of data node %d: %w", i, err)
	}
	if len(actors) != 1 || actors[0].ActorState != "RUNNING" {
		return fmt.Errorf("state of data node %d: %+v, want RUNNING", i, actors)
	}
	return nil
}

// bean reads one of the objects that a server of HDFS shows at /jmx.
func bean(ctx context.Context, port int, service, name string, into any) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=%s,name=%s", port, service, name)
	a, err := Get(ctx, url)
	if err != nil {
		return err
	}

	var answer struct{ Beans []json.RawMessage }
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK || len(answer.Beans) != 1 {
		return fmt.Errorf("%s: status %d, %d beans, want 200 and 1: %.200s", url, a.Status, len(answer.Beans), a.Body)
	}
	return json.Unmarshal(answer.Beans[0], into)
}

// Root returns the directory of an HBase on this file system, as
// "hdfs://127.0.0.1:15000/hbase".
func (h *HDFS) Root() string { return "hdfs://" + h.address() + "/hbase" }

func (h *HDFS) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(h.rpcPort)) }

// Len returns the number of data nodes, dead ones included.
func (h *HDFS) Len() int { return len(h.data) }

// StartDataNode starts data node i, again on its old ports and files if it was
// killed. WaitReady waits until the name node has it.
func (h *HDFS) StartDataNode(ctx context.Context, i int) error {
	p, err := h.java(ctx, fmt.Sprintf("datanode-%d", i), dataNodeMain,
		"-D", "dfs.datanode.data.dir=file://"+filepath.Join(h.dir, fmt.Sprintf("data-%d", i)),
		"-D", fmt.Sprintf("dfs.datanode.address=127.0.0.1:%d", h.ports[i].blocks),
		"-D", fmt.Sprintf("dfs.datanode.ipc.address=127.0.0.1:%d", h.ports[i].calls),
		"-D", fmt.Sprintf("dfs.datanode.http.address=127.0.0.1:%d", h.ports[i].http))
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
