package telnet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway/java"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// parseSlowly parses a put line word by word, with the standard library.
func parseSlowly(c *conn, line string) (*write.Point, error) {
	w := strings.Split(line, " ")[1:]
	if len(w) < 4 {
		return nil, fmt.Errorf("not enough arguments (need least 4, got %d)", len(w))
	}
	if w[0] == "" {
		return nil, errors.New("empty metric name")
	}
	t, err := strconv.ParseInt(strings.ReplaceAll(w[1], ".", ""), 10, 64)
	if badLong(strings.ReplaceAll(w[1], ".", "")) != "" || err != nil || t <= 0 || t > 9999999999999 {
		return nil, timeError(latin1([]byte(w[1])))
	}
	if w[2] == "" {
		return nil, errors.New("empty value")
	}
	p := &write.Point{Narrow: true, Time: t, Metric: latin1([]byte(w[0]))}
	if !strings.ContainsAny(w[2], ".eE") {
		v, err := strconv.ParseInt(w[2], 10, 64)
		if err != nil || badLong(w[2]) != "" {
			return nil, valueError(latin1([]byte(w[2])))
		}
		p.Value = encoding.IntValue(v)
	} else {
		v, err := java.ParseDouble(w[2])
		if err != nil || v-v != 0 {
			return nil, valueError(latin1([]byte(w[2])))
		}
		p.Value = encoding.FloatValue(v)
	}
	var words [][]byte
	for _, word := range w[3:] {
		words = append(words, []byte(word))
	}
	if p.Tags, err = parseTags(nil, words); err != nil {
		return nil, err
	}
	return p, c.cfg.Writer.Validate(p)
}

// parsePut reads a line as parseSlowly does, and refuses it with the same error, also when the
// series is in the cache at the second time.
func FuzzParsePut(f *testing.F) {
	for _, line := range []string{
		"put cpu 1356998400 1 host=a", "put cpu 1356998400.250 -12.5e3 host=a  dc=b ", "put", "put ", "put a 1 2",
		"put  1 2 a=b",
		"put m 0 1 a=b", "put m x 1 a=b", "put m 99999999999999 1 a=b", "put m 1  a=b", "put m 1 0x1p3. a=b",
		"put m 1 1e999 a=b", "put m 1 1e-400 a=b",
		"put m +5 +7 a=b", "put m -5 -7 a=b", "put m 1 -9223372036854775808 a=b", "put m 1 9223372036854775808 a=b",
		"put m 1 - a=b", "put m 00000000000000000001 0000000000000000000000009 a=b",
		"put m 1 1 a", "put m 1 1 a=b=c", "put m 1 1 a=b a=c", "put m\xfc 1 1 a=\xe4", "put m! 1 1 a=b",
		"put m 1. 1. a=b", "put m 1 1_0.0 a=b", "put m 1 .e a=b", "put m 1 1 ",
	} {
		f.Add([]byte(line))
	}
	_, w, series := newStore(nil)
	f.Cleanup(w.Close)
	s := NewServer(Config{Writer: w})
	f.Fuzz(func(t *testing.T, line []byte) {
		if !bytes.HasPrefix(line, []byte("put ")) || bytes.ContainsAny(line, "\r\n") ||
			bytes.Contains(line, []byte("unknown")) ||
			bytes.Contains(line, []byte("unreachable")) || bytes.Contains(line, []byte("panic")) {
			return
		}
		c := &conn{Server: s, ctx: context.Background(), resolver: w.Resolver(write.TelnetSpelling)}
		want, wantErr := parseSlowly(c, string(line))
		for range 2 {
			p, key, err := c.parsePut(line[len("put "):])
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%q: got error %v, want %v", line, err, wantErr)
			}
			if err != nil {
				continue
			}
			if p.Time != want.Time || p.Value != want.Value || p.Narrow != want.Narrow {
				t.Fatalf("%q: got %d %+v, want %d %+v", line, p.Time, p.Value, want.Time, want.Value)
			}
			if k, err := series.Resolve(c.ctx, want.Metric,
				want.Tags); err != nil || !slices.Equal(k.Metric, key.Metric) || !slices.Equal(k.Tags, key.Tags) {
				t.Fatalf("%q: got series %v, want %v (%v)", line, key, k, err)
			}
		}
	})
}

// nowhere is a store that drops all mutations.
type nowhere struct{}

func (nowhere) Apply(context.Context, string, []store.Mutation) error { return nil }

// stream is a connection whose input comes from a reader.
type stream struct {
	wire
	in *bytes.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

// BenchmarkServe measures a telnet line until it is in a batch: points of 1,000 series in time
// order, into a store that drops them.
func BenchmarkServe(b *testing.B) {
	var text []byte
	for i := range b.N {
		text = fmt.Appendf(text, "put cpu.user %d %d host=host-%06d region=region-%d dc=dc-%02d\n",
			1700000000+i/1000*10, i%101, i%1000, i%9, i%27)
	}
	schema := encoding.DefaultSchema()
	series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: &names{ids: map[string]uint64{}}})
	w := write.New(write.Config{Schema: schema, Table: "tsdb", Form: write.Appended}, nowhere{}, series)
	defer w.Close()
	in := &stream{in: bytes.NewReader(text)}
	b.ReportAllocs()
	b.ResetTimer()
	NewServer(Config{Writer: w}).Serve(context.Background(), in)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
	if said, _ := io.ReadAll(bufio.NewReader(&in.out)); len(said) > 0 {
		b.Fatalf("got %.100q, want silence", said)
	}
}
