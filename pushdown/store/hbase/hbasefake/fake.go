// Package hbasefake is an HBase cluster in the test's own process: a ZooKeeper,
// a master and region servers that speak the real protocols on loopback or in
// memory. It is made for faults that a real cluster produces once a month: it drops
// connections at any reply, forgets scanners, moves and splits regions, sends
// heartbeats, splits rows into parts and flags whole rows as partial.
//
// It proves how a client deals with faults. It proves nothing about HBase: its regular
// expressions are Go's, its rows are in memory, and it keeps one version of a cell.
//
// A test starts a cluster with Start and injects faults with SetHook:
//
//   - fake.go: the cluster, its options, faults and hooks;
//   - server.go: the connections of region servers and master, and their calls;
//   - hook.go: the arguments of a test's hook for a call;
//   - scan.go, filter.go, mutate.go, master.go: the methods;
//   - data.go, snapshot.go: tables, regions and what happens to them;
//   - catalog.go: hbase:meta; zookeeper.go: ZooKeeper; nodes.go: bootstrap nodes;
//   - network.go: where servers listen;
//   - release.go: versions of HBase; rights.go: the right to read; refused.go: writes that are refused.
package hbasefake

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"downpour/pushdown/process/network"
)

// Options shape a cluster's replies. The zero value is two servers that do
// nothing odd.
type Options struct {
	Servers int // region servers; default 2
	// MaxReplyBytes and MaxReplyCells cut a scan's replies shorter than the
	// client asks for, also within a row.
	MaxReplyBytes, MaxReplyCells int
	// HeartbeatEvery makes every n-th reply of a scanner an empty heartbeat.
	HeartbeatEvery int
	// FlagCompleteRows sets the partial flag also on a complete row at the end of a
	// reply, as HBase does at a size limit.
	FlagCompleteRows bool
	// IgnoreAttributes are family attributes that the master drops.
	IgnoreAttributes []string
	// NoSequence makes servers ignore next_call_seq, as HBase does if a client
	// does not send it.
	NoSequence bool
	// Version is the version that the master reports, as in "1.7.2"; servers lack what HBase lacked
	// in it. One that begins with no number, or is empty, lacks nothing.
	Version string
	// NoReadPoint makes servers send no MVCC read points, like HBase before 1.3.
	NoReadPoint bool
	// Network is where the servers listen, and clients reach them by Cluster.Dial. In memory, time can be
	// simulated. Default: loopback.
	Network network.Network
	// Handlers bounds the calls that a region server executes at a time, over all
	// connections. A call that waits for a handler is dropped when its connection
	// ends. Calls of high priority and those to hbase:meta do not wait. With 0,
	// the calls of each connection are executed one after another.
	Handlers int
	// NoPriority makes servers ignore the priority of calls.
	NoPriority bool
}

// Call describes a call, for a hook.
type Call struct {
	Server int    // index of the region server, -1 for the master
	Method string // Scan, Multi, Mutate, Get, CreateTable, …
	Table  string // of a scan or a get, see tableLocked; else empty
	N      int    // number of calls of this method on user tables before this one
	Cells  int    // in its cell block
	Row    string // of the first of these cells
	Filter bool   // it opens a scanner with a filter
	Key    string // the first row that it names, of a scanner the one where it began
	If     bool   // it changes rows on conditions
}

// FaultKind is what goes wrong with a call.
type FaultKind uint8

const (
	None          FaultKind = iota // nothing goes wrong
	DropBefore                     // the connection breaks before the call is executed
	DropAfter                      // the call is executed, its reply is lost with the connection
	Hang                           // the call is executed, its reply never comes
	Refuse                         // the call is answered with an exception
	CutCells                       // the reply's cell block loses its last byte; one without cells is lost
	SkipActions                    // every other action of a Multi call is neither executed nor answered
	RefuseActions                  // each action of a Multi call is answered with an exception
	// The connection stays open, but nothing more is read or written; the call is not executed.
	Deafen
)

// Fault is a hook's fault for a call; the zero value is none.
type Fault struct {
	Kind      FaultKind
	Exception string        // class name for Refuse and RefuseActions
	Delay     time.Duration // passes before the call is executed
	// Queued makes the call wait in the queue during Delay, and is dropped if its
	// connection ends. It needs Options.Handlers.
	Queued bool
	// Change, if set, alters the reply of a call that has been executed.
	Change func(response proto.Message)
}

// Cluster is a running fake.
type Cluster struct {
	opts     Options
	version  release
	net      network.Network
	zk       net.Listener
	zkError  atomic.Int32 // see SetZooKeeperError
	master   *server
	servers  []*server
	wg       sync.WaitGroup
	done     chan struct{} // closed by Close
	received atomic.Int64  // cells that came with Multi calls

	mu             sync.Mutex
	tables         map[string]*table
	snapshots      map[string]*snapshot
	scanners       map[uint64]*scanner
	closedScanners map[uint64]bool
	nonces         map[uint64]bool
	lastID         uint64
	calls          map[string]int
	hook           func(Call) Fault
	onReadPoint    func(table string)
	lastScanner    int // id of the scanner that was opened last
	closed         bool
	conns          map[net.Conn]bool

	metaServer   int            // index of the server of hbase:meta
	catalogPoint uint64         // read point of hbase:meta
	catalogTime  int64          // of its last change, ms
	delayed      bool           // see DelayCatalog
	unwritten    []*regionState // whose openings are delayed

	id         string       // see SetClusterID
	now        func() int64 // see SetClock
	behind     []int64      // ms, by server, see SetBehind
	replicated bool         // see Replicate
	slowUntil  int64        // see SetSlow
	rawScans   int          // see RawScans
	fileCount  int
	denied     map[string]bool // see Deny
}

// For runs a cluster that ends with the test.
func For(t testing.TB, opts Options) *Cluster {
	t.Helper()
	c, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Start runs a cluster; Close ends it.
func Start(opts Options) (*Cluster, error) {
	if opts.Servers == 0 {
		opts.Servers = 2
	}
	version := parseVersion(opts.Version)
	opts.NoReadPoint = opts.NoReadPoint || version.before(1, 3)
	c := &Cluster{
		version:        version,
		opts:           opts,
		behind:         make([]int64, opts.Servers),
		tables:         map[string]*table{},
		snapshots:      map[string]*snapshot{},
		scanners:       map[uint64]*scanner{},
		closedScanners: map[uint64]bool{},
		nonces:         map[uint64]bool{},
		calls:          map[string]int{},
		conns:          map[net.Conn]bool{},
		lastID:         1000,
		id:             ClusterID,
		catalogPoint:   1, // 0 would mean that a reply has no read point
		done:           make(chan struct{}),
	}

	if c.net = opts.Network; c.net == nil {
		c.net = loopback{}
	}

	// The master is the server with index -1.
	for i := -1; i < opts.Servers; i++ {
		s := newServer(c, i)
		if err := s.listen(anyPort); err != nil {
			c.Close()
			return nil, err
		}
		if i < 0 {
			c.master = s
		} else {
			c.servers = append(c.servers, s)
		}
	}

	return c, c.startZooKeeper(anyPort)
}

// Address is the ZooKeeper quorum.
func (c *Cluster) Address() string { return c.zk.Addr().String() }

// Close ends all servers and connections.
func (c *Cluster) Close() {
	c.mu.Lock()
	if !c.closed {
		close(c.done)
	}
	// From now on no connection is tracked, so those that are there are all.
	c.closed = true
	c.mu.Unlock()

	c.StopZooKeeper()
	for _, s := range append([]*server{c.master}, c.servers...) {
		// There is no master if Start has failed to listen for it.
		if s != nil {
			s.stop()
		}
	}

	c.mu.Lock()
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// SetHook installs a function that is called for every call and returns what goes wrong
// with it; nil removes it. The cluster is locked during the call: the hook must not use
// it. SetHook also sets the counts of calls back to 0.
func (c *Cluster) SetHook(hook func(Call) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
	c.calls = map[string]int{}
}

// OnReadPoint installs a function that is called when a read point was requested,
// of a table's region or of "hbase:meta", before the reply is sent; nil removes it.
// It may use the cluster.
func (c *Cluster) OnReadPoint(f func(table string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReadPoint = f
}

// Calls returns how often a method was called on user tables since SetHook.
func (c *Cluster) Calls(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

// Received returns how many cells came with Multi calls, whether those were executed
// or not.
func (c *Cluster) Received() int { return int(c.received.Load()) }

// OpenScanners returns how many scanners are open.
func (c *Cluster) OpenScanners() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.scanners)
}

// ExpireScanners ends every scanner's lease.
func (c *Cluster) ExpireScanners() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.scanners)
}

// StopServer stops a region server and closes its connections. Its regions stay
// assigned to it.
func (c *Cluster) StopServer(i int) { c.servers[i].stop() }

// RestartServer starts a stopped server again, on the same port.
func (c *Cluster) RestartServer(i int) error { return c.servers[i].listen(c.servers[i].addr) }

// PauseServer pauses a region server, as SIGSTOP does: it reads, executes and writes
// nothing, but connections to it are still accepted.
func (c *Cluster) PauseServer(i int) { c.servers[i].pause() }

// ResumeServer resumes a paused server.
func (c *Cluster) ResumeServer(i int) { c.servers[i].resume() }

// StopZooKeeper makes ZooKeeper accept no more sessions.
func (c *Cluster) StopZooKeeper() {
	if c.zk != nil {
		c.zk.Close()
	}
}

// SetZooKeeperError answers look-ups in ZooKeeper with an error of a code and closes their
// sessions; 0 answers them again.
func (c *Cluster) SetZooKeeperError(code int32) { c.zkError.Store(code) }

// RestartZooKeeper starts it again, on the same port.
func (c *Cluster) RestartZooKeeper() error { return c.startZooKeeper(c.Address()) }

// track registers a connection until it ends. It returns false after Close.
func (c *Cluster) track(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.conns[conn] = true
	}
	return !c.closed
}

// untrack closes a connection and unregisters it.
func (c *Cluster) untrack(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// serve accepts connections until the listener is closed.
func (c *Cluster) serve(l net.Listener, handle func(net.Conn)) {
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if !c.track(conn) {
				conn.Close()
				return
			}

			c.wg.Go(func() {
				defer c.untrack(conn)
				handle(conn)
			})
		}
	})
}

// javaError is an exception to send.
type javaError struct{ class, message string }

func (e *javaError) Error() string { return e.class + ": " + e.message }

// throw returns an exception as an error.
func throw(class, format string, args ...any) error {
	return &javaError{class, fmt.Sprintf(format, args...)}
}

// Exceptions that the fake throws.
const (
	notServing   = "org.apache.hadoop.hbase.NotServingRegionException"
	failedSanity = "org.apache.hadoop.hbase.exceptions.FailedSanityCheckException"
	wrongRegion  = "org.apache.hadoop.hbase.regionserver.WrongRegionException"
	unknownScan  = "org.apache.hadoop.hbase.UnknownScannerException"
	outOfOrder   = "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException"
	noFamily     = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException"
	doNotRetry   = "org.apache.hadoop.hbase.DoNotRetryIOException"
	tableExists  = "org.apache.hadoop.hbase.TableExistsException"
	noTable      = "org.apache.hadoop.hbase.TableNotFoundException"
	illegalValue = "java.lang.IllegalArgumentException"
)

// clock returns the time, in ms, by the clocks that are not behind.
func (c *Cluster) clock() int64 {
	if c.now != nil {
		return c.now()
	}
	return time.Now().UnixMilli()
}

// clockOf returns the time, in ms, by the clock of the server that holds a row.
func (c *Cluster) clockOf(t *table, key []byte) int64 {
	return c.clock() - c.behind[t.regionOf(key).server]
}
