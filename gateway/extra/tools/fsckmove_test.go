package tools_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/pushdown/store"
)

// timesOf are the points of the table's rows of a metric, by series, with the base times of rows.
func (p *place) timesOf(st tools.Store) (points map[string]map[int64]string, crooked int) {
	p.Helper()
	points = map[string]map[int64]string{}
	for row, err := range store.Rows(p.Context(), st, store.Scan{Table: p.cfg.TableData}) {
		if err != nil {
			p.Fatal(err)
		}
		key, err := p.cfg.Schema().ParseRowKey(row.Key)
		if err != nil {
			p.Fatal(err)
		}
		if encoding.OffHour(key.BaseTime) {
			crooked++
		}
		var d encoding.RowDecoder
		d.Reset(key.BaseTime)
		for _, c := range row.Cells {
			if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
				p.Fatal(err)
			}
		}
		var all encoding.Points
		if err := d.Finish(&all); err != nil {
			p.Fatal(err)
		}
		series := string(key.Tags)
		if points[series] == nil {
			points[series] = map[int64]string{}
		}
		for i := range all.Len() {
			at, v := all.At(i)
			points[series][at] = v.String()
		}
	}
	return points, crooked
}

// Points of rows of no full hour are moved to rows of full hours, at the times that they had, if that is
// allowed: no point is lost, and none is where another value of its time is, or where no row can hold it.
func TestFsck_crooked(t *testing.T) {
	const hour = 1356998400
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			var before map[string]map[int64]string
			p.use(func(st tools.Store) {
				cfg := p.named(st)
				s := cfg.Series
				row := func(of damage.Series, base uint32, cells ...fsck.Cell) damage.Row {
					return damage.Row{
						Row: fsck.Row{Key: cfg.Schema.AppendRowKey(nil, of.Metric, base, of.Tags), Cells: cells},
					}
				}
				cell := func(q string, v string) fsck.Cell {
					return fsck.Cell{Qualifier: []byte(q), Value: []byte(v), Timestamp: 1500000000000}
				}
				p.lay(st, []damage.Row{
					// +5 s, and appended +512 s.
					row(s[0], hour, cell("\x00\x50", "\x01"), cell("\x05\x00\x00", "\x20\x00\x07")),
					// Half an hour late: one of this hour, one of the next, a compacted cell over
					// both, an append column, in which the later entry counts, an annotation.
					row(s[0], hour+1800, cell("\x00\x50", "\x02"), cell("\x77\x80", "\x03"),
						cell("\x00\x60\x7f\xf0\xf8\x00\x00\x01", "\x04\x05\x06\x07\x01"),
						cell("\x05\x00\x00", "\x00\xa0\x08\x80\x00\x09\x00\xa0\x0a"),
						cell("\x01\x00\x0c", `{"startTime":1}`)),
					row(s[1], hour+208, cell("\x00\x10", "\x0b")),
					// Its place has another value.
					row(s[1], hour, cell("\xf0\x01\x86\xc0", "\x0c")), // +25 s, as milliseconds
					// +1906 s of the second hour, which has another value then.
					row(s[1], hour+3600+1904, cell("\x00\x20", "\x0d")),
					row(s[1], hour+3600, cell("\x77\x20", "\x0e")),
					row(s[0], 4294967295, cell("\xe0\xf0", "\x0f")), // later than any row
				})
				before, _ = p.timesOf(st)
			})

			text := p.fsck("", "--full-scan")
			if n := p.counter("Rows of No Full Hour"); n != "4" ||
				!strings.Contains(text, "; --fix would move what it holds to rows of full hours") {
				t.Errorf("a dry run: %s rows of no full hour, want 4, and what would be done:\n%s", n, text)
			}
			p.fsck("", "--fix", "--full-scan", "--young")
			if n := p.counter("Rows of No Full Hour Moved"); n != "2" {
				t.Errorf("%s rows moved, want 2:\n%s", n, &p.out)
			}
			for _, want := range []string{
				"has another value of one of their times", "of times that no row of a full hour holds",
			} {
				if !strings.Contains(p.out.String(), want) {
					t.Errorf("want a row left because it %s:\n%s", want, &p.out)
				}
			}
			p.use(func(st tools.Store) {
				after, crooked := p.timesOf(st)
				if d := cmp.Diff(before, after); d != "" || crooked != 2 {
					t.Errorf("%d rows of no full hour are left, want 2; points before and after:\n%s", crooked, d)
				}
			})
			// Nothing is moved twice, and what could not be moved stays.
			p.use(func(st tools.Store) { before, _ = p.timesOf(st) })
			p.fsck("", "--fix", "--full-scan", "--young")
			if n := p.counter("Rows of No Full Hour Moved"); n != "0" {
				t.Errorf("%s rows moved again", n)
			}
		})
	}
}
