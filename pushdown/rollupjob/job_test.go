package rollupjob

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
	"downpour/pushdown/store/drystore"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

const (
	midnight = 1356998400 // 2013-01-01
	hour     = 3600
	day      = 24 * hour
)

// world is a store with raw rows of metric 1 and a job.
type world struct {
	*testing.T
	*pebble.Store
	job    *Job
	prover *Prover
	// before, if set, is called before a scan is opened.
	before func(s store.Scan)
}

func (w *world) Features() store.Features { return w.Store.Features() }

// Scan implements store.Reader.
func (w *world) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if w.before != nil {
		w.before(s)
	}
	return w.Store.Scan(ctx, s)
}

var metric = encoding.UID{0, 0, 1}

func newWorld(t *testing.T) *world {
	t.Helper()
	schema := encoding.DefaultSchema()
	st := opentest.Embedded(t, opentest.Table("tsdb", "t"), opentest.Table("r1h", "t"))
	if err := lease.CreateTable(t.Context(), st, "state"); err != nil {
		t.Fatal(err)
	}
	config, err := rollup.Parse([]byte(`{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
		{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
		{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Store: st}
	tables := Tables{Data: "tsdb", State: "state"}
	w.job = &Job{
		Store:  w,
		Tables: tables,
		Schema: schema,
		Config: config,
		Margin: 10 * time.Minute,
		Now:    func() time.Time { return time.Unix(midnight+3*day, 0) },
		Leases: &lease.Keeper{Store: st, Table: "state", Holder: "test"},
	}
	w.prover = &Prover{Store: w, Tables: tables, Schema: schema, Config: config}
	return w
}

// rawRow is the key of the raw row of a series.
func rawRow(base int64, host byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 0, 1}, uint32(base)), 0, 0, 1, 0, 0, host)
}

// put puts points of a series, a cell each.
func (w *world) put(host byte, points map[int64]float64) {
	w.Helper()
	var all []store.Mutation
	for at, v := range points {
		base := at - at%hour
		q := uint16(at-base)<<4 | 0xB
		if v == float64(int64(v)) {
			q = uint16(at-base)<<4 | 7
		}
		value := encoding.AppendDouble(nil, v)
		if q&8 == 0 {
			value = binary.BigEndian.AppendUint64(nil, uint64(int64(v)))
		}
		if q&0xF == 0xB {
			q = q&^0xF | 0xF
		}
		all = append(all, store.Mutation{
			Row:       rawRow(base, host),
			Family:    "t",
			Qualifier: binary.BigEndian.AppendUint16(nil, q),
			Value:     value,
		})
	}
	if err := w.Apply(w.Context(), "tsdb", all); err != nil {
		w.Fatal(err)
	}
}

// run rolls up three days and proves them.
func (w *world) run() Counts {
	w.Helper()
	counts, err := w.job.Roll(w.Context(), metric, midnight, midnight+3*day)
	if err == nil {
		var more Counts
		more, err = w.job.Prove(w.Context(), metric, midnight, midnight+3*day)
		counts.Add(&more)
	}
	if err != nil {
		w.Fatal(err)
	}
	return counts
}

// dryRun rolls up on a store that takes all changes and makes none.
func (w *world) dryRun() Counts {
	w.Helper()
	dry, to := *w.job, drystore.New(w, "tsdb", "r1h")
	dry.Store, dry.Leases = to, nil
	if err := lease.CreateTable(w.Context(), to, dry.Tables.State); err != nil {
		w.Fatal(err)
	}
	counts, err := dry.Roll(w.Context(), metric, midnight, midnight+3*day)
	if err != nil {
		w.Fatal(err)
	}
	return counts
}

// proven returns what is proven of three days.
func (w *world) proven() *Proof {
	w.Helper()
	p, err := w.prover.Prove(w.Context(), w.job.Config.ByName("1h"), metric, Range{midnight, midnight + 3*day})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// cells returns the cells of the rollup table as text, by time and column.
func (w *world) cells() (out []string) { return w.cellsOf("r1h") }

func (w *world) cellsOf(table string) (out []string) {
	w.Helper()
	for row, err := range store.Rows(w.Context(), w.Store, store.Scan{Table: table, Family: "t"}) {
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range row.Cells {
			out = append(out, fmt.Sprintf("%x %x %x", row.Key[3:], c.Qualifier, c.Value))
		}
	}
	return out
}

// The cells are OpenTSDB's: id, index and type of the value in the qualifier, integers in as few
// bytes as hold them.
func TestJob_cells(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + 60: 300, midnight + 2*hour: 0.5})
	if c := w.run(); c.Points != 3 || c.Made != 3 || c.Cells != 8 || c.Proven != 3 || c.Unproven != 0 {
		t.Errorf("got %+v", c)
	}
	want := []string{
		"50e22700000001000001 000001 012d", "50e22700000001000001 00002f 3fe0000000000000",
		"50e22700000001000001 010000 02", "50e22700000001000001 010020 01",
		"50e22700000001000001 020000 01", "50e22700000001000001 02002f 3fe0000000000000",
		"50e22700000001000001 030001 012c", "50e22700000001000001 03002f 3fe0000000000000",
	}
	if d := cmp.Diff(want, w.cells()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Range{{midnight, midnight + 3*day - hour}}, w.proven().Ranges); d != "" {
		t.Error(d) // the last hour has ended, but not the margin ago
	}
}

// A point that comes while raw rows are read, or after they were marked, is seen: the rollups are
// not proven, whether the scan has seen the point or not.
func TestJob_changesWhileReading(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + day: 1})
	came := false
	w.before = func(s store.Scan) {
		// Before the rollups of the first day are read, and after its raw rows were.
		if s.Table == "r1h" && !came && int64(binary.BigEndian.Uint32(s.Start[3:])) == midnight {
			came = true
			w.put(1, map[int64]float64{midnight + 60: 2})
		}
	}
	w.run()
	if !came {
		t.Fatal("the job has read no rollups")
	}
	p := w.proven()
	if d := cmp.Diff([]Range{{midnight + day, midnight + 3*day - hour}}, p.Ranges); d != "" || p.Why == "" {
		t.Errorf("%q: -want +got\n%s", p.Why, d)
	}
	w.before = nil
	if c := w.run(); c.Made != 1 || c.Kept != 2 {
		t.Errorf("got %+v, want one day made again", c)
	}
	if p := w.proven(); len(p.Ranges) != 1 || p.Ranges[0].From != midnight {
		t.Errorf("got %+v, want all proven", p)
	}
}

// A worker that was considered dead, and writes rollups of rows from before a late point, after
// another worker has rolled up again, does no harm: its writes are not proven, and corrected later.
func TestJob_oldWorker(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1})
	w.run()
	old := w.cells()[0]

	w.put(1, map[int64]float64{midnight + 60: 2})
	w.run()
	before := w.proven()
	if len(before.Ranges) != 1 || before.Holds(t.Context()) != nil {
		t.Fatalf("got %+v, want all proven", before)
	}
	if w.cells()[0] == old {
		t.Fatal("the sum has not changed")
	}

	// The old sum.
	m := store.Mutation{Row: rawRow(midnight, 1), Family: "t", Qualifier: []byte{0, 0, 0}, Value: []byte{1}}
	if err := w.Apply(t.Context(), "r1h", []store.Mutation{m}); err != nil {
		t.Fatal(err)
	}
	if err := before.Holds(t.Context()); !errors.Is(err, store.ErrRowsChanged) {
		t.Errorf("got %v, want that rows have changed", err)
	}
	if p := w.proven(); len(p.Ranges) > 0 {
		t.Errorf("got %+v, want nothing proven", p)
	}
	w.run() // finds it
	w.run() // mends it
	if p := w.proven(); len(p.Ranges) != 1 || w.cells()[0] == old {
		t.Errorf("got %+v, %s, want it mended", p, w.cells()[0])
	}
}

// A record that another worker has written in between is not replaced.
func TestJob_record(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1})
	once := false
	w.before = func(s store.Scan) {
		if s.Table == "tsdb" && !once {
			once = true
			other := *w.job
			other.Leases = nil
			if _, err := other.Roll(t.Context(), metric, midnight, midnight+3*day); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := w.job.Roll(t.Context(), metric, midnight, midnight+3*day); !errors.Is(err, errRecord) {
		t.Errorf("got %v, want errRecord", err)
	}
}

// A job that was ended continues where it was, and a dry run writes nothing.
func TestJob_restart(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + day: 2, midnight + 2*day: 3})
	if c := w.dryRun(); c.Points != 3 || len(w.cells()) > 0 {
		t.Errorf("dry run: got %+v and %d cells, want 3 points and none", c, len(w.cells()))
	}

	ctx, cancel := context.WithCancel(t.Context())
	scans := 0
	w.before = func(s store.Scan) {
		if s.Table == "tsdb" {
			if scans++; scans == 3 {
				cancel()
			}
		}
	}
	if _, err := w.job.Roll(ctx, metric, midnight, midnight+3*day); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was cancelled", err)
	}
	w.before = nil
	if c := w.run(); c.Points != 1 || c.Kept != 2 || c.Proven != 3 {
		t.Errorf("got %+v, want two days kept and one made", c)
	}
}

// Rows that no query can read are not rolled up, and rollups of rows with more than points are not
// used.
func TestJob_raw(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + day: 1e291, midnight + 2*day: 3})
	bad := store.Mutation{
		Row:       rawRow(midnight, 1),
		Family:    "t",
		Qualifier: []byte{0, 0x17, 0, 0x27},
		Value:     []byte{1, 0},
	}
	note := store.Mutation{Row: rawRow(midnight+2*day, 1), Family: "t", Qualifier: []byte{1, 0, 0}, Value: []byte("{}")}
	if err := w.Apply(t.Context(), "tsdb", []store.Mutation{bad, note}); err != nil {
		t.Fatal(err)
	}
	if c := w.run(); c.Failed != 1 || c.Raw != 2 || c.Made != 2 {
		t.Errorf("got %+v, want one day that cannot be read and two that are read from raw rows", c)
	}
	if p := w.proven(); len(p.Ranges) > 0 || p.Why == "" {
		t.Errorf("got %+v, want nothing, and why", p)
	}
}

// A row that begins at no full hour may have points of the next day: no query of rollups reads one of the two, and
// nothing panics.
func TestJob_crookedRow(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + day: 2})
	late := store.Mutation{
		Row:       rawRow(midnight+day-1800, 1),
		Family:    "t",
		Qualifier: binary.BigEndian.AppendUint16(nil, 2400<<4),
		Value:     []byte{7},
	}
	if err := w.Apply(t.Context(), "tsdb", []store.Mutation{late}); err != nil {
		t.Fatal(err)
	}
	if c := w.run(); c.Failed != 2 || !strings.Contains(c.Why, "want a full hour") {
		t.Errorf("got %+v, want two days that cannot be read, and why", c)
	}
}

// A metric whose lease another process has does not count as rolled up.
func TestJob_held(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1})
	other := &lease.Keeper{Store: w.Store, Table: "state", Holder: "other"}
	held, ok, err := other.Try(t.Context(), "rollup/tsdb/000001")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.job.Skip = true
	if _, err := w.job.Roll(t.Context(), metric, midnight, midnight+day); !errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := w.run(); c.Made == 0 {
		t.Errorf("got %+v, want it rolled up", c)
	}
}

// More series than fit into memory are rolled up in shorter pieces.
func TestJob_manySeries(t *testing.T) {
	w := newWorld(t)
	for host := range byte(3) {
		w.put(host, map[int64]float64{midnight: 1, midnight + 23*hour: 2})
	}
	l := newLayout(w.job.Schema, w.job.Tables, w.job.Config, w.job.Config.ByName("1h"), false)
	u := newUnit(t.Context(), l, Range{midnight, midnight + day}, false)
	u.maxSlots = 2*24 + 1
	if err := u.read(t.Context(), w, "tsdb", l.rawKeys(0, metric, u.Range),
		func(context.Context, int64) error { return nil }); !errors.Is(err, errTooMany) {
		t.Errorf("got %v, want errTooMany", err)
	}
}
