package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"downpour/gateway/admin/audit"
)

// The lines of an answer are copied without its progress, which goes to a function of its own. An
// answer without its #end line, or with an #error line, is an error.
func TestCopyLines(t *testing.T) {
	f := func(in, out, told string, points int64, fault string) {
		t.Helper()
		var b, p bytes.Buffer
		var counts exportCounts
		r := &remote{url: "url"}
		err := r.copyLines(strings.NewReader(in),
			receiver{out: &b, progress: func(line string) { fmt.Fprintln(&p, line) }, counts: &counts})
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%q: %v, want %q", in, err, fault)
		}
		if b.String() != out || p.String() != told || counts.Points != points {
			t.Errorf("%q: copied %q, told %q, %d points; want %q, %q, %d", in, &b, &p, counts.Points, out, told, points)
		}
	}
	f("m 1 1 a=b\n#end {\"points\":1}\n", "m 1 1 a=b\n", "", 1, "")
	f("#uid tagk a\n#progress 5 rows\n# end\n#end {\"points\":2}\n", "#uid tagk a\n# end\n", "5 rows\n", 2, "")
	f("m 1 1 a=b\n", "m 1 1 a=b\n", "", 0, "cut off")
	f("m 1 1 a=b\n#end {\"points\":1}", "m 1 1 a=b\n", "", 0, "cut off")
	f("m 1 1 a=b\n#error \"no region\"\nm 2 1 a=b\n", "m 1 1 a=b\n", "", 0, `failed: "no region"`)
	f("m 1 1 a=b\n#counts {\"points\":1}\n#error \"no region\"\n", "m 1 1 a=b\n", "", 1, `failed: "no region"`)

	// Bytes of a file are no lines.
	f("#bytes 9\n\n#end {}\n#bytes 1\nx#end {\"points\":1}\n", "\n#end {}\nx", "", 1, "")
	f("#bytes 9\n#end {}\n", "", "", 0, "cut off")
	f("#bytes 65537\n", "", "", 0, "want a number of at most 65536")
	f("#bytes -1\n", "", "", 0, "want a number")
	var sent bytes.Buffer
	file := strings.Repeat("\n#end {}\n", linesBuffer) // more than one piece
	if n, err := (fileBytes{&sent}).Write([]byte(file)); n != len(file) || err != nil {
		t.Errorf("%d bytes of a file written, %v; want %d", n, err, len(file))
	}
	f(sent.String()+"#end {}\n", file, "", 0, "")
}

// An error before the first line is returned, so that it becomes a status; a later one is written
// as the last lines, with the counts. Progress flushes the lines before it.
func TestWriteLines(t *testing.T) {
	f := func(want string, write func(out io.Writer, progress func(string)) (any, error)) error {
		t.Helper()
		w := httptest.NewRecorder()
		ctx, act := audit.NewContext(t.Context())
		err := writeLines(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil), write)
		// A failure behind the status is for the log, too; any other is in the status.
		if failed := strings.Contains(want, errorPrefix); failed != (act.Err != nil) {
			t.Errorf("%q: the log is told of %v", want, act.Err)
		}
		if w.Body.String() != want {
			t.Errorf("got %q, want %q", w.Body, want)
		}
		return err
	}
	broken := errors.New("broken\n#end {}")
	if err := f("", func(io.Writer, func(string)) (any, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := f("a\n#counts {\"points\":3}\n#error \"broken\\n#end {}\"\n",
		func(out io.Writer, _ func(string)) (any, error) {
			fmt.Fprintln(out, "a")
			return map[string]int{"points": 3}, broken
		}); err != nil {
		t.Error(err)
	}

	sent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = writeLines(w, r, func(out io.Writer, progress func(string)) (any, error) {
			fmt.Fprintln(out, "a")
			progress("1 row")
			<-sent // the client has the first lines before the work goes on
			return 1, nil
		})
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("a\n#progress 1 row\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "a\n#progress 1 row\n" {
		t.Errorf("got %q, %v, want the line and the progress", first, err)
	}
	close(sent)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "#end 1\n" {
		t.Errorf("got %q, %v, want the #end line", rest, err)
	}
}
