package peer

import (
	"context"
	"io"

	"downpour/bench/workload"
	"downpour/encoding/batch"
)

// Amount is what an answer holds.
type Amount struct{ Points, Bytes int64 }

// Count asks a question, reads the answer to its end, and counts what it holds. The points are counted while
// the answer comes, so it is never held whole.
func (s *Server) Count(ctx context.Context, q workload.Query) (a Amount, err error) {
	if q.Arrow {
		return s.countArrow(ctx, q)
	}
	points := pointCounter{member: "dps"}
	if s.Prometheus {
		points.member = "values"
	}
	a.Bytes, err = s.Copy(ctx, q, "", &points)
	a.Points = points.n
	return a, err
}

// countArrow counts the rows of an Arrow stream. A stream without its end mark is an error.
func (s *Server) countArrow(ctx context.Context, q workload.Query) (a Amount, err error) {
	r, w := io.Pipe()
	counted := make(chan error, 1)
	go func() {
		err := batch.ReadResults(r, func(times []int64, _ []float64) error {
			a.Points += int64(len(times))
			return nil
		})
		r.CloseWithError(err)
		counted <- err
	}()

	a.Bytes, err = s.Copy(ctx, q, "", w)
	w.CloseWithError(err)
	if bad := <-counted; err == nil {
		err = bad
	}
	return a, err
}

// pointCounter counts the elements of the lists and objects that are called member, "dps" in OpenTSDB's
// answers, where each point is an element: {"1356998400":42,…} or [[1356998400,42],…]. What is written to it is
// JSON, in pieces of any size.
type pointCounter struct {
	member string
	n      int64

	text          []byte // of the string that has just ended, as far as it may be member
	inText, quote bool   // in a string; the next byte of it is quoted
	key           bool   // member has just been read, and a colon may follow
	named         bool   // and has followed
	depth         int    // of the lists and objects around
	within        int    // depth of the elements that are counted; 0 outside
	empty         bool   // none of them has come
}

// Write counts the points of a piece.
func (c *pointCounter) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		switch b := p[i]; {
		case c.quote:
			c.quote = false
		case c.inText:
			from := i
			for i < len(p) && p[i] != '"' && p[i] != '\\' {
				i++
			}
			if c.within == 0 { // else no member can begin here
				c.letters(p[from:i])
			}
			if i < len(p) {
				c.endLetters(p[i])
			}
		case b <= ' ':
		default:
			c.mark(b)
			for number := '-' <= b && b <= '9'; number && i+1 < len(p) && '.' <= p[i+1] && p[i+1] <= '9'; {
				i++ // the rest of it
			}
		}
	}
	return len(p), nil
}

// letters takes bytes of a string. Of one that is too long for member no more is kept than shows it.
func (c *pointCounter) letters(p []byte) {
	c.text = append(c.text, p[:min(len(p), max(0, len(c.member)+1-len(c.text)))]...)
}

// endLetters takes the byte that ends a string, or a backslash in it.
func (c *pointCounter) endLetters(b byte) {
	if b == '\\' {
		c.quote = true
		c.text = append(c.text[:0], b) // which member does not begin with
		return
	}
	c.inText = false
	c.key = c.within == 0 && string(c.text) == c.member
}

// mark takes a byte outside of strings.
func (c *pointCounter) mark(b byte) {
	key, named := c.key, c.named
	c.key, c.named = false, false
	if c.within > 0 && c.empty && c.depth == c.within && b != ']' && b != '}' {
		c.empty = false // the first element begins
		c.n++
	}
	switch b {
	case '"':
		c.inText, c.text = true, c.text[:0]
	case ':':
		c.named = key
	case '{', '[':
		if c.depth++; named {
			c.within, c.empty = c.depth, true
		}
	case '}', ']':
		if c.depth == c.within {
			c.within = 0
		}
		c.depth--
	case ',':
		if c.depth == c.within {
			c.n++
		}
	}
}
