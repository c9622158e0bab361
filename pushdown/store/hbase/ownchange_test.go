package hbase

import (
	"sync/atomic"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/unchanged"
	"downpour/pushdown/store/storetest"
)

// The cells that we put and delete on conditions have old timestamps. These tests are of the
// marker by which a proof by timestamps sees them all the same.

// stampedCluster is a cluster whose store proves by timestamps. Its clocks stand still.
type stampedCluster struct {
	*cluster
	clock *atomic.Int64 // ms
}

func startStamped(t *testing.T) *stampedCluster {
	c := &stampedCluster{cluster: start(t, hbasefake.Options{}), clock: &atomic.Int64{}}
	c.clock.Store(1_800_000_000_000)
	c.SetClock(c.clock.Load)
	c.st.prover = unchanged.New(unchanged.Config{Timeout: bound, Proof: ProofTimestamps, Now: c.clock.Load},
		c.st.router, c.st.life)
	c.fill(40)
	c.Flush("t")
	return c
}

// pass lets time pass for everybody.
func (c *stampedCluster) pass(d time.Duration) { c.clock.Add(d.Milliseconds()) }

var oldRows = store.KeyRange{Start: []byte("r0005"), Stop: []byte("r0026")}

func (c *stampedCluster) version() string {
	c.Helper()
	token, err := storetest.Version(c.ctx, c.st, "t", "t", oldRows)
	if err != nil {
		c.Fatal(err)
	}
	return token
}

// rest lets a range rest until tokens stay equal although another row of the region is
// written to. It returns the token.
func (c *stampedCluster) rest() string {
	c.Helper()
	c.pass(time.Hour)
	// The first ask of an opening lists no files, the second does.
	for range 2 {
		c.version()
		c.Put("t", "r0039", "t", "q0", "new")
	}
	token := c.version()
	c.Put("t", "r0038", "t", "q0", "new")
	if again := c.version(); again != token {
		c.Fatalf("version tokens %x and %x after a put elsewhere in the region, want the same", token, again)
	}
	return token
}

// Changes with old timestamps are seen by the proof by timestamps.
func TestChangeIf_seenByTimestamps(t *testing.T) {
	c := startStamped(t)
	for name, change := range map[string]store.ConditionalChange{
		"put": {
			Row: []byte("r0007"),
			Put: []store.Cell{{Qualifier: []byte("m"), Value: []byte("12"), Timestamp: 5}},
		},
		"deletion": {Row: []byte("r0008"), Delete: []store.Version{{Qualifier: []byte("q9"), Timestamp: 5}}},
	} {
		before := c.rest()
		change.If.Stamps = []int64{c.stampOf(change.Row), 5}
		held, err := c.st.ChangeIf(c.ctx, "t", "t", []store.ConditionalChange{change})
		if err != nil || !held[0] {
			t.Fatalf("%s: %v, %v", name, held, err)
		}
		c.pass(time.Second)
		if after := c.version(); after == before {
			t.Errorf("%s: the version token stays %x", name, after)
		}
	}
}

// stampOf returns the timestamp of a row's first cell.
func (c *stampedCluster) stampOf(key []byte) int64 {
	c.Helper()
	rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{key})
	if err != nil || len(rows) != 1 {
		c.Fatal(rows, err)
	}
	return rows[0].Cells[0].Timestamp
}

// A replacement of cells by cells of the same time is seen, too, and so is one that only deletes.
func TestReplace_seenByTimestamps(t *testing.T) {
	c := startStamped(t)
	for name, change := range map[string]func(read store.Cell) store.Replacement{
		"put": func(read store.Cell) store.Replacement {
			return store.Replacement{
				Put: []store.Cell{{Qualifier: []byte("z"), Value: []byte("v"), Timestamp: read.Timestamp}},
			}
		},
		"deletion": func(read store.Cell) store.Replacement { return store.Replacement{Delete: []store.Cell{read}} },
	} {
		before := c.rest()
		rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r0013")})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		r := change(rows[0].Cells[0])
		r.Read = rows[0]
		out, err := c.st.Replace(c.ctx, "t", "t", []store.Replacement{r})
		if err != nil || out[0] != store.Replaced {
			t.Fatal(name, out, err)
		}
		if after := c.version(); after == before {
			t.Errorf("%s: the version token stays %x", name, after)
		}
		c.Flush("t") // so that there is a file at the next mark
	}
}
