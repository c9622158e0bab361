package tools_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// named assigns UIDs to the names of two series and returns these series, with an orphan: a
// series whose tag value has no name.
func (p *place) named(st tools.Store) (cfg damage.Config) {
	p.Helper()
	d := uid.New(uid.Config{Store: st, Table: p.cfg.TableUID, Schema: p.cfg.Schema()})
	assign := func(kind encoding.UIDKind, name string) encoding.UID {
		u, err := d.Assign(p.Context(), kind, name)
		if err != nil {
			p.Fatal(err)
		}
		return u
	}
	host := assign(encoding.UIDTagK, "host")
	s := p.cfg.Schema()
	cfg = damage.Config{Schema: s, First: 1356998400, BadKeys: true}
	for _, m := range []string{"m1", "m2"} {
		tags := s.AppendTags(nil, []encoding.TagPair{{K: host, V: assign(encoding.UIDTagV, "web"+m)}})
		cfg.Series = append(cfg.Series, damage.Series{Metric: assign(encoding.UIDMetric, m), Tags: tags})
	}
	cfg.Orphans = []damage.Series{{
		Metric: cfg.Series[0].Metric,
		Tags:   s.AppendTags(nil, []encoding.TagPair{{K: host, V: encoding.UID{0, 9, 9}}}),
	}}
	return cfg
}

// lay writes rows as they are.
func (p *place) lay(st tools.Store, rows []damage.Row) {
	p.Helper()
	var ms []store.Mutation
	for _, r := range rows {
		for _, c := range r.Cells {
			ms = append(ms,
				store.Mutation{Row: r.Key, Family: "t", Qualifier: c.Qualifier, Value: c.Value, Timestamp: c.Timestamp})
		}
	}
	if err := st.Apply(p.Context(), p.cfg.TableData, ms); err != nil {
		p.Fatal(err)
	}
}

// rowCells returns the cells of the data table, a line each.
func (p *place) rowCells(st tools.Store) (lines []string) {
	p.Helper()
	for row, err := range store.Rows(p.Context(), st, store.Scan{Table: p.cfg.TableData}) {
		if err != nil {
			p.Fatal(err)
		}
		for _, c := range row.Cells {
			lines = append(lines, fmt.Sprintf("%x %x=%x@%d", row.Key, c.Qualifier, c.Value, c.Timestamp))
		}
	}
	return lines
}

// counter returns a counter of the last output.
func (p *place) counter(name string) string {
	m := regexp.MustCompile(`(?m)^` + name + `: (\d+)$`).FindStringSubmatch(p.out.String())
	if m == nil {
		p.Fatalf("no counter %s in:\n%s", name, &p.out)
	}
	return m[1]
}

// fsck runs the tool, which must fail if and only if it leaves errors, and returns its output.
func (p *place) fsck(url string, args ...string) string {
	p.Helper()
	err := p.tool(url, nil, "fsck", args...)
	want, found, repaired := "", p.counter("Total Errors"), p.counter("Total Errors Fixed")
	if found != repaired {
		want = found + " errors found"
		if repaired != "0" {
			want += ", " + repaired + " of them repaired"
		}
	}
	if got := said(err); got != want {
		p.Fatalf("fsck %q: got error %q, want %q:\n%s", args, got, want, &p.out)
	}
	return p.out.String()
}

// said is what an error says, "" of none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// On both stores a dry run finds errors and writes nothing. A run with --fix-all repairs all of
// them and keeps all good points, and another run finds and writes nothing.
func TestFsck_stores(t *testing.T) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			var rows []damage.Row
			p.use(func(st tools.Store) {
				rows = damage.Draw(3, 300, p.named(st))
				p.lay(st, rows)
			})
			var before, after, again []string
			p.use(func(st tools.Store) { before = p.rowCells(st) })

			text := p.fsck("", "--full-scan")
			if !strings.Contains(text, "; --fix --resolve-duplicates would keep the oldest") ||
				strings.Contains(text, "done: ") {
				t.Errorf("a dry run, want that it suggests repairs and makes none:\n%.2000s", text)
			}
			p.use(func(st tools.Store) { again = p.rowCells(st) })
			if d := cmp.Diff(before, again); d != "" {
				t.Errorf("a dry run has changed the table:\n%s", d)
			}
			want := p.counter("Total Errors")

			p.fsck("", "--fix-all", "--full-scan", "--threads", "3")
			if got, fixed := p.counter("Total Errors"), p.counter("Total Errors Fixed"); got != want || fixed != want {
				t.Errorf("%s errors and %s fixed, want %s:\n%s", got, fixed, want, &p.out)
			}
			p.use(func(st tools.Store) {
				after = p.rowCells(st)
				p.wantGood(st, rows)
			})

			p.fsck("", "--fix-all", "--full-scan")
			if n := p.counter("Total Errors"); n != "0" {
				t.Errorf("%s errors after the repair:\n%s", n, &p.out)
			}
			p.use(func(st tools.Store) { again = p.rowCells(st) })
			if d := cmp.Diff(after, again); d != "" {
				t.Errorf("a second run has changed the table:\n%s", d)
			}
		})
	}
}

// wantGood checks that all good points of the rows are read from the table.
func (p *place) wantGood(st tools.Store, rows []damage.Row) {
	p.Helper()
	for _, r := range rows {
		if r.BadKey || r.Orphan {
			continue
		}
		got, err := st.Get(p.Context(), p.cfg.TableData, "t", [][]byte{r.Key})
		if err != nil {
			p.Fatal(err)
		}
		var d encoding.RowDecoder
		d.Reset(0)
		for _, x := range got {
			for _, c := range x.Cells {
				if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
					p.Errorf("row %x, %q: %v", r.Key, r.Damage, err)
				}
			}
		}
		var points encoding.Points
		if err := d.Finish(&points); err != nil {
			p.Errorf("row %x, %q: %v", r.Key, r.Damage, err)
		}
		for _, good := range r.Good {
			i, ok := slices.BinarySearch(points.Time, int64(good.OffsetMS))
			if !ok {
				p.Errorf("row %x, %q: the point at %d ms is gone", r.Key, r.Damage, good.OffsetMS)
			} else if _, v := points.At(i); v != good.Value {
				p.Errorf("row %x, %q: the point at %d ms is %v, want %v", r.Key, r.Damage, good.OffsetMS, v, good.Value)
			}
		}
	}
}

// broken returns a row of the given hour with one error: two values of the hour's first second.
func broken(s damage.Series, schema encoding.Schema, base uint32) damage.Row {
	return damage.Row{Row: fsck.Row{Key: schema.AppendRowKey(nil, s.Metric, base, s.Tags),
		Cells: []fsck.Cell{
			{Qualifier: []byte{0, 0}, Value: []byte{5}, Timestamp: 1000},
			{Qualifier: []byte{0, 1}, Value: []byte{0, 6}, Timestamp: 2000},
		}}}
}

// A query restricts the rows that are checked. Rows of the current and the previous hour are not
// repaired without --young. --from skips the rows before a key.
func TestFsck_rows(t *testing.T) {
	p := embedded(t)
	now := encoding.KeyTime(encoding.Hour(time.Now().Unix()))
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		p.lay(st, []damage.Row{broken(cfg.Series[0], cfg.Schema, 1356998400),
			broken(cfg.Series[0], cfg.Schema, 1357002000), broken(cfg.Series[1], cfg.Schema, 1356998400),
			broken(cfg.Series[0], cfg.Schema, now)})
	})
	f := func(duplicates, resolved, young string, args ...string) {
		t.Helper()
		p.fsck("", args...)
		got := []string{
			p.counter("Duplicate Datapoints"), p.counter("Duplicate Datapoints Resolved"),
			p.counter("Damaged Rows Too Young to Repair"),
		}
		if d := cmp.Diff([]string{duplicates, resolved, young}, got); d != "" {
			t.Errorf("%q: %s\n%s", args, d, &p.out)
		}
	}
	f("4", "0", "1", "--full-scan")
	f("1", "0", "0", "1356998400", "1357001999", "sum", "m1")
	f("2", "0", "0", "1356998400", "1357001999", "sum", "m1", "max", "m2", "host=webm2")
	f("2", "0", "0", "1356998400", "1357005599", "sum", "m1", "max", "m1", "host=webm1") // each row once
	f("0", "0", "0", "1356998400", "1357001999", "sum", "m1", "host=webm2")
	f("3", "0", "1", "--full-scan", "--from", "00000150e23510") // metric 000001 at 1357002000
	f("1", "1", "0", "--fix", "--resolve-duplicates", "1356998400", "1357001999", "sum", "m2")
	f("3", "2", "1", "--fix", "--resolve-duplicates", "--full-scan")
	f("1", "1", "0", "--fix", "--resolve-duplicates", "--young", "--full-scan")
	at := time.Now()
	p.now = func() time.Time { at = at.Add(11 * time.Second); return at }
	f("0", "0", "0", "--fix", "--resolve-duplicates", "--young", "--full-scan")

	if !strings.Contains(p.errs.String(), " rows, ") || !strings.Contains(p.errs.String(), "; all before row ") {
		t.Errorf("got %s, want progress in rows and the key up to which all is done", &p.errs)
	}
	p.now = nil
	for _, args := range [][]string{
		{},
		{"--full-scan", "1h-ago", "sum", "m1"},
		{"--full-scan", "--threads", "1000"},
		{"--full-scan", "--from", "xyz"},
	} {
		if err := p.tool("", nil, "fsck", args...); err == nil || strings.Contains(err.Error(), "errors found") {
			t.Errorf("fsck %q: got %v, want that the arguments are wrong", args, err)
		}
	}
}

// If the UID table names no metric, --fix-all is refused and deletes nothing: with the wrong UID
// table every row would be an orphan.
func TestFsck_noNames(t *testing.T) {
	p := embedded(t)
	p.use(func(st tools.Store) {
		s := p.cfg.Schema()
		tags := s.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 1}}})
		p.lay(st, []damage.Row{broken(damage.Series{Metric: encoding.UID{0, 0, 1}, Tags: tags}, s, 1356998400)})
	})
	err := p.tool("", nil, "fsck", "--full-scan", "--fix-all")
	if err == nil || !strings.Contains(err.Error(), "names no metric") {
		t.Errorf("got %v, want that the table names no metric\n%s", err, &p.out)
	}
	p.use(func(st tools.Store) {
		if n := len(p.rowCells(st)); n != 2 {
			t.Errorf("%d cells, want 2", n)
		}
	})
}

// If more than a tenth of the rows are orphans, the UID table may be the wrong one: none is
// deleted, unless so many are allowed. Fewer are deleted as they are.
func TestFsck_manyOrphans(t *testing.T) {
	p := embedded(t)
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var all []damage.Row
		for i := range uint32(17) {
			all = append(all, broken(cfg.Series[0], cfg.Schema, 1356998400+i*encoding.RowSeconds))
		}
		for i := range uint32(3) {
			all = append(all, broken(cfg.Orphans[0], cfg.Schema, 1356998400+i*encoding.RowSeconds))
		}
		p.lay(st, all)
	})
	f := func(rows int, want string, args ...string) {
		t.Helper()
		err := p.tool("", nil, "fsck", append([]string{"--full-scan", "--fix", "--delete-orphans"}, args...)...)
		if got := said(err); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
		p.use(func(st tools.Store) {
			if n := len(p.rowCells(st)); n != 2*rows {
				t.Errorf("%q: %d cells, want %d", args, n, 2*rows)
			}
		})
	}
	f(20, "3 of 20 rows of table tsdb have a UID that table tsdb-uid does not name")
	f(20, "-yes-delete-orphans 3")
	f(20, "at most 2 may go", "--yes-delete-orphans", "2")
	f(17, "20 errors found, 3 of them repaired", "--yes-delete-orphans", "3")

	// Rows of global annotations, of metric 000000, are of no series, and so no orphans.
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		orphan := broken(cfg.Orphans[0], cfg.Schema, 1356998400)
		rows := []damage.Row{orphan}
		for i := range uint32(3) {
			global := damage.Row{Row: fsck.Row{Key: cfg.Schema.AppendRowKey(nil, []byte{0, 0, 0},
				1356998400+i*encoding.RowSeconds, nil)}}
			global.Cells = []fsck.Cell{
				{Qualifier: []byte{1, 0, 0}, Value: []byte("{}"), Timestamp: 1000},
				{Qualifier: []byte{1, 0, 1}, Value: []byte("{}"), Timestamp: 1000},
			}
			rows = append(rows, global)
		}
		p.lay(st, rows)
	})
	f(17+3, "18 errors found, 1 of them repaired")
}

// A run that keeps its orphans, because they are too many, repairs all else, says of each orphan that it is
// left, and ends with the reason: on both stores and through a gateway. With leave for them it ends with none.
func TestFsck_orphansStay(t *testing.T) {
	check := func(p *place, url string, use func(func(tools.Store))) {
		var all, sound []damage.Row
		use(func(st tools.Store) {
			cfg := p.named(st)
			all = damage.Draw(seedtest.Of(t), 300, cfg)
			for i := range uint32(40) {
				orphan := broken(cfg.Orphans[0], cfg.Schema,
					1456998400-1456998400%encoding.RowSeconds+i*encoding.RowSeconds)
				orphan.Orphan = true
				all = append(all, orphan)
			}
			p.lay(st, all)
		})
		orphans := 0
		for _, r := range all {
			if r.Orphan {
				orphans++
			} else {
				sound = append(sound, r)
			}
		}

		p.fsckRefused(url, orphans)
		use(func(st tools.Store) { p.wantGood(st, sound) })
		if p.fsckRefused(url, orphans); p.counter("Total Errors Fixed") != "0" {
			t.Errorf("a second run has repaired something, want all but the orphans repaired by the first:\n%s", &p.out)
		}
		p.fsck(url, "--full-scan", "--fix-all", "--yes-delete-orphans", fmt.Sprint(orphans))
		if p.counter("Orphaned UID Rows Deleted") != fmt.Sprint(orphans) {
			t.Errorf("with leave for %d orphans:\n%s", orphans, &p.out)
		}
		if p.fsck(url, "--full-scan", "--fix-all"); p.counter("Total Errors") != "0" {
			t.Errorf("errors after the repair:\n%s", &p.out)
		}
		use(func(st tools.Store) { p.wantGood(st, sound) })
	}
	for _, p := range []*place{embedded(t), onHBase(t)} {
		check(p, "", p.use)
	}
	p := embedded(t)
	p.serve(func(url string, st tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		check(p, url, func(f func(tools.Store)) { f(st) })
	})
}

// fsckRefused runs fsck --fix-all, which must keep so many orphans and nothing else.
func (p *place) fsckRefused(url string, orphans int) {
	p.Helper()
	err := p.tool(url, nil, "fsck", "--full-scan", "--fix-all")
	want := fmt.Sprintf("no orphan is deleted: %d of ", orphans)
	if !strings.Contains(said(err), want) || strings.Contains(said(err), "--from") {
		p.Fatalf("got %v, want %q", err, want)
	}
	found, _ := strconv.Atoi(p.counter("Total Errors"))
	fixed, _ := strconv.Atoi(p.counter("Total Errors Fixed"))
	left := found - fixed
	lines := strings.Count(p.out.String(), "; left: too many rows are orphans\n")
	if left != orphans || lines != orphans || p.counter("Orphaned UID Rows") != fmt.Sprint(orphans) {
		p.Errorf("%d errors and %d lines of orphans are left, want %d:\n%s", left, lines, orphans, &p.out)
	}
}

// The error of a run that fails has the key at which to go on with --from, and all rows before
// the key are repaired.
func TestFsck_from(t *testing.T) {
	p := embedded(t)
	const rows = 600
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var all []damage.Row
		for i := range uint32(rows) {
			all = append(all, broken(cfg.Series[0], cfg.Schema, 1356998400+i*encoding.RowSeconds))
		}
		p.lay(st, all)
	})

	// The first two calls of Next are those of the check of the layout. The next ones return
	// blocks that double, more than 512 rows in all, and the ninth one fails.
	inner := p.open
	p.open = func() (tools.Store, error) {
		st, err := inner()
		return faultstore.New(st, faultstore.Rule{
			Op:    faultstore.Next,
			Table: "tsdb",
			Nth:   9,
			Err:   store.ErrUnavailable,
		}), err
	}
	err := p.tool("", nil, "fsck", "--full-scan", "--fix-all", "--threads", "1")
	if err == nil {
		t.Fatalf("got no error, want that of the store:\n%s", &p.out)
	}
	_, from, ok := strings.Cut(err.Error(), "; go on with --from ")
	// The key is that of a row, 13 bytes, and a zero byte behind it, in hex.
	if !ok || len(from) != 28 || !strings.Contains(err.Error(), store.ErrUnavailable.Error()) {
		t.Fatalf("got %v, want the store's error and where to go on", err)
	}
	repaired := strings.Count(p.out.String(), "done: keep the oldest")
	if n := p.counter("Duplicate Datapoints Resolved"); n != fmt.Sprint(repaired) {
		t.Errorf("%s repairs are counted, want %d", n, repaired)
	}

	p.open = inner
	p.fsck("", "--full-scan", "--fix-all", "--from", from)
	// Rows are repaired 256 at a time: two times before the error.
	if n := strings.Count(p.out.String(), "done: keep the oldest"); repaired != 512 || n != rows-repaired {
		t.Errorf("%d rows repaired, then %d, of %d, want 512 and the rest", repaired, n, rows)
	}
	p.fsck("", "--full-scan")
	if n := p.counter("Total Errors"); n != "0" {
		t.Errorf("%s errors are left, want none", n)
	}
}

// A run that is interrupted reports what it has done, and where to go on.
func TestFsck_interrupted(t *testing.T) {
	p := salted(t, 60, 60)
	var stop context.CancelFunc
	p.ctx, stop = context.WithCancel(t.Context())
	inner := p.open
	repairs := 0
	p.open = func() (tools.Store, error) {
		st, err := inner()
		return &meddled{st, func() {
			if repairs++; repairs == 3 {
				stop()
			}
		}}, err
	}
	err := p.tool("", nil, "fsck", "--fix", "--full-scan", "--delete-orphans", "--yes-delete-orphans", "1000",
		"--threads", "1")
	if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) ||
		!strings.Contains(err.Error(), "go on with --from ") {
		t.Errorf("got %v, want that it was interrupted, and where to go on", err)
	}
	if n := p.counter("Orphaned UID Rows Deleted"); repairs != 3 || n == "0" {
		t.Errorf("%d repairs, and then it says\n%s, want those before it was interrupted", repairs, &p.out)
	}
}

// While a gateway has the embedded store open, the tool asks it to check and repair.
func TestFsck_gateway(t *testing.T) {
	p := embedded(t)
	var rows []damage.Row
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		cfg.BadKeys = false // a gateway does not start on rows with bad keys
		rows = damage.Draw(5, 40, cfg)
		p.lay(st, rows)
	})
	p.serve(func(url string, st tools.Store) {
		if text := p.fsck(url, "--full-scan", "--fix-all"); !strings.Contains(text, "; done: ") {
			t.Errorf("nothing is done:\n%s", text)
		}
		p.fsck(url, "--full-scan")
		if n := p.counter("Total Errors"); n != "0" {
			t.Errorf("%s errors after the repair:\n%s", n, &p.out)
		}
		p.wantGood(st, rows)
		err := p.tool(url, nil, "fsck", "1h-ago", "sum", "nobody")
		if err == nil || !strings.Contains(err.Error(), "No such name") {
			t.Errorf("an unknown metric: got %v, want no such name", err)
		}
	})
}

// meddled is a store that calls before between the reading of rows and their repair, as another
// process would write then.
type meddled struct {
	tools.Store
	before func()
}

func (*meddled) Features() store.Features { return store.Features{} }

func (m *meddled) Replace(
	ctx context.Context, table, family string, changes []store.Replacement,
) ([]store.Outcome, error) {
	m.before()
	return m.Store.Replace(ctx, table, family, changes)
}

// A point that is put after a row was read and before it is repaired is not lost: the row is not
// repaired, and the next run repairs it with the point.
func TestFsck_puts(t *testing.T) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			var row damage.Row
			p.use(func(st tools.Store) {
				cfg := p.named(st)
				row = broken(cfg.Series[0], cfg.Schema, 1356998400)
				row.Cells = append(row.Cells, fsck.Cell{
					Qualifier: encoding.AppendColumn,
					Value:     []byte{0, 16, 7},
					Timestamp: 1000,
				})
				p.lay(st, []damage.Row{row})
			})

			// The first run meets a point in a new cell, the second one in a cell that is to be
			// deleted, the third one in an append column.
			puts := []store.Mutation{
				{Row: row.Key, Family: "t", Qualifier: []byte{1, 0}, Value: []byte{11}},
				{Row: row.Key, Family: "t", Qualifier: []byte{0, 1}, Value: []byte{0, 12}},
				{
					Kind:      store.Append,
					Row:       row.Key,
					Family:    "t",
					Qualifier: encoding.AppendColumn,
					Value:     []byte{2, 0, 13},
				},
			}
			inner := p.open
			for i, put := range puts {
				p.open = func() (tools.Store, error) {
					st, err := inner()
					return &meddled{st, func() {
						if err := st.Apply(t.Context(), p.cfg.TableData, []store.Mutation{put}); err != nil {
							t.Error(err)
						}
					}}, err
				}
				text := p.fsck("", "--full-scan", "--fix-all")
				if !strings.Contains(text, "left: the row has changed since it was read") ||
					p.counter("Rows Changed Meanwhile") != "1" {
					t.Errorf("put %d, want that the row is left because it has changed:\n%s", i, text)
				}
			}

			p.open = inner
			p.fsck("", "--full-scan", "--fix-all", "--last-write-wins")
			p.fsck("", "--full-scan")
			if n := p.counter("Total Errors"); n != "0" {
				t.Errorf("%s errors after the repair:\n%s", n, &p.out)
			}
			p.use(func(st tools.Store) {
				text := strings.Join(p.rowCells(st), "\n")
				for _, want := range []string{"0b", "000d", "000c"} { // the values 11, 13 and 12
					if !strings.Contains(text, want) {
						t.Errorf("%s is lost:\n%s", want, text)
					}
				}
			})
		})
	}
}
