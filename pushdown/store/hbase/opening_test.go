package hbase

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

// A table that is replaced by another one, whose regions have the same names and
// are written to as often, has another mark: also if one snapshot is cloned twice,
// so that both clones open at one number on one server.
func TestMark_replaced(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(9, "r0003")
	c.Snapshot("t", "s")
	seen := map[string]string{}
	ways := []struct {
		name    string
		replace func()
	}{
		{"the table itself", func() {}},
		{"a clone", func() { c.DropTable("t"); c.CloneSnapshot("t", "s") }},
		{"another clone", func() { c.CloneSnapshot("t", "s") }},
		{"the snapshot restored", func() { c.RestoreSnapshot("t", "s") }},
		{"the snapshot restored again", func() { c.RestoreSnapshot("t", "s") }},
		{"a split one", func() { c.SplitRegion("t", []byte("r0005")) }},
		{"the snapshot restored over a split", func() { c.RestoreSnapshot("t", "s") }},
		{"a merged one", func() { c.MergeRegions("t", []byte("r0001")) }},
		{"a clone in place of a merged one", func() { c.CloneSnapshot("t", "s") }},
		{"an empty one", func() { c.Truncate("t", true) }},
	}
	for _, way := range ways {
		way.replace()
		for i := range 3 {
			c.Put("t", fmt.Sprintf("r%04d", 2*i), "t", "q", way.name)
		}
		c.settle()
		mark := c.rests(store.KeyRange{})
		if before, ok := seen[mark]; ok {
			t.Errorf("%s has the mark of %s", way.name, before)
		}
		seen[mark] = way.name
	}
}

// settle takes marks until there is one: what is remembered of regions that have
// gone costs attempts.
func (c *cluster) settle() {
	c.Helper()
	var err error
	for range 10 {
		if _, err = c.st.Version(c.ctx, "t", "t", store.KeyRange{}); err == nil {
			return
		}
	}
	c.Fatalf("no mark: %v", err)
}

// Nothing that happens while a mark is taken makes it equal to one of other rows:
// of any two equal marks, all that was there between the first one's end and the
// second one's beginning is the same.
func TestMark_interleaved(t *testing.T) {
	for range 8 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := &marked{cluster: start(t, hbasefake.Options{}), rng: rand.New(rand.NewPCG(seed, 0))}
			m.fill(6, "r0003")
			m.Snapshot("t", "s")
			m.live(150)
		})
	}
}

// marked is a table that changes between marks and while they are taken.
type marked struct {
	*cluster
	rng     *rand.Rand
	catchUp func()   // of hbase:meta, nil if it hears of everything at once
	tables  []string // what the table was like, one after the other
	marks   []markOf
	equal   int
}

// markOf is a mark, and from and to which of the tables it was taken.
type markOf struct {
	text     string
	from, to int
}

func (m *marked) live(steps int) {
	m.see()
	for range steps {
		for range m.rng.IntN(3) {
			m.change()
		}
		m.take()
	}
	if m.SetLooked(nil); m.equal == 0 {
		m.Error("no two marks were equal")
	}
	if m.catchUp != nil {
		m.catchUp()
	}
}

// see takes down what the table is like.
func (m *marked) see() { m.tables = append(m.tables, m.Dump("t")) }

// change does one thing to the table.
func (m *marked) change() {
	key := fmt.Sprintf("r%04d", m.rng.IntN(6))
	switch m.rng.IntN(12) {
	case 0:
		m.CloneSnapshot("t", "s")
	case 1:
		m.RestoreSnapshot("t", "s")
	case 2:
		m.TouchCatalog()
	case 3:
		m.MoveRegion("t", []byte(key))
	case 4:
		if m.rng.IntN(4) == 0 {
			m.Snapshot("t", "s")
		}
	case 5:
		if m.catchUp != nil {
			m.catchUp()
			m.catchUp = nil
		} else {
			m.catchUp = m.DelayCatalog()
		}
	case 6, 7, 8, 9:
		m.Put("t", key, "t", "q", fmt.Sprint(m.rng.IntN(1000)))
	}
	m.see()
}

// take takes a mark, during which things may happen, and compares it with those
// before.
func (m *marked) take() {
	m.Helper()
	m.SetLooked(func(string) {
		if m.rng.IntN(8) == 0 {
			m.change()
		}
	})
	at := markOf{from: len(m.tables) - 1}
	var err error
	at.text, err = m.st.Version(m.ctx, "t", "t", store.KeyRange{})
	at.to = len(m.tables) - 1
	m.SetLooked(nil)
	if err != nil {
		return
	}
	for _, before := range m.marks {
		if before.text != at.text {
			continue
		}
		m.equal++
		for i := before.to; i < at.from; i++ {
			if m.tables[i] != m.tables[at.from] {
				m.Fatalf("mark %x twice, of tables %d and %d, but between:\n%s\nand:\n%s", at.text, before.to, at.from, m.tables[i], m.tables[at.from])
			}
		}
	}
	m.marks = append(m.marks, at)
}

// While a region is being opened, or is known to be open only by its server, there
// is no mark; nor is the region forgotten, which queries go on to read.
func TestMark_opening(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	before := c.rests(store.KeyRange{})
	catchUp := c.DelayCatalog()
	c.Snapshot("t", "s")
	c.RestoreSnapshot("t", "s") // whose old row is still there
	for range 3 {
		if mark, err := c.st.Version(c.ctx, "t", "t", store.KeyRange{}); mark != "" || !errors.Is(err, errMeta) {
			t.Errorf("mark %x, error %v, want %v", mark, err, errMeta)
		}
	}
	catchUp()
	c.settle()
	if again := c.rests(store.KeyRange{}); again == before {
		t.Error("the table has the mark that it had before it was restored")
	}
}

// rowOf is a row of hbase:meta for region "t,a,7" with keys from a to b on server
// "one:1", put at time 100.
func rowOf(change func(cells map[string]*store.Cell, info *pb.RegionInfo)) store.Row {
	info := &pb.RegionInfo{RegionId: proto.Uint64(7), StartKey: []byte("a"), EndKey: []byte("b"),
		TableName: &pb.TableName{Namespace: []byte("default"), Qualifier: []byte("t")}}
	cells := map[string]*store.Cell{}
	for q, v := range map[string]string{"regioninfo": "", "server": "one:1", "serverstartcode": "12345678", "seqnumDuringOpen": "\x00\x00\x00\x00\x00\x00\x00\x06", "state": "OPEN"} {
		cells[q] = &store.Cell{Family: []byte("info"), Qualifier: []byte(q), Value: []byte(v), Timestamp: 100}
	}
	change(cells, info)
	row := store.Row{Key: []byte("t,a,7")}
	for _, q := range slices.Sorted(maps.Keys(cells)) {
		if q == "regioninfo" {
			cells[q].Value = append([]byte("PBUF"), pb.MustMarshal(info)...)
		}
		row.Cells = append(row.Cells, *cells[q])
	}
	return row
}

// Every cell that an opening is named by makes another text, its time and its
// older versions too; and a row that does not say that the region is open, where
// it is remembered to be, is refused.
func TestRowOfOpening(t *testing.T) {
	loc := &location{table: "t", name: []byte("t,a,7"), start: []byte("a"), stop: []byte("b"), addr: "one:1"}
	same := func(map[string]*store.Cell, *pb.RegionInfo) {}
	first, err := rowOfOpening("t", loc, rowOf(same))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := rowOfOpening("t", loc, rowOf(same)); err != nil || again != first {
		t.Errorf("the same row is %q, then %q, error %v", first, again, err)
	}
	texts := map[string]string{first: "the row"}
	for name, change := range map[string]func(map[string]*store.Cell, *pb.RegionInfo){
		"another number":         func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["seqnumDuringOpen"].Value[7]++ },
		"another server process": func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["serverstartcode"].Value[7]++ },
		"another time": func(c map[string]*store.Cell, _ *pb.RegionInfo) {
			for _, cell := range c {
				cell.Timestamp++
			}
		},
		"an opening of before": func(c map[string]*store.Cell, _ *pb.RegionInfo) {
			old := *c["seqnumDuringOpen"]
			old.Timestamp -= 5
			c["seqnumDuringOpen "] = &old
			old.Qualifier = []byte("seqnumDuringOpen")
		},
	} {
		text, err := rowOfOpening("t", loc, rowOf(change))
		if before, ok := texts[text]; err != nil || ok {
			t.Errorf("%s: error %v, the text is that of %s", name, err, before)
		}
		texts[text] = name
	}
	f := func(name string, want error, change func(map[string]*store.Cell, *pb.RegionInfo)) {
		t.Helper()
		if _, err := rowOfOpening("t", loc, rowOf(change)); !errors.Is(err, want) || errors.Is(err, errMoved) != errors.Is(want, errMoved) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	f("another table", errMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.TableName.Qualifier = []byte("u") })
	f("another start", errMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.StartKey = []byte("a0") })
	f("another end", errMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.EndKey = nil })
	f("a parent of a split", errMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.Split = proto.Bool(true) })
	f("another server", errMoved, func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["server"].Value = []byte("two:1") })
	f("being closed", errMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["state"].Value = []byte("CLOSING") })
	f("a state set by hand", errMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["state"].Timestamp++ })
	f("no state", errMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { delete(c, "state") })
	f("no number", errMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { delete(c, "seqnumDuringOpen") })
	if _, err := rowOfOpening("t", loc, store.Row{}); !errors.Is(err, errMoved) {
		t.Errorf("no row: error %v, want %v", err, errMoved)
	}
}

// A mark of regions that rest costs a call for each region and one for hbase:meta,
// of which no row is read, unless hbase:meta has changed.
func TestMark_calls(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(9, "r0003", "r0006")
	c.rests(store.KeyRange{})
	f := func(name string, wantReads, wantLooks int) {
		t.Helper()
		c.SetHook(nil)
		c.rests(store.KeyRange{}) // two marks
		if reads, looks := c.CatalogReads(), c.CatalogLooks(); reads != wantReads || looks != wantLooks {
			t.Errorf("%s: rows of hbase:meta read %d times, its read point %d, want %d and %d", name, reads, looks, wantReads, wantLooks)
		}
	}
	f("nothing has changed", 0, 2)
	c.TouchCatalog()
	f("hbase:meta has changed", 1, 2)
	f("nothing has changed since", 0, 2)
}

// Those who want to know the state of hbase:meta while many look share the next
// look.
func TestCatalog_shared(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.rests(store.KeyRange{})
	var looks atomic.Int64
	release := make(chan struct{})
	c.SetLooked(func(table string) {
		if looks.Add(1); table == metaTable {
			<-release
		}
	})
	var first errgroup.Group
	for range looksAtOnce {
		first.Go(func() error { _, err := c.st.catalog(c.ctx); return err })
	}
	for running := 0; running < looksAtOnce; {
		c.st.looks.mu.Lock()
		running = c.st.looks.running
		c.st.looks.mu.Unlock()
		runtime.Gosched()
	}
	next := c.st.looks.join()
	for range 10 {
		if l := c.st.looks.join(); l != next || l == nil {
			t.Error("a look is not shared, or was joined when it had begun")
		}
	}
	close(release)
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	if <-next.done; next.err != nil {
		t.Error(next.err)
	}
	if n := looks.Load(); n != looksAtOnce+1 {
		t.Errorf("%d looks, want %d", n, looksAtOnce+1)
	}
	for range 2 * looksAtOnce { // who comes now looks again, and alone
		if _, err := c.st.catalog(c.ctx); err != nil {
			t.Error(err)
		}
	}
	if n := looks.Load(); n != 3*looksAtOnce+1 {
		t.Errorf("%d looks, want %d", n, 3*looksAtOnce+1)
	}
}

// A server of hbase:meta that hangs costs a mark its patience; those that come
// next do not wait for it.
func TestMark_catalogHangs(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.MarkPatience = 200 * time.Millisecond })
	c.fill(3)
	release := make(chan struct{})
	var asked atomic.Int64
	c.settle() // so that nothing but the look is asked of hbase:meta
	c.SetLooked(func(table string) {
		if table == metaTable {
			asked.Add(1)
			<-release
		}
	})
	defer close(release)
	var err error
	for c.ctx.Err() == nil && !errors.Is(err, errSilent) {
		var mark string
		if mark, err = c.st.Version(c.ctx, "t", "t", store.KeyRange{}); mark != "" || err == nil {
			t.Fatalf("mark %x, error %v while hbase:meta is silent", mark, err)
		}
	}
	if n := asked.Load(); n != 1 || !errors.Is(err, errSilent) {
		t.Errorf("the server was asked %d times, want once; error %v, want %v", n, err, errSilent)
	}
}
