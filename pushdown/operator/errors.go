package operator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"downpour/encoding"
)

// Errors are named by what the caller must do next. Faults of the store come
// through as they are, see store.ErrUnavailable.
var (
	// ErrBadPlan marks a part that cannot be executed as it stands, here or
	// elsewhere: the sender must change it.
	ErrBadPlan = errors.New("plan refused")
	// ErrClosed is returned by Next after Close.
	ErrClosed = errors.New("operator is closed")
)

// DataError is returned for a row that cannot be read: reading it again, here
// or elsewhere, gives the same. The query fails, as it does in OpenTSDB.
type DataError struct {
	Row  []byte // the row's key
	Text string // what a client is told; names the row
	Err  error  // the reason
}

// Error is the text for the client.
func (e *DataError) Error() string { return e.Text }

// Unwrap is the reason.
func (e *DataError) Unwrap() error { return e.Err }

// dataError names the row of err. Two values of one time have OpenTSDB's own
// text; source: CompactionQueue.Compaction.mergeDatapoints.
func dataError(s encoding.Schema, row []byte, err error) error {
	e := &DataError{Row: append([]byte(nil), row...), Err: err}
	var duplicate *encoding.DuplicateError
	if errors.As(err, &duplicate) {
		e.Text = duplicateText(row, duplicate)
	} else {
		e.Text = fmt.Sprintf("row %X is corrupt: %v (%s)", row, err, describeRow(s, row))
	}
	return e
}

// duplicateText is OpenTSDB's message. Its label "older" shows the newer of the
// two cells, and scripts that read the message rely on it.
func duplicateText(row []byte, d *encoding.DuplicateError) string {
	return fmt.Sprintf("Duplicate timestamp for key=%s, ms_offset=%d, older=%s, newer=%s; "+
		"set tsd.storage.fix_duplicates=true to fix automatically or run Fsck",
		javaBytes(row), d.OffsetMS, javaBytes(d.Newer), javaBytes(d.Older))
}

// javaBytes writes bytes as Java's Arrays.toString does: signed decimals.
func javaBytes(b []byte) string {
	out := []byte{'['}
	for i, c := range b {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = strconv.AppendInt(out, int64(int8(c)), 10)
	}
	return string(append(out, ']'))
}

// describeRow decodes a row key for a reader.
func describeRow(s encoding.Schema, row []byte) string {
	key, err := s.ParseRowKey(row)
	if err != nil {
		return fmt.Sprintf("not a key of salt width %d and UID widths %d, %d, %d", s.SaltWidth, s.MetricWidth, s.TagKWidth, s.TagVWidth)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "metric %X, base time %d", key.Metric, key.BaseTime)
	for _, p := range s.AppendPairs(nil, key.Tags) {
		fmt.Fprintf(&b, ", %s=%s", p.K, p.V)
	}
	return b.String()
}
