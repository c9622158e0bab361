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
		u := Usage{Kind: kind, Used: c.Given[kind], Most: mostUIDs(d.cfg.Schema.UIDWidth(kind))}
		if u.New, err = d.givenSince(ctx, kind, u.Used, since); err != nil {
			return nil, err
		}
		usage[i] = u
	}
	return usage, nil
}

// neighbors is how many mappings decide together when a UID was given. Some numbers have no name, after a lost race
// or a deletion, and a name that was changed has the time of that change.
const neighbors = 16

// givenSince returns how many UIDs were given since a time, of those with the numbers 1 to last. Numbers rise, and
// the time of a reverse mapping is that at which its UID was given. So it searches for the last older one: from
// the end in steps that double, because few are new on most days, then by halves.
func (d *Dictionary) givenSince(ctx context.Context, kind encoding.UIDKind, last int64,
	since time.Time) (int64, error) {
	older, newer := last, last+1 // numbers up to older were given before, those from newer on since then
	for step := int64(1); older > 0; step *= 2 {
		before, err := d.givenBefore(ctx, kind, older, last, since)
		if err != nil {
			return 0, err
		}
		if before {
			break
		}
		newer, older = older, max(0, older-step)
	}
	for newer-older > 1 {
		middle := older + (newer-older)/2
		before, err := d.givenBefore(ctx, kind, middle, last, since)
		if err != nil {
			return 0, err
		}
		if before {
			older = middle
		} else {
			newer = middle
		}
	}
	return last - older, nil
}

// givenBefore reports whether one of the UIDs from first on, neighbors of them, has a mapping of before a time.
// If none has a mapping, they were deleted: then it reports true, except at the end, where the next ones decide.
func (d *Dictionary) givenBefore(ctx context.Context, kind encoding.UIDKind, first, last int64,
	since time.Time) (bool, error) {
	var uids [][]byte
	for n := first; n < first+neighbors && n <= last; n++ {
		u, err := encoding.AppendUID(nil, uint64(n), d.cfg.Schema.UIDWidth(kind))
		if err != nil {
			return false, err
		}
		uids = append(uids, u)
	}
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, uids)
	if err != nil {
		return false, fmt.Errorf("uid: cannot read when %d %s were given: %w", len(uids), kind, err)
	}
	found := false
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) != kind.String() {
				continue
			}
			if c.Timestamp < since.UnixMilli() {
				return true, nil
			}
			found = true
		}
	}
	return !found && len(uids) == neighbors, nil
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
