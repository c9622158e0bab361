package rollupjob

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// Records have a row each in the table of state, and one cell in it:
//
//	rollup/tsdb-rollup-1h/000001/03   s:record   {"stretches":[…]}
//
// which is table, metric and salt. Its value is replaced on the condition that it is the one
// that was read.
const (
	recordPrefix = "rollup/"
	recordColumn = "record"
)

// record is what is known of a table's rollups of a metric in one salt bucket.
type record struct {
	Stretches []stretch `json:"stretches"` // ascending, disjoint
}

// stretch is a stretch of time with rollups that have the same proof.
type stretch struct {
	Made string `json:"made"` // see layout.made
	// Raw is the mark of the raw rows, from before they were read; empty if there is none,
	// and then Why says why.
	Raw     string `json:"raw,omitempty"`
	Resting bool   `json:"resting,omitempty"` // see store.Mark
	Why     string `json:"why,omitempty"`
	// Rolled is the mark of the rollup rows, from before they were read back; empty until then.
	Rolled        string  `json:"rolled,omitempty"`
	RolledResting bool    `json:"rolledResting,omitempty"`
	Pieces        []piece `json:"pieces"` // ascending, without a hole between them
}

// piece is what was rolled up at a time.
type piece struct {
	From   int64  `json:"from"` // s since 1970
	To     int64  `json:"to"`
	Digest []byte `json:"digest"` // of the cells
	// ReadRaw says why queries read the raw rows all the same; empty if they need not.
	ReadRaw string `json:"readRaw,omitempty"`
}

func (p *piece) times() Range { return Range{p.From, p.To} }

// times returns the time of the stretch.
func (s *stretch) times() Range { return Range{s.Pieces[0].From, s.Pieces[len(s.Pieces)-1].To} }

// recordKey returns the key of a record's row.
func recordKey(l *layout, metric encoding.UID, bucket int) []byte {
	return []byte(recordPrefix + l.table + "/" + hex.EncodeToString(metric) + "/" + hex.EncodeToString(l.schema.AppendSalt(nil, bucket)))
}

// readRecords reads the records of a metric, by salt bucket, with the values that they have
// in the table. A record that does not exist is empty, and its value nil.
func readRecords(ctx context.Context, from store.Reader, t Tables, l *layout, metric encoding.UID, buckets []int) (records []record, values [][]byte, err error) {
	records, values = make([]record, len(buckets)), make([][]byte, len(buckets))
	keys, at := make([][]byte, len(buckets)), map[string]int{}
	for i, bucket := range buckets {
		keys[i] = recordKey(l, metric, bucket)
		at[string(keys[i])] = i
	}

	rows, err := from.Get(ctx, t.State, lease.Family, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read what is recorded of rollups: %w", err)
	}
	for _, row := range rows {
		i, ok := at[string(row.Key)]
		for _, c := range row.Cells {
			if !ok || string(c.Qualifier) != recordColumn {
				continue
			}
			values[i] = bytes.Clone(c.Value)
			if err := json.Unmarshal(c.Value, &records[i]); err != nil {
				return nil, nil, fmt.Errorf("row %q of table %s is no record of rollups: %w", row.Key, t.State, err)
			}
			if err := records[i].validate(); err != nil {
				return nil, nil, fmt.Errorf("row %q of table %s: %w", row.Key, t.State, err)
			}
		}
	}
	return records, values, nil
}

// validate returns an error unless stretches and pieces follow one another: what is read
// relies on it.
func (r *record) validate() error {
	last := int64(0)
	for i := range r.Stretches {
		s := &r.Stretches[i]
		if len(s.Pieces) == 0 || s.Pieces[0].From < last {
			return fmt.Errorf("stretch %d has %d pieces or begins before %d, want some and ascending ones", i, len(s.Pieces), last)
		}
		last = s.Pieces[0].From
		for k, p := range s.Pieces {
			if p.From != last || p.To <= p.From {
				return fmt.Errorf("stretch %d, piece %d: got %d to %d, want it to follow %d", i, k, p.From, p.To, last)
			}
			last = p.To
		}
	}
	return nil
}

// replace puts stretches in place of whatever lies in the times within.
func (r *record) replace(within []Range, with ...stretch) {
	var out []stretch
	for _, s := range r.Stretches {
		kept := slices.DeleteFunc(slices.Clone(s.Pieces), func(p piece) bool {
			return slices.ContainsFunc(within, func(r Range) bool { return !p.times().intersect(r).empty() })
		})
		out = append(out, runs(s, kept)...)
	}
	out = append(out, with...)
	slices.SortFunc(out, func(a, b stretch) int { return cmp.Compare(a.Pieces[0].From, b.Pieces[0].From) })

	r.Stretches = out[:0]
	for _, s := range out {
		if n := len(r.Stretches); n > 0 && r.Stretches[n-1].continues(&s) {
			last := &r.Stretches[n-1]
			last.Pieces = slices.Concat(last.Pieces, s.Pieces)
			continue
		}
		r.Stretches = append(r.Stretches, s)
	}
}

// continues tells whether a stretch that comes later is the rest of this one.
func (s *stretch) continues(later *stretch) bool {
	return s.times().To == later.Pieces[0].From && s.Made == later.Made && s.Raw == later.Raw && s.Why == later.Why && s.Rolled == later.Rolled
}

// runs returns a stretch with ascending pieces in place of its own as several, each without a
// hole.
func runs(s stretch, pieces []piece) (out []stretch) {
	for i, p := range pieces {
		if i == 0 || p.From != pieces[i-1].To {
			s.Pieces = nil
			out = append(out, s)
		}
		last := &out[len(out)-1]
		last.Pieces = append(last.Pieces, p)
	}
	return out
}
