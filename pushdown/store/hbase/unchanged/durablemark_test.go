package unchanged

import (
	"errors"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

func (c *cluster) mustMark(resting bool) string {
	c.Helper()
	m, err := c.st.Mark(c.ctx, "t", "t", oldRows)
	if err != nil || m.Resting != resting {
		c.Fatalf("got %+v, %v, want a mark with resting %v", m, err, resting)
	}
	return m.Text
}

// another returns a second prover on the cluster, as of another process.
func (c *cluster) another(proof Proof) *Prover {
	return open(c.T, c.Cluster, Config{Timeout: bound, Proof: proof})
}

// By read points a mark holds until anything in the region is written to, also for another
// process.
func TestMark_exact(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(40)
	mark := c.mustMark(true)
	other := c.another(ProofExact)
	for _, st := range []*Prover{c.st, other} {
		if err := st.Unchanged(c.ctx, "t", "t", oldRows, mark); err != nil {
			t.Errorf("nothing has changed: %v", err)
		}
	}
	c.Put("t", "r0039", "t", "q0", "new")
	for _, st := range []*Prover{c.st, other} {
		if err := st.Unchanged(c.ctx, "t", "t", oldRows, mark); err == nil || errors.Is(err, store.ErrRowsChanged) {
			t.Errorf("a write elsewhere in the region: got %v, want that nothing is proven", err)
		}
	}

	mark = c.mustMark(true)
	c.MoveRegion("t", []byte("r0010"))
	for _, st := range []*Prover{c.st, other} {
		_ = st.Unchanged(c.ctx, "t", "t", oldRows, mark) // the cached location is wrong once
		if err := st.Unchanged(c.ctx, "t", "t", oldRows, mark); err == nil {
			t.Error("a moved region: the mark holds")
		}
	}
}

// A mark that was made after a move holds for a process that knows the region from before.
func TestMark_afterMove(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(40)
	other := c.another(ProofExact)
	if err := other.Unchanged(c.ctx, "t", "t", oldRows, c.mustMark(true)); err != nil {
		t.Fatal(err)
	}

	c.MoveRegion("t", []byte("r0010"))
	_, _ = c.st.Mark(c.ctx, "t", "t", oldRows) // the cached location is wrong once
	mark := c.mustMark(true)
	_ = other.Unchanged(c.ctx, "t", "t", oldRows, mark)
	if err := other.Unchanged(c.ctx, "t", "t", oldRows, mark); err != nil {
		t.Errorf("nothing has changed since the mark: %v", err)
	}
}

// By timestamps a mark holds while other rows are written to, for another process as well,
// and not after a change of its own rows.
func TestMark_timestamps(t *testing.T) {
	for _, e := range []struct {
		what    string
		change  func(c *stampedCluster)
		changed bool // a row of the range; else it is only that nothing is proven, or that it is the same
		proven  bool
	}{
		{"a write elsewhere", func(c *stampedCluster) { c.Put("t", "r0039", "t", "q0", "v") }, false, true},
		{"a write elsewhere and a flush",
			func(c *stampedCluster) { c.Put("t", "r0039", "t", "q0", "v"); c.Flush("t") }, false, true},
		{"a put", func(c *stampedCluster) { c.Put("t", "r0010", "t", "q0", "v") }, true, false},
		{"a put with a slow clock", func(c *stampedCluster) {
			c.servers.Add(-maxClockLag)
			c.Put("t", "r0010", "t", "q0", "v")
			c.servers.Add(maxClockLag)
		}, true, false},
		{"a deletion", func(c *stampedCluster) { c.Delete("t", "r0011", "t", "q0") }, true, false},
		{"a deletion whose marker is gone",
			func(c *stampedCluster) { c.Delete("t", "r0012", "t", "q0"); c.Flush("t"); c.CompactAll("t") }, false,
			false},
		{"a file loaded in bulk",
			func(c *stampedCluster) { c.LoadBulk("t", "r0014", "t", "q0", "v", c.servers.Load()-3600_000) }, false,
			false},
		{"a compaction of all files", func(c *stampedCluster) { c.CompactAll("t") }, false, false},
		{"a move", func(c *stampedCluster) { c.MoveRegion("t", []byte("r0010")) }, false, false},
		{"edits of another cluster", func(c *stampedCluster) { c.Put("t", "r0039", "t", "q0", "v"); c.Replicate() },
			false, false},
	} {
		c := startStamped(t)
		c.pass(2 * maxStampAge * time.Millisecond)
		mark := c.mustMark(false)
		c.pass(time.Minute)
		e.change(c)
		c.askMasterAgain()
		other := c.another(ProofTimestamps)
		other.cfg.Now = c.gateway.Load
		for _, st := range []*Prover{c.st, other} {
			for range 2 {
				err := st.Unchanged(c.ctx, "t", "t", oldRows, mark)
				if (err == nil) != e.proven || errors.Is(err, store.ErrRowsChanged) != e.changed {
					t.Errorf("%s: got %v, want proven %v, changed %v", e.what, err, e.proven, e.changed)
				}
			}
		}
		if e.changed { // and in a part of the range in which nothing has
			if err := c.st.Unchanged(c.ctx, "t", "t", store.KeyRange{Start: []byte("r0015"), Stop: oldRows.Stop},
				mark); err != nil {
				t.Errorf("%s: rows that have not changed: %v", e.what, err)
			}
		}
	}
}

// Rows that were written to minutes before the mark are proven only while their region rests.
func TestMark_young(t *testing.T) {
	c := startStamped(t)
	c.pass(2 * maxStampAge * time.Millisecond)
	c.Put("t", "r0010", "t", "q0", "v")
	mark := c.mustMark(true)
	if err := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark); err != nil {
		t.Error(err)
	}
	c.Put("t", "r0039", "t", "q0", "v")
	if err := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark); err == nil || errors.Is(err, store.ErrRowsChanged) {
		t.Errorf("got %v, want that nothing is proven", err)
	}
}

// A mark is of its rows alone, and a text that is none proves nothing.
func TestMark_refused(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(40)
	mark := c.mustMark(true)
	for what, err := range map[string]error{
		"more rows": c.st.Unchanged(c.ctx, "t", "t", store.KeyRange{Start: []byte("r0004"), Stop: oldRows.Stop},
			mark),
		"to the end":     c.st.Unchanged(c.ctx, "t", "t", store.KeyRange{Start: oldRows.Start}, mark),
		"another family": c.st.Unchanged(c.ctx, "t", "u", oldRows, mark),
		"no mark":        c.st.Unchanged(c.ctx, "t", "t", oldRows, "{"),
		"no time": c.st.Unchanged(c.ctx, "t", "t", oldRows,
			strings.Replace(mark, `"at":`, `"at":"x","At":`, 1)),
	} {
		if err == nil {
			t.Errorf("%s: the mark holds", what)
		}
	}
}

// A mark of many regions ends with any of them, and one without an end covers all that begin later.
func TestMark_regions(t *testing.T) {
	for _, row := range []string{"r0008", "r0020", "r0039"} {
		c := start(t, hbasefake.Options{})
		c.fill(40, "r0013", "r0026")
		open := store.KeyRange{Start: oldRows.Start}
		m, err := c.st.Mark(c.ctx, "t", "t", open)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []store.KeyRange{open, oldRows} {
			if err := c.st.Unchanged(c.ctx, "t", "t", r, m.Text); err != nil {
				t.Error(err)
			}
		}
		c.Put("t", row, "t", "q0", "new")
		if err := c.st.Unchanged(c.ctx, "t", "t", open, m.Text); err == nil {
			t.Errorf("the mark holds after a put of %s", row)
		}
	}
}

// A region that is opened again between the readings of its opening gives a mark of the new one.
func TestMark_reopened(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(40)
	c.stableVersion(oldRows)
	c.Snapshot("t", "s")
	n := 0
	c.OnReadPoint(func(table string) {
		if n++; n == 1 && table == "t" {
			c.RestoreSnapshot("t", "s")
		}
	})
	mark := c.mustMark(true)
	if err := c.another(ProofExact).Unchanged(c.ctx, "t", "t", oldRows, mark); err != nil {
		t.Errorf("the mark does not hold for another process: %v", err)
	}
}

// A scan for changes that takes too long is not begun again for a minute: the server goes on with
// it although nobody waits, and each query would leave another one there.
func TestMark_slow(t *testing.T) {
	c := startStamped(t)
	c.pass(2 * maxStampAge * time.Millisecond)
	mark := c.mustMark(false)
	c.Put("t", "r0039", "t", "q0", "v")
	c.SetSlow(c.servers.Load())
	before := c.RawScans()
	for i := range 3 {
		if err := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark); !errors.Is(err, errSlowProof) {
			t.Errorf("error %v, want %v", err, errSlowProof)
		}
		if n := c.RawScans() - before; n != 1 {
			t.Errorf("%d scans for changes at ask %d, want the first alone", n, i+1)
		}
	}

	c.pass(slowPause * time.Millisecond)
	c.SetSlow(0)
	if err := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}
