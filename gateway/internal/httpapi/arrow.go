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
	"downpour/gateway/ask"
	"downpour/gateway/query"
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
// It carries an ETag if it is small; a large one is sent while it is made.
func (a *API) arrow(ctx context.Context, w http.ResponseWriter, r *http.Request, q *query.Query, entry *queryEntry) error {
	compression, err := bufferCompression(r)
	if err != nil {
		return err
	}
	answer, err := a.Engine.Open(ctx, q)
	if err != nil {
		return err
	}
	defer func() { entry.stats = answer.Stats }()
	if err := a.AnswerLimits.check(answer.Stats.PointsOut, true); err != nil {
		return err
	}
	if q.Delete { // the rows must be whole before they go
		if err := fillAll(answer); err != nil {
			return err
		}
		if err := a.deleteRead(ctx, q); err != nil {
			return err
		}
	}
	markHeader(w, &answer.Stats)
	t := a.tagger(w, r, q)
	sent, err := writeArrow(t, a.AnswerLimits, answer, batch.ResultOptions{Query: len(q.Queries) > 1, Integers: q.Integers, Compression: compression, Missing: HexRanges(answer.Stats.Missing)})
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

func fillAll(answer *ask.Answer) error {
	for i := range answer.Results {
		if err := answer.Fill(i); err != nil {
			return err
		}
	}
	return nil
}

// writeArrow sends each group when it is merged. What fails before anything was
// sent is an error as any other.
func writeArrow(w http.ResponseWriter, limits AnswerLimits, answer *ask.Answer, opts batch.ResultOptions) (sent bool, err error) {
	groups := make([]batch.ResultGroup, len(answer.Results))
	for i := range answer.Results {
		groups[i] = resultGroup(&answer.Results[i])
	}
	s := &arrowSender{w: w, compressed: opts.Compression != ""}
	out := batch.NewResultWriter(s, groups, opts)
	defer out.Release()
	err = sendGroups(out, s, groups, func(i int) (encoding.Points, error) {
		if err := answer.Fill(i); err != nil {
			return encoding.Points{}, err
		}
		return answer.Take(i), limits.check(answer.Stats.PointsOut, true)
	})
	return s.sent, err
}

// sendGroups writes the groups one after the other; fill makes their points, in
// a goroutine of its own, while those before are on their way. What has waited
// for long is sent, even if it is little.
func sendGroups(out *batch.ResultWriter, s *arrowSender, groups []batch.ResultGroup, fill func(i int) (encoding.Points, error)) error {
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
			if err := out.Write(&g); err != nil {
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

func resultGroup(r *ask.Result) batch.ResultGroup {
	g := batch.ResultGroup{Query: r.Query, Metric: r.Metric, AggregateTags: r.AggregateTags, NaNIsNull: r.NaNIsNull}
	for _, t := range r.Tags {
		g.TagKeys = append(g.TagKeys, t.K)
		g.TagValues = append(g.TagValues, t.V)
	}
	return g
}
