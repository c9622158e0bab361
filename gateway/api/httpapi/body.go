package httpapi

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"downpour/pushdown/process/memory"
)

// Limits of decoded bodies, in bytes: of points, and of everything else.
const (
	maxBody      = 32 << 20
	maxSmallBody = 1 << 20
)

// readBody returns a request's decoded body, at most maxSmallBody bytes of it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readUpTo(w, r, maxSmallBody)
}

// readUpTo returns a request's decoded body. What is longer is refused before it
// is whole in memory, however small it was on the wire.
func readUpTo(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	k := &bodyBuffer{ctx: r.Context()}
	defer k.close()
	in, err := k.decodedBody(w, r, limit)
	if err != nil {
		return nil, err
	}
	read, err := k.readChunks(in, limit)
	if err != nil {
		return nil, refusedBody(r, err)
	}
	return k.join(read)
}

// refusedBody words why a body could not be read.
func refusedBody(r *http.Request, err error) error {
	var large *http.MaxBytesError
	var api *apiError
	switch {
	case errors.As(err, &large), errors.As(err, &api), memory.Refused(err):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{Code: http.StatusRequestTimeout, Message: "The request body did not come in time: " + err.Error()}
	}
	return bad("Unable to read the request body: %v", err)
}

// takes reserves the bytes of a body as they come, on the wire's form or decoded,
// and gives gives them back.
func takes(ctx context.Context, n int) error { return memory.Reserve(ctx, int64(n)) }

func gives(ctx context.Context, n int) { memory.Release(ctx, int64(n)) }

const chunkBytes = 64 << 10

// chunk is a piece of a body.
type chunk struct {
	b  [chunkBytes]byte
	n  int // bytes in it
	at int // its place in keeper.held
}

// chunks keeps the memory that bodies are read into until their length is known.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// bodyBuffer holds what the reading of one body needs.
type bodyBuffer struct {
	ctx  context.Context
	held []*chunk // all that were taken; nil where one was given back
	done func()   // gives the decoder back
}

// takeChunk returns an empty chunk.
func (k *bodyBuffer) takeChunk() (*chunk, error) {
	if err := takes(k.ctx, chunkBytes); err != nil {
		return nil, err
	}
	c := chunks.Get().(*chunk)
	c.n, c.at = 0, len(k.held)
	k.held = append(k.held, c)
	return c, nil
}

// give puts a chunk back.
func (k *bodyBuffer) give(c *chunk) {
	k.held[c.at] = nil
	chunks.Put(c)
	gives(k.ctx, chunkBytes)
}

// close gives everything back.
func (k *bodyBuffer) close() {
	if k.done != nil {
		k.done()
	}
	for _, c := range k.held {
		if c != nil {
			k.give(c)
		}
	}
}

// readChunks reads to the end, or refuses at the limit.
func (k *bodyBuffer) readChunks(in io.Reader, limit int) ([]*chunk, error) {
	first := len(k.held)
	for total := 0; ; {
		c, err := k.takeChunk()
		if err != nil {
			return nil, err
		}
		c.n, err = fill(in, c.b[:])
		total += c.n
		switch {
		case total > limit:
			return nil, &http.MaxBytesError{Limit: int64(limit)}
		case err == io.EOF:
			return k.held[first:], nil
		case err != nil:
			return nil, err
		}
	}
}

// fill reads until b is full or in ends; io.EOF is in's own word, so that a
// compressed body cut short stays an error.
func fill(in io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = in.Read(b[n:])
		n += m
	}
	return n, err
}

// join makes the body once, of its size: a buffer that doubles would leave three
// times as much behind.
func (k *bodyBuffer) join(read []*chunk) ([]byte, error) {
	total := 0
	for _, c := range read {
		total += c.n
	}
	if err := takes(k.ctx, total); err != nil {
		return nil, err
	}
	body := make([]byte, 0, total)
	for _, c := range read {
		body = append(body, c.b[:c.n]...)
		k.give(c)
	}
	return body, nil
}

// decodedBody returns what gives the body's plain bytes. A compressed body is
// received whole before it is decoded: a client that sends 31 KB, which decode
// to 32 MB, and then nothing, holds 31 KB.
func (k *bodyBuffer) decodedBody(w http.ResponseWriter, r *http.Request, limit int) (io.Reader, error) {
	limited := http.MaxBytesReader(w, r.Body, int64(limit))
	name := strings.ToLower(r.Header.Get("Content-Encoding"))
	decode, ok := decoders[name]
	switch {
	case name == "" || name == "identity":
		return limited, nil
	case !ok:
		return nil, bad("Unsupported Content-Encoding: %s", r.Header.Get("Content-Encoding"))
	}
	packed, err := k.readChunks(limited, limit)
	if err != nil {
		return nil, refusedBody(r, err)
	}
	in, done, err := decode(&chunkReader{k, packed, 0})
	if err != nil {
		return nil, bad("Unable to decode the %s body: %v", r.Header.Get("Content-Encoding"), err)
	}
	k.done = done
	return in, nil
}

// chunkReader reads chunks, and gives each back when it is read.
type chunkReader struct {
	keeper *bodyBuffer
	chunks []*chunk
	at     int // in the first
}

// Read copies from the first chunk that has something left.
func (c *chunkReader) Read(b []byte) (n int, err error) {
	for n == 0 && len(c.chunks) > 0 {
		first := c.chunks[0]
		n = copy(b, first.b[c.at:first.n])
		if c.at += n; c.at < first.n {
			return n, nil
		}
		c.keeper.give(first)
		c.chunks, c.at = c.chunks[1:], 0
	}
	if n == 0 {
		err = io.EOF
	}
	return n, err
}

// decoder begins to decode; done gives back what it has taken, if anything.
type decoder func(in io.Reader) (out io.Reader, done func(), err error)

var decoders = map[string]decoder{"gzip": gunzip, "x-gzip": gunzip, "deflate": inflate}

// gunzipper is a decoder and its buffer, some 50 KB.
type gunzipper struct {
	gzip.Reader
	in *bufio.Reader
}

var gunzippers = sync.Pool{New: func() any { return &gunzipper{in: bufio.NewReader(nil)} }}

func gunzip(in io.Reader) (io.Reader, func(), error) {
	z := gunzippers.Get().(*gunzipper)
	z.in.Reset(in)
	done := func() {
		z.in.Reset(nil)
		gunzippers.Put(z)
	}
	if err := z.Reset(z.in); err != nil {
		done()
		return nil, nil, err
	}
	return z, done, nil
}

// inflate reads a deflate body: zlib's form, as the standard has it, or the bare
// stream that some clients send. Source: HttpContentDecompressor.
func inflate(from io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReader(from)
	head, err := in.Peek(2)
	if err != nil {
		return nil, nil, err
	}
	if head[0]&0x0F == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		out, err := zlib.NewReader(in)
		return out, nil, err
	}
	return flate.NewReader(in), nil, nil
}
