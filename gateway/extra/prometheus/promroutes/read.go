package promroutes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/extra/prometheus/remote"
	"downpour/pushdown/process/memory"
)

// matcherSigns are the types of matchers as PromQL writes them.
var matcherSigns = []string{"=", "!=", "=~", "!~"}

// remoteRead handles read: Prometheus' remote read, answered by samples or by a stream of chunks.
func (h *handlers) remoteRead(w http.ResponseWriter, r *http.Request) error {
	req := &request{Request: r, start: time.Now()}
	err := h.answerRead(w, req)
	h.Count(err, req.start)
	if err != nil {
		h.writeError(w, r, err)
	}
	return nil
}

func (h *handlers) answerRead(w http.ResponseWriter, r *request) error {
	asked, err := readRequest(w, r.Request)
	if err != nil {
		return err
	}
	start, end := int64(0), int64(0)
	var texts []string
	for i, q := range asked.Queries {
		if i == 0 || q.Start < start {
			start = q.Start
		}
		end = max(end, q.End)
		var matchers []string
		for _, m := range q.Matchers {
			matchers = append(matchers, fmt.Sprintf("%s%s%q", m.Name, matcherSigns[m.Type], m.Value))
		}
		texts = append(texts, "{"+strings.Join(matchers, ",")+"}")
	}
	return h.read(w, r, strings.Join(texts, " "), time.UnixMilli(start), time.UnixMilli(end),
		func(ctx context.Context, a *queryroutes.Reading) error {
			src, answer := &source{h: h, reading: a}, &readAnswer{w: w, work: a.WorkTime(), chunks: asked.Chunks}
			for i, q := range asked.Queries {
				matchers := make([]promql.Matcher, len(q.Matchers))
				for k, m := range q.Matchers {
					matchers[k] = promql.Matcher(m)
				}
				found, err := h.engine.Select(ctx, src, matchers, q.Start, q.End)
				if err == nil {
					err = answer.add(ctx, i, found)
				}
				if err != nil && answer.sent {
					return queryroutes.Abort(err)
				}
				if err != nil {
					return classified(err)
				}
				a.Entry.Stats.Groups += len(found)
			}
			a.Computed()
			return queryroutes.Abort(answer.finish())
		})
}

// readRequest reads the body.
func readRequest(w http.ResponseWriter, r *http.Request) (asked remote.ReadRequest, err error) {
	if method, err := httpio.Method(r); err != nil || method != http.MethodPost {
		return asked, httpio.MethodNotAllowed(r.Method)
	}
	packed, err := readPacked(w, r, remote.MaxRequest)
	if err != nil {
		return asked, err
	}
	if err := memory.Reserve(r.Context(), 3*remote.MaxRequest); err != nil {
		return asked, err
	}
	body, err := remote.Unpack(packed, remote.MaxRequest)
	if err == nil {
		asked, err = remote.ParseRead(body)
	}
	if err != nil {
		return asked, badData("%s", err.Error())
	}
	return asked, nil
}

// readAnswer is the answer to a read. One of samples is held until it is whole, one of chunks is sent frame by frame.
type readAnswer struct {
	w      http.ResponseWriter
	work   *queryroutes.WorkTime
	chunks bool
	sent   bool
	whole  []byte // of samples
}

// sampleBytes is the memory of a sample in an answer: 20 bytes in its series, in the result of its query, in the answer
// and in the packed answer, each in an array that may have grown to twice that.
const sampleBytes = 4 * 20 * 2

// add adds the result of the next query.
func (a *readAnswer) add(ctx context.Context, query int, found []promql.Found) error {
	if a.chunks {
		return a.addChunks(query, found)
	}
	var result []byte
	for i := range found {
		f := &found[i]
		if err := memory.Reserve(ctx, int64(f.Len())*sampleBytes); err != nil {
			return err
		}
		series := appendLabels(nil, f)
		for f.Next() {
			ms, v := f.At()
			series = remote.AppendSample(series, ms, v)
		}
		result = remote.AppendSeries(result, series)
	}
	a.whole = remote.AppendResult(a.whole, result)
	return nil
}

func (a *readAnswer) addChunks(query int, found []promql.Found) error {
	var frame []byte
	for i := range found {
		f := &found[i]
		labels := appendLabels(nil, f)
		series := labels
		for {
			first, last, data, ok := f.Chunk()
			if ok {
				series = remote.AppendChunk(series, first, last, data)
			}
			if full := len(frame)+len(series) >= remote.FrameBytes; ok && !full {
				continue
			}
			if len(series) > len(labels) {
				frame = remote.AppendSeries(frame, series)
			}
			if len(frame) >= remote.FrameBytes {
				if err := a.send(remote.AppendFrame(nil, frame, query)); err != nil {
					return err
				}
				frame = frame[:0]
			}
			if series = labels[:len(labels):len(labels)]; !ok {
				break
			}
		}
	}
	if len(frame) == 0 {
		return nil
	}
	return a.send(remote.AppendFrame(nil, frame, query))
}

func appendLabels(series []byte, f *promql.Found) []byte {
	f.Each(func(name, value string) { series = remote.AppendLabel(series, name, value) })
	return series
}

// send sends a piece of the answer.
func (a *readAnswer) send(piece []byte) error {
	if !a.sent {
		a.sent = true
		if a.chunks {
			a.w.Header().Set("Content-Type", "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse")
		} else {
			a.w.Header().Set("Content-Type", "application/x-protobuf")
			a.w.Header().Set("Content-Encoding", "snappy")
		}
	}
	return a.work.Write(a.w, piece)
}

// finish sends what is left.
func (a *readAnswer) finish() error {
	if a.chunks {
		return a.send(nil) // an answer without series has its type too
	}
	return a.send(remote.Pack(a.whole))
}
