package telnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/api/pace"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 5 * time.Minute

// names gives every name a number as its UID, except those that tests want to fail,
// such as metrics that begin with "unknown".
type names struct {
	mu  sync.Mutex
	ids map[string]uint64
}

// Generation and Hold say that names never change.
func (n *names) Generation() uint64 { return 0 }

// Prepare does nothing: Assign does it all.
func (n *names) Prepare(context.Context, encoding.UIDKind, []string) {}

// Cached reports that nothing is new.
func (n *names) Cached(encoding.UIDKind, string) bool { return true }

func (n *names) Hold() (uint64, func() error) { return 0, func() error { return nil } }

func (n *names) Resolve(_ context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if strings.HasPrefix(name, "unknown") {
		return nil, &uid.NoSuchNameError{Kind: kind, Name: name}
	}
	if name == "unreachable" {
		return nil, fmt.Errorf("uid table: %w", store.ErrUnavailable)
	}
	if name == "panic" {
		panic("a fault of ours")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := kind.String() + name
	if n.ids[key] == 0 {
		n.ids[key] = uint64(len(n.ids) + 1)
	}
	return encoding.AppendUID(nil, n.ids[key], 3)
}

func (n *names) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	return n.Resolve(ctx, kind, name)
}

// table is a store that keeps the entries of append columns by row. Apply calls gate first and
// fails with its error.
type table struct {
	mu   sync.Mutex
	rows map[string][]byte
	gate func() error
}

func (m *table) Apply(_ context.Context, _ string, mutations []store.Mutation) error {
	if m.gate != nil {
		if err := m.gate(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mu := range mutations {
		m.rows[string(mu.Row)] = append(m.rows[string(mu.Row)], mu.Value...)
	}
	return nil
}

// points returns all stored values, in the order in which their rows arrived, as "time=value". A
// float has its width in bytes behind it: 1356998400000=1.5f4.
func (m *table) points(t *testing.T) (out []string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	schema := encoding.DefaultSchema()
	for key, entries := range m.rows {
		k, err := schema.ParseRowKey([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		for len(entries) > 0 {
			q, rest, err := encoding.ParseQualifier(entries)
			if err != nil {
				t.Fatal(err)
			}
			v, err := encoding.ParseValue(q, rest[:q.Width])
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%d=%d", int64(k.BaseTime)*1000+int64(q.OffsetMS), v.Int())
			if v.Float {
				text = fmt.Sprintf("%d=%vf%d", int64(k.BaseTime)*1000+int64(q.OffsetMS), v.Double(), q.Width)
			}
			out = append(out, text)
			entries = rest[q.Width:]
		}
	}
	return out
}

// bench is a server on loopback over a store in memory.
type bench struct {
	*testing.T
	store  *table
	writer *write.Writer
	addr   string
	cancel context.CancelFunc
	counts struct {
		sync.Mutex
		ok, bad int
	}
}

// start serves; change, if not nil, changes the configuration before.
func start(t *testing.T, change func(*Config)) *bench { return startOn(t, nil, change) }

// newStore returns an empty store, and a writer with small batches and a series cache over it.
func newStore(gate func() error) (*table, *write.Writer, *write.SeriesCache) {
	m := &table{rows: map[string][]byte{}, gate: gate}
	schema := encoding.DefaultSchema()
	series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: &names{ids: map[string]uint64{}}})
	cfg := write.Config{
		Schema:      schema,
		Table:       "tsdb",
		Form:        write.Appended,
		Window:      50 * time.Microsecond,
		WindowBytes: 1 << 10,
		Shards:      2,
	}
	return m, write.New(cfg, m, series), series
}

func startOn(t *testing.T, gate func() error, change func(*Config)) *bench {
	t.Helper()
	b := &bench{T: t}
	b.store, b.writer, _ = newStore(gate)
	cfg := Config{Writer: b.writer, Commands: commands, CountPuts: b.count}
	if change != nil {
		change(&cfg)
	}
	b.serve(NewServer(cfg))
	return b
}

func commands(_ context.Context, words []string) (string, bool) {
	switch words[0] {
	case "version":
		return "downpour 2.4.1\nBuilt today\n", true
	case "stats", "dropcaches", "help":
		return words[0] + " done\n", true
	}
	return "", false
}

func (b *bench) count(ok, bad int) {
	b.counts.Lock()
	defer b.counts.Unlock()
	b.counts.ok += ok
	b.counts.bad += bad
}

func (b *bench) serve(s *Server) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { s.Serve(ctx, pace.NewConn(c, pace.Limits{})) })
		}
	})
	b.Cleanup(func() {
		cancel()
		l.Close()
		work.Wait()
		b.writer.Close()
	})
}

// client is a connection to the server.
type client struct {
	*net.TCPConn
	t  *testing.T
	in *bufio.Reader
}

func (b *bench) dial() *client {
	b.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &client{c.(*net.TCPConn), b.T, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// rest half-closes the connection and returns what comes until the server closes.
func (c *client) rest() string {
	c.t.Helper()
	c.CloseWrite()
	text, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Fatalf("after %q: %v", text, err)
	}
	return string(text)
}

func (c *client) line() string {
	c.t.Helper()
	text, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// say sends text, half-closes and returns all answers.
func (b *bench) say(text string) string {
	b.Helper()
	c := b.dial()
	c.send(text)
	return c.rest()
}

var errDisk = errors.New("disk on fire")
