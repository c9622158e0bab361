package tools

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// Names that do not fit into memory are deleted some at a time, whatever the widths of their UIDs, and those in use
// stay. If the UIDs of rows do not fit nothing is deleted.
func TestReclaim_many(t *testing.T) {
	for _, widths := range [][3]int{{3, 3, 3}, {1, 2, 8}} {
		schema := encoding.DefaultSchema()
		schema.MetricWidth, schema.TagKWidth, schema.TagVWidth = widths[0], widths[1], widths[2]
		opentest.Both(t, tablestest.Specs(schema), func(t *testing.T, st store.Store) {
			x := &uidWorker{work: worked(st, schema), say: func(string) {}, bytes: 3000}
			var key []byte
			for n := range 40 {
				for _, kind := range everyKind {
					u, err := x.Names.Assign(t.Context(), kind, fmt.Sprint("name", n))
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case n > 3:
					case kind == encoding.UIDMetric:
						key = append([]byte(u), 0x50, 0xe2, 0x27, 0)
					default:
						key = append(key, u...)
					}
				}
				if n <= 3 {
					row := store.Mutation{Row: key, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}}
					if err := st.Apply(t.Context(), "tsdb", []store.Mutation{row}); err != nil {
						t.Fatal(err)
					}
				}
			}

			batches := 0
			x.progress = func(line string) {
				if strings.Contains(line, "names in no row: ") {
					batches++
				}
			}
			done, err := x.reclaim(t.Context(), uidWork{Command: "reclaim", NoTSDs: true, YesDelete: 1000})
			want := "names: 40 metrics, 40 tagk, 40 tagv; deleted: 36 metrics, 36 tagk, 36 tagv"
			if err != nil || done.Lines[len(done.Lines)-1] != want || done.Lines[0] != "and 8 more" || batches < 10 {
				t.Errorf("got %v, %v in %d batches, want %s in many", done, err, batches, want)
			}
			for n := range 40 {
				for _, kind := range everyKind {
					_, err := x.Names.Resolve(t.Context(), kind, fmt.Sprint("name", n))
					var none *uid.NoSuchNameError
					if gone := errors.As(err, &none); gone != (n > 3) || err != nil && !gone {
						t.Errorf("%s name%d: %v", kind, n, err)
					}
				}
			}

			x.bytes = 300
			_, err = x.reclaim(t.Context(), uidWork{Command: "reclaim", NoTSDs: true})
			if !errors.Is(err, wholetable.ErrMuch) {
				t.Errorf("without memory: got %v, want that it is too much", err)
			}
		})
	}
}

// worked is what a command works on in a store.
func worked(st store.Store, schema encoding.Schema) *work {
	x := &work{Served: Served{Store: st, Settings: Settings{
		Schema:      schema,
		KnownWithin: 1,
		Tables:      tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"},
	}}}
	x.Names = uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	return x
}
