package telnet

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every bad line has one answer, OpenTSDB's if it has one, and the connection goes on.
func TestLines_refused(t *testing.T) {
	b := start(t, nil)
	f := func(line, want string) {
		t.Helper()
		if got := b.say(line + "\nversion\n"); got != want+"\ndownpour 2.4.1\nBuilt today\n" {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	f("put", "put: illegal argument: not enough arguments (need least 4, got 0)")
	f("put m 1 2", "put: illegal argument: not enough arguments (need least 4, got 3)")
	f("put  1356998400 1 a=b", "put: illegal argument: empty metric name")
	f("put m now 1 a=b", "put: invalid value: Invalid character 'n' in now")
	f("put m 1356998400x 1 a=b", "put: invalid value: Invalid character 'x' in 1356998400x")
	f("put m 0 1 a=b", "put: illegal argument: invalid timestamp: 0")
	f("put m -5 1 a=b", "put: illegal argument: invalid timestamp: -5")
	f("put m 99999999999999 1 a=b", "put: illegal argument: invalid timestamp: 99999999999999")
	f("put m  1 a=b", "put: invalid value: Empty string")
	f("put m 1356998400  a=b", "put: illegal argument: empty value")
	f("put m 1356998400 abc a=b", "put: invalid value: Invalid character 'a' in abc")
	f("put m 1356998400 - a=b", "put: invalid value: Just a sign, no value: -")
	f("put m 1356998400 99999999999999999999 a=b", "put: invalid value: Value too long: 99999999999999999999")
	f("put m 1356998400 9223372036854775808 a=b", "put: invalid value: Overflow in 9223372036854775808")
	f("put m 1356998400 1.2.3 a=b", `put: invalid value: For input string: "1.2.3"`)
	f("put m 1356998400 1e999 a=b", `put: invalid value: For input string: "1e999"`)
	f("put m 1356998400 NaN a=b", "put: invalid value: Invalid character 'N' in NaN")
	f("put m 1356998400 1 ab", "put: illegal argument: invalid tag: ab")
	f("put m 1356998400 1 =b", "put: illegal argument: invalid tag: =b")
	f("put m 1356998400 1 a=", "put: illegal argument: invalid tag: a=")
	f("put m 1356998400 1 a=b=c", "put: illegal argument: invalid tag: a=b=c")
	f("put m 1356998400 1 a=b a=c", "put: illegal argument: duplicate tag: a=c, tags={a=b}")
	f("put m 1356998400 1 ", "put: illegal argument: Missing tags")
	f("put m!x 1356998400 1 a=b", `put: illegal argument: Invalid metric name ("m!x"): illegal character: !`)
	f("put m 1356998400 1 a=b\x00",
		"put: illegal argument: Invalid tag value with key [a] (\"b?\"): illegal character: ?")
	f("put m 1356998400 1 a=b\rput",
		"put: illegal argument: Invalid tag value with key [a] (\"b?put\"): illegal character: ?")
	f("put m 1356998400 1 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1",
		"put: illegal argument: Too many tags: 9 maximum allowed: 8, tags: {a=1, b=1, c=1, d=1, e=1, f=1, g=1, h=1, i=1}")
	f("put unknown.metric 1356998400 1 a=b", "put: unknown metric: No such name for 'metrics': 'unknown.metric'")
	f("put unreachable 1356998400 1 a=b", "put: HBase error: uid table: store unavailable")
	f("nonsense", "unknown command: nonsense.  Try `help'.")
	f("\x00\x01\xff", "unknown command: ??\xff.  Try `help'.")
	f("PUT m 1 1 a=b", "unknown command: PUT.  Try `help'.")
	f(" put m 1 1 a=b", "unknown command: .  Try `help'.")
	if got := b.store.points(t); len(got) > 0 {
		t.Errorf("stored %v", got)
	}
	b.counts.Lock()
	defer b.counts.Unlock()
	if b.counts.ok != 0 || b.counts.bad != 29 {
		t.Errorf("counted %d stored and %d refused, want 0 and 29", b.counts.ok, b.counts.bad)
	}
}

// A good line has no answer and stores its value: 1 as an integer, 1.0 as a float, in 4 bytes if
// that loses nothing.
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
	f("put m 1356998400 0.1 a=b\n", "1356998400000=0.1f8")
	f("put m 1356998400 0.5 a=b\n", "1356998400000=0.5f4")
	f("put m 1356998400 1e3 a=b\n", "1356998400000=1000f4")
	f("put m 1356998400 -9223372036854775808 a=b\n", "1356998400000=-9223372036854775808")
	f("put m 1356998400250 1 a=b\n", "1356998400250=1")
	f("put m 1356998400.250 1 a=b\n", "1356998400250=1")
	f("put m 1356998400 1 a=b  c=d \n", "1356998400000=1")
	f("put m 1356998400 1 a=b a=b\n", "1356998400000=1")
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
