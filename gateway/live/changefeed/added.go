package changefeed

import (
	"errors"

	"downpour/encoding"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// extend takes in what was written, as far as the table can without reading, and
// returns the keys of the rows that must be read.
//
// A row is read from its first change on that is something else than points by
// themselves: a write that came before such a change may be told after it, and
// would bring back what the change has removed. What a watch tells that is opened
// afterwards comes later, so a table made anew begins with none.
func (s *sub) extend(changes []store.Change) (read [][]byte, err error) {
	for i := range changes {
		c := &changes[i]
		taken, err := s.applyChange(c)
		if err != nil {
			return nil, err
		}
		if !taken {
			read = append(read, c.Row)
		}
	}
	return read, nil
}

// applyChange takes in the change of one row, false if it must be read.
func (s *sub) applyChange(c *store.Change) (taken bool, err error) {
	plan := s.as.Plan
	k, err := plan.Schema.ParseRowKey(c.Row)
	if err != nil {
		return false, nil // reading it tells what is wrong
	}
	s.span = plan.Schema.AppendSpan(s.span[:0], c.Row)
	plain, ordered := s.added(c, k.BaseTime)
	if _, is := s.reread[string(c.Row)]; plain && ordered && !is {
		if taken, err := s.table.Extend(s.span, s.points); taken || err != nil {
			return taken, err
		}
	}
	if !s.table.Known(s.span) && !operator.Admits(plan, s.span) {
		return true, nil // reading it would make nothing of it
	}
	if !plain {
		return false, s.rereadFromNow(c.Row)
	}
	return false, nil
}

// mostReread bounds the rows that are known to be read each time.
const mostReread = 64 << 10

// errCrowded says that a table and its watch are to be made anew.
var errCrowded = errors.New("follow: too many rows with changes that are no points")

func (s *sub) rereadFromNow(row []byte) error {
	if s.reread == nil {
		s.reread = map[string]struct{}{}
	}
	s.reread[string(row)] = struct{}{}
	if len(s.reread) > mostReread {
		return errCrowded
	}
	return nil
}

// added decodes the points that were written. plain tells that the writes are
// nothing but points by themselves, ordered that they are in order of time.
func (s *sub) added(c *store.Change, base uint32) (plain, ordered bool) {
	s.points.Reset()
	if c.Cut {
		return false, false
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		s.decoder.Reset(base)
		if !single(w) || s.decoder.Add(w.Qualifier, w.Value, w.Timestamp) != nil || s.decoder.Finish(&s.points) != nil {
			return false, false
		}
	}
	return true, ascending(s.points.Time)
}

// single tells whether a write adds points and can take none away: an append to
// the column for it, or a cell with one point.
func single(w *store.Mutation) bool {
	if w.Family != encoding.FamilyData {
		return false
	}
	if w.Kind == store.Append {
		return string(w.Qualifier) == string(encoding.AppendColumn)
	}
	return w.Kind == store.Put && offsetOf(w.Qualifier) != everywhere
}

func ascending(times []int64) bool {
	for i := 1; i < len(times); i++ {
		if times[i] <= times[i-1] {
			return false
		}
	}
	return true
}
