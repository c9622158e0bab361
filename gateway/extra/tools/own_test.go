package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An answer of this process's own is read while it is written. Who leaves it ends the work, and an answer that is
// aborted is seen to be cut off. Closing waits for the work.
func TestOwnTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		own := &ownTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Answer", "yes")
			fmt.Fprintf(w, "got %s\n", body)
			if r.URL.Path == "/abort" {
				panic(http.ErrAbortHandler)
			}
			<-r.Context().Done()
			ended = r.Context().Err()
		})}
		r := &remote{url: "http://own", own: true, client: &http.Client{Transport: own}}
		for _, path := range []string{"/wait", "/abort"} {
			resp, err := r.send(t.Context(), http.MethodPost, path, strings.NewReader("this"))
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(resp.Body)
			if line, err := in.ReadString('\n'); line != "got this\n" || err != nil ||
				resp.StatusCode != http.StatusOK || resp.Header.Get("Answer") != "yes" {
				t.Errorf("%s: got %q, %v, %d, %v", path, line, err, resp.StatusCode, resp.Header)
			}
			if path == "/abort" {
				if _, err := in.ReadByte(); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the end of an answer that is aborted: %v", err)
				}
			}
			resp.Body.Close()
			own.running.Wait()
		}
		if !errors.Is(ended, context.Canceled) {
			t.Errorf("the work that was left ended with %v", ended)
		}
	})
}

// roundTrip is a transport.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// The lines of a file are sent part by part: one while the points of the one before become durable,
// and none before all of these are with the writer.
func TestImport_inTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan *io.PipeWriter, 10)
		r := &remote{
			url: "http://gateway",
			client: &http.Client{Transport: roundTrip(func(*http.Request) *http.Response {
				from, to := io.Pipe()
				answers <- to
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: from}
			})},
		}
		f, err := openInput("-", strings.NewReader(strings.Repeat("m 1356998400 1 a=b\n", 2*chunkLines+1)))
		if err != nil {
			t.Fatal(err)
		}
		c := &call{Env: &Env{Err: io.Discard, Now: time.Now}}
		i := &fileImport{call: c, to: r, from: f, state: new(state), progress: newProgress(c.Env, f)}
		ended := make(chan error, 1)
		go func() { ended <- i.all(t.Context()) }()
		want := func(what string, n int) {
			t.Helper()
			if synctest.Wait(); len(answers) != n {
				t.Errorf("%s: %d more parts are sent, want %d", what, len(answers), n)
			}
		}
		answer := func(to *io.PipeWriter, line string) { fmt.Fprintln(to, line) }

		want("begin", 1)
		first := <-answers
		answer(first, "#progress taken")
		want("the first is taken", 1)
		second := <-answers
		answer(second, "#progress taken")
		want("the first is not durable", 0)
		answer(first, `#end {"points":5000}`)
		want("the first is durable", 1)
		answer(second, `#end {"points":5000}`)
		third := <-answers
		answer(third, `#end {"points":1}`)
		if err := <-ended; err != nil || i.state.Points != 10_001 || i.state.Lines != 10_001 {
			t.Errorf("got %v and %+v, want 10,001 points", err, i.state)
		}
	})
}
