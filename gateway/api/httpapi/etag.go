package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"

	"downpour/gateway/query"
	"downpour/pushdown/process/memory"
)

// An answer whose end is a date in the past can be asked for again by its ETag.
// The tag is a hash of the answer itself, body and form, which is made anew each
// time: points can always be written late, by this gateway, another one or a
// TSD, and nothing short of reading the rows would know. So a 304 is never
// stale; what it saves is the transfer and the client's work, not ours. For the
// same reason Cache-Control lets everybody keep the answer and nobody use it
// unasked (no-cache): with any max-age a late point would stay unseen so long.
// The tag is weak, for it stands for the answer in each Content-Encoding.

// keptBytes is how much of a rendered answer is kept until its tag is known; a
// larger one is rendered twice.
const keptBytes = 4 << 20

// respond sends what render writes; render may be called twice and writes the
// same both times. An answer that may be cached gets its headers, or is a 304.
func (a *API) respond(w http.ResponseWriter, r *http.Request, q *query.Query, render func(http.ResponseWriter) error) error {
	if q.Delete || !q.EndIsDate() || q.End >= a.Now().UnixMilli() {
		return abort(render(w))
	}
	p := &preview{header: http.Header{}, sum: sha256.New(), account: memory.Of(r.Context())}
	if err := render(p); err != nil {
		return err // nothing is sent yet
	}
	h := w.Header()
	tag := p.tag()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept")
	switch {
	case matches(r.Header.Values("If-None-Match"), tag):
		w.WriteHeader(http.StatusNotModified)
	case p.kept == nil:
		return abort(render(w))
	default:
		for k, v := range p.header {
			h[k] = v
		}
		_, err := w.Write(p.kept)
		return abort(err)
	}
	return nil
}

// preview is a response that goes nowhere: it is hashed, and kept if it is small.
type preview struct {
	header  http.Header
	sum     hash.Hash
	account *memory.Account // of what is kept
	kept    []byte
	large   bool
}

// Header is the response's own.
func (p *preview) Header() http.Header { return p.header }

// WriteHeader has nothing to do: answers of queries have one status.
func (p *preview) WriteHeader(int) {}

// Write hashes and keeps.
func (p *preview) Write(b []byte) (int, error) {
	p.sum.Write(b)
	if p.large = p.large || len(p.kept)+len(b) > keptBytes || !p.account.Try(2*int64(len(b))); p.large { // it grows by doubling
		p.kept = nil
	} else {
		p.kept = append(p.kept, b...)
	}
	return len(b), nil
}

// Flush has nothing to do.
func (p *preview) Flush() {}

// tagger keeps an answer while it is small, so that it can have a tag; one that
// grows goes through, as does an answer that may have none.
type tagger struct {
	preview
	w       http.ResponseWriter
	through bool
}

func (a *API) tagger(w http.ResponseWriter, r *http.Request, q *query.Query) *tagger {
	t := &tagger{w: w, preview: preview{header: w.Header(), sum: sha256.New(), account: memory.Of(r.Context())}}
	t.through = q.Delete || !q.EndIsDate() || q.End >= a.Now().UnixMilli()
	return t
}

// Write keeps or passes on.
func (t *tagger) Write(b []byte) (int, error) {
	if t.through {
		return t.w.Write(b)
	}
	kept := t.kept
	if n, err := t.preview.Write(b); !t.large {
		return n, err
	}
	t.through = true
	if _, err := t.w.Write(kept); err != nil {
		return 0, err
	}
	return t.w.Write(b)
}

// Flush passes on what is passed on.
func (t *tagger) Flush() {
	if t.through {
		_ = http.NewResponseController(t.w).Flush() // writers of tests cannot
	}
}

// end sends what was kept, with its tag.
func (t *tagger) end(r *http.Request) error {
	if t.through {
		return nil
	}
	tag := t.tag()
	t.header.Set("ETag", tag)
	t.header.Set("Cache-Control", "no-cache")
	t.header.Add("Vary", "Accept")
	if matches(r.Header.Values("If-None-Match"), tag) {
		t.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, err := t.w.Write(t.kept)
	return err
}

func (p *preview) tag() string {
	p.sum.Write([]byte("\n" + p.header.Get("Content-Type")))
	return `W/"` + hex.EncodeToString(p.sum.Sum(nil)[:16]) + `"`
}

// matches tells whether If-None-Match names the tag, weakly compared.
// Source: RFC 9110, 13.1.2. A POST is as good as a GET here, for it only reads.
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
