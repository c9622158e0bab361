package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// script is a table whose scans return the given blocks, then fail with err or
// end.
type script struct {
	blocks  [][]string // keys
	err     error
	refused error // of opening
	opened  []*scripted
}

func (*script) Features() Features { return Features{} }

func (s *script) Scan(ctx context.Context, _ Scan) (Scanner, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	sc := &scripted{ctx: ctx, script: s}
	s.opened = append(s.opened, sc)
	return sc, nil
}

func (s *script) Get(context.Context, string, string, [][]byte) ([]Row, error) {
	return nil, errors.ErrUnsupported
}

func (s *script) Regions(context.Context, string, []byte, []byte) ([]Region, error) {
	return nil, errors.ErrUnsupported
}

// scripted hands out the same memory each time, as a store may.
type scripted struct {
	ctx    context.Context
	script *script
	next   int
	rows   []Row
	closed bool
}

func (s *scripted) Next() ([]Row, error) {
	for i := range s.rows {
		clear(s.rows[i].Key)
	}
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if s.next == len(s.script.blocks) {
		if s.script.err != nil {
			return nil, s.script.err
		}
		return nil, io.EOF
	}
	s.rows = s.rows[:0]
	for _, key := range s.script.blocks[s.next] {
		s.rows = append(s.rows, Row{Key: []byte(key)})
	}
	s.next++
	return s.rows, nil
}

func (*scripted) NextBytes() int64 { return 0 }

func (s *scripted) Stats() ScanStats { return ScanStats{} }

func (s *scripted) Close() error {
	s.closed = true
	return nil
}

// open is how many scans nobody has closed.
func (s *script) open() (n int) {
	for _, sc := range s.opened {
		if !sc.closed {
			n++
		}
	}
	return n
}

// never is more rows than any script has.
const never = 1 << 30

// loops are loops over a scan. Each returns the keys that it has seen, and the error that it ended
// with; it is left once it has seen most keys.
var loops = map[string]func(ctx context.Context, s *script, most int,
	seen func()) (keys []string, err error){"rows": byRow, "blocks": byBlock}

func byRow(ctx context.Context, s *script, most int, seen func()) (keys []string, err error) {
	for row, err := range Rows(ctx, s, Scan{}) {
		if err != nil {
			return keys, err
		}
		if keys = append(keys, string(row.Key)); len(keys) >= most {
			break
		}
		seen()
	}
	return keys, nil
}

func byBlock(ctx context.Context, s *script, most int, seen func()) (keys []string, err error) {
	for rows, err := range Blocks(ctx, s, Scan{}) {
		if err != nil {
			if rows != nil {
				return keys, errors.New("an error came with a block")
			}
			return keys, err
		}
		for _, row := range rows {
			keys = append(keys, string(row.Key))
		}
		if len(keys) >= most {
			break
		}
		seen()
	}
	return keys, nil
}

// However a scan ends, the loop sees all rows before the end, in order, and the scan's error, and
// the scanner is closed.
//
//fault:error-of-a-scan-swallowed =>
func TestRows(t *testing.T) {
	broken := fmt.Errorf("a connection was closed: %w", io.EOF)
	blocks := [][]string{{"a", "b"}, {"c"}, {"d", "e"}}
	for _, c := range []struct {
		name          string
		script        script
		most          int
		rows, inBlock string // keys seen
		err           error
	}{
		{"all", script{blocks: blocks}, never, "abcde", "abcde", nil},
		{"empty", script{}, never, "", "", nil},
		{"left at once", script{blocks: blocks}, 1, "a", "ab", nil},
		{"left at the end of a block", script{blocks: blocks, err: broken}, 3, "abc", "abc", nil},
		{"left at the last row", script{blocks: blocks}, 5, "abcde", "abcde", nil},
		{"error", script{blocks: blocks, err: broken}, never, "abcde", "abcde", broken},
		{"error at once", script{err: broken}, never, "", "", broken},
		{"not opened", script{blocks: blocks, refused: broken}, never, "", "", broken},
	} {
		for name, loop := range loops {
			s, want := c.script, c.rows
			if name == "blocks" {
				want = c.inBlock
			}
			keys, err := loop(t.Context(), &s, c.most, func() {})
			if got := strings.Join(keys, ""); got != want || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%s by %s: %q, %v, want %q, %v", c.name, name, got, err, want, c.err)
			}
			if n := s.open(); n != 0 {
				t.Errorf("%s by %s: %d scanners are open", c.name, name, n)
			}
		}
	}
}

// The loop's context is the scan's: when it ends, so does the loop, with the context's error.
func TestRows_cancelled(t *testing.T) {
	for name, loop := range loops {
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{blocks: [][]string{{"a", "b"}, {"c"}}}
		keys, err := loop(ctx, s, never, cancel)
		if len(keys) != 2 || !errors.Is(err, context.Canceled) || s.open() != 0 {
			t.Errorf("by %s: %q, %v, %d scanners open, want a and b, the context's end, none", name, keys, err,
				s.open())
		}
	}
}

// The end of the context ends a loop within a block too, at most lookEvery rows later.
func TestRows_cancelledWithinBlock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{blocks: [][]string{make([]string, 100*lookEvery)}}
	after := 0
	keys, err := byRow(ctx, s, never, func() {
		if ctx.Err() != nil {
			after++
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || after > lookEvery || s.open() != 0 {
		t.Errorf("%d rows, %d after the context's end, %v, %d scanners open, want few rows after it, and none open",
			len(keys), after, err, s.open())
	}
}

// A loop that panics closes its scan, too.
func TestRows_panic(t *testing.T) {
	s := &script{blocks: [][]string{{"a"}, {"b"}}}
	func() {
		defer func() { _ = recover() }()
		for range Rows(t.Context(), s, Scan{}) {
			panic("in the loop")
		}
	}()
	if s.open() != 0 {
		t.Error("the scanner is open")
	}
}
