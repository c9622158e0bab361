package httpio

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

// maxBody is the limit of ReadBody, in decoded bytes.
const maxBody = 1 << 20

// ReadBody returns a request's decoded body of at most 1 MiB.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return ReadBodyUpTo(w, r, maxBody)
}

// ReadBodyUpTo returns a request's decoded body. A body that decodes to more
// than limit bytes is refused before all of it is in memory, however small it was
// on the wire.
func ReadBodyUpTo(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	k := &bodyBuffer{ctx: r.Context()}
	defer k.close()

	in, err := k.decodedBody(w, r, limit)
	if err != nil {
		return nil, err
	}
	read, err := k.readChunks(in, limit)
	if err != nil {
		return nil, bodyError(r, err)
	}
	body, err := k.join(read)
	if about := knownOf(r.Context()); about != nil {
		about.body = body
	}
	return body, err
}

// bodyError words why a body could not be read.
func bodyError(r *http.Request, err error) error {
	var large *http.MaxBytesError
	var answer *Error
	switch {
	case errors.As(err, &large), errors.As(err, &answer), memory.Refused(err): // Classify words these
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Code: http.StatusRequestTimeout, Message: "The request body did not come in time: " + err.Error()}
	}
	return BadRequest("Unable to read the request body: %v", err)
}

// reserve counts n bytes of a body, compressed or decoded, against the memory of
// its request, and release gives them back.
func reserve(ctx context.Context, n int) error { return memory.Reserve(ctx, int64(n)) }

func release(ctx context.Context, n int) { memory.Release(ctx, int64(n)) }

const chunkBytes = 64 << 10

// chunk is a part of a body.
type chunk struct {
	b     [chunkBytes]byte
	n     int // bytes in it
	index int // in bodyBuffer.held
}

// chunks keeps the memory that bodies are read into until their length is known.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// bodyBuffer holds the memory that reading one body needs.
type bodyBuffer struct {
	ctx         context.Context
	held        []*chunk // all chunks taken; nil where one was given back
	freeDecoder func()   // returns the decoder to its pool; nil without one
}

// newChunk returns an empty chunk.
func (k *bodyBuffer) newChunk() (*chunk, error) {
	if err := reserve(k.ctx, chunkBytes); err != nil {
		return nil, err
	}
	c := chunks.Get().(*chunk)
	c.n, c.index = 0, len(k.held)
	k.held = append(k.held, c)
	return c, nil
}

// freeChunk returns a chunk to the pool.
func (k *bodyBuffer) freeChunk(c *chunk) {
	k.held[c.index] = nil
	chunks.Put(c)
	release(k.ctx, chunkBytes)
}

// close frees everything that is still held.
func (k *bodyBuffer) close() {
	if k.freeDecoder != nil {
		k.freeDecoder()
	}
	for _, c := range k.held {
		if c != nil {
			k.freeChunk(c)
		}
	}
}

// readChunks reads to the end of in, or fails after more than limit bytes.
func (k *bodyBuffer) readChunks(in io.Reader, limit int) ([]*chunk, error) {
	first := len(k.held) // after the chunks of the compressed body, if there are any
	for total := 0; ; {
		c, err := k.newChunk()
		if err != nil {
			return nil, err
		}
		c.n, err = readFull(in, c.b[:])
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

// readFull reads until b is full or in ends, and returns in's own error.
// io.ReadFull would return io.ErrUnexpectedEOF for an end within b, which is also
// the error of a compressed body that was cut short.
func readFull(in io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = in.Read(b[n:])
		n += m
	}
	return n, err
}

// join copies the chunks into one slice of the body's exact size. A buffer that
// grows by doubling would leave three times as much garbage.
func (k *bodyBuffer) join(read []*chunk) ([]byte, error) {
	total := 0
	for _, c := range read {
		total += c.n
	}
	if err := reserve(k.ctx, total); err != nil {
		return nil, err
	}

	body := make([]byte, 0, total)
	for _, c := range read {
		body = append(body, c.b[:c.n]...)
		k.freeChunk(c)
	}
	return body, nil
}

// decodedBody returns a reader of the decoded body. A compressed body is received
// completely before it is decoded: otherwise a client that sends 31 KB, which
// decode to 32 MB, and then stops would hold 32 MB instead of 31 KB.
func (k *bodyBuffer) decodedBody(w http.ResponseWriter, r *http.Request, limit int) (io.Reader, error) {
	limited := http.MaxBytesReader(w, r.Body, int64(limit))
	name := strings.ToLower(r.Header.Get("Content-Encoding"))
	decode, ok := decoders[name]
	switch {
	case name == "" || name == "identity":
		return limited, nil
	case !ok:
		return nil, BadRequest("Unsupported Content-Encoding: %s", r.Header.Get("Content-Encoding"))
	}

	packed, err := k.readChunks(limited, limit)
	if err != nil {
		return nil, bodyError(r, err)
	}
	in, free, err := decode(&chunkReader{k, packed, 0})
	if err != nil {
		return nil, BadRequest("Unable to decode the %s body: %v", r.Header.Get("Content-Encoding"), err)
	}
	k.freeDecoder = free
	return in, nil
}

// chunkReader reads chunks and frees each once it is read.
type chunkReader struct {
	buffer *bodyBuffer
	chunks []*chunk
	at     int // how much of the first is read
}

// Read copies from the first chunk that has bytes left.
func (c *chunkReader) Read(b []byte) (n int, err error) {
	for n == 0 && len(c.chunks) > 0 {
		first := c.chunks[0]
		n = copy(b, first.b[c.at:first.n])
		if c.at += n; c.at < first.n {
			return n, nil
		}
		c.buffer.freeChunk(first)
		c.chunks, c.at = c.chunks[1:], 0
	}
	if n == 0 {
		err = io.EOF
	}
	return n, err
}

// decoder begins to decode a body. free returns what it took from a pool; it is
// nil if it took nothing.
type decoder func(in io.Reader) (out io.Reader, free func(), err error)

var decoders = map[string]decoder{"gzip": gunzip, "x-gzip": gunzip, "deflate": inflate}

// gunzipper is a decoder and its buffer, some 50 KB.
type gunzipper struct {
	gzip.Reader
	in *bufio.Reader
}

var gunzippers = sync.Pool{New: func() any { return &gunzipper{in: bufio.NewReader(nil)} }}

// gunzip returns a reader of the decoded body. The caller calls the returned function after its
// last read.
func gunzip(in io.Reader) (io.Reader, func(), error) {
	z := gunzippers.Get().(*gunzipper)
	z.in.Reset(in)
	free := func() {
		z.in.Reset(nil) // or the pool would hold the body
		gunzippers.Put(z)
	}
	if err := z.Reset(z.in); err != nil {
		free()
		return nil, nil, err
	}
	return z, free, nil
}

// inflate reads a deflate body: in zlib's format, as RFC 9110 has it, or the bare
// stream that some clients send. zlib's two header bytes distinguish them: the method,
// 8, and a multiple of 31. There is no pool of these decoders, so no function is
// returned.
// Source: HttpContentDecompressor (Netty).
func inflate(from io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReader(from)
	header, err := in.Peek(2)
	if err != nil {
		return nil, nil, err
	}
	if header[0]&0x0F == 8 && (int(header[0])<<8|int(header[1]))%31 == 0 {
		out, err := zlib.NewReader(in)
		return out, nil, err
	}
	return flate.NewReader(in), nil, nil
}
