package operator_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// keysOf returns the keys of a part's rows in the order in which they are found. It keeps those of all calls until the
// end, and checks that no call is without keys.
func keysOf(t failer, from store.Reader, part *scanplan.Part) (keys []string) {
	t.Helper()
	var all [][]byte
	if err := operator.Keys(context.Background(), from, part, func(keys [][]byte) error {
		if len(keys) == 0 {
			t.Errorf("called without keys")
		}
		all = append(all, keys...)
		return nil
	}); err != nil {
		t.Fatalf("Keys: %v", err)
	}
	for _, key := range all {
		keys = append(keys, string(key))
	}
	return keys
}

// keysIn returns the keys of a store's rows that are in a part and its plan's hours, and of one of the spans.
func keysIn[T any](m *operatortest.Store, part *scanplan.Part, spans map[string]T) (keys []string) {
	r, p := store.KeyRange{Start: part.Range.Start, Stop: part.Range.Stop}, &part.Plan
	for _, row := range m.Rows {
		key, _ := p.Schema.ParseRowKey(row.Key)
		at := int64(key.BaseTime)
		_, ok := spans[string(p.Schema.AppendSpan(nil, row.Key))]
		if ok && r.Contains(row.Key) && at >= p.From && at < p.To {
			keys = append(keys, string(row.Key))
		}
	}
	return keys
}

// The keys of a part end with the first error: of its plan, of the store, of a row whose key is none, or of the caller.
// Nothing is deleted that was not found without one.
func TestKeys_errors(t *testing.T) {
	broken := errors.New("disk on fire")
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3*3600)
	for name, c := range map[string]struct {
		part   *scanplan.Part
		change func(*operatortest.Store)
		each   error
		calls  int
		want   string
	}{
		"a bad part": {&scanplan.Part{Plan: plan}, func(*operatortest.Store) {}, nil, 0,
			"scanplan: part from  to  is in none of the plan's ranges"},
		"the store": {whole(plan), func(m *operatortest.Store) {
			m.Fail = func(_ context.Context, block int) error {
				if block == 1 {
					return broken
				}
				return nil
			}
		}, nil, 1, "disk on fire: EOF"},
		"no key": {whole(plan), func(m *operatortest.Store) {
			m.Cell(slices.Concat(metric, []byte{80, 0xe2, 0x30}), []byte{0, 0}, []byte{1}, 1)
		}, nil, 1, "table tsdb: encoding: row key 00 00 01 50 E2 30 has 6 bytes, want 7 and a multiple of 6 for tags"},
		"the caller": {whole(plan), func(*operatortest.Store) {}, broken, 1, "disk on fire"},
	} {
		m := table(series(operatortest.Every(base, base+3*3600, 1800, identity), operatortest.Tag(1, 1)))
		m.BlockRows = 1
		c.change(m)
		calls := 0
		err := operator.Keys(t.Context(), m, c.part, func(keys [][]byte) error {
			calls++
			if !bytes.Equal(keys[0], m.Rows[0].Key) {
				t.Errorf("%s: key %x", name, keys[0])
			}
			return c.each
		})
		if err == nil || err.Error() != c.want || calls != c.calls {
			t.Errorf("%s: %d calls, %v, want %d, %s", name, calls, err, c.calls, c.want)
		}
		if n := m.Open.Load(); n != 0 {
			t.Errorf("%s: %d scanners are open", name, n)
		}
	}
}
