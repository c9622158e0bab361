//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/store"
	hbasestore "downpour/pushdown/store/hbase"
)

// HBase is slow but not dead: its memstores are so small that regions refuse writes while they
// flush, and region servers stop for seconds. Every write is acknowledged in the end, everything
// acknowledged is there, and at most twice as many bytes go to the servers as were put.
func TestSlowHBase(t *testing.T) {
	t.Parallel()
	pauses := 3
	if *soak {
		pauses = 30
	}
	ctx := within(t, 2*time.Minute+time.Duration(pauses)*20*time.Second)
	cluster, err := e2e.StartHBase(ctx, e2e.HBaseOptions{SessionTimeout: time.Minute, Site: map[string]string{
		"hbase.hregion.memstore.flush.size":       "1048576",
		"hbase.hregion.memstore.block.multiplier": "1",
		"hbase.regionserver.handler.count":        "3",
	}})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, cluster)
	log, sent := &faultLog{}, &atomic.Int64{}
	st, err := hbasestore.Open(hbasestore.Config{Quorum: cluster.Quorum(), Logger: slog.New(log), Dial: counting(sent)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	spec := store.TableSpec{
		Name:     "slow",
		Splits:   [][]byte{[]byte("r2"), []byte("r4"), []byte("r6")},
		Families: []store.FamilySpec{{Name: "t"}},
	}
	if err := st.CreateTable(ctx, spec); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	writers := make([]*slowWriter, 4)
	var all sync.WaitGroup
	for i := range writers {
		writers[i] = &slowWriter{n: i}
		all.Go(func() { writers[i].run(ctx, t, st, stop) })
	}
	for i := range pauses {
		<-time.After(3 * time.Second)
		server := i % cluster.Len()
		if err := cluster.PauseRegionServer(server); err != nil {
			t.Error(err)
		}
		<-time.After(time.Duration(4+4*(i%3)) * time.Second) // a silent server is probed after 3 s
		if err := cluster.ResumeRegionServer(server); err != nil {
			t.Error(err)
		}
	}
	<-time.After(3 * time.Second)
	close(stop)
	all.Wait()
	asked := 0
	for _, w := range writers {
		asked += w.batches * slowRows * slowValue
	}
	t.Logf("%d MB put, %d MB sent to HBase: %.2f times as many; faults met: %v",
		asked>>20, sent.Load()>>20, float64(sent.Load())/float64(asked), log)
	if sent.Load() > 2*int64(asked) {
		t.Errorf("%d bytes were sent where %d were put, want at most twice as many", sent.Load(), asked)
	}
	checkSlow(ctx, t, st, writers)
}

const (
	slowRows  = 150  // of a batch
	slowValue = 1000 // bytes
)

// slowWriter puts batch after batch; each batch has rows of its own.
type slowWriter struct{ n, batches int }

func (w *slowWriter) run(ctx context.Context, t *testing.T, st *hbasestore.Store, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var ms []store.Mutation
		for i := range slowRows {
			ms = append(ms, store.Mutation{
				Row:       w.row(w.batches, i),
				Family:    "t",
				Qualifier: []byte("q"),
				Value:     w.value(w.batches, i),
			})
		}
		one, cancel := context.WithTimeout(ctx, 2*time.Minute)
		err := st.Apply(one, "slow", ms)
		cancel()
		if err != nil {
			t.Errorf("writer %d, batch %d: %v", w.n, w.batches, err)
			return
		}
		w.batches++
	}
}

func (w *slowWriter) row(batch, i int) []byte {
	return fmt.Appendf(nil, "r%d-%d-%06d-%03d", (batch+i)%8, w.n, batch, i)
}

func (w *slowWriter) value(batch, i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%09d.", batch*slowRows+i), slowValue/10)
}

// checkSlow reads all rows and wants those of every batch.
func checkSlow(ctx context.Context, t *testing.T, st *hbasestore.Store, writers []*slowWriter) {
	t.Helper()
	want := map[string][]byte{}
	for _, w := range writers {
		for b := range w.batches {
			for i := range slowRows {
				want[string(w.row(b, i))] = w.value(b, i)
			}
		}
	}
	acknowledged := len(want)
	sc, err := st.Scan(ctx, store.Scan{Table: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if len(r.Cells) == 1 && bytes.Equal(r.Cells[0].Value, want[string(r.Key)]) {
				delete(want, string(r.Key))
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%d of %d rows that were acknowledged are not there", len(want), acknowledged)
	}
	t.Logf("%d rows acknowledged", acknowledged)
}

// counting dials and counts the bytes that are written.
func counting(sent *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{c, sent}, nil
	}
}

type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

// Write counts what has been written.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// faultLog is a log that counts its lines: by the class of their error, or by message without one.
type faultLog struct {
	slog.Handler
	mu     sync.Mutex
	counts map[string]int
}

// Enabled takes every line.
func (l *faultLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle counts a line.
func (l *faultLog) Handle(_ context.Context, r slog.Record) error {
	what := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			class, _, _ := strings.Cut(a.Value.String(), ":")
			what = class[strings.LastIndexByte(class, '.')+1:]
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[what]++
	return nil
}

func (l *faultLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.counts)
}
