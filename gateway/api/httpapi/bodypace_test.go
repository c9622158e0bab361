package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/flate"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/listener/listenertest"
	"downpour/gateway/api/pace"
	"downpour/pushdown/process/heap/heaptest"
)

// Limits of bodies as in the API: decoded bytes of a put, and how much is read at a time.
const (
	maxBody    = 32 << 20
	chunkBytes = 64 << 10
)

// newAPI returns an API whose routes are all served by h, except those with separate handlers.
func newAPI(h http.HandlerFunc) *API {
	log := slog.New(slog.DiscardHandler)
	return &API{Metrics: h, Page: h, Live: h, Guard: &access.Guard{Log: log}, Log: log}
}

// inMemory serves an API, over connections in memory, whose /metrics is the handler; end stops it.
func inMemory(metrics http.HandlerFunc) (dial func() net.Conn, end func()) {
	a := newAPI(metrics)
	l := listenertest.NewPipes()
	server := &http.Server{Handler: a.Handler()}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(pace.Listen(l, pace.Limits{})) })
	return l.Dial, func() {
		server.Close()
		serving.Wait()
	}
}

// bodyLength answers with the length of the body.
func bodyLength(w http.ResponseWriter, r *http.Request) {
	body, err := httpio.ReadBodyUpTo(w, r, maxBody)
	if err != nil {
		httpio.WriteError(w, r, slog.New(slog.DiscardHandler), err)
		return
	}
	fmt.Fprint(w, len(body))
}

// answerOf reads an answer's status and body.
func answerOf(t *testing.T, c net.Conn) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A body may take any time while enough bytes come. One that stops is refused with 408 after ten
// seconds, one that comes a byte a second after a minute.
func TestBody_slow(t *testing.T) {
	f := func(name string, size, piece int, every time.Duration, pieces int, status int, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			dial, end := inMemory(bodyLength)
			defer end()
			c := dial()
			defer c.Close()
			began := time.Now()
			var sending sync.WaitGroup
			defer sending.Wait()
			sending.Go(func() {
				_, err := fmt.Fprintf(c, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
					size)
				for ; err == nil && pieces > 0; pieces-- {
					<-time.After(every)
					_, err = c.Write(make([]byte, piece))
				}
			})
			got, body := answerOf(t, c)
			took := time.Since(began)
			if got != status || took < least || took > most {
				t.Errorf("%s: %d %.200s after %s, want %d after %s to %s", name, got, body, took, status, least, most)
			}
			if status == 200 && body != fmt.Sprint(size) ||
				status == 408 && !strings.Contains(body, "did not come in time") {
				t.Errorf("%s: %d %s", name, got, body)
			}
			c.Close()
		})
	}
	f("at once", 1000, 1000, 0, 1, 200, 0, 0)
	f("nothing", 1000, 1, 0, 0, 408, 10*time.Second, 10*time.Second)
	f("nothing behind a beginning", 1000, 10, 5*time.Second, 1, 408, 15*time.Second, 15*time.Second)
	f("a byte a second", 1000, 1, time.Second, 1000, 408, time.Minute, 61*time.Second)
	f("little, slowly", 50, 1, time.Second, 50, 200, 50*time.Second, 50*time.Second)
	f("4 MiB in 4 minutes", 4<<20, 160<<10, 9*time.Second, 27, 200, 3*time.Minute, 5*time.Minute)
}

// A handler may work for minutes, and learns at once when its client leaves. A body that no handler
// reads is not waited for.
func TestBody_longAnswer(t *testing.T) {
	f := func(request string, read bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var gone time.Duration // when the handler saw that the client had left
			dial, end := inMemory(func(w http.ResponseWriter, r *http.Request) {
				began := time.Now()
				if read {
					bodyLength(w, r)
					r.Body.Read(make([]byte, 1)) // once more, as decoders do, to see the end
				}
				select {
				case <-r.Context().Done():
					gone = time.Since(began)
				case <-time.After(10 * time.Minute):
				}
			})
			defer end()
			c := dial()
			go io.WriteString(c, request)
			time.AfterFunc(9*time.Minute, func() { c.Close() })
			io.ReadAll(c)
			synctest.Wait()
			if gone != 9*time.Minute {
				t.Errorf("%.30q: the client was taken to have left after %s, want 9 min", request, gone)
			}
		})
	}
	f("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", false)
	f("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345", true)
	f("POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n", true)

	synctest.Test(t, func(t *testing.T) { // a body that nobody reads, and that does not come
		dial, end := inMemory(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "answer") })
		defer end()
		c := dial()
		began := time.Now()
		go io.WriteString(c, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
		if status, body := answerOf(t, c); status != 200 || body != "answer" || time.Since(began) > 10*time.Second {
			t.Errorf("%d %s after %s", status, body, time.Since(began))
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF || time.Since(began) > 11*time.Second {
			t.Errorf("%v after %s, want the connection closed", err, time.Since(began))
		}
	})
}

// A client may read its answer slowly. If it takes nothing for ten seconds, the connection ends.
func TestAnswer_slow(t *testing.T) {
	const size = 4 << 20
	f := func(name string, piece int, every time.Duration, whole bool, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan time.Duration, 1)
			dial, end := inMemory(func(w http.ResponseWriter, _ *http.Request) {
				began := time.Now()
				_, err := w.Write(make([]byte, size)) // as an answer with an ETag is, at once
				if ended <- time.Since(began); (err == nil) != whole {
					t.Errorf("%s: the handler got the error %v, want one only if the answer is cut", name, err)
				}
			})
			defer end()
			c := dial()
			defer c.Close()
			fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			got := 0
			for b := make([]byte, piece); ; {
				n, err := io.ReadFull(c, b)
				if got += n; err != nil || got > size {
					break
				}
				<-time.After(every)
			}
			if took := <-ended; took < least || took > most || whole != (got > size) {
				t.Errorf("%s: %d bytes, ended after %s, want whole: %t, %s to %s", name, got, took, whole, least, most)
			}
		})
	}
	f("at once", 4096, 0, true, 0, 0)
	f("40 KiB/s", 4096, 100*time.Millisecond, true, 90*time.Second, 2*time.Minute)
	f("two seconds a KiB", 1024, 2*time.Second, false, time.Minute, 70*time.Second)
	f("nothing", 4096, time.Hour, false, 10*time.Second, 10*time.Second)
}

// packed returns n blanks in an encoding.
func packed(t *testing.T, encoding string, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	default:
		w, _ = flate.NewWriter(&out, flate.DefaultCompression)
	}
	_, err := w.Write(bytes.Repeat([]byte(" "), n))
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A compressed body is decoded only when it is whole. A client that has sent little holds little
// memory, whatever its body would decode to.
func TestBody_bombsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, decoded = 9, 8 << 20
		bombs := map[string][]byte{}
		for _, encoding := range []string{"gzip", "deflate", "bare deflate"} {
			bombs[encoding] = packed(t, encoding, decoded)
		}
		dial, end := inMemory(bodyLength)
		defer end()
		before := heaptest.InUse()
		var conns []net.Conn
		for i := range clients {
			encoding := []string{"gzip", "deflate", "bare deflate"}[i%3]
			bomb := bombs[encoding]
			c := dial()
			fmt.Fprintf(
				c, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n",
				strings.TrimPrefix(encoding, "bare "), len(bomb)+1)
			c.Write(bomb)
			conns = append(conns, c)
		}
		synctest.Wait()
		if held := heaptest.InUse() - before; held > clients<<20 {
			t.Errorf("%d clients that have sent 8 KB each hold %d MiB, want one each at most", clients, held>>20)
		}
		for _, c := range conns {
			if status, body := answerOf(t, c); status != http.StatusRequestTimeout {
				t.Errorf("a body that is not whole: got %d %s, want 408", status, body)
			}
			c.Close()
		}
	})
}

// A body of any size reaches the handler decoded. One that is longer than the limit, plain or
// decoded, is refused, and so is one that cannot be decoded.
func TestBody_encodings(t *testing.T) {
	dial, end := inMemory(bodyLength)
	defer end()
	f := func(encoding, name string, body []byte, status int, says string) {
		t.Helper()
		c := dial()
		defer c.Close()
		go func() {
			fmt.Fprintf(
				c, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n",
				encoding, len(body))
			c.Write(body)
		}()
		if got, text := answerOf(t, c); got != status || !strings.Contains(text, says) {
			t.Errorf("%s, %s: %d %.200s, want %d %s", encoding, name, got, text, status, says)
		}
	}
	for _, n := range []int{0, 1, 1000, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes} {
		f("identity", "whole", bytes.Repeat([]byte("x"), n), 200, fmt.Sprint(n))
		f("gzip", "whole", packed(t, "gzip", n), 200, fmt.Sprint(n))
		f("X-GZIP", "whole", packed(t, "gzip", n), 200, fmt.Sprint(n))
		f("deflate", "whole", packed(t, "deflate", n), 200, fmt.Sprint(n))
		if n > 0 {
			f("deflate", "bare", packed(t, "bare", n), 200, fmt.Sprint(n))
		}
	}
	f("identity", "longest", make([]byte, maxBody), 200, fmt.Sprint(maxBody))
	f("identity", "too long", make([]byte, maxBody+1), 413, "more than")
	f("gzip", "too long", bytes.Repeat(packed(t, "gzip", 1<<20), maxBody>>20+1), 413,
		"more than") // all members of a gzip stream count together
	for _, encoding := range []string{"gzip", "deflate"} {
		whole := packed(t, encoding, 100_000)
		f(encoding, "cut", whole[:len(whole)-5], 400, "Unable to read")
		f(encoding, "nothing", nil, 400, "Unable to decode")
	}
	f("gzip", "no gzip", []byte("plain text"), 400, "Unable to decode")
	f("br", "unknown", []byte("x"), 400, "Unsupported Content-Encoding")
}
