package rollupjob

import (
	"cmp"
	"fmt"
	"slices"
)

// record is what is known of a table's rollups of a metric in one salt bucket.
type record struct {
	Sections []section `json:"stretches"` // ascending, disjoint
}

// section is a time with rollups that have the same proof.
type section struct {
	Settings string `json:"made"` // what determined the rollups, as layout.settings
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

// times returns the time of the section.
func (s *section) times() Range { return Range{s.Pieces[0].From, s.Pieces[len(s.Pieces)-1].To} }

// validate returns an error unless sections and pieces follow one another: readers rely on it.
func (r *record) validate() error {
	last := int64(0)
	for i := range r.Sections {
		s := &r.Sections[i]
		if len(s.Pieces) == 0 || s.Pieces[0].From < last {
			return fmt.Errorf("section %d has %d pieces or begins before %d, want some and ascending ones", i,
				len(s.Pieces), last)
		}
		last = s.Pieces[0].From
		for k, p := range s.Pieces {
			if p.From != last || p.To <= p.From {
				return fmt.Errorf("section %d, piece %d: got %d to %d, want it to follow %d", i, k, p.From, p.To, last)
			}
			last = p.To
		}
	}
	return nil
}

// endOfPiece returns the end of the piece that holds a time and something before it, 0 if there is
// none: a run with another grain has found more of it sealed.
func (r *record) endOfPiece(at int64) int64 {
	for _, s := range r.Sections {
		for _, p := range s.Pieces {
			if p.From < at && at < p.To {
				return p.To
			}
		}
	}
	return 0
}

// replace puts sections in place of everything in the times within.
func (r *record) replace(within []Range, with ...section) {
	var out []section
	for _, s := range r.Sections {
		kept := slices.DeleteFunc(slices.Clone(s.Pieces), func(p piece) bool {
			return slices.ContainsFunc(within, func(r Range) bool { return !p.times().intersect(r).empty() })
		})
		out = append(out, runs(s, kept)...)
	}
	out = append(out, with...)
	slices.SortFunc(out, func(a, b section) int { return cmp.Compare(a.Pieces[0].From, b.Pieces[0].From) })

	r.Sections = nil
	for _, s := range out {
		r.add(s)
	}
}

// add adds a section after all others, and may append to its pieces.
func (r *record) add(s section) {
	if n := len(r.Sections); n > 0 && r.Sections[n-1].continues(&s) {
		last := &r.Sections[n-1]
		last.Pieces = append(last.Pieces, s.Pieces...)
		return
	}
	r.Sections = append(r.Sections, s)
}

// continues reports whether a later section continues this one.
func (s *section) continues(later *section) bool {
	return s.times().To == later.Pieces[0].From && s.sameProof(later)
}

// sameProof reports whether two sections have the same proof.
func (s *section) sameProof(o *section) bool {
	return s.Settings == o.Settings && s.Raw == o.Raw && s.Why == o.Why && s.Rolled == o.Rolled
}

// runs returns a section with ascending pieces in place of its own as several, each without a
// hole.
func runs(s section, pieces []piece) (out []section) {
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
