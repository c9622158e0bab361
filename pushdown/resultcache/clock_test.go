package resultcache

import (
	"slices"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// clock measures times and returns their median.
type clock []time.Duration

func (c *clock) time(f func()) {
	began := time.Now()
	f()
	*c = append(*c, time.Since(began))
}

func (c clock) median() time.Duration {
	slices.Sort(c)
	return c[len(c)/2]
}

// load fills a table with 200 series, an hour of each as one append.
func load(b *testing.B, st *pebble.Store, s encoding.Schema) {
	spec := store.TableSpec{Name: operatortest.Table, Families: []store.FamilySpec{{Name: encoding.FamilyData}}}
	if err := st.CreateTable(b.Context(), spec); err != nil {
		b.Fatal(err)
	}
	for series := range 200 {
		var batch []store.Mutation
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1+series)})
		for hour := range int64(hours) {
			m := store.Mutation{
				Kind:      store.Append,
				Row:       s.AppendRowKey(nil, operatortest.UID(1), uint32(base+hour*3600), tags),
				Family:    encoding.FamilyData,
				Qualifier: encoding.AppendColumn,
			}
			for i := range int64(360) {
				q, value := operatortest.Encode((base+hour*3600+10*i)*1000, encoding.IntValue(i%100))
				m.Value = encoding.AppendEntry(m.Value, q, value)
			}
			batch = append(batch, m)
		}
		if err := st.Apply(b.Context(), operatortest.Table, batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
