package unchanged

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// stampedCluster is a cluster whose store proves by timestamps. Its clocks stand still.
type stampedCluster struct {
	*cluster
	servers, gateway *atomic.Int64 // clocks, ms
}

func startStamped(t *testing.T, splits ...string) *stampedCluster {
	c := &stampedCluster{
		cluster: start(t, hbasefake.Options{}, func(cfg *Config) { cfg.Proof = ProofTimestamps }),
		servers: &atomic.Int64{},
		gateway: &atomic.Int64{},
	}
	c.servers.Store(1_800_000_000_000)
	c.gateway.Store(1_800_000_000_000)
	c.SetClock(c.servers.Load)
	c.st.cfg.Now = c.gateway.Load
	c.fill(40, splits...)
	c.Flush("t")
	return c
}

// pass lets time pass for everybody, so that the master is called again.
func (c *stampedCluster) pass(d time.Duration) {
	c.servers.Add(d.Milliseconds())
	c.gateway.Add(d.Milliseconds())
	c.askMasterAgain()
}

func (c *stampedCluster) askMasterAgain() {
	c.st.health.turn <- struct{}{}
	defer func() { <-c.st.health.turn }()
	c.st.health.until = time.Time{}
}

// region returns the name of the only region.
func (c *stampedCluster) region() string {
	c.Helper()
	loc, err := c.st.router.Locate(c.ctx, "t", oldRows.Start)
	if err != nil {
		c.Fatal(err)
	}
	return string(loc.Name)
}

var oldRows = store.KeyRange{Start: []byte("r0005"), Stop: []byte("r0026")}

// rest lets a range rest for longer than the slack, until tokens stay equal although another
// row of the region is written to. It returns the token.
func (c *stampedCluster) rest() string {
	c.Helper()
	c.pass(2 * maxStampAge * time.Millisecond)
	// The first ask of an opening lists no files, the second does.
	for range 2 {
		if _, err := c.version(oldRows); err != nil {
			c.Fatal(err)
		}
		c.Put("t", "r0039", "t", "q0", "new")
	}
	return c.stableStamped()
}

func (c *stampedCluster) stableStamped() string {
	c.Helper()
	token := c.stableVersion(oldRows)
	c.Put("t", "r0038", "t", "q0", "new")
	if again := c.stableVersion(oldRows); again != token {
		c.Fatalf("version tokens %x and %x after a put elsewhere in the region, want the same", token, again)
	}
	return token
}

// A token stays while other rows of the region are written to, and is another one after
// each change of a row of the range.
//
//fault:deletions-unseen =>
//fault:files-unseen sameStore(s.lastMark.files, files) => true
//fault:clocks-are-alike - maxStampAge =>
func TestStampedVersion_changes(t *testing.T) {
	c := startStamped(t)
	f := func(name string, want bool, event func()) {
		t.Helper()
		before := c.rest()
		event()
		token, err := c.version(oldRows)
		if changed := token != before; changed != want || token == "" || err != nil {
			t.Errorf("%s: version token %x after %x, error %v; want it changed %v", name, token, before, err, want)
		}
		c.Flush("t") // so that there is a file at the next mark
	}

	f("nothing", false, func() {})
	f("a put before the range", false, func() { c.Put("t", "r0004", "t", "q0", "v") })
	f("a put behind the range", false, func() { c.Put("t", "r0026", "t", "q0", "v") })
	f("a put into the first row", true, func() { c.Put("t", "r0005", "t", "q0", "v") })
	f("a new last row", true, func() { c.Put("t", "r0025x", "t", "q0", "v") })
	f("a put with a clock that is slow", true, func() {
		c.servers.Add(-maxClockLag)
		c.Put("t", "r0010", "t", "q0", "v")
		c.servers.Add(maxClockLag)
	})
	f("a deletion", true, func() { c.Delete("t", "r0011", "t", "q0") })
	f("a deletion whose marker is gone", true,
		func() { c.Delete("t", "r0012", "t", "q0"); c.Flush("t"); c.CompactAll("t") })
	f("a flush", false, func() { c.Flush("t") })
	f("a file loaded in bulk", true, func() { c.LoadBulk("t", "r0014", "t", "q0", "v", c.servers.Load()-3600_000) })
	f("a compaction of all files", true, func() { c.CompactAll("t") })
	f("a move", true, func() {
		c.MoveRegion("t", []byte("r0010"))
		// The cached location of the region is wrong once.
		_, _ = c.version(oldRows)
	})
}

// Whatever happens between two asks: if their tokens are equal, so are the rows. Servers' clocks
// are right to within the lag that is allowed.
func TestStampedVersion_law(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := startStamped(t)
	key := func() string { return fmt.Sprintf("r%04d", rng.IntN(40)) }

	seen := map[string][]string{} // rows by range and token
	proven := 0
	for step := range 3000 {
		switch rng.IntN(16) {
		case 0:
			c.Put("t", key(), "t", "q0", fmt.Sprint(step))
		case 1:
			c.Delete("t", key(), "t", fmt.Sprintf("q%d", rng.IntN(3)))
		case 2:
			c.Flush("t")
		case 3:
			c.CompactAll("t")
		case 4:
			c.LoadBulk("t", key(), "t", "q1", fmt.Sprint(step), c.servers.Load()-rng.Int64N(3600_000))
		case 5:
			c.servers.Store(c.gateway.Load() - rng.Int64N(maxClockLag+1))
		case 6:
			c.pass(time.Duration(rng.Int64N(2*maxStampAge)) * time.Millisecond)
		case 7:
			if rng.IntN(10) == 0 {
				c.MoveRegion("t", []byte(key()))
			}
		default:
			c.Put("t", "r0039", "t", "q0", fmt.Sprint(step)) // it is in one range alone
			c.pass(time.Duration(rng.Int64N(60_000)) * time.Millisecond)
		}

		i := rng.IntN(4)
		r := store.KeyRange{Start: fmt.Appendf(nil, "r%04d", 10*i), Stop: fmt.Appendf(nil, "r%04d", 10*i+10)}
		token, err := c.version(r)
		if err != nil || token == "" {
			continue // the cached location of a region that has moved
		}
		rows, err := c.read(r)
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("%d %x", i, token)
		before, ok := seen[at]
		if ok && !slices.Equal(before, rows) {
			t.Fatalf("step %d: range %d has the token of before and other rows:\n%q\n%q", step, i, before, rows)
		}
		if seen[at] = rows; ok {
			proven++
		}
	}
	t.Logf("%d of 3000 tokens were equal to an earlier one", proven)
	if proven < 100 {
		t.Errorf("%d tokens were equal to an earlier one, want at least 100, or the cases test too little", proven)
	}
}

// A range that was written to within the slack is not scanned for changes: that would be useless.
func TestStampedVersion_young(t *testing.T) {
	c := startStamped(t)
	c.rest()
	c.Put("t", "r0010", "t", "q0", "v")
	c.SetHook(nil) // counting begins
	if _, err := c.version(oldRows); err != nil {
		t.Fatal(err)
	}

	for range 5 {
		c.Put("t", "r0039", "t", "q0", "v")
		if a, b, err := c.versions(oldRows); a != b || err != nil {
			t.Errorf("tokens %x and %x, error %v; want the same at rest", a, b, err)
		}
	}
	if n := c.Calls("GetStoreFile"); n != 0 {
		t.Errorf("files were listed %d times, want never while a young cell would be found", n)
	}
	c.rest()
}

// What the promise does not cover, but can be seen, is an error that says it, and what is
// equal by its read point stays equal.
func TestStampedVersion_conditions(t *testing.T) {
	f := func(name string, want error, event func(c *stampedCluster)) {
		t.Helper()
		c := startStamped(t)
		c.rest()
		event(c)
		c.Put("t", "r0039", "t", "q0", "v")
		if token, err := c.version(oldRows); token != "" || !errors.Is(err, want) {
			t.Errorf("%s: version token %x, error %v; want %v", name, token, err, want)
		}
		// A region that rests needs no timestamps, from the next ask on.
		if _, err := c.version(oldRows); err != nil {
			t.Errorf("%s, at rest: %v", name, err)
		}
		c.stableVersion(oldRows)
	}

	f("a clock is behind", errClocks, func(c *stampedCluster) { c.gateway.Add(maxClockLag + 1000); c.askMasterAgain() })
	f("the master is silent for a moment, and the mark stays", errClocks, func(c *stampedCluster) {
		c.st.health.turn <- struct{}{}
		c.st.health.until, c.st.health.err = time.Now().Add(bound), errors.New("silent")
		<-c.st.health.turn
		before := c.st.marks.find(spanKey{"t", c.region(), string(oldRows.Start), string(oldRows.Stop)})
		c.Put("t", "r0039", "t", "q0", "v")
		if _, err := c.version(oldRows); !errors.Is(err, errClocks) {
			t.Errorf("error %v, want %v", err, errClocks)
		}
		after := c.st.marks.find(spanKey{"t", c.region(), string(oldRows.Start), string(oldRows.Stop)})
		if before.epoch == 0 || after.epoch != before.epoch {
			t.Errorf("the mark has epoch %d, want %d", after.epoch, before.epoch)
		}
	})
	refuseList := func(c *stampedCluster, nth int) {
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method != "GetStoreFile" || call.N != nth {
				return hbasefake.Fault{}
			}
			return hbasefake.Fault{
				Kind:      hbasefake.Refuse,
				Exception: "org.apache.hadoop.hbase.security.AccessDeniedException",
			}
		})
	}
	f("files that may not be listed once", store.ErrDenied, func(c *stampedCluster) { refuseList(c, 0) })
	f("new files that may not be listed", store.ErrDenied, func(c *stampedCluster) {
		c.CompactAll("t")
		refuseList(c, 1)
	})
	f("replication", errReplicated, func(c *stampedCluster) { c.Replicate(); c.askMasterAgain() })

	c := startStamped(t)
	c.Alter("t", "t", "TTL", "3600")
	c.pass(2 * maxStampAge * time.Millisecond)
	c.SetHook(nil) // counting begins
	for range 3 {
		if first, second, err := c.versions(oldRows); second != "" || !errors.Is(err, ErrExpiring) {
			t.Errorf("version tokens %x and %x, error %v, want %v", first, second, err, ErrExpiring)
		}
	}
	if n := c.Calls("GetTableDescriptors"); n != 1 {
		t.Errorf("the table was described %d times, want once for an opening", n)
	}
}

// A range that is queried once costs no more calls than the exact proof takes.
func TestStampedVersion_once(t *testing.T) {
	c := startStamped(t)
	c.SetHook(nil) // counting begins
	if _, err := c.version(oldRows); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GetStoreFile", "GetClusterStatus", "GetTableDescriptors"} {
		if n := c.Calls(method); n != 0 {
			t.Errorf("%d calls of %s, want none", n, method)
		}
	}
}

// A range of a region that is written to elsewhere costs a list of files at its second token, and from then on
// one scan and one list. Its table is described once.
func TestStampedVersion_calls(t *testing.T) {
	c := startStamped(t)
	c.pass(2 * maxStampAge * time.Millisecond)
	c.SetHook(nil) // counting begins
	for i, want := range []string{"0 0 0", "1 0 0", "2 1 1", "3 2 1", "4 3 1"} {
		if _, err := c.version(oldRows); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Calls("GetStoreFile"), c.RawScans(), c.Calls("GetTableDescriptors")); got != want {
			t.Errorf("ask %d: files listed, scans and descriptions: got %s, want %s", i+1, got, want)
		}
		c.Put("t", "r0039", "t", "q0", "v")
	}

	// A compaction of all files ends the mark, and the next one has files at once.
	c.CompactAll("t")
	first, second, err := c.putBetween()
	if first != second || err != nil || c.RawScans() != 5 {
		t.Errorf("after a compaction: tokens %x and %x, %d scans, error %v, want equal ones by 5", first, second,
			c.RawScans(), err)
	}
}

// putBetween requests two tokens, with a put elsewhere in the region between.
func (c *stampedCluster) putBetween() (first, second string, err error) {
	first, err = c.version(oldRows)
	if err == nil {
		c.Put("t", "r0039", "t", "q0", "v")
		second, err = c.version(oldRows)
	}
	return first, second, err
}

// Read points alone need neither clocks nor the usual stores, and prove nothing of a region that is
// written to elsewhere.
func TestVersion_exactOfOldRows(t *testing.T) {
	c := startStamped(t)
	c.st = c.another(ProofExact)
	c.st.cfg.Now = c.gateway.Load
	c.AlterTable("t", "hbase.hstore.engine.class", "StripeStoreEngine")
	c.pass(2 * maxStampAge * time.Millisecond)
	c.awaitVersion()
	c.mustMark(true)
	c.Replicate()
	c.stableVersion(oldRows)
	for range 3 {
		if first, second, err := c.putBetween(); first == second || err != nil {
			t.Errorf("tokens %x and %x, error %v, want different ones", first, second, err)
		}
	}
}

// What timestamps do not prove of one region voids the token, whatever the others are like.
func TestStampedVersion_oneOfTwo(t *testing.T) {
	for behind := range 2 {
		c := startStamped(t, "r0013")
		c.pass(2 * maxStampAge * time.Millisecond)
		for range 2 {
			if _, err := c.version(oldRows); err != nil {
				t.Fatal(err)
			}
			c.Put("t", "r0039", "t", "q0", "v")
			c.Put("t", "r0000", "t", "q0", "v")
		}
		c.stableVersion(oldRows)
		mark := c.mustMark(false)
		c.Put("t", "r0039", "t", "q0", "v")
		c.Put("t", "r0000", "t", "q0", "v")
		c.SetBehind(behind, maxClockLag+1000)
		c.askMasterAgain()
		if token, err := c.version(oldRows); token != "" || !errors.Is(err, errClocks) {
			t.Errorf("server %d is behind: token %x, error %v, want %v", behind, token, err, errClocks)
		}
		if err := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark); !errors.Is(err, errClocks) {
			t.Errorf("server %d is behind: the mark: got %v, want %v", behind, err, errClocks)
		}
	}
}

// While a region rests its marks keep their time: the clocks of these asks were not checked, so a
// clock that was wrong in between must not hide a change.
func TestStampedVersion_wrongClockAtRest(t *testing.T) {
	c := startStamped(t)
	before := c.rest()
	c.gateway.Add(2 * maxStampAge)
	c.stableVersion(oldRows)
	c.gateway.Add(-2 * maxStampAge)
	c.Put("t", "r0010", "t", "q0", "v")
	if token, err := c.version(oldRows); token == before || err != nil {
		t.Errorf("version token %x, error %v; want another one than before", token, err)
	}
}

// The bytes are those of the comment of storeFiles.
func TestStoreFilesRequest(t *testing.T) {
	request, err := storeFilesRequest([]byte("t,,1."), "t")
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(request)
	if got, want := fmt.Sprintf("%x", b), "0a090801"+"1205742c2c312e"+"120174"; got != want || err != nil {
		t.Errorf("request %s, error %v; want %s", got, err, want)
	}
}

// Stores that may drop delete markers in a compaction of some of their files prove nothing.
func TestStampedVersion_engine(t *testing.T) {
	for name, alter := range map[string]func(c *stampedCluster){
		"table":  func(c *stampedCluster) { c.AlterTable("t", "hbase.hstore.engine.class", "StripeStoreEngine") },
		"family": func(c *stampedCluster) { c.Alter("t", "t", "hbase.hstore.engine.class", "StripeStoreEngine") },
	} {
		c := startStamped(t)
		alter(c)
		c.pass(2 * maxStampAge * time.Millisecond)
		for range 3 {
			if _, second, err := c.versions(oldRows); second != "" || !errors.Is(err, ErrExpiring) {
				t.Errorf("%s: second version token %x, error %v, want %v", name, second, err, ErrExpiring)
			}
		}
	}
	configured := &pb.TableSchema{
		ColumnFamilies: []*pb.ColumnFamilySchema{{
			Name: []byte("t"),
			Configuration: []*pb.NameStringPair{{
				Name:  proto.String("hbase.hstore.engine.class"),
				Value: proto.String("X"),
			}},
		}},
	}
	if got := regions.StoreEngine(configured, "t"); got != "X" {
		t.Errorf("engine %q, want X", got)
	}
}

// A mark that continues an epoch which another ask has ended gets one that no token
// equals; it does not bring the old one back.
func TestMarkTable_concurrent(t *testing.T) {
	var m markTable
	key := spanKey{"t", "r", "", ""}
	old := mark{epoch: epochs.Add(1), began: 1}
	m.replace(key, mark{}, old)
	changed := mark{epoch: epochs.Add(1), began: 2}
	m.replace(key, old, changed)

	late := old
	late.began = 3
	if got := m.replace(key, old, late); got == old.epoch || got == changed.epoch {
		t.Errorf("epoch %d, want neither the old %d nor the new %d", got, old.epoch, changed.epoch)
	}
	if got := m.find(key); got.epoch != changed.epoch {
		t.Errorf("the mark has epoch %d, want %d", got.epoch, changed.epoch)
	}

	// Of two asks that have proven the same, the later one stays.
	first, second := changed, changed
	first.began, second.began = 10, 20
	m.replace(key, changed, second)
	if got := m.replace(key, changed, first); got != changed.epoch || m.find(key).began != 20 {
		t.Errorf("epoch %d at %d, want %d at 20", got, m.find(key).began, changed.epoch)
	}
}

// Where a scan for changes takes too long from one mark, the next one begins from a later mark:
// after a compaction of old and recent cells it would be slow for ever from those before. Asks
// that are further apart than the pause after such a scan get there, too.
func TestStampedVersion_slow(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Second, 3 * time.Minute} {
		c := startStamped(t)
		token := c.rest()
		c.SetSlow(c.servers.Load()) // the compaction was now
		slow := 0
		for range 15 * time.Minute / every {
			c.pass(every)
			c.Put("t", "r0039", "t", "q0", "v")
			next, err := c.version(oldRows)
			if errors.Is(err, errSlowProof) {
				slow++
			} else if err != nil {
				t.Fatal(err)
			}
			token = next
		}

		c.pass(every)
		c.Put("t", "r0039", "t", "q0", "v")
		if next, err := c.version(oldRows); next != token || err != nil {
			t.Errorf(
				"asked every %s: token %x after %x, error %v; want the same a quarter of an hour after the compaction",
				every, next, token, err)
		}
		if most := int(6*time.Minute/max(every, slowPause*time.Millisecond)) + 1; slow == 0 || slow > most {
			t.Errorf("asked every %s: %d scans were slow, want 1 to %d", every, slow, most)
		}
	}
}

// A range of many bytes is proven as well where its old cells lie in one file with recent ones:
// the server looks at all of them in one reply.
func TestStampedVersion_large(t *testing.T) {
	c := startStamped(t)
	for i := range 20 {
		c.Put("t", fmt.Sprintf("r%04d", 5+i), "t", "q1", strings.Repeat("v", 32<<10))
	}
	c.Flush("t")
	c.rest()
}

// No cell is a proof only where the reply says that the region's rest was looked at.
func TestFirstStamp_end(t *testing.T) {
	for _, e := range []struct {
		reply *pb.ScanResponse
		want  error
	}{
		{&pb.ScanResponse{MoreResultsInRegion: proto.Bool(false)}, nil},
		{&pb.ScanResponse{MoreResultsInRegion: proto.Bool(true)}, errSlowProof},
		{&pb.ScanResponse{}, errSlowProof},
		{&pb.ScanResponse{MoreResultsInRegion: proto.Bool(false), HeartbeatMessage: proto.Bool(true)}, errSlowProof},
	} {
		if stamp, err := firstStamp(e.reply, nil); stamp != 0 || !errors.Is(err, e.want) {
			t.Errorf("%v: got %d, %v, want %v", e.reply, stamp, err, e.want)
		}
	}
}

// Marks of one store share a list of files, also while those of another are listed.
func TestMarkTable_shared(t *testing.T) {
	var m markTable
	first := m.shared("t", "one", []string{"a", "b"})
	m.shared("t", "two", []string{"c"})
	if again := m.shared("t", "one", []string{"a", "b"}); &again[0] != &first[0] {
		t.Error("an equal list is a copy")
	}
	if other := m.shared("t", "one", []string{"a", "d"}); other[1] != "d" {
		t.Errorf("got %q, want the new list", other)
	}
}
