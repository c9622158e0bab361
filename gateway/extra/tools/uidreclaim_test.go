package tools_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// names returns a dictionary of another process.
func (p *place) names(st store.Store) *uid.Dictionary {
	return uid.New(uid.Config{Store: st, Table: p.cfg.TableUID, Schema: p.cfg.Schema(), Shared: true})
}

// withUnused stores two points, and gives some names UIDs that no row has: a metric, two tag keys and a tag value.
func (p *place) withUnused() {
	p.Helper()
	p.mustTool("import", write(p.T, lines(0, 2)))
	p.use(func(st tools.Store) {
		d := p.names(st)
		for _, n := range unusedNames {
			if _, err := d.Assign(p.Context(), n.kind, n.name); err != nil {
				p.Fatal(err)
			}
		}
	})
}

var unusedNames = []struct {
	kind encoding.UIDKind
	name string
}{
	{encoding.UIDMetric, "sys.old"}, {encoding.UIDTagK, "rack"}, {encoding.UIDTagK, "dc"}, {encoding.UIDTagV, "lga"},
}

// deletedLines are what reclaim prints of withUnused.
const deletedLines = "metrics sys.old: deleted, it was 000002\ntagk rack: deleted, it was 000002\n" +
	"tagk dc: deleted, it was 000003\ntagv lga: deleted, it was 000003\n" +
	"names: 2 metrics, 3 tagk, 3 tagv; deleted: 1 metrics, 2 tagk, 1 tagv\n"

// reclaimFlags are what reclaim needs on any store.
var reclaimFlags = []string{"reclaim", "-no-tsds"}

// table returns the mappings of the UID table, a line each, and checks that no name has two UIDs and no UID two names.
// Whether a UID may lead to a name that has none says leftovers.
func (p *place) table(st tools.Store, leftovers bool) (lines []string) {
	p.Helper()
	forward, reverse := map[string]string{}, map[string]string{}
	for row, err := range store.Rows(p.Context(), st, store.Scan{Table: p.cfg.TableUID}) {
		if err != nil {
			p.Fatal(err)
		}
		for _, c := range row.Cells {
			kind, meta, known := encoding.ParseUIDKind(c.Qualifier)
			switch {
			case !known || meta || string(row.Key) == "\x00":
			case string(c.Family) == "id":
				forward[fmt.Sprintf("%s %q", kind, row.Key)] = fmt.Sprintf("%s %q", kind, c.Value)
			default:
				reverse[fmt.Sprintf("%s %q", kind, row.Key)] = fmt.Sprintf("%s %q", kind, c.Value)
			}
		}
	}
	for name, u := range forward {
		lines = append(lines, name+" "+u)
		if reverse[u] != name {
			p.Errorf("%s has UID %s, which leads back to %q", name, u, reverse[u])
		}
	}
	for u, name := range reverse {
		if forward[name] != u && !leftovers {
			p.Errorf("UID %s leads to %s, which has UID %q", u, name, forward[name])
		}
	}
	slices.Sort(lines)
	return lines
}

// Names that no row has are deleted, of all kinds, and no others; a dry run prints what the run then prints and changes
// nothing. Their numbers are not given again. On both stores, and through a gateway.
func TestReclaim(t *testing.T) {
	check := func(p *place, url string, use func(func(tools.Store))) {
		cells := func() (all []string) {
			use(func(st tools.Store) { all = p.everyCell(st) })
			return all
		}
		run := func(want string, more ...string) {
			p.Helper()
			err := p.tool(url, nil, "uid", append(slices.Clone(reclaimFlags), more...)...)
			if diff := cmp.Diff(want, p.out.String()); diff != "" || err != nil {
				p.Errorf("%v, -want +got:\n%s", err, diff)
			}
		}
		before := cells()
		run(dryLine+deletedLines, "-dry-run")
		if diff := cmp.Diff(before, cells()); diff != "" {
			p.Errorf("a dry run has changed the tables:\n%s", diff)
		}
		run(deletedLines)
		run("names: 1 metrics, 1 tagk, 2 tagv; deleted: 0 metrics, 0 tagk, 0 tagv\n")
		use(func(st tools.Store) {
			want := []string{`metrics "sys.cpu" metrics "\x00\x00\x01"`, `tagk "host" tagk "\x00\x00\x01"`,
				`tagv "web0" tagv "\x00\x00\x01"`, `tagv "web1" tagv "\x00\x00\x02"`}
			if diff := cmp.Diff(want, p.table(st, false)); diff != "" {
				p.Errorf("-want +got:\n%s", diff)
			}
			for _, line := range p.everyCell(st) {
				if strings.Contains(line, "tagk_meta") && strings.Contains(line, " 000002 ") {
					p.Errorf("meta data is left: %s", line)
				}
			}
		})
		err := p.tool(url, nil, "mkmetric", "sys.old")
		if err != nil || p.out.String() != "metrics sys.old: [0, 0, 3]\n" {
			p.Errorf("%v, %s, want the next number", err, &p.out)
		}
	}
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			p.withUnused()
			check(p, "http://127.0.0.1:1", p.use)
		})
	}
	t.Run("through a gateway", func(t *testing.T) {
		p := embedded(t)
		p.withUnused()
		p.serve(func(url string, st tools.Store) {
			defer http.DefaultClient.CloseIdleConnections()
			check(p, url, func(f func(tools.Store)) { f(st) })
		})
	})
}

// Reclaim deletes nothing on HBase without the word that no TSD runs, where more than half of many names would go
// without a number that allows it, and where a key is of no series, as all are with a wrong salt width.
//
//fault:uid-reclaim-next-to-tsds !x.Embedded && !w.NoTSDs => false
//fault:uid-reclaim-of-all-names unused > most => unused > most+1000
func TestReclaim_refused(t *testing.T) {
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			p.withUnused()
			var before []string
			p.use(func(st tools.Store) { before = p.everyCell(st) })
			p.failTool("are for reclaim", "uid", "metasync", "-no-tsds")
			p.failTool("are for reclaim", "uid", "fsck", "-yes-delete", "1")
			p.failTool("fix, delete_unknown and -collisions are for fsck", "uid", "reclaim", "fix")
			if !p.cfg.Embedded() {
				p.failTool("a TSD remembers names as long as it runs", "uid", "reclaim")
				p.failTool("a TSD remembers names as long as it runs", "uid", "reclaim", "-dry-run")
			}

			p.use(func(st tools.Store) {
				stray := store.Mutation{Row: []byte("\x00\x00\x01oddkey"), Family: "t", Qualifier: []byte{0, 0}}
				if err := st.Apply(t.Context(), "tsdb", []store.Mutation{stray}); err != nil {
					t.Fatal(err)
				}
			})
			p.failTool("row key 00 00 01 6F 64 64 6B 65 79 has 9 bytes", "uid", reclaimFlags...)
			p.use(func(st tools.Store) {
				stray := store.Mutation{Kind: store.DeleteRow, Row: []byte("\x00\x00\x01oddkey"), Family: "t"}
				if err := st.Apply(t.Context(), "tsdb", []store.Mutation{stray}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, p.everyCell(st)); diff != "" {
					t.Errorf("the tables have changed:\n%s", diff)
				}
			})

			p.mustTool("uid", "assign", "tagv", "v1", "v2", "v3", "v4", "v5", "v6", "v7")
			refusal := "11 of 15 names are in no row of table tsdb and the tables of rollups"
			p.failTool(refusal, "uid", reclaimFlags...)
			p.said("deleted: 0 metrics, 0 tagk, 0 tagv")
			p.failTool(refusal, "uid", append(slices.Clone(reclaimFlags), "-dry-run")...)
			p.said("tagv v7: deleted, it was 00000A")
			p.failTool(refusal, "uid", append(slices.Clone(reclaimFlags), "-yes-delete", "10")...)
			p.mustTool("uid", append(slices.Clone(reclaimFlags), "-yes-delete", "11")...)
			p.said("deleted: 1 metrics, 2 tagk, 8 tagv")
		})
	}
}

// beforeCalls is a store that calls before ahead of each call, with its number. If that returns an error, the call
// does: instead of being made or, for a write and errLost, afterwards. Calls that before makes itself do not count.
type beforeCalls struct {
	tools.Store
	calls  int
	before func(n int, call, table string) error
	inside atomic.Bool
}

func (*beforeCalls) Features() store.Features { return store.Features{} }

func (b *beforeCalls) call(name, table string) error {
	if b.inside.Swap(true) {
		return nil
	}
	defer b.inside.Store(false)
	b.calls++
	return b.before(b.calls, name, table)
}

func (b *beforeCalls) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if err := b.call("scan", s.Table); err != nil {
		return nil, err
	}
	return b.Store.Scan(ctx, s)
}

func (b *beforeCalls) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := b.call("get", table); err != nil {
		return nil, err
	}
	return b.Store.Get(ctx, table, family, keys)
}

func (b *beforeCalls) Apply(ctx context.Context, table string, m []store.Mutation) error {
	lost := b.call("apply", table)
	if lost != nil && lost != errLost {
		return lost
	}
	return errors.Join(lost, b.Store.Apply(ctx, table, m))
}

func (b *beforeCalls) Increment(ctx context.Context, table string, c store.CellKey, delta int64) (int64, error) {
	lost := b.call("increment", table)
	if lost != nil && lost != errLost {
		return 0, lost
	}
	n, err := b.Store.Increment(ctx, table, c, delta)
	return n, errors.Join(lost, err)
}

func (b *beforeCalls) CompareAndPut(
	ctx context.Context, table string, c store.CellKey, old, value []byte,
) (bool, error) {
	lost := b.call("compare and put", table)
	if lost != nil && lost != errLost {
		return false, lost
	}
	ok, err := b.Store.CompareAndPut(ctx, table, c, old, value)
	return ok, errors.Join(lost, err)
}

// errLost is the error of a call that was made and whose reply is lost.
var errLost = errors.New("the reply is lost")

// watched runs reclaim, and has before called ahead of each call of its store, with the call's number and the store
// below. It returns how many calls there were, and the error of reclaim.
func (p *place) watched(before func(n int, call, table string, st tools.Store) error) (calls int, err error) {
	p.Helper()
	var b *beforeCalls
	open := p.open
	p.open = func() (tools.Store, error) {
		st, err := open()
		b = &beforeCalls{Store: st, before: func(n int, call, table string) error { return before(n, call, table, st) }}
		return b, err
	}
	defer func() { p.open = open }()
	err = p.tool("http://127.0.0.1:1", nil, "uid", reclaimFlags...)
	return b.calls, err
}

// A name under which another process puts a point keeps its UID, and its point is found: before whichever call of the
// store the point comes, until the last look has begun. By then no writer has the UIDs any more.
//
//fault:uid-deleted-without-a-look-after-puts d.look(ctx) => error(nil)
func TestReclaim_putsBetween(t *testing.T) {
	const row = "\x00\x00\x02\x50\xe2\x27\x00\x00\x00\x02\x00\x00\x03" // sys.old rack=lga
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				p := make(t)
				p.withUnused()
				scans, behind := 0, 0 // of rows; behind how many the point came
				calls, err := p.watched(func(n int, call, table string, st tools.Store) error {
					begun := scans
					if table == "tsdb" && call == "scan" {
						scans++
					}
					if n != at {
						return nil
					}
					behind = begun
					put := store.Mutation{Row: []byte(row), Family: "t", Qualifier: []byte{0, 0}, Value: []byte{7}}
					return st.Apply(t.Context(), "tsdb", []store.Mutation{put})
				})
				if calls < at || err != nil {
					t.Fatalf("a point before call %d of %d: %v\n%s", at, calls, err, &p.out)
				}
				// The first is that of all UIDs. Each look is one of metrics, and one of tags.
				if behind > 1+2 {
					return
				}
				if !strings.HasPrefix(p.out.String(), "tagk dc: deleted, it was 000003\nnames: ") {
					t.Errorf("a point before call %d: %s", at, &p.out)
				}
				if got := p.mustTool("export", "1", "sys.old"); got != "sys.old 1356998400 7 rack=lga\n" {
					t.Errorf("a point before call %d: exported %q", at, got)
				}
				p.use(func(st tools.Store) { p.table(st, false) })
			}
		})
	}
}

// A reclaim in which any call fails or loses its reply, or that is killed there, leaves every UID that a name has
// leading back to that name, and no used name without its UID. The next run ends with what an undisturbed one leaves.
func TestReclaim_killed(t *testing.T) {
	broken := errors.New("broken")
	for name, make := range places {
		for how, fault := range map[string]error{"fails": broken, "is killed": broken, "loses a reply": errLost} {
			killed := how == "is killed"
			t.Run(name+"/"+how, func(t *testing.T) {
				var want []string
				for n := 0; ; n++ {
					p := make(t)
					p.withUnused()
					calls, err := p.watched(func(call int, _, _ string, _ tools.Store) error {
						if n > 0 && (call == n || killed && call > n) {
							return fault
						}
						return nil
					})
					if failed := n > 0 && calls >= n; failed != (err != nil) {
						t.Errorf("call %d of %d fails: %v", n, calls, err)
					}
					if calls < n {
						if n < 20 {
							t.Errorf("%d calls were made, want at least 20", calls)
						}
						return
					}
					p.use(func(st tools.Store) { p.table(st, killed) })
					p.mustTool("uid", reclaimFlags...)
					p.use(func(st tools.Store) {
						got := p.table(st, false)
						if n == 0 {
							want = got
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("call %d: -undisturbed +got:\n%s", n, diff)
						}
					})
				}
			})
		}
	}
}

// What another process does to names before any call of the store stays, and every name's UID leads back to it: a name
// that it renames, one that it deletes and gives another UID, and one that it gives its UID back.
//
//fault:uid-deleted-as-others-have-put-it Timestamp: read.Timestamp, =>
//fault:uid-deleted-although-given-back back || !now[i].leadsBack(n) => back && false
func TestReclaim_othersChange(t *testing.T) {
	for at := 1; ; at++ {
		p := onHBase(t)
		var clock atomic.Int64
		clock.Store(1_700_000_000_000)
		p.fake.SetClock(func() int64 { return clock.Add(1) })
		p.withUnused()
		restored := false
		calls, err := p.watched(func(n int, call, table string, st tools.Store) error {
			if table == "tsdb-meta" && !restored { // the forward mappings are gone
				restored = true
				uidCell(t, st, "lga", "id", "tagv", []byte{0, 0, 3})
			}
			if n != at {
				return nil
			}
			d := p.names(st)
			if err := d.Rename(t.Context(), encoding.UIDTagK, "rack", "shelf"); err != nil && !errors.As(err, &noName) {
				t.Error(err)
			}
			uidCell(t, st, "dc", "id", "tagk", nil)
			uidCell(t, st, "\x00\x00\x03", "name", "tagk", nil)
			_, err := d.Assign(t.Context(), encoding.UIDTagK, "dc")
			return err
		})
		if err != nil {
			t.Fatalf("call %d: %v", at, err)
		}
		if calls < at {
			if at < 20 {
				t.Errorf("%d calls were made, want at least 20", calls)
			}
			return
		}
		p.use(func(st tools.Store) {
			lines := p.table(st, true)
			for _, want := range []string{`tagk "dc" tagk "\x00\x00\x04"`, `tagv "lga" tagv "\x00\x00\x03"`} {
				// Before the counters are read a new name is one as all others.
				if !slices.Contains(lines, want) && (at > 2 || !strings.Contains(want, "dc")) {
					t.Errorf("changed before call %d: got %q, want %s", at, lines, want)
				}
			}
		})
	}
}

// noName is the error of a name without a UID.
var noName *uid.NoSuchNameError

// A UID that no counter has come to, or that was drawn at random, leads to its name for ever: so it is not given again.
// What uid fsck repairs is left to it: several names with one UID, and a rename that was cut off.
//
//fault:uid-number-given-again !kept => (kept || true)
//fault:uid-reclaim-of-shared-uids r.shared[n.Key] => false
func TestReclaim_stays(t *testing.T) {
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			p.withUnused()
			p.use(func(st tools.Store) {
				uidCell(t, st, "drawn", "id", "metrics", []byte{0xab, 0, 0})
				uidCell(t, st, "\xab\x00\x00", "name", "metrics", []byte("drawn"))
				uidCell(t, st, "lga2", "id", "tagv", []byte{0, 0, 3})           // that of lga
				uidCell(t, st, "\x00\x00\x02", "name", "tagk", []byte("shelf")) // that of rack
			})
			const want = "metrics sys.old: deleted, it was 000002\ntagk dc: deleted, it was 000003\n" +
				"metrics drawn: deleted, it was AB0000\n" +
				"names: 3 metrics, 3 tagk, 4 tagv; deleted: 2 metrics, 1 tagk, 0 tagv\n" +
				"1 UIDs stay, because several names have them: gateway uid fsck lists these\n"
			if got := p.mustTool("uid", reclaimFlags...); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			left := func() (cells []string) {
				p.use(func(st tools.Store) {
					for _, line := range p.everyCell(st) {
						counters := strings.HasPrefix(line, "tsdb-uid 00 ")
						if strings.HasPrefix(line, "tsdb-uid ") && !counters {
							line, _, _ = strings.Cut(line, "@")
							cells = append(cells, line)
						}
					}
				})
				return cells
			}
			before := left()
			for _, cell := range []string{
				fmt.Sprintf("tsdb-uid ab0000 name:%x=%x", "metrics", "drawn"),
				fmt.Sprintf("tsdb-uid 000002 name:%x=%x", "metrics", "sys.old"), // other metrics are drawn
				fmt.Sprintf("tsdb-uid 000003 name:%x=%x", "tagv", "lga"),
				fmt.Sprintf("tsdb-uid %x id:%x=000003", "lga2", "tagv"),
				fmt.Sprintf("tsdb-uid %x id:%x=000002", "rack", "tagk"),
				fmt.Sprintf("tsdb-uid 000002 name:%x=%x", "tagk", "shelf"),
			} {
				if !slices.Contains(before, cell) {
					t.Errorf("%s is gone", cell)
				}
			}
			if got := p.mustTool("uid", reclaimFlags...); !strings.Contains(got, "deleted: 0 metrics, 0 tagk, 0 tagv") {
				t.Errorf("again: %s", got)
			}
			if diff := cmp.Diff(before, left()); diff != "" {
				t.Errorf("another run: %s", diff)
			}

			p.mustTool("uid", "delete", "metrics", "sys.cpu", "-force")
			p.use(func(st tools.Store) {
				uidCell(t, st, "drawn", "id", "metrics", []byte{0xab, 0, 0})
			})
			p.mustTool("uid", "delete", "metrics", "drawn")
			if !slices.Contains(left(), fmt.Sprintf("tsdb-uid ab0000 name:%x=%x", "metrics", "drawn")) {
				t.Error("uid delete has removed the mapping of a UID beyond the counter")
			}
		})
	}
}

// On HBase reclaim waits until no name is half assigned, and after the names are gone until other gateways know it: a
// point that one of them has acknowledged by then keeps its name. On the embedded store, which is one process's, it
// waits for nobody.
func TestReclaim_waits(t *testing.T) {
	const row = "\x00\x00\x02\x50\xe2\x27\x00\x00\x00\x02\x00\x00\x03" // sys.old rack=lga
	synctest.Test(t, func(t *testing.T) {
		p := inMemory(t)
		p.cfg.KnownWithin = uid.KnownWithin
		p.withUnused()
		began := time.Now()
		p.watched(func(_ int, call, table string, st tools.Store) error {
			if call != "increment" { // it is how others learn that names are gone
				return nil
			}
			if got := time.Since(began).Round(time.Second); got != 4*uid.KnownWithin {
				t.Errorf("the names are gone after %v, want %v", got, 4*uid.KnownWithin)
			}
			time.AfterFunc(uid.KnownWithin-time.Second, func() {
				put := store.Mutation{Row: []byte(row), Family: "t", Qualifier: []byte{0, 0}, Value: []byte{7}}
				if err := st.Apply(t.Context(), "tsdb", []store.Mutation{put}); err != nil {
					t.Error(err)
				}
			})
			return nil
		})
		if got := time.Since(began).Round(time.Second); got != 5*uid.KnownWithin {
			t.Errorf("it took %v, want %v", got, 5*uid.KnownWithin)
		}
		p.said("3 names stay: they came into use in between")
		if got := p.mustTool("export", "1", "1357000000", "sys.old"); got != "sys.old 1356998400 7 rack=lga\n" {
			t.Errorf("exported %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := embedded(t)
		p.cfg.KnownWithin = uid.KnownWithin
		p.withUnused()
		began := time.Now()
		if p.mustTool("uid", "reclaim"); time.Since(began) != 0 {
			t.Errorf("on the embedded store it took %v, want no wait", time.Since(began))
		}
	})
}
