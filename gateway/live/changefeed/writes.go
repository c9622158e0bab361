package changefeed

import (
	"downpour/encoding"
	"downpour/gateway/live/incremental"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// extend applies writes as far as the view can without reading, and returns the keys of the rows
// that must be read.
//
// From its first change on that is more than added points, a row is read at every
// change. A watch may report a write after a change that became visible later, and
// applying the write then would restore what the change has removed. A new watch
// reports only changes after its opening, so a view that is loaded again begins without
// such rows.
func (s *subQuery) extend(changes []store.Change) (toRead [][]byte, err error) {
	for i := range changes {
		c := &changes[i]
		taken, err := s.applyChange(c)
		if err != nil {
			return nil, err
		}
		if !taken {
			toRead = append(toRead, c.Row)
		}
	}
	return toRead, nil
}

// applyChange takes in the change of one row. It returns false if the row must be
// read.
func (s *subQuery) applyChange(c *store.Change) (taken bool, err error) {
	plan := s.prepared.Plan
	k, err := plan.Schema.ParseRowKey(c.Row)
	if err != nil {
		return false, nil // reading the row gives the error that a query would give
	}

	s.span = plan.Schema.AppendSpan(s.span[:0], c.Row)
	isOlder := int64(k.BaseTime) < s.view.NewerFrom() //fault:older-row-unseen-by-a-continued-view TestLaw_olderHours
	if isOlder && (s.view.Known(s.span) || operator.Admits(plan, s.span)) {
		return false, incremental.ErrOlderChanged
	}
	onlyPoints, ascending := s.decodeWrites(c, k.BaseTime)
	if _, mustRead := s.alwaysRead[string(c.Row)]; onlyPoints && ascending && !mustRead {
		if taken, err := s.view.Extend(s.span, s.points); taken || err != nil {
			return taken, err
		}
	}

	if !s.view.Known(s.span) && !operator.Admits(plan, s.span) {
		return true, nil // the plan's filters refuse the row, with any contents
	}
	// Points of a write that is reported later might be among what this change has removed,
	// see extend.
	if !onlyPoints {
		return false, s.readFromNowOn(c.Row)
	}
	return false, nil
}

// maxAlwaysRead bounds the rows of subQuery.alwaysRead.
const maxAlwaysRead = 64 << 10

// readFromNowOn makes a row be read at every change from now on. With a finder that knows no writes
// every row is read anyway, so nothing is recorded: otherwise a long-lived query on HBase would
// reach maxAlwaysRead by its rows alone.
func (s *subQuery) readFromNowOn(row []byte) error {
	if !s.finder.knowsWrites() {
		return nil
	}

	if s.alwaysRead == nil {
		s.alwaysRead = map[string]struct{}{}
	}
	s.alwaysRead[string(row)] = struct{}{}
	if len(s.alwaysRead) > maxAlwaysRead {
		return errTooManyRereads
	}
	return nil
}

// decodeWrites decodes the points that were written to a row into s.points. onlyPoints
// is set if the writes only add points, ascending if these are in order of time.
func (s *subQuery) decodeWrites(c *store.Change, base uint32) (onlyPoints, ascending bool) {
	s.points.Reset()
	if c.Cut { // what was written is not known, or not all
		return false, false
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		s.decoder.Reset(base)
		if !addsPoints(w) || s.decoder.Add(w.Qualifier, w.Value, w.Timestamp) != nil ||
			s.decoder.Finish(&s.points) != nil {
			return false, false
		}
	}
	return true, isAscending(s.points.Time)
}

// addsPoints reports whether a write is an append to the append column, or a put of a
// cell with one point. If the put overwrites a cell, it does take a point away; but then
// its time is not later than all others, so View.Extend refuses it and the row is read.
func addsPoints(w *store.Mutation) bool {
	if w.Family != encoding.FamilyData {
		return false
	}
	if w.Kind == store.Append {
		return string(w.Qualifier) == string(encoding.AppendColumn)
	}
	return w.Kind == store.Put && offsetOf(w.Qualifier) != everywhere
}

// isAscending reports whether each time is later than the one before.
func isAscending(times []int64) bool {
	for i := 1; i < len(times); i++ {
		if times[i] <= times[i-1] {
			return false
		}
	}
	return true
}
