package httpapi

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
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
	in, err := decodedBody(w, r, limit)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	body, err := readChunks(in, limit)
	var large *http.MaxBytesError
	if err != nil && !errors.As(err, &large) {
		return nil, bad("Unable to read the request body: %v", err)
	}
	return body, err
}

const chunkBytes = 64 << 10

// chunks keeps the memory that bodies are read into until their length is known.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// readChunks reads to the end, or refuses at the limit. It makes the body once,
// of its size: a buffer that doubles would leave three times as much behind.
func readChunks(in io.Reader, limit int) ([]byte, error) {
	var read []*[chunkBytes]byte
	defer func() {
		for _, c := range read {
			chunks.Put(c)
		}
	}()
	for total := 0; ; {
		c := chunks.Get().(*[chunkBytes]byte)
		read = append(read, c)
		n, err := fill(in, c[:])
		total += n
		switch {
		case total > limit:
			return nil, &http.MaxBytesError{Limit: int64(limit)}
		case err == io.EOF:
			return join(read, total), nil
		case err != nil:
			return nil, err
		}
	}
}

// fill reads until b is full or in ends; io.EOF is in's own word, so that a
// compressed body cut short stays an error.
func fill(in io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = in.Read(b[n:])
		n += k
	}
	return n, err
}

func join(read []*[chunkBytes]byte, total int) []byte {
	body := make([]byte, 0, total)
	for _, c := range read {
		body = append(body, c[:min(chunkBytes, total-len(body))]...)
	}
	return body
}

func decodedBody(w http.ResponseWriter, r *http.Request, limit int) (io.ReadCloser, error) {
	limited := http.MaxBytesReader(w, r.Body, int64(limit))
	var in io.ReadCloser
	var err error
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return limited, nil
	case "gzip", "x-gzip":
		in, err = gzip.NewReader(limited)
	case "deflate":
		in, err = inflate(limited)
	default:
		return nil, bad("Unsupported Content-Encoding: %s", r.Header.Get("Content-Encoding"))
	}
	if err != nil {
		return nil, bad("Unable to decode the %s body: %v", r.Header.Get("Content-Encoding"), err)
	}
	return in, nil
}

// inflate reads a deflate body: zlib's form, as the standard has it, or the bare
// stream that some clients send. Source: HttpContentDecompressor.
func inflate(body io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReader(body)
	head, err := in.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0F == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}
