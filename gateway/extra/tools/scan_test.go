package tools_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// scanned writes a row with every form of cell, one of its next hour, and one of another series.
func (p *place) scanned(st tools.Store) {
	p.Helper()
	cfg := p.named(st)
	key := cfg.Schema.AppendRowKey(nil, cfg.Series[0].Metric, 1356998400, cfg.Series[0].Tags)
	cells := []fsck.Cell{
		{Qualifier: []byte{0, 0}, Value: []byte{0xD6}},
		{Qualifier: []byte{0, 0x10, 0, 0x2B}, Value: []byte{1, 0x40, 0xA0, 0, 0, 0}},
		{Qualifier: []byte{1, 0, 0x3C}, Value: []byte(`{"startTime":1356998460}`)},
		{Qualifier: encoding.AppendColumn, Value: []byte{0x01, 0x00, 7, 0x00, 0xF0, 6}},
		{Qualifier: []byte{6, 0, 1}, Value: []byte{42}},
		{Qualifier: []byte{9, 0xF0, 9, 0xF0}, Value: []byte{1}},
		{Qualifier: []byte{0xF0, 0x01, 0x38, 0x80}, Value: []byte{3}},
	}
	for i := range cells {
		cells[i].Timestamp = 1000
	}
	rows := []damage.Row{
		{Row: fsck.Row{Key: key, Cells: cells}},
		broken(cfg.Series[0], cfg.Schema, 1357002000),
		broken(cfg.Series[1], cfg.Schema, 1356998400),
	}
	p.lay(st, rows)
}

const scannedText = `[0, 0, 1, 80, -30, 39, 0, 0, 0, 1, 0, 0, 1] m1 1356998400 ` +
	`(Tue Jan 01 00:00:00 UTC 2013) {host=webm1}
  [0, 0]	[-42]	0	l	1356998400	(Tue Jan 01 00:00:00 UTC 2013)
  [0, 16, 0, 43]	[1, 64, -96, 0, 0, 0] = 2 values:
    [0, 16]	[1]	1	l	1356998401	(Tue Jan 01 00:00:01 UTC 2013)
    [0, 43]	[64, -96, 0, 0]	2	f	1356998402	(Tue Jan 01 00:00:02 UTC 2013)
  [1, 0, 60]	[123, 34, 115, 116, 97, 114, 116, 84, 105, 109, 101, 34, 58, 49, 51, 53, 54, 57, 57, 56, ` +
	`52, 54, 48, 125]	60	{"startTime":1356998460}	1356998460000	(Tue Jan 01 00:01:00 UTC 2013)
  [5, 0, 0]	[1, 0, 7, 0, -16, 6] = 2 values:
    [0, -16]	[6]	15	l	1356998415	(Tue Jan 01 00:00:15 UTC 2013)
    [1, 0]	[7]	16	l	1356998416	(Tue Jan 01 00:00:16 UTC 2013)
  [42]	[Not a data point]
  [9, -16, 9, -16]	[1]	[Not readable: it cannot be cut into points: the value of 1 bytes ends in point 2]
  [-16, 1, 56, -128]	[3]	1250	l	1356998401250	(Tue Jan 01 00:00:01 UTC 2013)
`

const scannedLines = `m1 1356998400 -42 host=webm1
m1 1356998401 1 host=webm1
m1 1356998402 5.0 host=webm1
m1 1356998415 6 host=webm1
m1 1356998416 7 host=webm1
m1 1356998401250 3 host=webm1
`

// A scan prints the rows of the requested hours and series, in OpenTSDB's form or as import
// lines, from the store and through a gateway.
func TestScan(t *testing.T) {
	p := embedded(t)
	p.use(p.scanned)
	f := func(url, want string, args ...string) {
		t.Helper()
		if err := p.tool(url, nil, "scan",
			append(args, "1356998400", "1357001999", "sum", "m1", "host=webm1")...); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, p.out.String()); d != "" {
			t.Errorf("scan %q: %s", args, d)
		}
	}
	f("", scannedText)
	f("", scannedLines, "--import")
	if !strings.Contains(p.errs.String(), "left out: 1 cells that cannot be read") {
		t.Errorf("got %s, want that 1 cell is left out", &p.errs)
	}
	p.serve(func(url string, _ tools.Store) {
		f(url, scannedText)
		f(url, scannedLines, "--import")
		if err := p.tool(url, nil, "scan", "--delete", "1356998400", "sum", "m1"); err == nil ||
			!strings.Contains(err.Error(), "a gateway has the store open") {
			t.Errorf("delete through a gateway: got %v, want that a gateway has the store open", err)
		}
	})

	if err := p.tool("", nil, "scan", "1356998400", "1357001999", "sum", "m1", "host=webm2"); err != nil ||
		p.out.Len() > 0 {
		t.Errorf("another series: got %v, want nothing printed\n%s", err, &p.out)
	}
	// Two sub-queries that ask for the same rows print them once.
	if err := p.tool(
		"", nil, "scan", "--import", "1356998400", "1357001999", "sum", "m1", "max", "m1", "host=webm1",
	); err != nil || p.out.String() != scannedLines {
		t.Errorf("the same rows asked for twice: got %v, want them printed once\n%s", err, &p.out)
	}
	if err := p.tool("", nil, "scan", "1356998400"); err == nil {
		t.Error("a scan without a metric: got no error")
	}
}

// On both stores --delete deletes exactly the points that it prints: no cell that cannot be read,
// no other hour or series, no annotation, and no point of a row that has changed after it was read.
func TestScan_delete(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *place{
		"embedded": embedded,
		"hbase":    func(t *testing.T) *place { return onHBase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			p.use(p.scanned)
			var before, after []string
			p.use(func(st tools.Store) { before = p.rowCells(st) })

			// First another process writes after the row was read.
			inner := p.open
			p.open = func() (tools.Store, error) {
				st, err := inner()
				return &meddled{st, func() {
					row := []byte{0, 0, 1, 0x50, 0xE2, 0x27, 0, 0, 0, 1, 0, 0, 1}
					m := store.Mutation{Row: row, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{99}}
					if err := st.Apply(t.Context(), "tsdb", []store.Mutation{m}); err != nil {
						t.Error(err)
					}
				}}, err
			}
			args := []string{"--delete", "1356998400", "1357001999", "sum", "m1"}
			if err := p.tool("", nil, "scan", args...); err == nil ||
				!strings.Contains(err.Error(), "1 rows have changed") || p.out.String() != scannedLines {
				t.Errorf("got %v, want that 1 row has changed\n%s", err, &p.out)
			}

			p.open = inner
			if err := p.tool("", nil, "scan", args...); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Replace(scannedLines, "-42", "99", 1), p.out.String()); d != "" {
				t.Error(d)
			}
			var want []string
			for i, line := range before {
				// The annotation, the histogram, the broken cell, and the other rows.
				if i == 2 || i == 4 || i == 5 || i > 6 {
					want = append(want, line)
				}
			}
			p.use(func(st tools.Store) { after = p.rowCells(st) })
			if d := cmp.Diff(want, after); d != "" {
				t.Error(d)
			}
		})
	}
}

// broken output: it takes some bytes and no more.
type fullPipe struct{ left int }

func (f *fullPipe) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// What could not be printed is not deleted.
func TestScan_deleteUnprinted(t *testing.T) {
	for _, left := range []int{0, len(scannedLines) - 1} {
		p := embedded(t)
		p.use(p.scanned)
		var before, after []string
		p.use(func(st tools.Store) { before = p.rowCells(st) })
		p.to = &fullPipe{left}
		err := p.tool("", nil, "scan", "--delete", "1356998400", "1357001999", "sum", "m1")
		if err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("%d bytes can be written: got %v, want %v", left, err, io.ErrClosedPipe)
		}
		p.use(func(st tools.Store) { after = p.rowCells(st) })
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%d bytes can be written: what was not printed is deleted (-before +after)\n%s", left, d)
		}
	}
}

// A point that an import would refuse, or read as another one, is neither printed as a line nor
// deleted. After --delete and an import of the printed lines all points are as they were.
func TestScan_deleteThenImport(t *testing.T) {
	p := embedded(t)
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		s, m1 := cfg.Schema, cfg.Series[0]
		d := uid.New(uid.Config{Store: st, Table: p.cfg.TableUID, Schema: s})
		host, err := d.Assign(t.Context(), encoding.UIDTagK, "host")
		if err != nil {
			t.Fatal(err)
		}
		row := func(metric encoding.UID, base uint32, tags []byte, cells ...fsck.Cell) damage.Row {
			return damage.Row{Row: fsck.Row{Key: s.AppendRowKey(nil, metric, base, tags), Cells: cells}}
		}
		one := fsck.Cell{Qualifier: []byte{0, 0x20}, Value: []byte{1}}
		rows := []damage.Row{
			row(m1.Metric, 1356998400, m1.Tags, one,
				// NaN, an infinite value, and three points, one of them infinite.
				fsck.Cell{Qualifier: []byte{0, 0x3B}, Value: []byte{0x7F, 0xC0, 0, 0}},
				fsck.Cell{Qualifier: []byte{0, 0x4F}, Value: []byte{0x7F, 0xF0, 0, 0, 0, 0, 0, 0}},
				fsck.Cell{Qualifier: []byte{0, 0x50, 0, 0x6B, 0, 0x70}, Value: []byte{5, 0x7F, 0x80, 0, 0, 7, 0}}),
			// The second 0.
			row(m1.Metric, 0, m1.Tags, one, fsck.Cell{Qualifier: []byte{0, 0}, Value: []byte{3}}),
			// Milliseconds of 1970.
			row(m1.Metric, 7200, m1.Tags, one, fsck.Cell{Qualifier: []byte{0xF0, 1, 0x38, 0x80}, Value: []byte{4}}),
			// Seconds that are read as milliseconds.
			row(m1.Metric, 4294965600, m1.Tags, one, fsck.Cell{Qualifier: []byte{0xE0, 0x10}, Value: []byte{5}}),
			// A row with nothing else.
			row(m1.Metric, 1357002000, m1.Tags, fsck.Cell{Qualifier: []byte{0, 0x3B}, Value: []byte{0xFF, 0x80, 0, 0}}),
		}
		for _, v := range []string{"a b", "é", "a=b", "c$d", "#e"} {
			u, err := d.Assign(t.Context(), encoding.UIDTagV, v)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row(m1.Metric, 1356998400, s.AppendTags(nil, []encoding.TagPair{{K: host, V: u}}), one))
		}
		p.lay(st, rows)
	})
	before, _ := p.points()

	if err := p.tool("", nil, "scan", "--delete", "1", "4294967295", "sum", "m1"); err != nil {
		t.Fatal(err)
	}
	lines := p.out.String()
	if !strings.Contains(p.errs.String(),
		"left out: 0 cells that cannot be read, 11 that import would refuse or read as other points\n") {
		t.Errorf("got %s, want that 11 cells are left out", &p.errs)
	}
	_, left := p.points()
	if n := strings.Count(lines, "\n"); n != 5 || left != 11 {
		t.Errorf("%d points are printed, %d cells are left, want 5 and 11:\n%s", n, left, lines)
	}
	if err := p.tool("", strings.NewReader(lines), "import", "-"); err != nil {
		t.Fatalf("%v\n%s", err, &p.errs)
	}
	after, _ := p.points()
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("points that are lost (-) or new (+):\n%s", d)
	}
}

// points returns the points of all rows as text, and the number of cells.
func (p *place) points() (all []string, cells int) {
	p.Helper()
	p.use(func(st tools.Store) {
		for row, err := range store.Rows(p.Context(), st, store.Scan{Table: p.cfg.TableData}) {
			if err != nil {
				p.Fatal(err)
			}
			key, err := p.cfg.Schema().ParseRowKey(row.Key)
			if err != nil {
				p.Fatal(err)
			}
			var d encoding.RowDecoder
			d.Reset(key.BaseTime)
			for _, c := range row.Cells {
				cells++
				if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
					p.Fatal(err)
				}
			}
			var points encoding.Points
			if err := d.Finish(&points); err != nil {
				p.Fatal(err)
			}
			for i := range points.Len() {
				at, v := points.At(i)
				all = append(all, fmt.Sprintf("%x %d %s", row.Key, at, v))
			}
		}
	})
	return all, cells
}
