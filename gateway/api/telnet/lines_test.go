package telnet

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A bad line has one answer, counts as refused, and the connection goes on. The story telnet_refused has those of all
// kinds.
func TestLines_refused(t *testing.T) {
	b := start(t, nil)
	f := func(line, want string) {
		t.Helper()
		if got := b.say(line + "\nversion\n"); got != want+"\ndownpour 2.4.1\nBuilt today\n" {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	f("put", "put: illegal argument: not enough arguments (need least 4, got 0)")
	f("put m 1356998400 1 a=b\x00",
		"put: illegal argument: Invalid tag value with key [a] (\"b?\"): illegal character: ?")
	f("put m 1356998400 1 a=b\rput",
		"put: illegal argument: Invalid tag value with key [a] (\"b?put\"): illegal character: ?")
	f("put unknown.metric 1356998400 1 a=b", "put: unknown metric: No such name for 'metrics': 'unknown.metric'")
	f("put unreachable 1356998400 1 a=b", "put: HBase error: uid table: store unavailable")
	f("\x00\x01\xff", "unknown command: ??\xff.  Try `help'.")
	if got := b.store.points(t); len(got) > 0 {
		t.Errorf("stored %v", got)
	}
	b.counts.Lock()
	defer b.counts.Unlock()
	if b.counts.ok != 0 || b.counts.bad != 5 {
		t.Errorf("counted %d stored and %d refused, want 0 and 5", b.counts.ok, b.counts.bad)
	}
}

// A good line has no answer and stores its value, whatever its end and its bytes. The story telnet_stored has numbers
// of all kinds.
func TestLines_stored(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		b := start(t, nil)
		if got := b.say(text); got != "" {
			t.Errorf("%q: answered %q", text, got)
		}
		got := b.store.points(t)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	f("put m 1356998400 1 a=b\n", "1356998400000=1")
	f("put m 1356998400 1.0 a=b\r\n", "1356998400000=1f4")
	f("put m\xe9tr 1356998400 1 a=\xfcber\n", "1356998400000=1")
	f("\n\r\n \nput m 1356998400 1 a=b\n\n", "1356998400000=1")
	f("put m 1356998400 1 a=b\nput m 1356998401 2 a=b\nput n 1356998400 3 a=b\n", "1356998400000=1", "1356998400000=3",
		"1356998401000=2")
}

// A line may have 64 KiB without its end. A longer one, of any length, gets one error line, which
// names its metric, and the next line is read in full.
func TestLines_length(t *testing.T) {
	f := func(length int, end string, ok bool) {
		t.Helper()
		b := start(t, nil)
		line := "put m 1356998400 1 a=b"
		text := line + strings.Repeat(" ", length-len(line)) + end + "put m 1356998401 2 a=b\n"
		want := ""
		if !ok {
			want = "put: illegal argument: line of more than 65536 bytes: put m...\n"
		}
		if got := b.say(text); got != want {
			t.Errorf("%d bytes: got %q, want %q", length, got, want)
		}
		if n := len(b.store.points(t)); n != map[bool]int{true: 2, false: 1}[ok] {
			t.Errorf("%d bytes: %d points stored", length, n)
		}
	}
	f(1025, "\n", true)
	f(4096, "\n", true)
	f(12_000, "\n", true)
	f(64<<10, "\n", true)
	f(64<<10, "\r\n", true)
	f(64<<10+1, "\n", false)
	f(64<<10+1, "\r\n", false)
	f(1<<20, "\n", false)
}

// A line without its end is never executed, wherever it is cut: the beginning of a put may be a
// good line with another value.
func TestLines_cut(t *testing.T) {
	line := "put m 1356998400 150 host=web01"
	for n := range len(line) + 1 {
		b := start(t, nil)
		got := b.say("put m 1356998401 1 host=a\n" + line[:n])
		want := fmt.Sprintf("error: line without end, %d bytes, not executed\n", n)
		if n == 0 {
			want = ""
		}
		if got != want {
			t.Errorf("cut at %d: got %q, want %q", n, got, want)
		}
		if diff := cmp.Diff([]string{"1356998401000=1"}, b.store.points(t)); diff != "" {
			t.Errorf("cut at %d: %s", n, diff)
		}
	}
	b := start(t, nil)
	if got := b.say(strings.Repeat("x", 200<<10)); got != "error: line without end, 204800 bytes, not executed\n" {
		t.Errorf("200 KiB without an end: got %q", got)
	}
}

// Lines are read in full however their bytes are spread over packets.
func TestLines_pieces(t *testing.T) {
	text := "put m 1356998400 150 host=web01\r\nnonsense\nput m 1356998401 1.5 host=web01\n"
	for n := range len(text) {
		b := start(t, nil)
		c := b.dial()
		c.send(text[:n])
		c.send(text[n:])
		if got := c.rest(); got != "unknown command: nonsense.  Try `help'.\n" {
			t.Errorf("cut at %d: got %q", n, got)
		}
		got := b.store.points(t)
		slices.Sort(got)
		if diff := cmp.Diff([]string{"1356998400000=150", "1356998401000=1.5f4"}, got); diff != "" {
			t.Errorf("cut at %d: %s", n, diff)
		}
	}
}

// A connection has a small buffer until more arrives at once than it holds, and loses no line when
// it gets a large one.
//
//fault:line-lost-between-buffers bytes.Clone(held) => nil
func TestLines_buffers(t *testing.T) {
	f := func(lines, each, size int) {
		t.Helper()
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "line %d\n", i)
		}
		pieces := [][]byte{}
		for rest := []byte(text.String()); len(rest) > 0; {
			n := min(each, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		w := &wire{pieces: pieces}
		c := &conn{Server: NewServer(Config{}), nc: w, ctx: t.Context()}
		c.answers = &answerWriter{nc: w}
		c.out = bufio.NewWriter(c.answers)
		c.initBuffer()
		for i := range lines {
			line, err := c.readLine()
			if want := fmt.Sprintf("line %d", i); err != nil || string(line) != want {
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
		}
		if got := c.in.Size(); got != size {
			t.Errorf("%d lines in pieces of %d: a buffer of %d, want %d", lines, each, got, size)
		}
	}
	f(3, 10, smallBuffer)
	f(10_000, 1000, smallBuffer)
	f(10_000, 20_000, largeBuffer)
	f(10_000, 1_000_000, largeBuffer)
}
