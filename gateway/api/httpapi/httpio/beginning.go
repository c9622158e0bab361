package httpio

import (
	"io"
	"net/http"
)

// BodyBeginning returns the first bytes of a request's body, n at most, for a log: of the decoded
// body if ReadBody has read it, otherwise as they come from the client. These can still be read.
// It returns nothing of an unread compressed body.
func BodyBeginning(r *http.Request, n int) string {
	if k := knownOf(r.Context()); k != nil && k.body != nil {
		return string(k.body[:min(n, len(k.body))])
	}
	if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Content-Encoding") != "" {
		return ""
	}
	p := &peeked{ReadCloser: r.Body, first: make([]byte, n)}
	n, p.err = readFull(r.Body, p.first)
	p.first = p.first[:n]
	r.Body = p
	return string(p.first)
}

// peeked is a body whose first bytes were read in advance.
type peeked struct {
	io.ReadCloser
	first []byte
	err   error // after first; nil if the body continues
}

// Read returns the first bytes, and then the others.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}
