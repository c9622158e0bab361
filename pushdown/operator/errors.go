package operator

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Errors are named by what the caller must do next. Errors of the store are returned
// unchanged, see store.ErrUnavailable.
var (
	// ErrBadPlan is returned by New for a part that cannot be executed, here or
	// elsewhere: the sender must change it.
	ErrBadPlan = errors.New("plan refused")
	// ErrClosed is returned by Next after Close.
	ErrClosed = errors.New("operator is closed")
)

// DataError is returned when a row cannot be read. Reading it again, here or
// elsewhere, gives the same error. The query fails, as it does in OpenTSDB.
type DataError struct {
	Row  []byte // the row's key
	Text string // for the client; names the row
	Err  error  // the reason
}

// Error is the text for the client.
func (e *DataError) Error() string { return e.Text }

// Unwrap is the reason.
func (e *DataError) Unwrap() error { return e.Err }

// left reports whether a part skips the row of an error: the row cannot be read, and the plan has
// scanplan.FixDamaged. Two values at one time are no damage, and another codec is none.
func (e *DataError) left(p *scanplan.Plan) bool {
	var duplicate *encoding.DuplicateError
	return p.Fix&scanplan.FixDamaged != 0 && !errors.As(e.Err, &duplicate) && !errors.Is(e.Err, errCodec)
}

// leaveOut counts the row of an error that a part of a plan leaves out, and returns nil. It returns
// any other error.
func (s *Stats) leaveOut(p *scanplan.Plan, err error) error {
	if err == nil { // the usual case, without the allocation of data
		return nil
	}
	var data *DataError
	if !errors.As(err, &data) || !data.left(p) {
		return err
	}
	s.Damaged++
	s.DamagedRow = cmp.Or(s.DamagedRow, data.Text)
	return nil
}

// dataError returns err with the row's key, for a plan. For two values at one time the text is
// OpenTSDB's. Source: CompactionQueue.Compaction.mergeDatapoints.
func dataError(p *scanplan.Plan, row []byte, err error) error {
	s := p.Schema
	e := &DataError{Row: append([]byte(nil), row...), Err: err}

	var duplicate *encoding.DuplicateError
	switch {
	case errors.As(err, &duplicate):
		e.Text = duplicateText(row, duplicate)
	// The row is not corrupt: it has another codec than the one that is configured.
	case errors.Is(err, errCodec):
		e.Text = fmt.Sprintf("row %X cannot be read: %v (%s)", row, err, describeRow(s, row))
	default:
		e.Text = fmt.Sprintf(
			"row %X is corrupt: %v (%s); gateway fsck --full-scan --from %x reports what can be repaired",
			row, err, describeRow(s, row), row)
		// Plans of histograms have no fixes.
		if p.Histograms == nil {
			e.Text += ", fix=damaged answers without such rows"
		}
	}
	return e
}

// duplicateText returns OpenTSDB's message. Its label "older" shows the newer of the
// two cells: scripts that read the message expect that.
func duplicateText(row []byte, d *encoding.DuplicateError) string {
	return fmt.Sprintf("Duplicate timestamp for key=%s, ms_offset=%d, older=%s, newer=%s; "+
		"set tsd.storage.fix_duplicates=true to fix automatically or run Fsck",
		javaBytes(row), d.OffsetMS, javaBytes(d.Newer), javaBytes(d.Older))
}

// javaBytes formats bytes as Java's Arrays.toString does, as signed decimals.
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

// describeRow returns a row key in words.
func describeRow(s encoding.Schema, row []byte) string {
	key, err := s.ParseRowKey(row)
	if err != nil {
		return fmt.Sprintf("not a key of salt width %d and UID widths %d, %d, %d", s.SaltWidth, s.MetricWidth,
			s.TagKWidth, s.TagVWidth)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "metric %X, base time %d", key.Metric, key.BaseTime)
	for _, p := range s.AppendPairs(nil, key.Tags) {
		fmt.Fprintf(&b, ", %s=%s", p.K, p.V)
	}
	return b.String()
}

// PanicError is returned for a part that has panicked: a fault of the program, and not of the place
// where the part was executed: another place would most likely panic, too.
type PanicError struct {
	Value string // what was panicked with
	Stack string // "" if it was in another process, whose log has it
}

// Recovered returns the error of a panic, given what recover returned. It is called by the function
// that recovers, for the stack.
func Recovered(v any) *PanicError {
	return &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())}
}

// Error names what was panicked with.
func (e *PanicError) Error() string { return "a fault of the program: panic: " + e.Value }

// Resource is what a LimitError is about.
type Resource string

// Resources that a query can need too much of. Memory and States are bounded by the
// plan, the others by a Budget.
const (
	Memory  Resource = ""        // bytes of the result
	States  Resource = "states"  // bytes of partial aggregates; series by series it may take less
	Points  Resource = "points"  // data points read from the store
	Bytes   Resource = "bytes"   // bytes of rows read from the store
	Queries Resource = "queries" // concurrent queries that read much
)

// LimitError is returned when a query needs more of a resource than it may have.
type LimitError struct {
	What        Resource
	Limit, Need int64 // Need is at least needed: what was counted when the part ended
}

// Error names the resource and both figures.
func (e *LimitError) Error() string {
	switch e.What {
	case Points, Bytes:
		return fmt.Sprintf("the query reads more than %d %s from the store, at least %d", e.Limit, e.What, e.Need)
	case Queries:
		return fmt.Sprintf("%d queries that read much are running, and none of them has ended in time", e.Limit)
	}
	// Memory and States: both are bytes of memory.
	return fmt.Sprintf("the result takes more than %d bytes of memory, at least %d", e.Limit, e.Need)
}
