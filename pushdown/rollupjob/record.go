package rollupjob

import (
	"cmp"
	"fmt"
	"slices"
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

// piece is a time that was rolled up as a unit.
type piece struct {
	From   int64  `json:"from"` // s since 1970
	To     int64  `json:"to"`
	Digest []byte `json:"digest"` // of the cells
	// ReadRaw is why queries must still read the raw rows; empty if they need not.
	ReadRaw string `json:"readRaw,omitempty"`
}

// valuesStay is piece.ReadRaw if values are kept that were made of more points than the raw rows
// have, see permitted. Its digest is that of the table's actual cells: while neither they nor the
// raw rows change, there is nothing to do.
const valuesStay = "rollups stay that were made of more points than the raw rows have now"

func (p *piece) times() Range { return Range{p.From, p.To} }

// times returns the time of the stretch.
func (s *stretch) times() Range { return Range{s.Pieces[0].From, s.Pieces[len(s.Pieces)-1].To} }

// validate returns an error unless stretches and pieces follow one another: readers rely on it.
func (r *record) validate() error {
	last := int64(0)
	for i := range r.Stretches {
		s := &r.Stretches[i]
		if len(s.Pieces) == 0 || s.Pieces[0].From < last {
			return fmt.Errorf("stretch %d has %d pieces or begins before %d, want some and ascending ones", i,
				len(s.Pieces), last)
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

// endOfPiece returns the end of the piece that holds a time and something before it, 0 if there is
// none: a run with another grain has found more of it sealed.
func (r *record) endOfPiece(at int64) int64 {
	for _, s := range r.Stretches {
		for _, p := range s.Pieces {
			if p.From < at && at < p.To {
				return p.To
			}
		}
	}
	return 0
}

// replace puts stretches in place of everything in the times within.
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

	r.Stretches = nil
	for _, s := range out {
		r.add(s)
	}
}

// add adds a stretch after all others, and may append to its pieces.
func (r *record) add(s stretch) {
	if n := len(r.Stretches); n > 0 && r.Stretches[n-1].continues(&s) {
		last := &r.Stretches[n-1]
		last.Pieces = append(last.Pieces, s.Pieces...)
		return
	}
	r.Stretches = append(r.Stretches, s)
}

// continues reports whether a later stretch continues this one.
func (s *stretch) continues(later *stretch) bool {
	return s.times().To == later.Pieces[0].From && s.alike(later)
}

// alike reports whether two stretches have the same proof.
func (s *stretch) alike(o *stretch) bool {
	return s.Made == o.Made && s.Raw == o.Raw && s.Why == o.Why && s.Rolled == o.Rolled
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
