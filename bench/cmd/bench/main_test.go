package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// invoke runs the command and returns what it printed.
func invoke(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

// self is the path of this test binary, which stands for a program.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A wrong flag, file or server is an error of one line that names it.
func TestRun_wrong(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		_, err := invoke(t, args...)
		if err == nil {
			t.Errorf("%q: no error, want one", args)
			return
		}
		if line := firstLines(err); !strings.Contains(line, want) || strings.Contains(line, "\n") {
			t.Errorf("%q: %q, want a line with %q", args, line, want)
		}
	}
	f(`no workload "scna"; there are compare, generate`, "scna")
	f("scan: flag provided but not defined: -x", "scan", "-x")
	f(`invalid value "many" for flag -hosts`, "load", "-hosts", "many")
	f("got 1 operands [\"x\"], want 0", "scan", "x")
	f("hosts: got 0, want 1", "scan", "-hosts", "0", "-results", "")
	f(`form: got "x", want cells, compacted or appended`, "scan", "-form", "x")
	f(`door: got "x"`, "load", "-door", "x")
	f(`format: got "x"`, "generate", "-format", "x")
	f("no such file", "replay", "-queries", filepath.Join(dir, "no"))
	f("no request in it", "replay", "-queries", empty)
	f("replay: stopped after 0 answers, because http://127.0.0.1:1 refuses connections",
		"replay", "-url", "http://127.0.0.1:1", "-results", "")
	f("no such file", "replay", "-url", "http://127.0.0.1:1", "-token-file", filepath.Join(dir, "no"))
	f("record: got no -url, want that of the server", "replay", "-record", filepath.Join(dir, "to"))
	f("got -rate, which says how to ask",
		"replay", "-record", filepath.Join(dir, "to"), "-url", "http://127.0.0.1:1", "-rate", "3")
	f("connection refused", "replay", "-record", filepath.Join(dir, "to"), "-url", "http://127.0.0.1:1")
	f(`rows: got "x"`, "compare", "-rows", "x", "-results", "")
	f(`scan-env: got "A=1", want DOWNPOUR_`, "compare", "-scan-env", "A=1")
	f("got one of -a and -b, want both", "compare", "-a", "http://127.0.0.1:1")
	f("connection refused", "compare", "-a", "http://127.0.0.1:1", "-b", "http://127.0.0.1:1", "-results", "")
	f("got -a tree and -b http://127.0.0.1:1, want two builds or the URLs",
		"compare", "-a", "tree", "-b", "http://127.0.0.1:1")
	f("got -turns, which says how two builds are compared",
		"compare", "-a", "http://127.0.0.1:1", "-b", "http://127.0.0.1:1", "-turns", "3")
	f("got -stores, which says how two builds are compared", "compare", "-stores", "embedded")
	f("got -scan-env, which has no meaning for builds",
		"compare", "-a", "tree", "-b", "tree", "-scan-env", "DOWNPOUR_RESULT_CACHE=off")
	f(`rows: got "floor", want some of put-telnet`, "compare", "-a", "tree", "-b", "tree", "-rows", "floor")
	f(`stores: got "x", want some of embedded, hbase`, "compare", "-a", "tree", "-b", "tree", "-stores", "x")
	f("worse: got 2, want a part", "compare", "-a", "tree", "-b", "tree", "-worse", "200")
	f(`b-env: got "A=1", want DOWNPOUR_`, "compare", "-a", "tree", "-b", "tree", "-b-env", "A=1")
	f("build B: stat", "compare", "-a", "build:"+self(t), "-b", "build:"+filepath.Join(dir, "no"))
	f("resume: open", "compare", "-resume", filepath.Join(dir, "no"))
	f("no report", "table", empty)
	f(`stores: got "x", want embedded or hbase`, "live", "-stores", "x", "-results", "")
	f(`sockets: got "x", want numbers`, "live", "-sockets", "x", "-results", "")
	f("parts: got tick, which needs a gateway", "live", "-url", "http://127.0.0.1:1", "-results", "")
	f("DOWNPOUR_STORE=x:y", "scan", "-store", "x:y")
	f("no space left on device", "generate", "-hosts", "1", "-o", "/dev/full")
	if _, err := invoke(t); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("without arguments: error %v, want the usage", err)
	}
}

// scan prints what it ran and keeps its report on disk, where table reads it; load and generate run
// as well.
func TestRun_scan(t *testing.T) {
	dir := t.TempDir()
	out, err := invoke(t, "scan", "-hosts", "5", "-hours", "2", "-rounds", "1", "-results", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"bare scan, at rest", "sum:5m-avg:cpu.user, straight after loading", "bench scan -hosts 5",
		"3600 points",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	path := regexp.MustCompile(`report: (\S+)\.html`).FindStringSubmatch(out)
	if path == nil {
		t.Fatalf("no report:\n%s", out)
	}
	if _, err := invoke(t, "table", path[1]+".json"); err == nil || !strings.Contains(err.Error(), "without aims") {
		t.Errorf("table of a scan: error %v, want without aims", err)
	}
	out, err = invoke(t, "load", "-door", "direct", "-hosts", "3", "-metrics", "5", "-results", dir)
	if err != nil || !strings.Contains(out, "load, direct") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = invoke(t, "generate", "-hosts", "1", "-hours", "1", "-step", "1800")
	if err != nil || strings.Count(out, "put cpu.user ") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// What a server was asked is recorded with its token, and the file is what replay asks, which
// prints a line for each query.
func TestRun_record(t *testing.T) {
	const entry = `{"query":{"start":"1h-ago","queries":[{"aggregator":"sum","metric":"%s"}]},` +
		`"executed":%d,"httpResponse":{"code":%d}}`
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer of-a-reader-0123456789":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/api/stats/query":
			fmt.Fprintf(w, `{"running":[],"completed":[`+entry+","+entry+","+entry+"]}", "a", 2, 200, "b", 1, 200,
				"c", 1, 400)
		default:
			body, _ := io.ReadAll(r.Body)
			asked <- r.Method + " " + r.URL.Path + " " + string(body)
			fmt.Fprint(w, `[{"metric":"m","dps":{"1":1,"2":2}}]`)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	file, tokens := filepath.Join(dir, "asked"), filepath.Join(dir, "tokens")
	text := "write of-a-writer-0123456789\nread of-a-reader-0123456789\n"
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := invoke(t, "replay", "-url", server.URL, "-record", file); err == nil ||
		!strings.Contains(err.Error(), "status 401") {
		t.Errorf("without a token: error %v, want one with the status", err)
	}
	out, err := invoke(t, "replay", "-url", server.URL, "-token-file", tokens, "-record", file)
	said := "3 requests, 2 of them different, that " + server.URL + " was asked; left out: 1 that failed"
	if err != nil || !strings.Contains(out, said) {
		t.Fatalf("%s, %v; want 3 requests", out, err)
	}
	out, err = invoke(t, "replay", "-url", server.URL, "-token-file", tokens, "-queries", file, "-requests", "4",
		"-duration", "0", "-results", "")
	if err != nil {
		t.Fatal(err)
	}
	const (
		a = `{"queries":[{"aggregator":"sum","metric":"a"}],"start":"1h-ago"}`
		b = `{"queries":[{"aggregator":"sum","metric":"b"}],"start":"1h-ago"}`
	)
	for i, want := range []string{a, b, a, a} {
		if got := <-asked; got != "POST /api/query "+want {
			t.Errorf("request %d: got %s, want %s by POST", i+1, got, want)
		}
	}
	for _, want := range []string{
		`       3      0 .* 6      0\.00  \{.*"a"`, `       1      0 .* 2      0\.00  \{.*"b"`,
		`requests/s, \S+ points/s, \S+ MB/s\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output lacks %s:\n%s", want, out)
		}
	}
}
