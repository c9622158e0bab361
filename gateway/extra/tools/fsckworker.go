package tools

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
	"downpour/pushdown/store"
)

// Bounds of the rows that are repaired at a time.
const (
	repairRows  = 256
	repairBytes = 4 << 20
)

// rowWorker checks the rows of one part.
type rowWorker struct {
	checks  *rowChecker
	part    *checkedPart
	checker fsck.Checker
	names   *namer
	counts  fsckCounts // since the last report

	cells   []fsck.Cell // of the row, scratch
	pending []pendingRow
	bytes   int // of pending
}

// pendingRow is a row that is to be repaired.
type pendingRow struct {
	change   store.Replacement
	title    string // of its lines
	findings []fsck.Finding
	orphan   encoding.RowKey // of an orphan, whose names are looked up once more
	move     []fsck.Row      // what other rows get before the row's cells are deleted
}

func newRowWorker(r *rowChecker, p *checkedPart) *rowWorker {
	return &rowWorker{
		checks:  r,
		part:    p,
		names:   r.namer(namerBytes),
		checker: fsck.Checker{Schema: r.Schema, Options: r.req.Options},
	}
}

// run checks the part, row by row.
func (w *rowWorker) run(ctx context.Context) error {
	n := 0
	for row, err := range w.checks.walk(ctx, &w.part.stretch, w.names, false) {
		if err != nil {
			return err
		}
		if err := w.check(ctx, row); err != nil {
			return fmt.Errorf("row %x: %w", row.Key, err)
		}

		n++
		// A run may be taken up again at the key that is reported: all before it is repaired first.
		if len(w.pending) >= repairRows || w.bytes >= repairBytes || n%reportRows == 0 {
			if err := w.repair(ctx); err != nil {
				return err
			}
			// The key that follows this one.
			w.report(append(bytes.Clone(row.Key), 0))
		}
	}
	if err := w.repair(ctx); err != nil {
		return err
	}
	w.report(nil)
	return nil
}

// reportRows is the number of rows after which a part reports how far it is.
const reportRows = 10_000

// report adds the worker's counts to those of the run, and reports up to which key the part is
// done. At its end that is nil: rowChecker.run reports the part as a whole.
func (w *rowWorker) report(at []byte) {
	w.checks.mu.Lock()
	w.checks.counts.merge(&w.counts)
	w.checks.mu.Unlock()
	w.counts = fsckCounts{}
	if at != nil {
		w.checks.reached(w.part, at, false)
	}
}

// check checks one row. What is wrong with it is printed now, or, if it is to be repaired,
// when that is done.
func (w *rowWorker) check(ctx context.Context, row seriesRow) error {
	var facts fsck.Facts
	switch key := row.key; {
	case row.bad != nil && w.part.compiled != nil:
		return nil // no query is about it
	case row.bad != nil:
	case key.Global(): // it is of no series, so no name of it can be missing
		row.named = nil
	default:
		facts.Orphan = row.named.orphan
	}
	if row.bad == nil {
		last := int64(row.key.BaseTime)
		if encoding.OffHour(row.key.BaseTime) {
			last += encoding.RowSeconds - 1 // where what it holds may belong
		}
		var err error
		if facts.Keep, err = w.keeps(ctx, last, facts.Orphan != ""); err != nil {
			return err
		}
	}

	w.cells = w.cells[:0]
	for _, c := range row.Cells {
		w.cells = append(w.cells, fsck.Cell{Qualifier: c.Qualifier, Value: c.Value, Timestamp: c.Timestamp})
	}
	result := w.checker.Check(fsck.Row{Key: row.Key, Cells: w.cells}, facts)
	w.count(result, len(row.Cells))

	if len(result.Put)+len(result.Delete) == 0 {
		if facts.Keep == tooYoung && slices.ContainsFunc(result.Findings,
			func(f fsck.Finding) bool { return f.Kind.IsError() }) {
			w.counts.Young++
		}
		if len(result.Findings) == 0 {
			return nil
		}
		return w.print(title(row), result.Findings, "")
	}
	w.addPending(row.Row, title(row), result)
	if facts.Orphan != "" {
		// repair looks for its names once more. The key is the copy's: the row's own is valid
		// only until the next row.
		p := &w.pending[len(w.pending)-1]
		p.orphan, _ = w.checks.Schema.ParseRowKey(p.change.Read.Key)
	}
	return nil
}

// Why a row stays as it is although the options let it be repaired.
const (
	tooYoung       = "the row is of the current or the previous hour"
	tooManyOrphans = "too many rows are orphans"
)

// keeps returns why a row that may hold points until the hour of last stays as it is, "" if it may be repaired.
func (w *rowWorker) keeps(ctx context.Context, last int64, orphan bool) (why string, err error) {
	req := w.checks.req
	if last >= int64(w.checks.young) && !req.Young {
		return tooYoung, nil
	}
	if !orphan || !req.Options.Fix || !req.Options.DeleteOrphans {
		return "", nil
	}
	refused, err := w.checks.keepsOrphans(ctx)
	if refused {
		why = tooManyOrphans
	}
	return why, err
}

// title says which row it is: its key, and series and base time if it is of a series.
func title(row seriesRow) string {
	of := row.named
	if of == nil {
		return fmt.Sprintf("row %x", row.Key)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "row %x %s %d", row.Key, visible(of.metric), row.key.BaseTime)
	for _, t := range of.tags {
		fmt.Fprintf(&b, " %s=%s", visible(t.K), visible(t.V))
	}
	return b.String()
}

// count counts what is in a row and what is wrong with it.
func (w *rowWorker) count(r *fsck.Result, cells int) {
	n := &w.counts
	n.Rows++
	n.Cells += int64(cells)
	n.Points += int64(r.Points)
	n.Annotations += int64(r.Annotations)
	n.Histograms += int64(r.Histograms)
	n.AppendColumns += int64(r.AppendColumns)
	n.SavedBytes += int64(r.SavedBytes)
	for _, f := range r.Findings {
		n.add(f.Kind, f.Count, 0)
	}
}

// addPending copies a row that is to be repaired.
func (w *rowWorker) addPending(row store.Row, title string, r *fsck.Result) {
	p := pendingRow{title: title, findings: slices.Clone(r.Findings), move: r.Move}
	p.change.Read = store.Row{Key: bytes.Clone(row.Key)}
	// The row that the scan yields is valid only until the next one.
	of := map[string]store.Cell{}
	for _, c := range row.Cells {
		cell := c.Clone()
		p.change.Read.Cells = append(p.change.Read.Cells, cell)
		of[string(c.Qualifier)] = cell
		w.bytes += len(c.Qualifier) + len(c.Value)
	}
	for i := range p.findings {
		p.findings[i].Qualifier = bytes.Clone(p.findings[i].Qualifier)
	}
	for _, c := range r.Put {
		p.change.Put = append(p.change.Put, store.Cell{
			Family:    []byte(encoding.FamilyData),
			Qualifier: c.Qualifier,
			Value:     c.Value,
			Timestamp: c.Timestamp,
		})
		w.bytes += len(c.Qualifier) + len(c.Value)
	}
	for _, c := range r.Delete {
		p.change.Delete = append(p.change.Delete, of[string(c.Qualifier)])
	}
	w.pending = append(w.pending, p)
}

// repair repairs the rows that are pending and prints what came of it.
func (w *rowWorker) repair(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	changes := make([]store.Replacement, len(w.pending))
	named := make([]bool, len(w.pending))
	notMoved := make([]string, len(w.pending)) // why an off-hour row is not moved
	for i := range w.pending {
		p := &w.pending[i]
		changes[i] = p.change
		var err error
		if notMoved[i], err = w.moveCells(ctx, p.move); err != nil {
			return fmt.Errorf("cannot move %s: %w", p.title, err)
		}
		if notMoved[i] != "" {
			changes[i].Delete = nil
		}
		if p.orphan.Metric == nil {
			continue
		}

		// A name may have come back since: then the row is no orphan any more.
		w.names.forget(p.orphan)
		s, err := w.names.series(ctx, p.orphan)
		if err != nil {
			return err
		}
		// Without deletions nothing is left of an orphan's repair.
		if named[i] = s.orphan == ""; named[i] {
			changes[i].Delete = nil
		}
	}

	outcomes, err := w.checks.Store.Replace(ctx, w.checks.Tables.Data, encoding.FamilyData, changes)
	if err != nil {
		return fmt.Errorf("cannot repair %d rows: %w", len(changes), err)
	}

	for i, p := range w.pending {
		outcome := outcomes[i].String()
		if named[i] {
			// Its deletion was withdrawn, whatever the store says of a change of nothing.
			outcomes[i], outcome = store.Changed, "its UIDs have names now"
		}
		if notMoved[i] != "" {
			outcomes[i], outcome = store.Changed, notMoved[i]
		}
		if outcomes[i] == store.Replaced {
			outcome = ""
			for _, f := range p.findings {
				if f.Planned {
					w.counts.add(f.Kind, 0, f.Count)
				}
			}
		} else {
			w.counts.Changed++
		}
		if err := w.print(p.title, p.findings, outcome); err != nil {
			return err
		}
	}
	w.pending, w.bytes = w.pending[:0], 0
	return nil
}

// shownQualifier is the number of bytes of a qualifier that a line shows.
const shownQualifier = 16

// print prints a line for each finding of a row. left is why what was planned is not done,
// "" if it is.
func (w *rowWorker) print(title string, findings []fsck.Finding, left string) error {
	if len(findings) == 0 {
		return nil
	}
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s: %s", f.Kind, title)
		// That of a compacted cell has two or four bytes for each of its points.
		if q := f.Qualifier; len(q) > shownQualifier {
			fmt.Fprintf(&b, " cell %x… of %d bytes", q[:shownQualifier], len(q))
		} else if q != nil {
			fmt.Fprintf(&b, " cell %x", q)
		}
		fmt.Fprintf(&b, ": %s; ", f.What)

		switch {
		case f.Planned && left == "":
			fmt.Fprintf(&b, "done: %s\n", f.Remedy)
		case f.Planned: // the store has not taken it
			fmt.Fprintf(&b, "left: %s\n", left)
		case f.Left != "": // it is allowed, but not all of the row that it needs
			fmt.Fprintf(&b, "left: %s\n", f.Left)
		case f.Flags != "": // it is not allowed
			fmt.Fprintf(&b, "%s would %s\n", f.Flags, f.Remedy)
		default:
			b.WriteString("nothing is done about it\n")
		}
	}

	// Parts are checked side by side; the lines of a row stay together.
	w.checks.mu.Lock()
	defer w.checks.mu.Unlock()
	_, err := w.checks.out.Write([]byte(b.String()))
	return err
}
