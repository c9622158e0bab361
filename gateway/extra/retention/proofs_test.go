package retention_test

import (
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/storetest"
)

type (
	entry = uid.Entry
	seq   = iter.Seq2[entry, error]
)

func atTime(seconds int64) func() time.Time {
	return func() time.Time { return time.Unix(seconds, 0) }
}

// proven is a way of proving on HBase that rows have not changed.
type proven struct {
	name  string
	proof hbase.Proof
}

var proofs = []proven{{"exact", hbase.ProofExact}, {"timestamps", hbase.ProofTimestamps}}

func provenWorld(t *testing.T, p proven) (*world, *hbasefake.Cluster) {
	t.Helper()
	schema := encoding.DefaultSchema()
	fake := opentest.Fake(t, hbasefake.Options{})
	st := opentest.HBaseWith(t, fake, hbase.Config{Proof: p.proof}, tablestest.Specs(schema)...)
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), st, schema)
	return w, fake
}

func (w *world) token(r store.KeyRange) string {
	w.Helper()
	token, err := storetest.Version(w.Context(), w.store.Features().Versioner, "tsdb", encoding.FamilyData, r)
	if err != nil {
		w.Fatal(err)
	}
	return token
}

// restedToken returns a token of a range that has proven to stay while nothing happens there: by
// timestamps also while other rows of the region are written to.
func (w *world) restedToken(p proven, r store.KeyRange) string {
	w.Helper()
	before := ""
	for range 20 {
		token := w.token(r)
		if token != "" && token == before {
			return token
		}
		before = token
		time.Sleep(6 * time.Minute) // what was put is older than the proof looks back
		if p.proof == hbase.ProofTimestamps {
			w.put("tsdb", 3, now/hour*hour, 1)
		}
	}
	w.Fatalf("no token stays: %x", before)
	return ""
}

// Both proofs of remembered answers see on HBase that rows are deleted: a version token of their
// range is another one. By timestamps that is so although the region is written to all the time.
func TestRun_proofs(t *testing.T) {
	for _, proof := range proofs {
		t.Run(proof.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, cluster := provenWorld(t, proof)
				w.job.Rules = parse(t, "sys.cpu 1d")
				old := int64(now-20*86_400) / hour * hour
				w.put("tsdb", 0, old, 1)
				w.put("tsdb", 2, old, 1)
				cluster.Flush("tsdb")
				gone := store.KeyRange{
					Start: w.schema.AppendRangeKey(nil, 0, metric(0), uint32(old)),
					Stop:  w.schema.AppendRangeKey(nil, 0, metric(0), uint32(old+hour)),
				}
				before := w.restedToken(proof, gone)
				w.run(0)
				w.check("proof " + proof.name)
				if after := w.token(gone); after == before {
					t.Errorf("the token of deleted rows is still %x", after)
				}
			})
		})
	}
}
