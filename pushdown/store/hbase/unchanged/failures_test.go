package unchanged

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Tokens, marks and their proofs fail with the cause: whether what they need was read before or not.
func TestProver_failures(t *testing.T) {
	refused := func(c *stampedCluster) {
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method != "GetTableDescriptors" {
				return hbasefake.Fault{}
			}
			return hbasefake.Fault{
				Kind:      hbasefake.Refuse,
				Exception: "org.apache.hadoop.hbase.security.AccessDeniedException",
			}
		})
	}
	denied := func(err error) bool { return errors.Is(err, store.ErrDenied) }
	lost := func(err error) bool {
		return err != nil && !errors.Is(err, errReopened) && !errors.Is(err, ErrNoReadPoint)
	}
	for _, proof := range []Proof{ProofExact, ProofTimestamps} {
		for _, known := range []bool{false, true} {
			name := fmt.Sprintf("proof %d, known %v", proof, known)
			start := func() *stampedCluster {
				c := startStamped(t)
				c.st.cfg.Proof = proof
				c.MoveMeta(1) // the region is on server 0
				c.pass(2 * maxStampAge * time.Millisecond)
				if known {
					c.stableVersion(oldRows)
				}
				return c
			}

			for server, what := range []string{"the region's server", "hbase:meta"} {
				c := start()
				mark, err := c.st.Mark(c.ctx, "t", "t", oldRows)
				if err != nil {
					t.Fatal(err)
				}
				if !known {
					c.st = c.another(proof)
					if _, err := c.st.router.Locate(c.ctx, "t", oldRows.Start); err != nil {
						t.Fatal(err)
					}
				}
				c.StopServer(server)
				_, err = c.version(oldRows)
				_, markError := c.st.Mark(c.ctx, "t", "t", oldRows)
				proofError := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark.Text)
				if !lost(err) || !lost(markError) || !lost(proofError) {
					t.Errorf("%s, %s is away: token %v, mark %v, proof %v", name, what, err, markError, proofError)
				}
			}

			c := start()
			var err error
			refused(c)
			c.Put("t", "r0039", "t", "q0", "v") // a token that equals no other needs no description
			for range 3 {
				_, err = c.version(oldRows)
			}
			m, markError := c.st.Mark(c.ctx, "t", "t", oldRows)
			if !denied(err) && !known || !denied(markError) || m.Text != "" {
				t.Errorf("%s, no description: token %v, mark %v of %q", name, err, markError, m.Text)
			}
			c.SetHook(nil)
			c.stableVersion(oldRows)
		}
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

// Of two attempts the second may succeed, a third is not made, and another error ends the first.
func TestRetryReopened(t *testing.T) {
	other := errors.New("other")
	for want, outcomes := range map[string][]error{
		"1 <nil>":                  {nil},
		"2 <nil>":                  {errReopened, nil},
		"2 " + errReopened.Error(): {errReopened, errReopened},
		"1 other":                  {other},
		"2 other":                  {fmt.Errorf("wrapped: %w", errReopened), other},
	} {
		n := 0
		err := retryReopened(func() error { n++; return outcomes[n-1] })
		if got := fmt.Sprint(n, err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A region whose opening is read before its server is called, and that is elsewhere, is located again.
func TestVersion_movedBeforeFirst(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	if _, err := c.st.router.Locate(c.ctx, "t", nil); err != nil {
		t.Fatal(err)
	}
	c.MoveRegion("t", []byte("r0000"))
	if _, err := c.version(store.KeyRange{}); !errors.Is(err, regions.ErrMoved) {
		t.Errorf("got %v, want %v", err, regions.ErrMoved)
	}
	if _, err := c.version(store.KeyRange{}); err != nil {
		t.Error(err)
	}
}

// A token of known states is returned before the openings of its regions were read again. Its
// proof fails if one was opened again before the read point was taken.
func TestVersion_early(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	want := c.stableVersion(store.KeyRange{})
	for _, reopened := range []bool{false, true} {
		release := make(chan struct{})
		c.OnReadPoint(func(table string) {
			if table == regions.MetaTable {
				<-release
			}
		})
		token, proof, err := c.st.Version(c.ctx, "t", "t", store.KeyRange{})
		if token != want || err != nil {
			t.Errorf("got token %x, error %v, want %x", token, err, want)
		}
		if reopened {
			c.Snapshot("t", "s")
			c.RestoreSnapshot("t", "s")
		}
		close(release)
		if err := proof(); (err != nil) != reopened || reopened && !strings.Contains(err.Error(), `table "t"`) {
			t.Errorf("opened again %v: the proof is %v", reopened, err)
		}
		c.OnReadPoint(nil)
	}
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

// The master's report holds for a while; for a shorter one if there is none, or a clock is wrong.
func TestClusterHealth_note(t *testing.T) {
	at := time.UnixMilli(4_100_000_000_000) // not over yet for check
	for lag, want := range map[int64]time.Duration{
		0: healthFor, maxClockLag: healthFor, maxClockLag + 1: unhealthyFor,
	} {
		h := newClusterHealth()
		h.note(at, 1_800_000_000_000, &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{
			LiveServers: []*pb.LiveServerInfo{{
				Server:     &pb.ServerName{HostName: proto.String("one"), Port: proto.Uint32(1)},
				ServerLoad: &pb.ServerLoad{ReportEndTime: proto.Uint64(uint64(1_800_000_000_000 - lag))},
			}},
		}}, nil)
		if got := h.until.Sub(at); got != want || h.lags["one:1"] != lag {
			t.Errorf("%d ms behind: holds for %v, %d ms behind, want %v", lag, got, h.lags["one:1"], want)
		}
		if err := h.check(t.Context(), nil, "one:1"); (err == nil) != (want == healthFor) {
			t.Errorf("%d ms behind: got %v", lag, err)
		}
	}
	h := newClusterHealth()
	h.note(at, 0, nil, errMetaSilent)
	if got := h.until.Sub(at); got != unhealthyFor || !errors.Is(h.err, errMetaSilent) {
		t.Errorf("no report: holds for %v, error %v, want %v", got, h.err, unhealthyFor)
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
