package uid

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"downpour/encoding"
)

// Counters are what the UID table counts, and the generation of names before that was read.
type Counters struct {
	// Given is the last number of each kind that was given. UIDs that are drawn at random, as OpenTSDB can do it
	// for metrics, are not counted.
	Given [3]int64
	// Changes counts changes of names that processes have announced, see Tell.
	Changes    int64
	Generation uint64
}

var kinds = [...]encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV}

// Counters reads the counters.
func (d *Dictionary) Counters(ctx context.Context) (c Counters, err error) {
	c.Generation = d.Generation()
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyID, [][]byte{encoding.CounterRow})
	if err != nil {
		return c, fmt.Errorf("uid: cannot read the counters: %w", err)
	}
	for _, r := range rows {
		for _, kind := range kinds {
			if b := column(r, kind); len(b) == 8 {
				c.Given[kind] = int64(binary.BigEndian.Uint64(b))
			}
		}
		for _, cell := range r.Cells {
			if string(cell.Qualifier) == encoding.ChangesQualifier {
				if c.Changes, err = encoding.ParseCounter(cell.Value); err != nil {
					return c, err
				}
			}
		}
	}
	return c, nil
}

// Usage is how many UIDs of a kind there are. UIDs that are drawn at random are not counted.
type Usage struct {
	Kind encoding.UIDKind
	Used int64 // that were given, by anybody: those of the numbers 1 to Used
	Most int64 // that there can be
	New  int64 // that were given since the time of the question: the last of the used ones
}

// Usage returns how many UIDs of each kind there are, and how many of them were given since a time.
func (d *Dictionary) Usage(ctx context.Context, since time.Time) ([]Usage, error) {
	c, err := d.Counters(ctx)
	if err != nil {
		return nil, err
	}
	usage := make([]Usage, len(kinds))
	for i, kind := range kinds {
		u := Usage{Kind: kind, Most: mostUIDs(d.cfg.Schema.UIDWidth(kind))}
		u.Used = min(c.Given[kind], u.Most) // the counter goes on where no UID is left
		if u.New, err = d.givenSince(ctx, kind, u.Used, since); err != nil {
			return nil, err
		}
		usage[i] = u
	}
	return usage, nil
}

const (
	// probes is at how many numbers one read looks: six reads find one of 16.7 million.
	probes = 15
	// neighbors is how many mappings decide together whether a UID is old. Some numbers have no name, after a lost
	// race or a deletion, and a name that was changed has the time of that change.
	neighbors = 16
)

// givenSince returns how many UIDs were given since a time, of those with the numbers 1 to last. Numbers rise, and
// the time of a reverse mapping is that at which its UID was given. So it searches for the last number that is old.
func (d *Dictionary) givenSince(ctx context.Context, kind encoding.UIDKind, last int64,
	since time.Time) (int64, error) {
	older, newer := int64(0), last+1 // all up to older are old, all from newer on are not
	for newer-older > 1 {
		var first []int64
		step := (newer - older + probes) / (probes + 1)
		for n := older + step; n < newer; n += step {
			first = append(first, n)
		}
		times, err := d.givenAt(ctx, kind, first, last)
		if err != nil {
			return 0, err
		}

		for _, n := range slices.Backward(first) {
			if old(times, n, last, since.UnixMilli()) {
				older = n
				break
			}
			newer = n
		}
	}
	return max(0, last-older), nil
}

// givenAt returns the times, in ms, of the reverse mappings of some UIDs and of their neighbors up to last, by number.
func (d *Dictionary) givenAt(ctx context.Context, kind encoding.UIDKind, first []int64,
	last int64) (map[int64]int64, error) {
	numbers := map[string]int64{}
	var uids [][]byte
	for _, f := range first {
		for n := f; n < f+neighbors && n <= last; n++ {
			u, err := encoding.AppendUID(nil, uint64(n), d.cfg.Schema.UIDWidth(kind))
			if err != nil {
				return nil, err
			}
			if _, ok := numbers[string(u)]; !ok {
				numbers[string(u)] = n
				uids = append(uids, u)
			}
		}
	}

	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, uids)
	if err != nil {
		return nil, fmt.Errorf("uid: cannot read when %d %s were given: %w", len(uids), kind, err)
	}
	times := map[int64]int64{}
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) == kind.String() {
				times[numbers[string(r.Key)]] = c.Timestamp
			}
		}
	}
	return times, nil
}

// old reports whether one of a number and its neighbors has a mapping of before a time. Where none has one, all were
// deleted: then they are old, except at the end, where too few are left to say so.
func old(times map[int64]int64, first, last, since int64) bool {
	found := false
	for n := first; n < first+neighbors && n <= last; n++ {
		at, ok := times[n]
		if ok && at < since {
			return true
		}
		found = found || ok
	}
	return !found && first+neighbors-1 <= last
}

// Numbered returns the names whose UIDs have these numbers, by number, as the table has them. A number is left out
// that has no name, or whose name has another UID, as after a lost race.
func (d *Dictionary) Numbered(ctx context.Context, kind encoding.UIDKind,
	numbers []uint64) (map[uint64]string, error) {
	named := map[uint64]string{}
	for part := range slices.Chunk(numbers, namesPerRead) {
		keys := make([][]byte, len(part))
		for i, n := range part {
			var err error
			if keys[i], err = encoding.AppendUID(nil, n, d.cfg.Schema.UIDWidth(kind)); err != nil {
				return nil, err
			}
		}
		names, err := d.readNames(ctx, kind, keys)
		if err != nil {
			return nil, err
		}
		rows := rowsOf(slices.Collect(maps.Values(names)))
		if len(rows) == 0 {
			continue
		}
		uids, err := d.readForward(ctx, kind, rows) // past the cache, which another process may have changed
		if err != nil {
			return nil, err
		}
		for i, n := range part {
			if name, ok := names[string(keys[i])]; ok && bytes.Equal(uids[name], keys[i]) {
				named[n] = name
			}
		}
	}
	return named, nil
}

// mostUIDs is how many UIDs of a width there are; 0 is none.
func mostUIDs(width int) int64 {
	if width >= 8 {
		return math.MaxInt64
	}
	return int64(1)<<(8*width) - 1
}
