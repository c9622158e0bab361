package storm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"downpour/encoding/batch"
	"downpour/integration/hostile"
)

// outcome is what became of a request.
type outcome struct {
	status int // of HTTP; of lines 200 if nothing was answered, else 400; 0 without an answer
	body   answerBody
	err    error // none came, or not to its end
}

func (o *outcome) ok() bool { return o.err == nil && o.status >= 200 && o.status < 300 }

// acknowledges reports whether every point of a put is promised: a 200 counts them.
func (o *outcome) acknowledges() bool {
	return o.ok() && (len(o.body.head) == 0 || bytes.Contains(o.body.head, []byte(`"failed":0`)))
}

// answerBody is an answer reduced to what is compared.
type answerBody struct {
	sum   [sha256.Size]byte
	bytes int
	head  []byte // to be shown
}

// headBytes is how much of an answer is shown.
const headBytes = 400

// outer bounds a request where nothing else does: a client that is not answered by
// then never will be.
const outer = 4 * time.Minute

// send does what a request says and returns its outcome. sent is called once
// everything is sent.
func send(ctx context.Context, addr string, q *hostile.Request, sent func()) outcome {
	// A judged client waits for its answer; on a WebSocket answers have no end.
	stays := outer
	if !q.Judged() || q.Door == hostile.Socket {
		stays = q.Stay
	}
	d := net.Dialer{Timeout: outer}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return outcome{err: err}
	}
	conn := c.(*net.TCPConn)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(stays)); err != nil {
		return outcome{err: err}
	}
	switch q.Door {
	case hostile.Socket:
		return outcome{err: socket(conn, q)}
	case hostile.Telnet:
		return lines(conn, q, sent)
	}
	return overHTTP(conn, q, sent)
}

// overHTTP sends one request and reads the answer, which may come before all is
// sent.
func overHTTP(conn *net.TCPConn, q *hostile.Request, sent func()) outcome {
	if !q.Judged() {
		return outcome{err: misbehave(conn, q)}
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(q.Wire)
		if q.Manner == hostile.HalfClosed && err == nil {
			err = conn.CloseWrite()
		}
		sent()
		wrote <- err
	}()
	o := readAnswer(bufio.NewReader(conn), q)
	// With an answer nobody waits for the writer, which the caller's Close ends.
	if o.err != nil {
		conn.Close() // ends the writer
		o.err = errors.Join(o.err, <-wrote)
	}
	return o
}

// misbehave sends a request in one of the manners that get no answer.
func misbehave(conn *net.TCPConn, q *hostile.Request) error {
	switch q.Manner {
	case hostile.Slow:
		for i := range q.Wire {
			if _, err := conn.Write(q.Wire[i : i+1]); err != nil {
				return err
			}
			time.Sleep(slowPause) // this is the manner, nothing is waited for
		}
	case hostile.Stops:
		if _, err := conn.Write(q.Wire[:len(q.Wire)/2]); err != nil {
			return err
		}
	default:
		if _, err := conn.Write(q.Wire); err != nil {
			return err
		}
	}
	if q.Manner == hostile.Leaves {
		return nil
	}
	if q.Manner == hostile.Unread {
		time.Sleep(q.Stay) // nothing is read in the meantime
		return nil
	}
	_, err := io.Copy(io.Discard, conn) // until the server has had enough, or the client
	return err
}

// slowPause is between two bytes of a slow client.
const slowPause = 3 * time.Millisecond

// readAnswer reads an answer to its end.
func readAnswer(in *bufio.Reader, q *hostile.Request) (o outcome) {
	method, _, _ := strings.Cut(string(q.Wire[:min(len(q.Wire), 10)]), " ")
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	o.status = resp.StatusCode
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return outcome{status: o.status, err: err}
		}
	}
	d := &digest{hash: sha256.New()}
	if q.Arrow && o.status == http.StatusOK &&
		strings.HasPrefix(resp.Header.Get("Content-Type"), batch.StreamMediaType) {
		// The rows are hashed, not the bytes, because where batches end is chance.
		err = batch.ReadResults(body, d.rows)
	} else {
		_, err = io.Copy(d, body)
	}
	o.err = err
	d.body.sum = [sha256.Size]byte(d.hash.Sum(nil))
	o.body = d.body
	return o
}

// digest reduces an answer while it comes.
type digest struct {
	hash hash.Hash
	body answerBody
}

// Write takes text.
func (d *digest) Write(p []byte) (int, error) {
	d.body.bytes += len(p)
	if room := headBytes - len(d.body.head); room > 0 {
		d.body.head = append(d.body.head, p[:min(room, len(p))]...)
	}
	return d.hash.Write(p)
}

// rows takes a batch of results.
func (d *digest) rows(times []int64, values []float64) error {
	b := make([]byte, 0, 16*len(times))
	for i, t := range times {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(values[i]))
	}
	_, err := d.Write(b)
	return err
}

// lines sends lines and reads what is answered until the server closes.
func lines(conn *net.TCPConn, q *hostile.Request, sent func()) outcome {
	if !q.Judged() {
		return outcome{err: misbehave(conn, q)}
	}
	go func() {
		_, err := conn.Write(q.Wire)
		if err == nil {
			_ = conn.CloseWrite() // an error of the connection fails the reader as well
		}
		sent()
	}()
	answer, err := io.ReadAll(conn)
	// A put over telnet is answered only if it fails.
	o := outcome{status: http.StatusOK, err: err}
	if len(answer) > 0 {
		o.status = http.StatusBadRequest
	}
	return o
}

// socket upgrades the connection and sends its messages.
func socket(conn *net.TCPConn, q *hostile.Request) error {
	if _, err := conn.Write(q.Wire); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("upgrade: %s", resp.Status)
	}
	reads := q.Manner != hostile.Unread && q.Manner != hostile.Leaves
	done := make(chan struct{})
	go func() {
		defer close(done)
		if reads {
			_, _ = io.Copy(io.Discard, in) // until the deadline
		}
	}()
	for _, m := range q.Messages {
		f := frame(m)
		if q.Manner == hostile.Slow {
			for i := range f {
				if _, err := conn.Write(f[i : i+1]); err != nil {
					return nil // its stay is over, or the server has had enough
				}
				time.Sleep(slowPause)
			}
			continue
		}
		if _, err := conn.Write(f); err != nil {
			return nil // the server does not take more, which is its right
		}
	}
	if q.Manner == hostile.Unread {
		time.Sleep(q.Stay) // the connection stays open, for the server to write to
	}
	<-done
	return nil
}

// frame is a text message of a client, masked with zeros (RFC 6455, 5.2).
func frame(text string) []byte {
	var b bytes.Buffer
	b.WriteByte(0x81) // the last frame of a message, which is text

	// 0x80 says that a mask follows the length.
	switch n := len(text); {
	case n < 126:
		b.WriteByte(0x80 | byte(n))
	case n < 1<<16:
		b.WriteByte(0x80 | 126)
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(n)))
	default:
		b.WriteByte(0x80 | 127)
		b.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	b.Write(make([]byte, 4))
	b.WriteString(text)
	return b.Bytes()
}
