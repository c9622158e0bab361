package rollupjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// recorded returns the rows of records, and how many pieces each has.
func (w *world) recorded() map[string]int {
	w.Helper()
	out := map[string]int{}
	for row, err := range store.Rows(w.Context(), w.Store, store.Scan{Table: "state", Family: lease.Family}) {
		if err != nil {
			w.Fatal(err)
		}
		if !strings.HasPrefix(string(row.Key), recordPrefix) {
			continue
		}
		l := newLayout(w.job.Schema, w.job.Tables, w.job.Config, w.job.Config.ByName("1h"), false)
		var begin int64
		if _, err := fmt.Sscanf(string(row.Key[len(row.Key)-10:]), "%d", &begin); err != nil {
			w.Fatal(err)
		}
		r, err := l.parseRecord(row.Cells[0].Value, begin)
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range r.Sections {
			out[string(row.Key)] += len(s.Pieces)
		}
	}
	return out
}

// reads counts the rows of state that a store gives.
type reads struct {
	*world
	rows int
}

func (r *reads) Features() store.Features { return r.world.Features() }

func (r *reads) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	rows, err := r.world.Get(ctx, table, family, keys)
	if table == "state" {
		r.rows += len(rows)
	}
	return rows, err
}

func (r *reads) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	scanner, err := r.world.Scan(ctx, s)
	if s.Table == "state" && err == nil {
		return countedScanner{scanner, &r.rows}, nil
	}
	return scanner, err
}

type countedScanner struct {
	store.Scanner
	rows *int
}

func (c countedScanner) Next() ([]store.Row, error) {
	rows, err := c.Scanner.Next()
	*c.rows += len(rows)
	return rows, err
}

// Records have a row for each 32 days. A query reads those of its time, and is answered
// from all of them.
func TestRecords_periods(t *testing.T) {
	w := newWorld(t)
	const days = 300
	end := int64(midnight + 400*day)
	w.job.Now = func() time.Time { return time.Unix(end+hour, 0) }
	from := end - days*day
	for at := from; at < end; at += day / 2 {
		w.put(1, map[int64]float64{at: 1})
	}
	for _, step := range []func(context.Context, encoding.UID, int64, int64) (Counts, error){w.job.Roll, w.job.Prove} {
		if c, err := step(t.Context(), metric, from, end); err != nil || c.Unproven > 0 {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	rows := w.recorded()
	pieces := 0
	for key, n := range rows {
		if pieces += n; n > periodPieces {
			t.Errorf("%s has %d pieces, want %d at most", key, n, periodPieces)
		}
	}
	if n := len(rows); pieces != days || n < days/periodPieces || n > days/periodPieces+2 {
		t.Errorf("%d pieces in %d rows, want %d in about %d", pieces, n, days, days/periodPieces)
	}

	for _, c := range []struct {
		from, to int64
		most     int
	}{{end - 7*day, end, 2}, {end - 40*day, end, 3}, {from, end, len(rows)}, {end - 100*day, end - 99*day, 1}} {
		r := &reads{world: w}
		w.prover.Store = r
		p, err := w.prover.Prove(t.Context(), w.job.Config.ByName("1h"), metric, Range{c.from, c.to})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]Range{{c.from, c.to}}, p.Ranges); d != "" {
			t.Errorf("%d days: %s: -want +got\n%s", (c.to-c.from)/day, p.Why, d)
		}
		if r.rows == 0 || r.rows > c.most {
			t.Errorf("%d days: %d records were read, want %d at most", (c.to-c.from)/day, r.rows, c.most)
		}
	}
}

// A record that another worker has written in the meantime, or of other times than its key says, is an error.
func TestRecords_damaged(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1})
	w.run()
	l := newLayout(w.job.Schema, w.job.Tables, w.job.Config, w.job.Config.ByName("1h"), false)
	begin := midnight / l.period() * l.period()
	for value, want := range map[string]string{
		"x": "invalid character",
		fmt.Sprintf(`{"stretches":[{"pieces":[{"from":%d,"to":%d}]}]}`, begin-day,
			begin): "want them from",
		fmt.Sprintf(`{"stretches":[{"pieces":[{"from":%d,"to":%d},{"from":%d,"to":%d}]}]}`, begin, begin+day,
			begin+2*day, begin+3*day): "want it to follow",
	} {
		m := store.Mutation{
			Row:       recordKey(l, metric, 0, begin),
			Family:    lease.Family,
			Qualifier: []byte(recordColumn),
			Value:     []byte(value),
		}
		if err := w.Apply(t.Context(), "state", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.job.Roll(t.Context(), metric, midnight, midnight+day); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// Before the first job there is no table, and nothing is recorded.
func TestRecords_noTable(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1})
	w.job.Tables.State, w.prover.Tables.State = "none", "none"
	if c := w.dryRun(); c.Points != 1 || c.Made == 0 {
		t.Errorf("dry run: got %+v", c)
	}
	if p := w.proven(); len(p.Ranges) > 0 || p.Why != notRolledUp {
		t.Errorf("got %+v", p)
	}
}

// A day that was rolled up in several runs is one piece once it is proven, and is
// rolled up as a whole after a late point.
func TestJob_bitByBit(t *testing.T) {
	w := newWorld(t)
	for at := int64(midnight); at < midnight+2*day; at += hour {
		w.put(1, map[int64]float64{at + 17: float64(at % 91), at + 1800: 0.5})
	}
	w.job.Grain = 6 * hour
	for now := int64(midnight + 6*hour); now <= midnight+2*day; now += 6 * hour {
		w.job.Now = func() time.Time { return time.Unix(now+600+300, 0) }
		if c := w.run(); c.Points != 12 || c.Made != 1 || c.Unproven > 0 {
			t.Fatalf("at %d: got %+v, want six hours rolled up", now, c)
		}
		if d := cmp.Diff([]Range{{midnight, now}}, w.proven().Ranges); d != "" {
			t.Fatalf("at %d: %s", now, d)
		}
	}
	for key, n := range w.recorded() {
		if n != 2 {
			t.Errorf("%s has %d pieces, want 2", key, n)
		}
	}
	before := w.cells()

	w.put(1, map[int64]float64{midnight + 5*hour + 1: 7})
	if c := w.run(); c.Made != 1 || c.Kept != 1 || c.Points != 49 || c.Unproven > 0 {
		t.Errorf("a late point: got %+v, want the first day made", c)
	}
	if d := cmp.Diff([]Range{{midnight, midnight + 2*day}}, w.proven().Ranges); d != "" ||
		cmp.Equal(before, w.cells()) {
		t.Errorf("a late point: %s", d)
	}
}

// A run does not touch rollups of more hours than its own grain has, made by a run with another
// grain.
func TestJob_grain(t *testing.T) {
	w := newWorld(t)
	for at := int64(midnight); at < midnight+day; at += hour {
		w.put(1, map[int64]float64{at: 1})
	}
	w.job.Now = func() time.Time { return time.Unix(midnight+20*hour+1800, 0) }
	if c := w.run(); c.Points != 20 {
		t.Fatalf("got %+v, want 20 hours", c)
	}
	w.job.Grain = 6 * hour
	if c := w.run(); c.Made > 0 || c.Kept != 1 || c.Unproven > 0 {
		t.Errorf("got %+v, want nothing made", c)
	}
	if d := cmp.Diff([]Range{{midnight, midnight + 20*hour}}, w.proven().Ranges); d != "" {
		t.Error(d)
	}
}

// Rollups whose raw rows retention has deleted are kept as they were made of all raw rows, and no
// query with proofs reads them.
func TestJob_deletedRaw(t *testing.T) {
	w := newWorld(t)
	for at := int64(midnight); at < midnight+3*day; at += hour / 2 {
		w.put(1, map[int64]float64{at: 1})
	}
	w.run()
	before := w.cells()
	for at := int64(midnight); at < midnight+day+5*hour; at += hour {
		if err := w.Apply(t.Context(), "tsdb",
			[]store.Mutation{{Kind: store.DeleteRow, Row: rawRow(at, 1), Family: "t"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		w.run()
	}
	// That values are kept is found once: as long as nothing changes, the raw rows are not read
	// again.
	if c := w.run(); c.Points > 0 || c.Made > 0 || c.Unproven > 0 {
		t.Errorf("the third time: got %+v, want that nothing is left to do", c)
	}
	if _, proven, err := w.job.UpToDate(t.Context(), metric, midnight, midnight+3*day); err != nil || !proven {
		t.Errorf("a look: got %v, %v, want that nothing is left to do", proven, err)
	}
	if d := cmp.Diff(before, w.cells()); d != "" {
		t.Errorf("rollups of deleted raw rows (-before +after)\n%s", d)
	}
	p := w.proven()
	for _, r := range p.Ranges {
		if r.From < midnight+2*day {
			t.Errorf("%+v is read, want what raw rows are there for", r)
		}
	}

	// Rollups of rows that were deleted on purpose are removed if the job is set so.
	if err := w.Apply(t.Context(), "tsdb",
		[]store.Mutation{{Kind: store.DeleteRow, Row: rawRow(midnight+2*day+hour, 1), Family: "t"}}); err != nil {
		t.Fatal(err)
	}
	if c := w.run(); c.Stay != 1*4 || c.Raw == 0 || len(w.cells()) != len(before) {
		t.Errorf("got %+v and %d cells, want 4 of all %d to stay", c, len(w.cells()), len(before))
	}
	w.job.Fewer = true
	counts, err := w.job.Roll(t.Context(), metric, midnight+2*day, midnight+3*day)
	if err != nil || counts.Stay > 0 || len(w.cells()) != len(before)-4 {
		t.Errorf("got %+v, %v and %d cells, want 4 fewer than %d", counts, err, len(w.cells()), len(before))
	}
}

// A day at the edge of retention has lost some of its hours, and one late point of long ago makes the
// first raw row an old one. The rollups of deleted rows are kept, also those of a series with a late
// point in a deleted hour.
func TestJob_partlyDeletedDay(t *testing.T) {
	w := newWorld(t)
	for at := int64(midnight); at < midnight+3*day; at += hour / 2 {
		w.put(1, map[int64]float64{at: 1})
		w.put(2, map[int64]float64{at: 2})
	}
	w.run()
	before := w.cells()
	for at := int64(midnight); at < midnight+day+5*hour; at += hour {
		for host := range byte(2) {
			if err := w.Apply(t.Context(), "tsdb",
				[]store.Mutation{{Kind: store.DeleteRow, Row: rawRow(at, host+1), Family: "t"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.put(1, map[int64]float64{midnight - 10*day: 7})       // late, of long ago
	w.put(1, map[int64]float64{midnight + day + 2*hour: 8}) // late, of a deleted hour
	w.put(2, map[int64]float64{midnight + day + 7*hour + 60: 9})

	for range 2 {
		w.run()
	}
	var lost int
	after := w.cells()
	for _, cell := range before {
		if !slices.Contains(after, cell) {
			lost++
		}
	}
	// The seventh hour of the second series has another sum, count and maximum.
	if lost != 3 {
		t.Errorf("%d cells are gone or others, want 3\n%s", lost, cmp.Diff(before, after))
	}
	for _, r := range w.proven().Ranges {
		if r.From < midnight+2*day {
			t.Errorf("%+v is read, want what raw rows are there for", r)
		}
	}
}

// A job that is killed while it writes leaves no value that the next one considers to be of more
// points.
func TestJob_killedWhileWriting(t *testing.T) {
	w := newWorld(t)
	w.put(1, map[int64]float64{midnight: 1, midnight + 60: 3})
	dying := &killed{Cells: w, left: 1}
	job := *w.job
	job.Store = dying
	if _, err := job.Roll(t.Context(), metric, midnight, midnight+3*day); !errors.Is(err, errKilled) {
		t.Fatalf("got %v, want that it was killed", err)
	}
	if n := len(w.cells()); n == 0 || n == 4 {
		t.Fatalf("%d cells are written, want some of 4", n)
	}
	w.put(1, map[int64]float64{midnight + 120: 5})
	if c := w.run(); c.Stay > 0 || c.Unproven > 0 || len(w.cells()) != 4 {
		t.Errorf("got %+v and %d cells, want all made", c, len(w.cells()))
	}
}

// killed is a store that writes to the rollups some times.
type killed struct {
	store.Cells
	left int
}

func (*killed) Features() store.Features { return store.Features{} }

var errKilled = errors.New("killed")

func (k *killed) Apply(ctx context.Context, table string, m []store.Mutation) error {
	if table == "r1h" {
		if k.left--; k.left < 0 {
			return errKilled
		}
	}
	return k.Cells.Apply(ctx, table, m)
}

// If retention has deleted some hours of a day, the day's value is kept as it was made of all of
// them; that of the first day of a metric follows a late point.
func TestJob_deletedHours(t *testing.T) {
	w := newWorld(t)
	config, err := rollup.Parse([]byte(`{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
		{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
		{"table":"r1d","preAggregationTable":"r1d-pre","interval":"1d","rowSpan":"1n"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := store.TableSpec{Name: "r1d", Families: []store.FamilySpec{{Name: "t"}}}
	if err := w.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.job.Config, w.prover.Config = config, config
	for at := int64(midnight + 10*hour); at < midnight+2*day; at += hour {
		w.put(1, map[int64]float64{at: 1})
	}
	if c := w.run(); c.Unproven > 0 {
		t.Fatalf("got %+v", c)
	}
	before := w.cellsOf("r1d")
	w.put(1, map[int64]float64{midnight + 12*hour + 60: 5})
	if c := w.run(); c.Unproven > 0 || cmp.Equal(before, w.cellsOf("r1d")) {
		t.Errorf("a late point in the first day: got %+v, want its value made again", c)
	}

	before = w.cellsOf("r1d")
	for at := int64(midnight + 10*hour); at < midnight+day; at += hour {
		if err := w.Apply(t.Context(), "tsdb",
			[]store.Mutation{{Kind: store.DeleteRow, Row: rawRow(at, 1), Family: "t"}}); err != nil {
			t.Fatal(err)
		}
		if c := w.run(); c.Stay == 0 || c.Raw != 1 {
			t.Errorf("got %+v, want one day that is read from raw rows", c)
		}
		if d := cmp.Diff(before, w.cellsOf("r1d")); d != "" {
			t.Fatalf("after the hours up to %d are deleted (-before +after)\n%s", at, d)
		}
	}
}

// One late point of long ago makes the first raw row an old one. The rollups of the days between it
// and the remaining raw rows are still kept.
func TestJob_strayRaw(t *testing.T) {
	w := newWorld(t)
	for at := int64(midnight); at < midnight+4*day; at += hour {
		w.put(1, map[int64]float64{at: 1})
	}
	w.run()
	before := w.cells()
	for at := int64(midnight); at < midnight+3*day; at += hour {
		if err := w.Apply(t.Context(), "tsdb",
			[]store.Mutation{{Kind: store.DeleteRow, Row: rawRow(at, 1), Family: "t"}}); err != nil {
			t.Fatal(err)
		}
	}
	w.put(1, map[int64]float64{midnight - 10*day: 7})
	for range 2 {
		w.run()
	}

	after := w.cells()
	for _, cell := range before {
		if !slices.Contains(after, cell) {
			t.Errorf("%s is gone, a rollup of a time without raw rows", cell)
		}
	}
}
