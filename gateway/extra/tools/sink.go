package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// maxImportBody bounds the body of POST import.
const maxImportBody = 32 << 20

// lineBytes is about what a line takes in memory on top of its text.
const lineBytes = 200

// importDone is the answer to POST import: what became of the lines. Without skip it is about those before the first
// that was refused; points of later ones may be stored or not.
type importDone struct {
	Points  int64         `json:"points"`
	Meta    int64         `json:"remarks"` // annotations and meta data
	Blank   int64         `json:"blank"`   // blank lines, comments and names
	Refused []refusedLine `json:"refused,omitempty"`
}

// refusedLine is a line that was refused, by its number in the body from 1.
type refusedLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

// takenLine is the progress of an import whose points are all with the writer, and not yet durable: the lines that
// follow may come now, and their points will be stored later than these.
const takenLine = "taken"

// importLines imports lines as files have them: names get their UIDs first, in their order, then points are
// stored, and then annotations and meta data, so that they replace the meta data that points create.
func (h *served) importLines(w http.ResponseWriter, r *http.Request) error {
	body, err := httpio.ReadBodyUpTo(w, r, maxImportBody)
	if err != nil {
		return err
	}
	if err := memory.Reserve(r.Context(),
		int64(len(body))+int64(bytes.Count(body, []byte{'\n'})+1)*lineBytes); err != nil {
		return err
	}
	return writeLines(w, r, func(_ io.Writer, progress func(string)) (any, error) {
		i := &lineImport{
			served:   h,
			skip:     r.URL.Query().Get("skip") == "true",
			resolver: h.Points.Resolver(write.ImportSpelling),
		}
		err := i.run(r.Context(), body, func() { progress(takenLine) })
		i.count(r)
		return i.done(), err
	})
}

// lineImport imports the lines of one request.
type lineImport struct {
	*served
	skip     bool // a refused line ends nothing
	resolver *write.Resolver

	lines   int64
	names   []nameLine
	points  []linePoint
	meta    []metaLine
	refused []refusal

	batches  []*write.Batch
	prepared int // points before this one have had their names prepared
	stored   bool
}

// refusal is a line that was refused, and why.
type refusal struct {
	line int64
	err  error
}

// run imports lines. taken is called once all points are with the writer.
func (i *lineImport) run(ctx context.Context, body []byte, taken func()) error {
	if err := i.parse(ctx, body); err != nil {
		return err
	}
	to := metaWriter{settings: &i.Settings, st: i.Store, names: i.Names, auto: i.Auto, series: i.Series, flush: i.Flush}
	if err := to.assign(ctx, i.names); err != nil {
		return err
	}
	if err := i.addAll(ctx); err != nil {
		return err
	}
	taken()
	for _, b := range i.batches {
		if err := b.Wait(ctx); err != nil {
			return err
		}
	}
	i.stored = true

	// The next run begins with the refused line, so it writes what comes after it.
	meta := i.meta
	if first, ok := i.stop(); ok {
		meta = meta[:before(meta, first, func(m metaLine) int64 { return m.line })]
	}
	refused, err := to.store(ctx, meta)
	i.refused = append(i.refused, refused...)
	return err
}

// stop returns the number of the first line that was refused, if that ends the import.
func (i *lineImport) stop() (first int64, ok bool) {
	slices.SortFunc(i.refused, func(a, b refusal) int { return cmp.Compare(a.line, b.line) })
	if i.skip || len(i.refused) == 0 {
		return 0, false
	}
	return i.refused[0].line, true
}

// before returns how many of all, in the order of their lines, come before one.
func before[T any](all []T, line int64, of func(T) int64) int {
	n, _ := slices.BinarySearchFunc(all, line, func(x T, line int64) int { return cmp.Compare(of(x), line) })
	return n
}

// done sums up.
func (i *lineImport) done() (d importDone) {
	refused, end := i.refused, i.lines+1
	if first, ok := i.stop(); ok {
		refused, end = refused[:1], first
	}
	d.Points = int64(before(i.points, end, func(p linePoint) int64 { return p.number }))
	d.Meta = int64(before(i.meta, end, func(m metaLine) int64 { return m.line }))
	parsed := d.Points + d.Meta
	for _, x := range refused {
		d.Refused = append(d.Refused, refusedLine{x.line, x.err.Error()})
		if i.isPoint(x.line) && x.line < end {
			d.Points--
		} else if i.isMeta(x.line) && x.line < end {
			d.Meta--
		} else if x.line < end {
			parsed++ // it could not be parsed
		}
	}
	d.Blank = end - 1 - parsed
	return d
}

func (i *lineImport) isPoint(line int64) bool {
	n := before(i.points, line, func(p linePoint) int64 { return p.number })
	return n < len(i.points) && i.points[n].number == line
}

func (i *lineImport) isMeta(line int64) bool {
	n := before(i.meta, line, func(m metaLine) int64 { return m.line })
	return n < len(i.meta) && i.meta[n].line == line
}

// count counts points, and has refused lines logged, as those of puts are.
func (i *lineImport) count(r *http.Request) {
	for _, x := range i.refused {
		i.Refused.Refused(putlog.Refusal{
			Client: r.RemoteAddr,
			Via:    "/" + httpio.Path(r),
			Reason: write.Reason(x.err),
			Points: 1,
			Err:    x.err,
		})
	}
	if i.Count == nil {
		return
	}
	failed := 0
	for _, x := range i.refused {
		if !i.isMeta(x.line) {
			failed++
		}
	}
	stored := 0
	if i.stored {
		stored = int(i.done().Points)
	}
	i.Count(stored, failed)
}

// parse parses lines, up to the first that cannot be parsed unless such lines are skipped.
func (i *lineImport) parse(ctx context.Context, body []byte) error {
	account := memory.Of(ctx)
	var text []byte // backs the names of points
	var parts [][]byte
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		i.lines++
		line = bytes.TrimRight(line, "\r")

		var err error
		switch begin := bytes.TrimLeft(line, " \t\r"); {
		case len(line) >= maxLine:
			err = errLong
		case len(begin) == 0 || begin[0] == '#':
			// The line as it is parsed, as it is stored, and as it may be refused.
			if err := account.Reserve(ctx, int64(2*entryBytes+3*len(line))); err != nil {
				return err
			}
			err = i.parseComment(line)
		default:
			var p linePoint
			if p, text, err = parseLine(text, line, &parts); err == nil {
				p.number = i.lines
				i.points = append(i.points, p)
			}
		}
		if err != nil {
			i.refused = append(i.refused, refusal{i.lines, err})
			if !i.skip {
				return nil
			}
		}
	}
	return nil
}

// parseComment parses a line without a point: a blank line, a comment, a name of the
// list of names, or a meta line.
func (i *lineImport) parseComment(line []byte) error {
	m, ok, err := parseMetaLine(line)
	if err != nil || ok {
		if err == nil {
			m.line = i.lines
			i.meta = append(i.meta, m)
		}
		return err
	}
	if n, ok := parseNameLine(words(nil, line)); ok {
		i.names = append(i.names, n)
	}
	return nil
}

// addAll adds the points to batches of the writer. The first that is refused ends that, unless such lines are skipped.
func (i *lineImport) addAll(ctx context.Context) error {
	for n := range i.points {
		b, err := i.add(ctx, n)
		switch {
		case err == nil:
			// Points come in long runs of one batch, which is then waited for once.
			if last := len(i.batches); last == 0 || i.batches[last-1] != b {
				i.batches = append(i.batches, b)
			}
		case fatal(ctx, err):
			return fmt.Errorf("line %d: %w", i.points[n].number, err)
		default:
			i.refused = append(i.refused, refusal{i.points[n].number, err})
			if !i.skip {
				return nil
			}
		}
	}
	return nil
}

// fatal reports whether an error ends the import: other lines would fail, too.
func fatal(ctx context.Context, err error) bool {
	return write.IsStorage(err) || errors.Is(err, write.ErrClosing) || errors.Is(err, store.ErrLocked) ||
		ctx.Err() != nil
}

// add hands point n to the writer. The resolver finds the key of a series
// that it had before by the spelling in the line, which saves parsing and checking the
// names.
func (i *lineImport) add(ctx context.Context, n int) (*write.Batch, error) {
	line := &i.points[n]
	s, ok := i.resolver.Find(line.names)
	if !ok {
		p, err := line.point(&i.Settings)
		if err != nil {
			return nil, err
		}
		if n >= i.prepared {
			i.prepared = n + 1 + i.Points.PrepareNames(ctx, p, i.pointsOf(i.points[n+1:]))
		}
		if s, err = i.resolver.Resolve(ctx, p.Metric, p.Tags); err != nil {
			return nil, err
		}
	}

	if err := i.inOrder(s, line.time); err != nil {
		return nil, err
	}

	return i.Points.AddTo(ctx, s, &write.Point{Time: line.time, Value: line.value, Narrow: true})
}

// pointsOf yields the points of lines, nil for one that will be refused.
func (i *lineImport) pointsOf(lines []linePoint) iter.Seq[*write.Point] {
	return func(yield func(*write.Point) bool) {
		for n := range lines {
			p, err := lines[n].point(&i.Settings)
			if err != nil {
				p = nil
			}
			if !yield(p) {
				return
			}
		}
	}
}

// inOrder refuses a time that does not come after the last one of its series. If two
// cells of several points had different values at one time, every query of their hour
// would fail. Source: IncomingDataPoints.addPointInternal.
func (s *Served) inOrder(series *write.SeriesKey, t int64) error {
	if s.last == nil {
		return nil
	}
	if !write.IsMillis(t) {
		t *= 1000
	}

	key := string(series.Metric) + string(series.Tags)
	if last, ok := s.last[key]; ok && t <= last {
		return fmt.Errorf("its time, %d ms, does not come after %d, the last one of its series "+
			"(-allow-out-of-order takes it)", t, last)
	}
	s.last[key] = t
	return nil
}
