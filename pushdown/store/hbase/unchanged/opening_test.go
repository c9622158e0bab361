package unchanged

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

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

// A table that is replaced by another one, whose regions have the same names and
// are written to as often, gets another version token: also if one snapshot is
// cloned twice, so that both clones open at one number on one server.
func TestVersion_replaced(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(9, "r0003")
	c.Snapshot("t", "s")
	nameOf := map[string]string{} // by token
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
		c.awaitVersion()
		token := c.stableVersion(store.KeyRange{})
		if before, ok := nameOf[token]; ok {
			t.Errorf("%s has the version token of %s", way.name, before)
		}
		nameOf[token] = way.name
	}
}

// awaitVersion asks for version tokens until there is one: attempts fail while locations of
// regions that are gone are cached.
func (c *cluster) awaitVersion() {
	c.Helper()
	var err error
	for range 10 {
		if _, err = c.version(store.KeyRange{}); err == nil {
			return
		}
	}
	c.Fatalf("no version token: %v", err)
}

// Nothing that happens while a version token is requested makes it equal to one of
// other rows: between the end of the first and the start of the second of two
// requests with equal tokens, the table never differs.
func TestVersion_interleaved(t *testing.T) {
	first := seedtest.Of(t)
	for seed := first; seed < first+8; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := &changingTable{cluster: start(t, hbasefake.Options{}), rng: rand.New(rand.NewPCG(seed, 0))}
			m.fill(6, "r0003")
			m.Snapshot("t", "s")
			m.run(150)
		})
	}
}

// changingTable is a table that changes between requests for version tokens and
// during them.
type changingTable struct {
	*cluster
	rng     *rand.Rand
	catchUp func()   // ends a delay of hbase:meta; nil if there is none
	tables  []string // the table's cells after each change
	tokens  []timedToken
	equal   int // pairs of equal tokens
}

// timedToken is a version token, and the indexes in tables of the table at the
// beginning and the end of its request.
type timedToken struct {
	text     string
	from, to int
}

// run requests steps tokens.
func (m *changingTable) run(steps int) {
	m.record()
	for range steps {
		for range m.rng.IntN(3) {
			m.change()
		}
		m.requestToken()
	}

	if m.OnReadPoint(nil); m.equal == 0 {
		m.Error("no two version tokens were equal")
	}
	if m.catchUp != nil {
		m.catchUp()
	}
}

// record keeps what the table is like.
func (m *changingTable) record() { m.tables = append(m.tables, m.Dump("t")) }

// change does one thing to the table.
func (m *changingTable) change() {
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

	m.record()
}

// requestToken requests a version token, during which the table may change, and
// compares it with those before.
func (m *changingTable) requestToken() {
	m.Helper()
	m.OnReadPoint(func(string) {
		if m.rng.IntN(8) == 0 {
			m.change()
		}
	})

	at := timedToken{from: len(m.tables) - 1}
	var err error
	at.text, err = m.version(store.KeyRange{})
	at.to = len(m.tables) - 1
	m.OnReadPoint(nil)
	if err != nil {
		return
	}

	for _, before := range m.tokens {
		if before.text != at.text {
			continue
		}
		m.equal++
		for i := before.to; i < at.from; i++ {
			if m.tables[i] != m.tables[at.from] {
				m.Fatalf("version token %x twice, of tables %d and %d, but between:\n%s\nand:\n%s", at.text, before.to,
					at.from, m.tables[i], m.tables[at.from])
			}
		}
	}

	m.tokens = append(m.tokens, at)
}

// While a region is being opened, or is known to be open only by its server, there
// is no version token. The region stays cached: queries go on to read it.
func TestVersion_opening(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	before := c.stableVersion(store.KeyRange{})
	catchUp := c.DelayCatalog()
	c.Snapshot("t", "s")
	c.RestoreSnapshot("t", "s") // its old row in hbase:meta is still there
	for range 3 {
		if token, err := c.version(store.KeyRange{}); token != "" ||
			!errors.Is(err, regions.ErrMeta) {
			t.Errorf("version token %x, error %v, want %v", token, err, regions.ErrMeta)
		}
	}

	catchUp()
	c.awaitVersion()
	if again := c.stableVersion(store.KeyRange{}); again == before {
		t.Error("the table has the version token that it had before it was restored")
	}
}

// rowOf is a row of hbase:meta for region "t,a,7" with keys from a to b on server
// "one:1", put at time 100.
func rowOf(change func(cells map[string]*store.Cell, info *pb.RegionInfo)) store.Row {
	info := &pb.RegionInfo{RegionId: proto.Uint64(7), StartKey: []byte("a"), EndKey: []byte("b"),
		TableName: &pb.TableName{Namespace: []byte("default"), Qualifier: []byte("t")}}

	cells := map[string]*store.Cell{}
	for q, v := range map[string]string{"regioninfo": "", "server": "one:1", "serverstartcode": "12345678",
		"seqnumDuringOpen": "\x00\x00\x00\x00\x00\x00\x00\x06", "state": "OPEN"} {
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

// Every change of a cell that identifies an opening changes the encoding: value,
// timestamp and older versions. A row that does not say that the region is open at
// its cached location is refused.
func TestEncodeOpening(t *testing.T) {
	loc := &regions.Location{Table: "t", Name: []byte("t,a,7"), Start: []byte("a"), Stop: []byte("b"), Addr: "one:1"}
	same := func(map[string]*store.Cell, *pb.RegionInfo) {}
	first, err := encodeOpening("t", loc, rowOf(same))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := encodeOpening("t", loc, rowOf(same)); err != nil || again != first {
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
		"another column": func(c map[string]*store.Cell, _ *pb.RegionInfo) {
			c["x"] = &store.Cell{Family: []byte("info"), Qualifier: []byte("x")}
		},
		"a column of another name": func(c map[string]*store.Cell, _ *pb.RegionInfo) {
			c["y"] = &store.Cell{Family: []byte("info"), Qualifier: []byte("y")}
		},
		"an opening of before": func(c map[string]*store.Cell, _ *pb.RegionInfo) {
			old := *c["seqnumDuringOpen"]
			old.Timestamp -= 5
			c["seqnumDuringOpen "] = &old
			old.Qualifier = []byte("seqnumDuringOpen")
		},
	} {
		text, err := encodeOpening("t", loc, rowOf(change))
		if before, ok := texts[text]; err != nil || ok {
			t.Errorf("%s: error %v, the text is that of %s", name, err, before)
		}
		texts[text] = name
	}

	f := func(name string, want error, change func(map[string]*store.Cell, *pb.RegionInfo)) {
		t.Helper()
		if _, err := encodeOpening("t", loc, rowOf(change)); !errors.Is(err, want) ||
			errors.Is(err, regions.ErrMoved) != errors.Is(want, regions.ErrMoved) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}

	f("another table", regions.ErrMoved,
		func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.TableName.Qualifier = []byte("u") })
	f("another start", regions.ErrMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.StartKey = []byte("a0") })
	f("another end", regions.ErrMoved, func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.EndKey = nil })
	f("a parent of a split", regions.ErrMoved,
		func(_ map[string]*store.Cell, i *pb.RegionInfo) { i.Split = proto.Bool(true) })
	f("another server", regions.ErrMoved,
		func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["server"].Value = []byte("two:1") })
	f("being closed", regions.ErrMeta,
		func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["state"].Value = []byte("CLOSING") })
	f("a state set by hand", regions.ErrMeta,
		func(c map[string]*store.Cell, _ *pb.RegionInfo) { c["state"].Timestamp++ })
	f("no state", regions.ErrMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { delete(c, "state") })
	f("no number", regions.ErrMeta, func(c map[string]*store.Cell, _ *pb.RegionInfo) { delete(c, "seqnumDuringOpen") })
	if _, err := encodeOpening("t", loc, store.Row{}); !errors.Is(err, regions.ErrMoved) {
		t.Errorf("no row: error %v, want %v", err, regions.ErrMoved)
	}
}

// A version token of regions that do not change costs a call for each region and
// one for hbase:meta. No row of hbase:meta is read unless it has changed.
func TestVersion_calls(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(9, "r0003", "r0006")
	c.stableVersion(store.KeyRange{})
	f := func(name string, wantRows, wantPoints int) {
		t.Helper()
		c.SetHook(nil)
		c.stableVersion(store.KeyRange{}) // two tokens
		if rows, points := c.CatalogRowReads(), c.CatalogPointReads(); rows != wantRows || points != wantPoints {
			t.Errorf("%s: rows of hbase:meta read %d times, its read point %d, want %d and %d", name, rows, points,
				wantRows, wantPoints)
		}
	}

	f("nothing has changed", 0, 2)
	c.TouchCatalog()
	f("hbase:meta has changed", 1, 2)
	f("nothing has changed since", 0, 2)
}

// Goroutines that want the state of hbase:meta while many reads are running share
// the next read.
func TestPointReads_shared(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.stableVersion(store.KeyRange{})
	var reads atomic.Int64
	release := make(chan struct{})
	c.OnReadPoint(func(table string) {
		if reads.Add(1); table == regions.MetaTable {
			<-release
		}
	})

	var first errgroup.Group
	for range maxCatalogReads {
		first.Go(func() error { _, err := c.st.currentCatalog(c.ctx); return err })
	}

	for running := 0; running < maxCatalogReads; {
		c.st.catalogReads.mu.Lock()
		running = c.st.catalogReads.running
		c.st.catalogReads.mu.Unlock()
		runtime.Gosched()
	}

	next := c.st.catalogReads.begin()
	for range 10 {
		if p := c.st.catalogReads.begin(); p != next || p == nil {
			t.Error("a read is not shared, or was shared after it had begun")
		}
	}

	close(release)
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	if <-next.done; next.err != nil {
		t.Error(next.err)
	}
	if n := reads.Load(); n != maxCatalogReads+1 {
		t.Errorf("%d reads, want %d", n, maxCatalogReads+1)
	}

	for range 2 * maxCatalogReads { // nothing is running, so each of these reads alone
		if _, err := c.st.currentCatalog(c.ctx); err != nil {
			t.Error(err)
		}
	}

	if n := reads.Load(); n != 3*maxCatalogReads+1 || c.st.catalogReads.running != 0 {
		t.Errorf("%d reads, want %d; %d are counted as running", n, 3*maxCatalogReads+1, c.st.catalogReads.running)
	}
}

// A server of hbase:meta that hangs costs one request for a version token its
// timeout; the next ones do not wait for it.
func TestVersion_catalogHangs(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.Timeout = 200 * time.Millisecond })
	c.fill(3)
	release := make(chan struct{})
	var asked atomic.Int64
	c.awaitVersion() // so that nothing but its read point is asked of hbase:meta
	c.OnReadPoint(func(table string) {
		if table == regions.MetaTable {
			asked.Add(1)
			<-release
		}
	})
	defer close(release)
	var err error
	for c.ctx.Err() == nil && !errors.Is(err, errMetaSilent) {
		var token string
		if token, err = c.version(store.KeyRange{}); token != "" || err == nil {
			t.Fatalf("version token %x, error %v while hbase:meta is silent", token, err)
		}
	}

	if n := asked.Load(); n != 1 || !errors.Is(err, errMetaSilent) {
		t.Errorf("the server was asked %d times, want once; error %v, want %v", n, err, errMetaSilent)
	}
}

// Without read points nothing is proven about hbase:meta, and without ZooKeeper it is not found.
func TestCurrentCatalog_failures(t *testing.T) {
	c := start(t, hbasefake.Options{NoReadPoint: true})
	if _, err := c.st.currentCatalog(c.ctx); !errors.Is(err, ErrNoReadPoint) {
		t.Errorf("got %v, want %v", err, ErrNoReadPoint)
	}
	other := c.another(ProofExact)
	c.StopZooKeeper()
	if _, err := other.currentCatalog(c.ctx); err == nil || errors.Is(err, ErrNoReadPoint) {
		t.Errorf("without ZooKeeper: got %v", err)
	}
}
