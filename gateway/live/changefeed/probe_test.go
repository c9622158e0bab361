package changefeed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// broken is a store that can be watched, whose rows cannot be read from a key on.
type broken struct {
	*pebble.Store
	from  []byte // nil: all is well
	scans int
}

func (b *broken) Features() store.Features { return b.Store.Features() }

func (b *broken) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	b.scans++
	sc, err := b.Store.Scan(ctx, s)
	return &brokenRows{Scanner: sc, of: b}, err
}

type brokenRows struct {
	store.Scanner
	of *broken
}

func (b *brokenRows) Next() ([]store.Row, error) {
	rows, err := b.Scanner.Next()
	for _, r := range rows {
		if b.of.from != nil && bytes.Compare(r.Key, b.of.from) >= 0 {
			return nil, &fs.PathError{Op: "read", Path: "000123.sst", Err: fs.ErrNotExist}
		}
	}
	return rows, err
}

// A subscriber learns that rows cannot be read any more, although nobody writes: at the next look
// if it is all rows, else when a look comes to them.
func TestProbe(t *testing.T) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	const series = 300
	var last []byte
	for i := range series {
		m := w.point(w.clock.UnixMilli(), true, encoding.IntValue(1), "host", fmt.Sprintf("h%03d", i))
		last = m.Row
		w.apply(m)
	}
	over := &broken{Store: w.store}
	s := w.openSource(`{"start":"1h-ago","queries":[{"metric":"m","aggregator":"sum"}]}`, over, Poll{})
	t.Cleanup(s.Close)
	tick := func(after time.Duration) error {
		w.clock = w.clock.Add(after)
		_, err := s.Next(t.Context(), w.clock)
		return err
	}
	if err := tick(0); err != nil {
		t.Fatal(err)
	}
	opened := over.scans
	for range 100 {
		if err := tick(100 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if n := over.scans - opened; n != 3 {
		t.Errorf("%d scans in 10 s without news, want 3", n)
	}
	for name, from := range map[string][]byte{"all rows": {}, "the last row": last} {
		over.from = from
		looks := 0
		var err error
		for ; err == nil && looks < series; looks++ {
			err = tick(probeEvery)
		}
		if !errors.Is(err, dispatch.ErrUnreachable) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want ErrUnreachable with the cause", name, err)
		}
		if most := series/probeRows + 2; looks > most || len(from) == 0 && looks > 1 {
			t.Errorf("%s: found at look %d, want 1 for all rows, %d at most", name, looks, most)
		}
		over.from = nil
		if err := tick(time.Second); err != nil {
			t.Errorf("%s, readable again: got %v, want an answer", name, err)
		}
	}
}
