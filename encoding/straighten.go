package encoding

import "fmt"

// SplitCell splits a cell of a row whose base time is late seconds after a full hour, less than an
// hour, into the cells for the rows of that hour and of the next one. Times do not change. A row of
// base time 50 E2 2E 08, half an hour late, and a cell of two points:
//
//	07 00 70 80 = 05 06 00     +112 s, integer 05; +1800 s, integer 06
//	77 80       = 05           of row 50 E2 27 00: +1912 s
//	00 00       = 06           of row 50 E2 35 10: +0 s
//
// The qualifier of an hour without points is empty. Cells that hold no time stay in the first hour.
// It fails for a cell of points that cannot be read, as RowDecoder does.
func SplitCell(qualifier, value []byte, late int32) (first, second SplitPart, err error) {
	switch {
	case len(qualifier) == 0:
		return first, second, fmt.Errorf("encoding: a data cell has an empty qualifier")
	case len(qualifier)%2 != 0:
		return splitSpecial(qualifier, value, late)
	case len(qualifier) == QualifierWidth(qualifier[0]):
		q, _, err := ParseQualifier(qualifier)
		if err != nil {
			return first, second, err
		}
		// The value is not changed: readers handle the old errors in its length.
		part := SplitPart{Value: value}
		next := shift(&q, late)
		part.Qualifier = AppendQualifier(nil, q)
		if next {
			return first, part, nil
		}
		return part, second, nil
	}
	return splitCompacted(qualifier, value, late)
}

// SplitPart is what SplitCell has for one row: nothing, if the qualifier is empty.
type SplitPart struct{ Qualifier, Value []byte }

// shift moves an offset from the base time of a late row to the full hour before it, or to the
// next one, for which it returns true.
func shift(q *Qualifier, late int32) (next bool) {
	q.OffsetMS += late * 1000
	if next = q.OffsetMS > maxOffsetMS; next {
		q.OffsetMS -= RowSeconds * 1000
	}
	return next
}

func splitCompacted(qualifier, value []byte, late int32) (first, second SplitPart, err error) {
	var d RowDecoder
	d.Reset(0)
	// What the decoder refuses is not split, either.
	if err := d.addCompacted(qualifier, value); err != nil {
		return first, second, err
	}
	var hours [2]CellBuilder
	for len(qualifier) > 0 {
		q, rest, err := ParseQualifier(qualifier)
		if err != nil {
			return first, second, err
		}
		to := &hours[0]
		if shift(&q, late) {
			to = &hours[1]
		}
		to.Add(q, value[:q.Width])
		qualifier, value = rest, value[q.Width:]
	}
	first.Qualifier, first.Value = hours[0].Cell()
	second.Qualifier, second.Value = hours[1].Cell()
	return first, second, nil
}

// splitSpecial splits a cell whose qualifier has an odd length.
func splitSpecial(qualifier, value []byte, late int32) (first, second SplitPart, err error) {
	var at Qualifier
	switch qualifier[0] {
	case PrefixAppend:
		return splitAppended(qualifier, value, late)
	case PrefixAnnotation:
		at.OffsetMS, at.Milli, err = ParseAnnotationQualifier(qualifier)
	case PrefixHistogram:
		at.OffsetMS, at.Milli, err = ParseHistogramQualifier(qualifier)
	default:
		return SplitPart{qualifier, value}, second, nil
	}
	// Readers use such a cell without its time, or skip it.
	if err != nil {
		return SplitPart{qualifier, value}, second, nil
	}

	next := shift(&at, late)
	part := SplitPart{AppendHistogramQualifier(nil, at.OffsetMS, at.Milli), value} // both have this form
	part.Qualifier[0] = qualifier[0]
	if next {
		return first, part, nil
	}
	return part, second, nil
}

func splitAppended(qualifier, value []byte, late int32) (first, second SplitPart, err error) {
	var d RowDecoder
	d.Reset(0)
	if err := d.addSpecial(qualifier, value, 0); err != nil {
		return first, second, err
	}
	for len(value) > 0 {
		q, rest, err := ParseQualifier(value)
		if err != nil {
			return first, second, err
		}
		to := &first
		if shift(&q, late) {
			to = &second
		}
		to.Qualifier = AppendColumn
		to.Value = AppendEntry(to.Value, q, rest[:q.Width])
		value = rest[q.Width:]
	}
	return first, second, nil
}
