package metasync

import (
	"fmt"
	"math"

	"downpour/encoding"
)

// tolerance is how much later than its first row an object may say that it was created, in
// seconds: rows are of an hour. Source: MetaSync.UidCB.
const tolerance = encoding.RowSeconds

// stale reports whether a time of creation is to be replaced by the hour of the first row.
func stale(created, hour int64) bool { return created == 0 || created > hour+tolerance }

// change is a new value of a cell; old is the value that was read, nil for none.
type change struct {
	table, row, qualifier string
	old, value            []byte
	count                 *int64 // counts it once it is made
}

// judgeSeries returns the value that the TSMeta of a series should have, nil if it is right.
// text is what is stored, nil for nothing, and hour the base time of the first row. What a
// user has written stays. The error is that of a text that cannot be read.
func judgeSeries(tsuid encoding.UID, hour int64, text []byte) ([]byte, error) {
	if text == nil {
		nan := encoding.JSONDouble(math.NaN()) // as in OpenTSDB: nobody has set a bound
		return encoding.AppendTSMeta(nil, encoding.TSMeta{
			TSUID:   tsuid.String(),
			Created: hour,
			Max:     nan,
			Min:     nan,
		}), nil
	}

	m, err := encoding.ParseTSMeta(text)
	if err != nil {
		return nil, fmt.Errorf("TSMeta of series %s: %w", tsuid, err)
	}
	if m.TSUID != "" && !stale(m.Created, hour) {
		return nil, nil
	}
	// What others wrote may lack it.
	if m.TSUID == "" {
		m.TSUID = tsuid.String()
	}
	if stale(m.Created, hour) {
		m.Created = hour
	}
	return encoding.AppendTSMeta(nil, m), nil
}

// judgeUID is judgeSeries for the UIDMeta of a UID; hour is that of the first row of all
// series with the UID.
func judgeUID(kind encoding.UIDKind, u encoding.UID, hour int64, text []byte) ([]byte, error) {
	if text == nil {
		return encoding.AppendUIDMeta(nil, encoding.UIDMeta{Type: kind.MetaType(), Created: hour}), nil
	}

	m, err := encoding.ParseUIDMeta(text)
	if err != nil {
		return nil, fmt.Errorf("UIDMeta of %s %s: %w", kind, u, err)
	}
	if !stale(m.Created, hour) {
		return nil, nil
	}
	m.Created = hour
	if m.Type == "" {
		m.Type = kind.MetaType()
	}
	return encoding.AppendUIDMeta(nil, m), nil
}
