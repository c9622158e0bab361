//go:build integration

package integration

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

var updateFlag = flag.Bool("update", false,
	"write what OpenTSDB answers to the recordings that integration/replay asks again, and do not compare it with them")

// notes is what OpenTSDB answers in one test to questions of the fixed seed. It becomes a recording,
// or is compared with the one that there is. The nil value notes nothing.
type notes struct {
	t    *testing.T
	name string
	now  conformance.Answers
}

// recorded returns the notes of a recording. Questions of another seed or number are in none.
func recorded(t *testing.T, seed uint64, name, rows string) *notes {
	if seed != 1 || *soak || *queriesFlag != 0 {
		return nil
	}
	return &notes{t, name, conformance.Answers{Rows: rows, Asked: map[string]conformance.Answer{}}}
}

// add notes an answer. Of several to one question the last one counts: a salted OpenTSDB is asked
// again where it may have lost a bucket.
func (n *notes) add(q differential.Request, a compare.Answer) {
	if n != nil {
		n.now.Asked[conformance.Key(q.Path, q.Body)] = conformance.Answer{Status: a.Status, Body: string(a.Body)}
	}
}

// finish writes the recording with -update, unless the test has failed, or compares it. A recording that no longer
// matches would let the replay compare with what OpenTSDB does not answer.
func (n *notes) finish(uid [][4]string) {
	if n == nil || n.t.Failed() {
		return
	}
	n.t.Helper()
	n.now.UID = uid
	if *updateFlag {
		if err := conformance.Write("conformance", n.name, n.now); err != nil {
			n.t.Fatal(err)
		}
		info := must[os.FileInfo](n.t)(os.Stat(filepath.Join("conformance", n.name+".json.gz")))
		n.t.Logf("%s: %d answers in %d bytes", n.name, len(n.now.Asked), info.Size())
		return
	}
	var old conformance.Answers
	if err := conformance.Decode(n.name, &old); err != nil {
		n.t.Fatalf("%v; -update writes it", err)
	}
	if old.Rows != n.now.Rows || len(old.UID) != len(uid) {
		n.t.Errorf("%s is of the rows %s and %d cells of UIDs, want %s and %d; -update writes it again",
			n.name, old.Rows, len(old.UID), n.now.Rows, len(uid))
	}
	for key, now := range n.now.Asked {
		was, ok := old.Asked[key]
		r, _, err := compare.WithReference(compare.Answer{Status: was.Status, Body: []byte(was.Body)},
			compare.Answer{Status: now.Status, Body: []byte(now.Body)})
		if !ok || err != nil || !r.Equal() {
			n.t.Errorf("%s, question %s: recorded %t, error %v, %v\nOpenTSDB now: %d %.1000s",
				n.name, key, ok, err, r, now.Status, now.Body)
		}
	}
}

// recordCells writes the cells that OpenTSDB has made in TestExchange_sameCells with -update, or compares them with
// the recording.
func (l layout) recordCells(t *testing.T, uid, data []string) {
	t.Helper()
	s := l.schema()
	now := conformance.Cells{
		SaltWidth:   s.SaltWidth,
		SaltBuckets: s.SaltBuckets,
		MetricWidth: s.MetricWidth,
		TagKWidth:   s.TagKWidth,
		TagVWidth:   s.TagVWidth,
		Appends:     l.appends,
		UID:         uid,
		Data:        data,
	}
	add := func(points []e2e.Point, n int) {
		for some := range slices.Chunk(points, n) {
			now.Puts = append(now.Puts, must[[]byte](t)(json.Marshal(some)))
		}
	}
	add(introduce(), 1)
	add(dataset(9), 50)
	name := "cells_" + l.name
	switch {
	case t.Failed():
	case *updateFlag:
		if err := conformance.Write("conformance", name, now); err != nil {
			t.Fatal(err)
		}
	default:
		var old conformance.Cells
		if err := conformance.Decode(name, &old); err != nil {
			t.Fatalf("%v; -update writes it", err)
		}
		if d := cmp.Diff(old, now); d != "" {
			t.Errorf("%s: -recorded +OpenTSDB now; -update writes it again\n%.4000s", name, d)
		}
	}
}
