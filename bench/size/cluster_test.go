package size

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

const (
	base   = 1356998400
	groups = 9
	bucket = 300 // seconds
	perRow = 12  // buckets
	// rowBytes is what a row of an hour, a point a minute, takes as the store delivers it. Recorded rows are as large.
	rowBytes = 647
)

var (
	metric  = operatortest.UID(1)
	byKey   = operatortest.UID(1)
	hostKey = operatortest.UID(2)
)

// layout is a table and the servers next to it, each with as many regions and series of the metric. All series have all
// hours, and are spread over the salt buckets.
type layout struct {
	servers, regions, series int // regions and series of each server
	hours, salts             int
}

func (l layout) schema() encoding.Schema {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 2, l.salts
	return s
}

// borders are the first keys of the regions but the first.
func (l layout) borders() (keys [][]byte) {
	all := l.servers * l.regions
	for i := 1; i < all; i++ {
		salt, hour := i*l.salts/all, (i*l.salts%all)*l.hours/all
		keys = append(keys, l.schema().AppendRangeKey(nil, salt, metric, uint32(base+hour*3600)))
	}
	return keys
}

// tags are those of series n of a salt bucket.
func (l layout) tags(salt, n int) []encoding.TagPair {
	return []encoding.TagPair{
		{K: byKey, V: operatortest.UID(1 + n%groups)}, {K: hostKey, V: operatortest.UID(100 + n*l.salts + salt)},
	}
}

// inSalt is how many series a salt bucket has: all have as many.
func (l layout) inSalt() int { return l.series * l.servers / l.salts }

// span is the row key of a series without its base time.
func (l layout) span(salt, n int) []byte {
	s := l.schema()
	key := s.AppendRangeKey(nil, salt, metric, 0)[:s.BaseTimeAt()]
	return s.AppendTags(key, l.tags(salt, n))
}

// members are how many series of a salt bucket group g has.
func (l layout) members(g int) int { return (l.inSalt() - g + groups - 1) / groups }

// recorded are times of parts of real pushdown servers.
type recorded struct {
	Note string
	By   map[string]recording // by the number of processes
}

// recording is a query of so many processes.
type recording struct {
	Regions, Series, Hours int // of each process; as many salt buckets as processes
	Wall                   time.Duration
	Parts                  [][2]int64 // bytes read, and ns
}

func times(t testing.TB) (r recorded) {
	t.Helper()
	b, err := os.ReadFile("testdata/parts.json")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// overhead is added to the bytes of a part when times are compared: one that reads little takes time, too.
const overhead = 64 << 10

// draw returns a time for a part of so many bytes: that of a recorded one, in proportion.
func draw(rng *rand.Rand, parts [][2]int64, bytes int64) time.Duration {
	p := parts[rng.IntN(len(parts))]
	return time.Duration(float64(p[1]) * float64(bytes+overhead) / float64(p[0]+overhead))
}

// cluster is the simulated servers of a layout.
type cluster struct {
	layout
	times [][2]int64

	seed    uint64
	mu      sync.Mutex
	byHours map[int]batch.Record // what all parts of so many hours have alike
	bySalt  []batch.Record       // the groups of a salt bucket with their spans, and no buckets

	answered func() // called when a part has been answered
	last     time.Time
	busy     map[*simulated]time.Duration // sums of the times of parts
}

// simulated is one pushdown server.
type simulated struct {
	*cluster
	name string
}

func newCluster(l layout, times [][2]int64, seed uint64) *cluster {
	c := &cluster{
		layout: l, times: times, seed: seed, byHours: map[int]batch.Record{},
		busy: map[*simulated]time.Duration{}, answered: func() {},
	}
	for salt := range l.salts {
		c.bySalt = append(c.bySalt, c.record(salt, 0))
	}
	return c
}

// executor is a gateway's, in front of the servers.
func (c *cluster) executor() *dispatch.Executor {
	m := &operatortest.Store{Borders: c.borders()}
	var servers []dispatch.Server
	for i := range c.servers {
		servers = append(servers, &simulated{c, fmt.Sprint("s", i)})
	}
	for i := range c.servers * c.regions {
		m.Servers = append(m.Servers, fmt.Sprintf("rs%d:16020", i%c.servers))
	}
	return dispatch.New(dispatch.Config{Store: &distant{m}, Servers: servers, Log: slog.New(slog.DiscardHandler)})
}

// distant is the table as the gateway reaches it: it knows the regions, and gets no row before a server has read them
// all.
type distant struct{ *operatortest.Store }

// Features are none.
func (*distant) Features() store.Features { return store.Features{} }

// Scan waits for the end of ctx.
func (*distant) Scan(ctx context.Context, _ store.Scan) (store.Scanner, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (s *simulated) Address() string { return s.name }

func (s *simulated) Hello(context.Context) (wire.Hello, error) {
	return wire.Hello{Plan: scanplan.Version, Batch: batch.Version, Beside: "r" + s.name + ":16020"}, nil
}

func (s *simulated) DropCaches(context.Context) error { return nil }

func (s *simulated) Open(part *scanplan.Part, _ operator.Budget) (operator.Operator, error) {
	h, ok := part.Plan.WholeHours(part.Range)
	if !ok || part.Mode != scanplan.PartialAggregation {
		return nil, fmt.Errorf("%w: mode %s from %s to %s, want partial aggregates of whole hours",
			operator.ErrBadPlan, part.Mode, part.Range.Start, part.Range.Stop)
	}
	return &answer{
		from: s, salt: int(part.Range.Start[0])<<8 | int(part.Range.Start[1]), first: h.From,
		hours: int(h.To-h.From) / encoding.RowSeconds,
	}, nil
}

// answer is the operator of one part.
type answer struct {
	from        *simulated
	salt, hours int
	first       int64
	sent        bool
	stats       operator.Stats
}

func (a *answer) Next(ctx context.Context) (batch.Record, error) {
	c := a.from.cluster
	if a.sent {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = time.Now()
		c.answered()
		return nil, io.EOF
	}
	rows := int64(a.hours * c.inSalt())
	// By its place in the table, and not by the order in which parts come.
	rng := rand.New(rand.NewPCG(c.seed+uint64(a.first), uint64(a.salt)))
	took := draw(rng, c.times, rows*rowBytes)
	c.mu.Lock()
	c.busy[a.from] += took
	r := c.whole(a.salt, a.hours)
	c.mu.Unlock()

	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		r.Release()
		return nil, context.Cause(ctx)
	}
	a.sent = true
	a.stats = operator.Stats{
		Rows: rows, RowsScanned: rows, Cells: rows, Bytes: rows * rowBytes, Points: 60 * rows,
		Spans: int64(c.inSalt()), Batches: 1, ShippedBytes: operator.RecordBytes(r), ScanTime: took / 2,
	}
	return r, nil
}

func (a *answer) Stats() operator.Stats { return a.stats }
func (a *answer) Close() error          { return nil }

// whole returns the batch of a part: the columns of buckets are the same in all salt buckets, those of spans in all
// hours. So a simulated answer costs next to nothing.
func (c *cluster) whole(salt, hours int) batch.Record {
	if c.byHours[hours] == nil {
		c.byHours[hours] = c.record(0, hours)
	}
	of, spans := c.byHours[hours], c.bySalt[salt]
	columns := make([]arrow.Array, of.NumCols())
	for i := range columns {
		columns[i] = of.Column(i)
		if name := of.ColumnName(i); name == "spans" {
			columns[i] = spans.Column(i)
		}
	}
	return array.NewRecord(of.Schema(), columns, of.NumRows())
}

// record makes the batch of a part of a salt bucket: each series has the value 1 in each bucket.
func (c *cluster) record(salt, hours int) batch.Record {
	w := batch.NewPartialWriter(memory.DefaultAllocator)
	defer w.Release()
	for g := range groups {
		p := batch.Partial{Group: operatortest.UID(1 + g)}
		n := c.members(g)
		for range hours * perRow {
			p.Live = append(p.Live, int32(n))
			p.A = append(p.A, float64(n))
			if n > 1 {
				p.Low, p.High = append(p.Low, 0), append(p.High, high(n))
			}
		}
		for i := range n {
			p.Spans = append(p.Spans, c.span(salt, g+i*groups))
			p.Flags = append(p.Flags, 0) // points in the part's first and last bucket
		}
		w.Append(&p)
	}
	return w.Record()
}

// high is the least exponent of two above n.
func high(n int) (e int16) {
	for ; n > 0; n >>= 1 {
		e++
	}
	return e
}
