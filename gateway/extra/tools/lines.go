package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"downpour/gateway/admin/audit"
)

// An answer of lines is what export, scan, fsck and uid send, as they find it:
//
//	error: metrics: "sys.cpu" has UID 000001, which leads back to no name
//	#progress 1200 metrics, 40 tagk, 90000 tagv
//	#end {"lines":["1200 metrics, …"]}
//
// The last line begins with #end and has what the work ends with, as JSON. Without it the
// answer is cut off. If the work fails, the last line begins with #error and has the error's
// text as a JSON string; a line #counts before it has what was done until then. No other
// line begins with these words. Work that deletes what it has sent writes a line #printed before, and goes on
// when the client, which has the lines on its disk by then, has sent a byte of its body. Bytes of a file that has no
// lines come behind a line #bytes, which has their number.
const (
	progressPrefix = "#progress "
	bytesPrefix    = "#bytes "
	printedLine    = "#printed \n"
	countsPrefix   = "#counts "
	errorPrefix    = "#error "
	endPrefix      = "#end "
)

// linesBuffer is the number of bytes of lines that wait to be sent. Progress sends them.
const linesBuffer = 64 << 10

// writeLines answers with the lines that write writes to out and passes to progress, and
// with the counts that it returns. An error before the first line is returned, for a status
// to report it, as a countedError. write uses out and progress one at a time.
func writeLines(
	w http.ResponseWriter, r *http.Request,
	write func(out io.Writer, progress func(line string)) (counts any, err error),
) error {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	out := &lineCounter{Writer: bufio.NewWriterSize(w, linesBuffer)}
	tell := func(prefix string, v any) error {
		text, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s%s\n", prefix, text)
		}
		return err
	}

	counts, err := write(out, func(line string) {
		// There may be minutes between two lines. A client that is gone ends the request's
		// context, and with it the work.
		fmt.Fprintf(out, "%s%s\n", progressPrefix, line)
		_ = out.Flush()
		_ = http.NewResponseController(w).Flush()
	})
	switch {
	case err == nil:
		err = tell(endPrefix, counts)
	case !out.begun:
		return &countedError{err, counts}
	default:
		audit.Of(r.Context()).Err = err
		err = errors.Join(tell(countsPrefix, counts), tell(errorPrefix, err.Error()))
	}
	_ = out.Flush() // if it fails, the client sees that the last line is missing
	return err
}

// countedError is the error of work that has sent no line, with what was done until then.
type countedError struct {
	error
	counts any
}

func (e *countedError) Unwrap() error { return e.error }

// lineCounter is a writer that knows whether anything was written.
type lineCounter struct {
	*bufio.Writer
	begun bool
}

// Write passes bytes on.
func (l *lineCounter) Write(p []byte) (int, error) {
	l.begun = true
	return l.Writer.Write(p)
}

// fileBytes writes pieces of a file among the lines.
type fileBytes struct{ lines io.Writer }

// Write implements io.Writer.
func (f fileBytes) Write(p []byte) (int, error) {
	for piece := range slices.Chunk(p, linesBuffer) {
		if _, err := fmt.Fprintf(f.lines, "%s%d\n", bytesPrefix, len(piece)); err != nil {
			return 0, err
		}
		if _, err := f.lines.Write(piece); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// receiver takes an answer of lines.
type receiver struct {
	out      io.Writer
	progress func(line string)
	printed  func() error // is called at a line #printed, once the lines before it are written to out; nil for none
	counts   any          // also of work that has failed
}

// stream posts a request to a tool, and has the lines of its answer received. It returns an error
// if the answer was cut off.
func (r *remote) stream(ctx context.Context, path string, in any, to receiver) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := r.send(ctx, http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	return r.receive(resp, to)
}

// get is stream for a request by GET.
func (r *remote) get(ctx context.Context, path string, to receiver) error {
	resp, err := r.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return r.receive(resp, to)
}

// receive receives an answer of lines, or returns why there is none.
func (r *remote) receive(resp *http.Response, to receiver) error {
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		var answer struct{ Counts json.RawMessage }
		if err == nil && json.Unmarshal(body, &answer) == nil && answer.Counts != nil {
			err = json.Unmarshal(answer.Counts, to.counts)
		}
		return errors.Join(r.failed(resp.StatusCode, body), err)
	}
	return r.copyLines(resp.Body, to)
}

// copyLines copies lines up to the one that ends the answer.
func (r *remote) copyLines(in io.Reader, to receiver) error {
	lines := bufio.NewReaderSize(in, maxLine)
	begun := true // the next bytes begin a line
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return r.cutOff(err)
		}

		// A line that is longer than the buffer comes in pieces, and only the first can be such a word.
		if word, text, ok := bytes.Cut(line, []byte{' '}); ok && begun && line[0] == '#' {
			switch string(word) + " " {
			case endPrefix:
				return json.Unmarshal(text, to.counts)
			case countsPrefix:
				if err := json.Unmarshal(text, to.counts); err != nil {
					return err
				}
				continue
			case errorPrefix:
				return r.workFailed(bytes.TrimSpace(text))
			case progressPrefix:
				to.progress(strings.TrimSuffix(string(text), "\n"))
				continue
			case bytesPrefix:
				if err := r.copyBytes(lines, string(bytes.TrimSpace(text)), to.out); err != nil {
					return err
				}
				continue
			case strings.TrimSuffix(printedLine, "\n"):
				if err := to.printed(); err != nil {
					return err
				}
				continue
			}
		}

		begun = err == nil
		if _, err := to.out.Write(line); err != nil {
			return err
		}
	}
}

// copyBytes copies the bytes of a file behind the line that has their number.
func (r *remote) copyBytes(in io.Reader, number string, out io.Writer) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > linesBuffer {
		return fmt.Errorf("%s: got %s%q, want a number of at most %d", r.url, bytesPrefix, number, linesBuffer)
	}
	piece := make([]byte, n)
	if _, err := io.ReadFull(in, piece); err != nil {
		return r.cutOff(err)
	}
	_, err = out.Write(piece)
	return err
}

// cutOff returns the error of an answer that ended too early.
func (r *remote) cutOff(err error) error {
	return fmt.Errorf("%s: the answer was cut off (run it again): %w", r.url, err)
}

// workFailed returns the error of work that has failed after its first line. text is a JSON string.
func (r *remote) workFailed(text []byte) error {
	var message string
	if r.own && json.Unmarshal(text, &message) == nil {
		return errors.New(message)
	}
	return fmt.Errorf("%s: it failed: %s", r.url, text)
}

// tell prints a line of progress.
func (c *call) tell(line string) { fmt.Fprintln(c.Err, line) }

// visible returns text as a part of one line: control characters of names and annotations
// are written as \x0a.
func visible(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
