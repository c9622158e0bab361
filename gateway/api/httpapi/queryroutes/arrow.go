package queryroutes

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/gateway/query/merge"
	"downpour/pushdown/process/memory"
)

// flushPause is how long rows of an Arrow answer wait for their batch to be full.
const flushPause = 250 * time.Millisecond

// wantsArrow reports whether the request accepts an Arrow stream, in any order of preference, but
// not with the weight 0.
func wantsArrow(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(accept, ",") {
			name, parameters, _ := strings.Cut(kind, ";")
			if strings.EqualFold(strings.TrimSpace(name), batch.StreamMediaType) && !weighsNothing(parameters) {
				return true
			}
		}
	}
	return false
}

// weighsNothing reports whether there is a q=0 among the parameters of a media type.
func weighsNothing(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err == nil && weight == 0
	}
	return false
}

// arrow answers a query with an Arrow IPC stream. The stream is compressed as a
// whole, by Accept-Encoding, or its buffers are, by the parameter compression. A
// small answer carries an ETag; a large one is sent while it is made. The timeout
// bounds the work and not the time that the client takes to read: request, which
// sending goes by, has no deadline.
func (h *Handlers) arrow(request context.Context, w http.ResponseWriter, r *http.Request, q *query.Query,
	entered *limit.Entry, entry *querylog.Entry) error {
	compression, err := bufferCompression(r)
	if err != nil {
		return err
	}

	began := time.Now()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()
	answer, err := h.Engine.Open(ctx, q, engine.Options{Points: h.AnswerLimits.checkArrow, Plans: entry.Plans})
	if err != nil {
		return err
	}
	defer answer.Free()
	defer func() { entry.Stats = answer.Stats }() // at the end, because filling still counts
	// Open has checked as well, but may count a few points of a filled group too few. PointsOut
	// is exact, so far for the groups that Open has made, such as those from the result cache.
	if err := h.AnswerLimits.checkArrow(answer.Stats.PointsOut); err != nil {
		return err
	}

	if q.Delete {
		// All points must be made, and be few enough, before their rows are deleted.
		// Only then is their number exact.
		if err := fillAll(ctx, answer); err != nil {
			return err
		}
		if err := h.AnswerLimits.checkArrow(answer.Stats.PointsOut); err != nil {
			return err
		}
		if err := h.deleteRows(ctx, q); err != nil {
			return err
		}
	}

	// Points are made no faster than the client takes them, and one that takes them slowly keeps no heavy query
	// waiting: if all rows are read, the query is heavy no more, else not while it waits for the client.
	f := &filler{answer: answer, ctx: request, left: h.Timeout - time.Since(began), check: h.AnswerLimits.checkArrow}
	if answer.ReadsOn() {
		f.yield = entered.Yield
		entered.Yield()
	} else {
		entered.Computed()
	}

	SetIncompleteHeader(w, &answer.Stats)
	t := h.newTagWriter(w, r, q)
	sent, err := writeArrow(t, f,
		batch.ResultOptions{
			Query:       len(q.Queries) > 1,
			Integers:    q.Integers,
			Compression: compression,
			Missing:     httpio.HexRanges(answer.Stats.Missing),
			Damaged:     answer.Stats.Damaged,
		})
	if err != nil && !(sent && t.streaming) {
		return err // the tag writer holds all bytes back, so the client can still get an error
	}
	if err == nil {
		err = t.end(r)
	}
	entry.Sent = err == nil
	return Abort(err)
}

// bufferCompression returns the compression of the stream's buffers by the parameter compression,
// "" for none.
func bufferCompression(r *http.Request) (batch.Compression, error) {
	c := batch.Compression(r.URL.Query().Get("compression"))
	if !slices.Contains(batch.Compressions, c) {
		return "", httpio.BadRequest("Invalid compression: %s, want lz4 or zstd", c)
	}
	return c, nil
}

// filler makes the points of an answer's groups, all together in the time that is
// left of the query's timeout.
type filler struct {
	answer *engine.Answer
	ctx    context.Context
	left   time.Duration
	check  func(points int) error
	yield  func() // called in each pause of an answer that reads on; nil for others

	// The period of work since the last pause. One context serves all its groups, because making
	// one for each costs a tenth of an answer of small groups.
	work   context.Context // nil in a pause
	cancel context.CancelFunc
	began  time.Time
}

// fill makes the points of group i, which then belong to the caller.
func (f *filler) fill(i int) (encoding.Points, error) {
	if f.work == nil { // after a pause, or at the start
		f.began = time.Now()
		f.work, f.cancel = context.WithTimeout(f.ctx, f.left)
	}

	if err := f.answer.Fill(f.work, i); err != nil {
		return encoding.Points{}, err
	}
	return f.answer.DetachPoints(i), f.check(f.answer.Stats.PointsOut)
}

// pause ends a period of work: the time until the next fill is the client's.
func (f *filler) pause() {
	if f.work != nil {
		f.cancel()
		f.left -= time.Since(f.began)
		f.work = nil
	}
	if f.yield != nil {
		f.yield()
	}
}

// release gives back the memory reserved for points that fill has made.
func (f *filler) release(points int) {
	memory.Release(f.ctx, int64(points)*merge.PointBytes)
}

// fillAll makes the points of all groups.
func fillAll(ctx context.Context, answer *engine.Answer) error {
	for i := range answer.Results {
		if err := answer.Fill(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// writeArrow sends each group as soon as it is merged. sent reports whether bytes
// were written; an error without can still become an error object.
func writeArrow(w http.ResponseWriter, f *filler, opts batch.ResultOptions) (sent bool, err error) {
	groups := make([]batch.ResultGroup, len(f.answer.Results))
	for i := range f.answer.Results {
		groups[i] = resultGroup(&f.answer.Results[i])
	}

	s := &arrowSender{w: w, compressed: opts.Compression != ""}
	out := batch.NewResultWriter(s, groups, opts)
	err = sendGroups(out, s, groups, f.fill, f.pause, f.release)
	return s.sent, err
}

// sendGroups writes the groups one after the other. fill makes their points, in a
// goroutine of its own, while earlier groups are sent, and pause is called whenever it
// waits for that. release is called with the number of points that are no longer
// needed. Rows that have waited for flushPause are sent even if their batch is small.
func sendGroups(out *batch.ResultWriter, s *arrowSender, groups []batch.ResultGroup,
	fill func(i int) (encoding.Points, error), pause func(), release func(points int)) error {
	filled, stop := fillAhead(len(groups), fill, pause)
	defer stop()

	flushed := time.Now()
	for f := range filled {
		if f.err != nil {
			return f.err
		}

		written := 0
		for i, points := range f.points {
			g := groups[f.first+i]
			g.Points = points
			if err := out.Write(&g); err != nil {
				return err
			}
			written += points.Len()
		}
		release(written)

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

// arrowSender sets the headers once the first byte is written: until then the
// answer may still become an error object.
type arrowSender struct {
	w          http.ResponseWriter
	compressed bool
	sent       bool
}

var _ io.Writer = (*arrowSender)(nil)

// Write sets the headers before the first byte, and passes b on.
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
		// Fails for the writers of tests.
		_ = http.NewResponseController(s.w).Flush()
	}
}

// resultGroup returns a result as a group of the stream, without its points.
func resultGroup(r *engine.Result) batch.ResultGroup {
	g := batch.ResultGroup{Query: r.Query, Metric: r.Metric, AggregateTags: r.AggregateTags, NaNIsNull: r.NaNIsNull}
	for _, t := range r.Tags {
		g.TagKeys = append(g.TagKeys, t.K)
		g.TagValues = append(g.TagValues, t.V)
	}
	return g
}
