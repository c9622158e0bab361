package tools_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
)

// TestCompact: the rows of the named metric and hours become one cell each, those of other
// metrics and hours stay, and so does what a dry run has counted. A second run changes nothing.
func TestCompact(t *testing.T) {
	p := onHBase(t)
	p.fake.KeepVersions("tsdb")
	start := int64(1356998400)
	var keys [2][3]string
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var rows []damage.Row
		for i, s := range cfg.Series {
			for hour := range uint32(3) {
				base := uint32(start) + hour*encoding.RowSeconds
				key := cfg.Schema.AppendRowKey(nil, s.Metric, base, s.Tags)
				keys[i][hour] = fmt.Sprintf("%x", key)
				at := int64(base)*1000 + 700
				rows = append(rows, damage.Row{Row: fsck.Row{Key: key, Cells: []fsck.Cell{
					{Qualifier: []byte{0, 0}, Value: []byte{1}, Timestamp: at},
					{Qualifier: []byte{0, 0x10}, Value: []byte{2}, Timestamp: at + 1000},
				}}})
			}
		}
		p.lay(st, rows)
	})
	now := time.Unix(start+86_400, 0)
	p.now = func() time.Time { return now }
	cells := func() (lines []string) {
		p.use(func(st tools.Store) { lines = p.rowCells(st) })
		return lines
	}
	before := cells()
	run := func(want string, args ...string) {
		t.Helper()
		if err := p.tool("", nil, "compact", args...); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(p.out.String()); got != want {
			t.Errorf("compact %q prints\n%s, want\n%s", args, got, want)
		}
	}
	hours := []string{fmt.Sprint(start), fmt.Sprint(start + 7199), "m1"}

	run(dryLine+"2 rows: 2 compacted, 4 cells of 12 bytes became 2 of 14", append([]string{"-dry-run"}, hours...)...)
	if after := cells(); !slices.Equal(before, after) {
		t.Errorf("a dry run has changed the table: %q", after)
	}
	now = time.Unix(start+7200, 0).Add(9 * time.Minute)
	run("2 rows: 1 compacted, 2 cells of 6 bytes became 1 of 7; 1 left: young", hours...)
	run("2 rows: 1 compacted, 2 cells of 6 bytes became 1 of 7; 1 left: one cell",
		append([]string{"-margin", "5m"}, hours...)...)
	run("2 rows: 0 compacted, 0 cells of 0 bytes became 0 of 0; 2 left: one cell",
		append([]string{"-margin", "0"}, hours...)...)

	var want []string
	for _, line := range before {
		if key, _, _ := strings.Cut(line, " "); key != keys[0][0] && key != keys[0][1] {
			want = append(want, line)
		}
	}
	for hour := range 2 {
		want = append(want, fmt.Sprintf("%s 00000010=010200@%d", keys[0][hour], (start+int64(hour)*3600)*1000+1700))
	}
	slices.Sort(want)
	if got := cells(); !slices.Equal(got, want) {
		t.Errorf("the table has\n%q, want\n%q", got, want)
	}
}

// TestCompact_refused: wrong arguments and stores are reported, and an embedded store needs nothing.
func TestCompact_refused(t *testing.T) {
	p := onHBase(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"1356998400", "m1"}, "want START, END and METRIC"},
		{[]string{"1356998400", "m1", "m2"}, "want START, END and METRIC"},
		{[]string{"-margin", "-1s", "1356998400", "1357002000", "m1"}, "margin: got -1s, want 0 or more"},
		{
			[]string{"-gateway", "http://127.0.0.1:1", "1356998400", "1357002000", "m1"},
			"compacted on the tables themselves",
		},
		{[]string{"1356998400", "1357002000", "m1"}, "m1"},
	} {
		if err := p.tool("", nil, "compact", c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("compact %q: %v, want %q", c.args, err, c.want)
		}
	}

	e := embedded(t)
	if err := e.tool("", nil, "compact", "1356998400", "1357002000", "m1"); err != nil ||
		!strings.Contains(e.out.String(), "nothing to do") {
		t.Errorf("embedded: %v, %s", err, &e.out)
	}
}

// TestCompact_waits: while another process works on a region the command says for whom it
// waits, changes nothing, and goes on once the lease is released.
func TestCompact_waits(t *testing.T) {
	p := onHBase(t)
	p.fake.KeepVersions("tsdb")
	base := uint32(1356998400)
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		key := cfg.Schema.AppendRowKey(nil, cfg.Series[0].Metric, base, cfg.Series[0].Tags)
		at := int64(base)*1000 + 700
		p.lay(st, []damage.Row{{Row: fsck.Row{Key: key, Cells: []fsck.Cell{
			{Qualifier: []byte{0, 0}, Value: []byte{1}, Timestamp: at},
			{Qualifier: []byte{0, 0x10}, Value: []byte{2}, Timestamp: at + 1000},
		}}}})
	})
	now := time.Unix(int64(base)+86_400, 0)
	p.now = func() time.Time { return now }

	p.use(func(st tools.Store) {
		before := p.rowCells(st)
		other := &lease.Keeper{Store: st, Table: p.cfg.TableState, Holder: "other:1:x"}
		held, err := other.Take(t.Context(), compaction.LeaseName("tsdb", nil))
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{}, 1000)
		open := p.open
		p.open = func() (tools.Store, error) {
			st, err := open()
			if err != nil {
				return nil, err
			}
			return &asking{st.(*hbase.Store), p.cfg.TableState, asked}, nil
		}
		done := make(chan error, 1)
		go func() { done <- p.tool("", nil, "compact", fmt.Sprint(base), fmt.Sprint(base+3599), "m1") }()
		for range 2 { // the second time comes after the first has found the lease held
			select {
			case <-asked:
			case err := <-done:
				t.Fatalf("the command has not waited: %v, %s", err, &p.out)
			}
		}
		if after := p.rowCells(st); !slices.Equal(before, after) {
			t.Errorf("changed while another has the lease: %q", after)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if want := "waits for other:1:x, which has the lease compact/tsdb/"; !strings.Contains(p.errs.String(), want) {
			t.Errorf("told %q, want %q", &p.errs, want)
		}
		if want := "1 rows: 1 compacted"; !strings.HasPrefix(p.out.String(), want) {
			t.Errorf("printed %q, want %q", &p.out, want)
		}
	})
}

// asking reports each read of a table's rows by their keys.
type asking struct {
	*hbase.Store
	table string
	asked chan struct{}
}

func (a *asking) Features() store.Features { return a.Store.Features() }

func (a *asking) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if table == a.table {
		a.asked <- struct{}{}
	}
	return a.Store.Get(ctx, table, family, keys)
}
