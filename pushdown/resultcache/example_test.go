package resultcache_test

import (
	"context"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// versioned is a store that gives version as its version token: its rows have changed when version
// is set.
type versioned struct {
	*operatortest.Store
	version string
}

func (s *versioned) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(s.Version)}
}

func (s *versioned) Version(context.Context, string, string, store.KeyRange) (string, error) {
	return s.version, nil
}

// An answer is stored at the second query of a part, and is found from the third on as
// long as the store gives the same version token.
func ExampleOpen() {
	const hour = 1_356_998_400 // 2013-01-01 00:00, in seconds
	schema := encoding.DefaultSchema()
	table := &versioned{Store: &operatortest.Store{}, version: "1"}
	table.Load(schema, operatortest.UID(1), operatortest.Series{
		Tags:   []encoding.TagPair{operatortest.Tag(1, 1)},
		Points: operatortest.Every(hour, hour+3600, 60, func(i int) float64 { return float64(i) }),
	})
	plan := operatortest.Plan(schema, operatortest.UID(1), hour, hour+3600)
	part := &scanplan.Part{Plan: plan, Range: plan.Ranges[0]}

	cache := resultcache.New(1<<20, nil)
	ask := func() {
		op, err := resultcache.Open(cache, table, part, operator.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer op.Close()
		for err == nil {
			var record batch.Record
			if record, err = op.Next(context.Background()); err == nil {
				record.Release()
			}
		}
		if err != io.EOF {
			fmt.Println(err)
			return
		}

		s := op.Stats()
		fmt.Printf("%d points: hits %d, stored %d, changed %d\n", s.Points, s.CacheHits, s.CacheStored, s.CacheChanged)
	}

	ask()
	ask()
	ask()
	table.version = "2" // somebody has written
	ask()
	// Output:
	// 60 points: hits 0, stored 0, changed 0
	// 60 points: hits 0, stored 1, changed 0
	// 60 points: hits 1, stored 0, changed 0
	// 60 points: hits 0, stored 0, changed 1
}

// series is the caller's result of a plan's parts, for example the names of the series that it
// found.
type series []string

func (s series) Bytes() int64 { return int64(16 * len(s)) }

// The result of a whole plan is looked up before the first part is read, and stored when it is
// wanted.
func ExampleLookupPlan() {
	table := &versioned{Store: &operatortest.Store{}, version: "1"}
	plan := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), 1_356_998_400, 1_357_002_000)
	cache := resultcache.New(1<<20, nil)

	for range 3 {
		l := resultcache.LookupPlan(context.Background(), cache, table, &plan, "names", nil)
		fmt.Println("found:", l.Found(), "wanted:", l.Wanted())
		if l.Wanted() {
			l.Store(series{"host=a", "host=b"})
		}
	}
	// Output:
	// found: <nil> wanted: false
	// found: <nil> wanted: true
	// found: [host=a host=b] wanted: false
}
