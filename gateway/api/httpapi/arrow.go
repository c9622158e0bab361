package httpapi

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/merge"
	"downpour/pushdown/process/memory"
)

// flushPause is how long rows of an Arrow answer wait for a full batch.
const flushPause = 250 * time.Millisecond

func wantsArrow(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		if strings.Contains(accept, batch.StreamMediaType) {
			return true
		}
	}
	return false
}

// arrow answers a query with an Arrow IPC stream, which is compressed as a whole
// by Accept-Encoding, or inside by the parameter compression.
// It carries an ETag if it is small; a large one is sent while it is made. The
// timeout bounds the work, not the time that the client takes to read: whole has
// no deadline.
func (a *API) arrow(whole context.Context, w http.ResponseWriter, r *http.Request, q *query.Query, entry *queryEntry) error {
	compression, err := bufferCompression(r)
	if err != nil {
		return err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(whole, a.Timeout)
	defer cancel()
	check := func(points int) error { return a.AnswerLimits.check(points, true) }
	answer, err := a.Engine.Open(engine.WithPoints(ctx, check), q)
	if err != nil {
		return err
	}
	defer answer.Free()
	defer func() { entry.stats = answer.Stats }()
	if err := check(answer.Stats.PointsOut); err != nil {
		return err
	}
	if q.Delete { // the rows must be whole before they go
		if err := fillAll(ctx, answer); err != nil {
			return err
		}
		if err := a.deleteRead(ctx, q); err != nil {
			return err
		}
	}
	f := &filler{answer: answer, ctx: whole, left: a.Timeout - time.Since(began), check: check}
	markHeader(w, &answer.Stats)
	t := a.tagger(w, r, q)
	sent, err := writeArrow(t, f, batch.ResultOptions{Query: len(q.Queries) > 1, Integers: q.Integers, Compression: compression, Missing: HexRanges(answer.Stats.Missing)})
	if err != nil && !(sent && t.through) {
		return err
	}
	if err == nil {
		err = t.end(r)
	}
	entry.sent = err == nil
	return abort(err)
}

func bufferCompression(r *http.Request) (batch.Compression, error) {
	c := batch.Compression(r.URL.Query().Get("compression"))
	if !slices.Contains(batch.Compressions, c) {
		return "", bad("Invalid compression: %s, want lz4 or zstd", c)
	}
	return c, nil
}

// filler makes the points of an answer's groups, all of them together in the time
// that is left of the query's.
type filler struct {
	answer *engine.Answer
	ctx    context.Context
	left   time.Duration
	check  func(points int) error
}

// points makes those of group i, which belong to the caller.
func (f *filler) points(i int) (encoding.Points, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(f.ctx, f.left)
	defer cancel()
	err := f.answer.Fill(ctx, i)
	f.left -= time.Since(began)
	if err != nil {
		return encoding.Points{}, err
	}
	return f.answer.DetachPoints(i), f.check(f.answer.Stats.PointsOut)
}

// written gives back the memory of points that were made.
func (f *filler) written(p encoding.Points) {
	memory.Release(f.ctx, int64(p.Len())*merge.PointBytes)
}

func fillAll(ctx context.Context, answer *engine.Answer) error {
	for i := range answer.Results {
		if err := answer.Fill(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// writeArrow sends each group when it is merged. What fails before anything was
// sent is an error as any other.
func writeArrow(w http.ResponseWriter, f *filler, opts batch.ResultOptions) (sent bool, err error) {
	groups := make([]batch.ResultGroup, len(f.answer.Results))
	for i := range f.answer.Results {
		groups[i] = resultGroup(&f.answer.Results[i])
	}
	s := &arrowSender{w: w, compressed: opts.Compression != ""}
	out := batch.NewResultWriter(s, groups, opts)
	defer out.Release()
	err = sendGroups(out, s, groups, f.points, f.written)
	return s.sent, err
}

// sendGroups writes the groups one after the other; fill makes their points, in
// a goroutine of its own, while those before are on their way, and written is told
// of points that are not needed any more. What has waited for long is sent, even
// if it is little.
func sendGroups(out *batch.ResultWriter, s *arrowSender, groups []batch.ResultGroup, fill func(i int) (encoding.Points, error), written func(encoding.Points)) error {
	lumps, stop := fillAhead(len(groups), fill)
	defer stop()
	flushed := time.Now()
	for l := range lumps {
		if l.err != nil {
			return l.err
		}
		for i, points := range l.points {
			g := groups[l.first+i]
			g.Points = points
			err := out.Write(&g)
			written(points)
			if err != nil {
				return err
			}
		}
		if time.Since(flushed) < flushPause {
			continue
		}
		if err := out.Flush(); err != nil {
			return err
		}
		s.flush()
		flushed = time.Now()
	}
	return out.Close()
}

// arrowSender sets the headers when the first byte comes.
type arrowSender struct {
	w          http.ResponseWriter
	compressed bool
	sent       bool
}

var _ io.Writer = (*arrowSender)(nil)

// Write passes on.
func (s *arrowSender) Write(p []byte) (int, error) {
	if !s.sent {
		s.sent = true
		s.w.Header().Set("Content-Type", batch.StreamMediaType)
		if s.compressed {
			s.w.Header().Set(gzhttp.HeaderNoCompression, "1")
		}
	}
	return s.w.Write(p)
}

func (s *arrowSender) flush() {
	if s.sent {
		// Writers of tests cannot.
		_ = http.NewResponseController(s.w).Flush()
	}
}

func resultGroup(r *engine.Result) batch.ResultGroup {
	g := batch.ResultGroup{Query: r.Query, Metric: r.Metric, AggregateTags: r.AggregateTags, NaNIsNull: r.NaNIsNull}
	for _, t := range r.Tags {
		g.TagKeys = append(g.TagKeys, t.K)
		g.TagValues = append(g.TagValues, t.V)
	}
	return g
}
