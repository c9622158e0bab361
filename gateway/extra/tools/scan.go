package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

func scanFlags(f *flag.FlagSet, o *options) {
	f.BoolVar(&o.scan.lines, "import", false, "print the points as lines that import reads")
	f.BoolVar(&o.scan.delete, "delete", false,
		"delete what is printed, as lines that import reads; not through a gateway")
}

// scanCounts are what a scan has done. A gateway sends them as JSON.
type scanCounts struct {
	Rows       int64 `json:"rows"`
	Points     int64 `json:"points"`
	Unreadable int64 `json:"unreadable"` // cells of points that cannot be read
	Unwritable int64 `json:"unwritable"` // cells that import would refuse, or read as other points
	Deleted    int64 `json:"deleted"`    // cells
	Changed    int64 `json:"changed"`    // rows that were printed and have changed before they were deleted
}

// scanRows prints rows as they are stored, or as lines that import reads:
//
//	[0, 0, 1, 80, -30, 39, 0, 0, 0, 1, 0, 0, 1] sys.cpu.user 1356998400 (Tue Jan 01 00:00:00 UTC 2013) {host=web01}
//	  [0, 0]	[42]	0	l	1356998400	(Tue Jan 01 00:00:00 UTC 2013)
//
// Source: DumpSeries.
func scanRows(ctx context.Context, c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	// As in OpenTSDB, what is deleted is printed in a form that import can read again.
	lines := c.scan.lines || c.scan.delete
	var counts scanCounts
	err := c.at(ctx, existing, func(r *remote) error {
		out := bufio.NewWriterSize(c.Out, 256<<10)
		to := receiver{out: out, progress: c.tell, counts: &counts}
		q := url.Values{"arg": c.args}
		if lines {
			q.Set("import", "true")
		}
		if c.scan.delete {
			return errors.Join(c.scanDelete(ctx, r, q, to, out), out.Flush())
		}
		return errors.Join(r.get(ctx, scanPath+q.Encode(), to), out.Flush())
	})

	// What was deleted before an error is reported, too.
	if n := counts.Unreadable + counts.Unwritable; lines && n > 0 {
		fmt.Fprintf(c.Err, "left out: %d cells that cannot be read, %d that import would refuse or read as "+
			"other points\n", counts.Unreadable, counts.Unwritable)
	}
	if c.scan.delete {
		fmt.Fprintf(c.Err, "%d points printed, %d cells deleted\n", counts.Points, counts.Deleted)
	}
	if err == nil && counts.Changed > 0 {
		err = fmt.Errorf("%d rows have changed after they were printed, and are still there", counts.Changed)
	}
	return err
}

const scanPath = "/api/tools/scan?"

// scanDelete asks for lines that are deleted once the output has them. A file is synced before, so that a
// crash of the machine does not take the lines as well.
func (c *call) scanDelete(ctx context.Context, r *remote, q url.Values, to receiver, out *bufio.Writer) error {
	if !r.own {
		// What is on its way to this process may be lost after the gateway has deleted it.
		return errors.New("a gateway has the store open: end it, and what is deleted is what was printed")
	}
	if c.dryRun {
		q.Set("dryRun", "true")
	}
	body, acknowledge := io.Pipe()
	defer acknowledge.Close()
	to.printed = func() error {
		if err := out.Flush(); err != nil {
			return err
		}
		if f, ok := c.Out.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // pipes and terminals have no Sync
				if err := f.Sync(); err != nil {
					return err
				}
			}
		}
		_, err := acknowledge.Write([]byte{'\n'})
		return err
	}
	resp, err := r.send(ctx, http.MethodPost, scanPath+q.Encode(), body)
	if err != nil {
		return err
	}
	return r.receive(resp, to)
}

// scan answers with rows.
func (h *served) scan(w http.ResponseWriter, r *http.Request) error {
	if err := memory.Reserve(r.Context(), namerBytes+wholetable.BlockBytes); err != nil {
		return err
	}
	q := r.URL.Query()
	return writeLines(w, r, func(out io.Writer, _ func(string)) (any, error) {
		p := &rowPrinter{work: &h.work, lines: q.Get("import") == "true", out: out}
		return &p.counts, p.all(r.Context(), q["arg"])
	})
}

// scanDelete is scan, and deletes what it has sent.
func (h *served) scanDelete(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	x := &h.work
	if q.Get("dryRun") == "true" {
		x = x.dry()
	}
	return writeLines(w, r, func(out io.Writer, _ func(string)) (any, error) {
		p := &rowPrinter{work: x, lines: true, out: out}
		p.printed = func() error {
			_, err := io.WriteString(out, printedLine)
			if f, ok := out.(interface{ Flush() error }); ok && err == nil {
				err = f.Flush()
			}
			if err == nil {
				_, err = io.ReadFull(r.Body, make([]byte, 1))
			}
			return err
		}
		return &p.counts, p.all(r.Context(), q["arg"])
	})
}

// rowPrinter prints rows.
type rowPrinter struct {
	*work
	lines   bool         // as lines that import reads
	printed func() error // returns when the client has what was written to out and will be deleted; nil if nothing is
	out     io.Writer
	cells   fsck.Checker
	counts  scanCounts
	line    []byte

	pending []store.Replacement // what was printed and is to be deleted
	bytes   int                 // of pending
}

// all prints the rows of queries, and deletes what it has printed if requested.
func (p *rowPrinter) all(ctx context.Context, args []string) error {
	all, err := p.queried(ctx, args)
	if err != nil {
		return err
	}
	names := p.namer(namerBytes)
	p.cells = fsck.Checker{Schema: p.Schema}
	for i := range all {
		for row, err := range p.walk(ctx, &all[i], names, false) {
			if err == nil && row.bad == nil { // no query is about a row of an impossible key
				err = p.row(row)
			}
			if err == nil && (len(p.pending) >= repairRows || p.bytes >= repairBytes) {
				err = p.delete(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	return p.delete(ctx) // of the last rows
}

// row prints one row.
func (p *rowPrinter) row(row seriesRow) error {
	p.counts.Rows++
	if p.lines {
		return p.importRow(row)
	}

	key, named := row.key, row.named
	p.line = p.line[:0]
	p.line = fmt.Appendf(p.line, "%s %s %d (%s) %s\n", javaBytes(row.Key), visible(named.metric), key.BaseTime,
		p.date(int64(key.BaseTime)*1000), visible(named.braces()))
	for _, c := range row.Cells {
		p.line = append(p.line, "  "...)
		p.appendCell(key.BaseTime, fsck.Cell{Qualifier: c.Qualifier, Value: c.Value})
		p.line = append(p.line, '\n')
	}
	_, err := p.out.Write(p.line)
	return err
}

// braces are the tags as Java prints a map.
func (s *namedSeries) braces() string {
	var all []string
	for _, t := range s.tags {
		all = append(all, t.K+"="+t.V)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// date prints a time as Java's Date does.
func (p *rowPrinter) date(ms int64) string {
	zone := time.UTC
	if p.Zone != nil {
		zone = p.Zone
	}
	return time.UnixMilli(ms).In(zone).Format("Mon Jan 02 15:04:05 MST 2006")
}

// javaBytes prints bytes as Java prints an array of them.
func javaBytes(b []byte) string {
	var out strings.Builder
	out.WriteByte('[')
	for i, c := range b {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprint(&out, int8(c))
	}
	out.WriteByte(']')
	return out.String()
}

// appendCell appends the text of a cell. Source: DumpSeries.formatKeyValue.
func (p *rowPrinter) appendCell(base uint32, c fsck.Cell) {
	entries, err := p.cells.Entries(c)
	odd := len(c.Qualifier)%2 == 1
	switch {
	case err != nil:
		p.counts.Unreadable++
		p.line = fmt.Appendf(p.line, "%s\t%s\t[Not readable: %v]", javaBytes(c.Qualifier), javaBytes(c.Value), err)
	case odd && c.Qualifier[0] == encoding.PrefixAnnotation && (len(c.Qualifier) == 3 || len(c.Qualifier) == 5):
		p.appendAnnotation(base, c)
	case len(entries) == 0:
		p.line = fmt.Appendf(p.line, "%s\t[Not a data point]", javaBytes(c.Value))
	case !odd && len(c.Qualifier) == encoding.QualifierWidth(c.Qualifier[0]):
		// A single cell; what is left has several points.
		p.appendPoint(base, entries[0])
	default:
		p.line = fmt.Appendf(p.line, "%s\t%s = %d values:", javaBytes(c.Qualifier), javaBytes(c.Value), len(entries))
		for _, e := range entries {
			p.line = append(p.line, "\n    "...)
			p.appendPoint(base, e)
		}
	}
}

// appendPoint appends the text of one point. Source: DumpSeries.appendRawCell.
func (p *rowPrinter) appendPoint(base uint32, e fsck.Entry) {
	p.counts.Points++
	offset, at, unit := int64(e.Qualifier.OffsetMS), int64(base)*1000+int64(e.Qualifier.OffsetMS), int64(1000)
	if e.Qualifier.Milli {
		unit = 1
	}
	kind := "l"
	if e.Qualifier.Float {
		kind = "f"
	}
	p.line = fmt.Appendf(p.line, "%s\t%s\t%d\t%s\t%d\t(%s)", javaBytes(encoding.AppendQualifier(nil, e.Qualifier)),
		javaBytes(e.Value), offset/unit, kind, at/unit, p.date(at))
}

// appendAnnotation appends the text of an annotation. OpenTSDB reads its column as that of a
// point and prints times that are none; these are the right ones.
// Source: DumpSeries.appendAnnotation.
func (p *rowPrinter) appendAnnotation(base uint32, c fsck.Cell) {
	var offset int64 // ms
	if len(c.Qualifier) == 3 {
		offset = int64(binary.BigEndian.Uint16(c.Qualifier[1:])) * 1000
	} else {
		offset = int64(binary.BigEndian.Uint32(c.Qualifier[1:]))
	}
	at := int64(base)*1000 + offset
	p.line = fmt.Appendf(p.line, "%s\t%s\t%d\t%s\t%d\t(%s)", javaBytes(c.Qualifier), javaBytes(c.Value), offset/1000,
		visible(string(c.Value)), at, p.date(at))
}

// importRow prints the points of a row as lines that import reads. What has been printed of
// it is to be deleted, if requested: cells of points whose points are all printed.
func (p *rowPrinter) importRow(row seriesRow) error {
	named := row.named
	// A line can hold the names, and import would take them with these settings.
	taken := named.noLine == nil && named.importable(&p.Settings)
	p.line = p.line[:0]
	var printed []store.Cell
	for _, c := range row.Cells {
		entries, err := p.cells.Entries(fsck.Cell{Qualifier: c.Qualifier, Value: c.Value})
		if err != nil {
			p.counts.Unreadable++
			continue
		}
		// No points: an annotation, a histogram, or what nobody knows.
		if len(entries) == 0 {
			continue
		}

		// A cell is printed as a whole or not at all, for it is deleted as a whole.
		lines, whole, err := appendCellLines(p.line, row.key.BaseTime, named, entries)
		if err != nil {
			return err
		}
		if !taken || !whole {
			p.counts.Unwritable++
			continue
		}
		p.line = lines
		p.counts.Points += int64(len(entries))
		printed = append(printed, c)
	}

	if p.printed != nil && len(printed) > 0 {
		p.addPending(row.Row, printed)
	}
	_, err := p.out.Write(p.line)
	return err
}

// appendCellLines appends a line for each point of a cell. whole is false if import would
// not read one of the points as it is.
func appendCellLines(
	dst []byte, base uint32, of *namedSeries, entries []fsck.Entry,
) (lines []byte, whole bool, err error) {
	for _, e := range entries {
		v, err := encoding.ParseValue(e.Qualifier, e.Value)
		if err != nil {
			return dst, false, err
		}
		t := int64(base)*1000 + int64(e.Qualifier.OffsetMS)
		if !e.Qualifier.Milli {
			t /= 1000
		}
		if !importable(t, e.Qualifier.Milli, v) {
			return dst, false, nil
		}
		dst = append(appendLine(dst, of.metric, t, v, of.lineTags), '\n')
	}
	return dst, true, nil
}

// importable reports whether import, with these settings, takes the names of a series.
func (s *namedSeries) importable(settings *Settings) bool {
	p := write.Point{Metric: s.metric, Tags: s.tags, Time: 1}
	return p.Validate(settings.Schema, settings.Allowed...) == nil
}

// addPending copies a row whose printed cells are to be deleted. These are in the row's order.
func (p *rowPrinter) addPending(row store.Row, printed []store.Cell) {
	r := store.Replacement{Read: store.Row{Key: bytes.Clone(row.Key)}}
	for _, c := range row.Cells {
		cell := c.Clone()
		// The store deletes only if the whole row is still as it was read.
		r.Read.Cells = append(r.Read.Cells, cell)
		if len(printed) > 0 && bytes.Equal(printed[0].Qualifier, c.Qualifier) {
			r.Delete, printed = append(r.Delete, cell), printed[1:]
		}
		p.bytes += len(c.Qualifier) + len(c.Value)
	}
	p.pending = append(p.pending, r)
}

// delete deletes what was printed, once the client has it.
func (p *rowPrinter) delete(ctx context.Context) error {
	if len(p.pending) == 0 {
		return nil
	}
	if err := p.printed(); err != nil {
		return err
	}
	outcomes, err := p.Store.Replace(ctx, p.Tables.Data, encoding.FamilyData, p.pending)
	if err != nil {
		return fmt.Errorf("cannot delete %d rows: %w", len(p.pending), err)
	}
	for i, o := range outcomes {
		if o == store.Replaced {
			p.counts.Deleted += int64(len(p.pending[i].Delete))
		} else {
			p.counts.Changed++
		}
	}
	p.pending, p.bytes = p.pending[:0], 0
	return nil
}
