package background

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
)

// step is the time that one interval of older hours covers, in seconds; more where hours are
// empty, up to maxStep: one point with a wrong time makes for years of them.
const (
	step    = 6 * encoding.RowSeconds
	maxStep = 365 * 24 * encoding.RowSeconds
)

// secondLook is how long after an hour its rows are read a second time, in seconds.
const secondLook = 24 * encoding.RowSeconds

// key is a row key, in hex as JSON.
type key []byte

// MarshalText returns the key in hex.
func (k key) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(k)), nil }

// UnmarshalText reads a key in hex.
func (k *key) UnmarshalText(text []byte) (err error) {
	if len(text) > 0 {
		*k, err = hex.DecodeString(string(text))
	}
	return err
}

// span is an interval of hours: from one time to before another, in seconds since 1970.
type span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// progress is how far the rows of a region are compacted, the state of its lease.
type progress struct {
	// Stop is the first key after the region, empty at the table's end.
	Stop key `json:"stop"`
	// Done are the hours that are done, ascending, with a hole between each two.
	Done []span `json:"done"`
	// Oldest is the time of the region's oldest row, as of the last interval; 0 before the first
	// interval.
	Oldest int64 `json:"oldest"`
	// Again is the time before which hours were read a second time, or need not be.
	Again int64 `json:"again"`
	// Step is the time that the next interval of older hours covers, if more than step.
	Step int64 `json:"step,omitempty"`
	// Work is the interval that has begun.
	Work *work `json:"work,omitempty"`
}

// work is an interval of hours of a region.
type work struct {
	span
	Second bool  `json:"second,omitempty"` // the hours are done already
	At     key   `json:"at"`               // rows before it are done
	Oldest int64 `json:"oldest"`           // time of the oldest row that was seen
	Rows   int64 `json:"rows"`             // that were read
}

// parseProgress reads the state of a lease, nil if there is none yet.
func parseProgress(state []byte) (p progress, err error) {
	if len(state) == 0 {
		return progress{}, nil
	}
	if err := json.Unmarshal(state, &p); err != nil {
		return p, fmt.Errorf("cannot read the state of the compaction: got %.200q: %w", state, err)
	}
	return p, nil
}

// fit makes a region's progress of what is known of keys up to p.Stop.
func (p *progress) fit(stop []byte) {
	if len(p.Stop) > 0 && (len(stop) == 0 || bytes.Compare(stop, p.Stop) > 0) {
		*p = progress{}
	}
	p.Stop = stop
}

// next returns the interval to work on, if all hours that end up to sealed may be compacted;
// nil if there is none.
func (p *progress) next(sealed int64) *work {
	if p.Work != nil {
		return p.Work
	}
	begin := func(from, to int64, second bool) *work {
		p.Work = &work{span: span{from, to}, Second: second, Oldest: math.MaxInt64}
		return p.Work
	}
	if len(p.Done) == 0 {
		p.Again = sealed
		return begin(sealed-step, sealed, false)
	}

	newest := p.Done[len(p.Done)-1]
	if newest.To < sealed {
		return begin(max(newest.To, sealed-step), sealed, false)
	}
	if to := sealed - secondLook; p.Again < to {
		return begin(p.Again, min(p.Again+step, to), true)
	}
	// Older hours, from the newest that are not done.
	for i := len(p.Done) - 1; i >= 0; i-- {
		floor := p.Oldest - p.Oldest%encoding.RowSeconds
		if i > 0 {
			floor = max(floor, p.Done[i-1].To)
		}
		if from := p.Done[i].From; from > floor {
			return begin(max(floor, from-max(p.Step, step)), from, false)
		}
	}
	return nil
}

// finish notes that the interval that has begun is done.
func (p *progress) finish() {
	w := p.Work
	p.Work = nil
	// A region without rows has no older ones either.
	p.Oldest = min(w.Oldest, w.To)
	if w.Second {
		p.Again = w.To
		return
	}

	p.Step = 0
	if w.Rows == 0 {
		p.Step = min(2*(w.To-w.From), maxStep)
	}
	p.Done = append(slices.Clone(p.Done), w.span)
	slices.SortFunc(p.Done, func(a, b span) int { return int(a.From - b.From) })
	merged := p.Done[:1]
	for _, s := range p.Done[1:] {
		if last := &merged[len(merged)-1]; s.From <= last.To {
			last.To = max(last.To, s.To)
		} else {
			merged = append(merged, s)
		}
	}
	p.Done = merged
}
