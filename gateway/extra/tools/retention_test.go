package tools_test

import (
	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/pushdown/store"
)

// retained lays rows of two metrics for a number of hours, sets rules for the first one by which the
// rows of its first four hours are past, and returns the cells of all rows by metric and hour.
func retained(p *place) (cells [2][]string) {
	p.Helper()
	start := int64(1356998400)
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var rows []damage.Row
		for i, s := range cfg.Series {
			for hour := range uint32(6) {
				key := cfg.Schema.AppendRowKey(nil, s.Metric, uint32(start)+hour*encoding.RowSeconds, s.Tags)
				rows = append(rows, damage.Row{Row: fsck.Row{
					Key:   key,
					Cells: []fsck.Cell{{Qualifier: []byte{0, 0}, Value: []byte{1}, Timestamp: 1}},
				}})
				cells[i] = append(cells[i], fmt.Sprintf("%x 0000=01@1", key))
			}
		}
		p.lay(st, rows)
	})
	gateway.SettingsOf[retention.Settings](p.cfg).Retention = write(p.T, "# m2 is kept\n^m1$ 2d\n")
	now := time.Unix(start+4*encoding.RowSeconds+2*86_400+1800, 0)
	p.now = func() time.Time { return now }
	p.cfg.Now = p.now
	return cells
}

// On both stores a plan counts what is past and changes nothing, and a run deletes that.
func TestRetention(t *testing.T) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			cells := retained(p)
			all := slices.Concat(cells[0], cells[1])
			table := func() (cells []string) {
				p.use(func(st tools.Store) { cells = p.rowCells(st) })
				return cells
			}
			plan := p.mustTool("retention", "plan")
			for _, want := range []string{
				"table tsdb: 4 rows of 64 bytes are past",
				"m1: 4 rows of 64 bytes before 2013-01-01 04:00 UTC (line 2, ^m1$ 2d)",
				"1 metrics match no line and are kept",
			} {
				if !strings.Contains(plan, want) {
					t.Errorf("the plan is\n%s, want\n%s", plan, want)
				}
			}
			if d := cmp.Diff(all, table()); d != "" {
				t.Errorf("a plan has changed the table:\n%s", d)
			}
			for _, c := range []struct{ args, want string }{
				{"run -rate 0", "4 rows were past, 4 deleted"}, {"run -yes-delete 1", "0 rows were past, 0 deleted"},
			} {
				if out := p.mustTool("retention", strings.Fields(c.args)...); strings.TrimSpace(out) != c.want {
					t.Errorf("%s prints\n%s, want\n%s", c.args, out, c.want)
				}
			}
			if d := cmp.Diff(all[4:], table()); d != "" {
				t.Errorf("the rows that stay (-want +got)\n%s", d)
			}
		})
	}
}

// More than half of a table is refused without its number, here and through a gateway.
func TestRetention_guard(t *testing.T) {
	for _, served := range []bool{false, true} {
		p := embedded(t)
		retained(p)
		later := time.Unix(1356998400+100*86_400, 0)
		p.now = func() time.Time { return later }
		p.cfg.Now = p.now
		gateway.SettingsOf[retention.Settings](p.cfg).Retention = "30d"
		work := func(url string) {
			refused := "nothing is deleted: of table tsdb 12 rows are past and only 0 are not"
			if err := p.tool(url, nil, "retention", "run"); err == nil || !strings.Contains(err.Error(), refused) ||
				!strings.Contains(err.Error(), "-yes-delete 12") {
				t.Errorf("run: %v", err)
			}
			if err := p.tool(url, nil, "retention", "run", "-yes-delete", "11"); err == nil ||
				!strings.Contains(err.Error(), "12 rows are past, at most 11 may go") {
				t.Errorf("run for 11 rows: %v", err)
			}
			if err := p.tool(url, nil, "retention", "plan"); err != nil ||
				!strings.Contains(p.out.String(), "run: "+refused) {
				t.Errorf("plan: %v, %s", err, &p.out)
			}
			if err := p.tool(url, nil, "retention", "run", "-yes-delete", "12"); err != nil ||
				!strings.Contains(p.out.String(), "12 deleted") {
				t.Errorf("run for 12 rows: %v, %s", err, &p.out)
			}
		}
		if served {
			// The gateway's own run is refused, too.
			p.serve(func(url string, _ tools.Store) { work(url) })
			http.DefaultClient.CloseIdleConnections()
		} else {
			work("http://127.0.0.1:1")
		}
	}
}

// Where one age holds for all metrics of a table on HBase, the plan names the TTL.
func TestRetention_ttl(t *testing.T) {
	p := onHBase(t)
	retained(p)
	if out := p.mustTool("retention", "plan"); strings.Contains(out, "TTL") {
		t.Errorf("one of two metrics has an age:\n%s", out)
	}
	gateway.SettingsOf[retention.Settings](p.cfg).Retention = "2d"
	if out := p.mustTool("retention", "plan"); !strings.Contains(out, "alter 'tsdb', {NAME => 't', TTL => 172800}") {
		t.Errorf("one age:\n%s", out)
	}

	// A TTL would delete what a line keeps.
	gateway.SettingsOf[retention.Settings](p.cfg).Retention = write(t, "^m2$ keep\n. 2d\n")
	if out := p.mustTool("retention", "plan"); strings.Contains(out, "TTL") {
		t.Errorf("one of two metrics is kept:\n%s", out)
	}
}

// Without rules, and with wrong arguments, nothing is done.
func TestRetention_refused(t *testing.T) {
	p := embedded(t)
	retained(p)
	rules := gateway.SettingsOf[retention.Settings](p.cfg).Retention
	for _, c := range []struct {
		rules string
		args  []string
		want  string
	}{
		{"off", []string{"run"}, "DOWNPOUR_RETENTION is off"},
		{"", []string{"plan"}, "DOWNPOUR_RETENTION is off"},
		{rules, nil, "want plan or run"},
		{rules, []string{"delete"}, "want plan or run"},
		{rules, []string{"run", "now"}, "want plan or run"},
		{rules, []string{"plan", "-yes-delete", "3"}, "plan deletes nothing"},
		{rules, []string{"run", "-yes-delete", "-3"}, "yes-delete: got -3, want a number of rows"},
		{rules, []string{"run", "-rate", "-1"}, "rate: got -1"},
	} {
		gateway.SettingsOf[retention.Settings](p.cfg).Retention = c.rules
		err := p.tool("http://127.0.0.1:1", nil, "retention", c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// With -meta the series that have no row left lose their meta data, here and through a gateway; plan counts them.
// A series of a metric that is kept still has its own.
func TestRetention_meta(t *testing.T) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			retained(p)
			gateway.SettingsOf[retention.Settings](p.cfg).Retention = write(t, "# m2 is kept\n^m1$ 1h\n")
			later := time.Unix(1356998400+100*86_400, 0)
			p.now = func() time.Time { return later }
			p.cfg.Now = p.now
			var tsuids []string
			p.use(func(st tools.Store) {
				var all []store.Mutation
				for _, s := range p.named(st).Series {
					tsuid := append(slices.Clone(s.Metric), s.Tags...)
					tsuids = append(tsuids, string(tsuid))
					all = append(all, store.Mutation{Row: tsuid, Family: encoding.FamilyName,
						Qualifier: []byte(encoding.TSMetaQualifier),
						Value: encoding.AppendTSMeta(nil, encoding.TSMeta{
							TSUID:   tsuid.String(),
							Created: 1,
							Max:     encoding.JSONDouble(math.NaN()),
							Min:     encoding.JSONDouble(math.NaN()),
						})},
						store.Mutation{
							Row:       tsuid,
							Family:    encoding.FamilyName,
							Qualifier: []byte(encoding.MetaCounterQualifier),
							Value:     encoding.AppendCounter(nil, 6),
						})
				}
				if err := st.Apply(t.Context(), p.cfg.TableMeta, all); err != nil {
					t.Fatal(err)
				}
			})
			described := func() (out []string) {
				p.use(func(st tools.Store) {
					scan := store.Scan{Table: p.cfg.TableMeta, Family: encoding.FamilyName}
					for row, err := range store.Rows(t.Context(), st, scan) {
						if err != nil {
							t.Fatal(err)
						}
						out = append(out, string(row.Key))
					}
				})
				return out
			}

			out := p.mustTool("retention", "plan", "-meta")
			if !strings.Contains(out, "1 TSMeta and 1 counters would be deleted, of 1 series") {
				t.Errorf("plan: %s", out)
			}
			if d := cmp.Diff(tsuids, described()); d != "" {
				t.Errorf("after a plan: %s", d)
			}
			run := []string{"run", "-meta", "-yes-delete", "12"}
			if name == "embedded" {
				p.serve(func(url string, _ tools.Store) {
					if err := p.tool(url, nil, "retention", run...); err != nil {
						t.Error(err)
					}
				})
				http.DefaultClient.CloseIdleConnections()
			} else if err := p.tool("http://127.0.0.1:1", nil, "retention", run...); err != nil {
				t.Error(err)
			}
			if out := p.out.String(); !strings.Contains(out, "1 TSMeta and 1 counters deleted, of 1 series") {
				t.Errorf("run: %s", out)
			}
			if d := cmp.Diff(tsuids[1:], described()); d != "" {
				t.Errorf("after a run (-want +got)\n%s", d)
			}
		})
	}
}
