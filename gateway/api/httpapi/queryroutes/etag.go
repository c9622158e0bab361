package queryroutes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"maps"
	"net"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// ETags. An answer whose end is a date in the past gets an ETag, by which a client can
// revalidate it. The tag is a hash of the answer itself, body and media type, and the
// answer is computed for every request: points can always be written late, by this
// gateway, another one or a TSD, and only reading the rows shows that. So a 304 is
// never stale; it saves the transfer and the client's work, not the query. For the same
// reason Cache-Control is no-cache, which lets caches keep the answer but makes them
// revalidate it: with any max-age a late point would stay unseen for that long. The tag
// is weak because it is the same for every Content-Encoding.

// maxKeptBytes is how much of a rendered answer is kept until its tag is known, and
// maxCompressedAhead how much is compressed while its rows are still being proven
// unchanged. A proof is there long before more than that is compressed.
const (
	maxKeptBytes       = 4 << 20
	maxCompressedAhead = 64 << 10
)

// cacheable reports whether an answer gets an ETag.
func (h *Handlers) cacheable(q *query.Query) bool {
	return !q.Delete && q.EndIsDate() && q.End < h.Now().UnixMilli()
}

// respond sends what render writes, or a 304 if the client has it. It sends nothing
// before proofs are complete, and returns resultcache.ErrUnproven if they fail. To know
// the tag it renders an answer before it sends it; one of more than maxKeptBytes is then
// rendered again. So render must write the same each time.
func (h *Handlers) respond(w http.ResponseWriter, r *http.Request, q *query.Query, proofs *resultcache.Proofs,
	render func(http.ResponseWriter) error) error {
	if !h.cacheable(q) {
		err := render(&provenWriter{ResponseWriter: w, proofs: proofs})
		if errors.Is(err, resultcache.ErrUnproven) {
			return err // nothing is sent: the caller tries again
		}
		return Abort(err)
	}

	p := &preview{header: http.Header{}, sum: sha256.New(), account: memory.Of(r.Context())}
	if err := render(p); err != nil {
		return err // nothing is sent yet
	}
	tag := p.tag()
	known := matches(r.Header.Values("If-None-Match"), tag)
	// Compressing a small answer takes about as long as the last call of a proof.
	if !known && !p.large && p.bytes <= maxCompressedAhead && proofs.Pending() {
		p.compress(r)
	}
	if err := proofs.Wait(); err != nil { //fault:sent-before-proven TestQuery_unproven
		return err
	}

	setCacheHeaders(w.Header(), tag)
	switch {
	case known:
		w.WriteHeader(http.StatusNotModified)
	case p.large:
		return Abort(render(w))
	default:
		maps.Copy(w.Header(), p.header)
		_, err := p.kept.WriteTo(w)
		return Abort(err)
	}
	return nil
}

// provenWriter waits for proofs before it sends the first byte.
type provenWriter struct {
	http.ResponseWriter
	proofs *resultcache.Proofs // nil once they are complete
}

// Write sends b. The error is resultcache.ErrUnproven if nothing may be sent.
func (p *provenWriter) Write(b []byte) (int, error) {
	if err := p.proofs.Wait(); err != nil {
		return 0, err
	}
	p.proofs = nil
	return p.ResponseWriter.Write(b)
}

func setCacheHeaders(header http.Header, tag string) {
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	header.Add("Vary", "Accept")
}

// preview is a response that is sent nowhere: it is hashed, and kept as long as it
// is small.
type preview struct {
	header  http.Header
	sum     hash.Hash
	account *memory.Account // of what is kept
	kept    net.Buffers     // nil once large
	bytes   int             // of kept
	large   bool
}

// Header returns the response's own header.
func (p *preview) Header() http.Header { return p.header }

// WriteHeader does nothing: answers of queries have one status.
func (p *preview) WriteHeader(int) {}

// Write hashes b, and keeps it unless the answer is too large or memory is short.
func (p *preview) Write(b []byte) (int, error) {
	p.sum.Write(b)
	// Twice the bytes are reserved: the last piece may have as much room left.
	if p.large = p.large || p.bytes+len(b) > maxKeptBytes || !p.account.Try(2*int64(len(b))); p.large {
		p.kept = nil
		return len(b), nil
	}
	last := len(p.kept) - 1
	if last < 0 || cap(p.kept[last])-len(p.kept[last]) < len(b) {
		p.kept = append(p.kept, make([]byte, 0, max(len(b), min(p.bytes, flushBytes))))
		last++
	}
	p.kept[last] = append(p.kept[last], b...)
	p.bytes += len(b)
	return len(b), nil
}

// Flush does nothing.
func (p *preview) Flush() {}

// compress replaces what is kept by what a client of r gets, and sets the header of its
// encoding, by which the compression of the port lets it pass as it is.
func (p *preview) compress(r *http.Request) {
	if !p.account.Try(int64(p.bytes)) {
		return
	}
	out := &encoded{header: maps.Clone(p.header), body: make([]byte, 0, p.bytes/2)}
	httpio.Compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = p.kept.WriteTo(w) // to memory
	})).ServeHTTP(out, r)
	out.header.Del("Vary") // the compression of the port adds it as well
	p.header, p.kept, p.bytes = out.header, net.Buffers{out.body}, len(out.body)
}

// encoded is a response that stays in memory.
type encoded struct {
	header http.Header
	body   []byte
}

// Header returns the response's own header.
func (e *encoded) Header() http.Header { return e.header }

// WriteHeader does nothing: answers of queries have one status.
func (e *encoded) WriteHeader(int) {}

// Write keeps b.
func (e *encoded) Write(b []byte) (int, error) {
	e.body = append(e.body, b...)
	return len(b), nil
}

// tagWriter holds an answer back while it is small, so that it can get a tag. Once
// the answer is large it is sent as it comes, without a tag; so is an answer that
// is not cacheable.
type tagWriter struct {
	preview
	w         http.ResponseWriter
	streaming bool
}

func (h *Handlers) newTagWriter(w http.ResponseWriter, r *http.Request, q *query.Query) *tagWriter {
	return &tagWriter{w: w, streaming: !h.cacheable(q),
		preview: preview{header: w.Header(), sum: sha256.New(), account: memory.Of(r.Context())}}
}

// Write holds b back or sends it.
func (t *tagWriter) Write(b []byte) (int, error) {
	if t.streaming {
		return t.w.Write(b)
	}
	kept := t.kept // preview.Write drops it once the answer is large
	if n, err := t.preview.Write(b); !t.large {
		return n, err
	}

	t.streaming = true
	if _, err := kept.WriteTo(t.w); err != nil {
		return 0, err
	}
	return t.w.Write(b)
}

// Flush flushes an answer that is sent as it comes.
func (t *tagWriter) Flush() {
	if t.streaming {
		_ = http.NewResponseController(t.w).Flush() // fails for the writers of tests
	}
}

// end sends what was held back, with its tag, or a 304 if the client has it.
func (t *tagWriter) end(r *http.Request) error {
	if t.streaming {
		return nil
	}

	tag := t.tag()
	setCacheHeaders(t.header, tag)
	if matches(r.Header.Values("If-None-Match"), tag) {
		t.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, err := t.kept.WriteTo(t.w)
	return err
}

// tag returns the ETag; the answer must be complete.
func (p *preview) tag() string {
	p.sum.Write([]byte("\n" + p.header.Get("Content-Type")))
	return `W/"` + hex.EncodeToString(p.sum.Sum(nil)[:16]) + `"`
}

// matches reports whether If-None-Match names the tag, by weak comparison. A POST
// gets a 304 like a GET, for it only reads.
// Source: RFC 9110, 13.1.2.
func matches(headers []string, tag string) bool {
	for _, list := range headers {
		for candidate := range strings.SplitSeq(list, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
