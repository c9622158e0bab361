package write

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// What a configuration leaves out has the defaults that its fields name, and what it has stays.
func TestConfig_defaults(t *testing.T) {
	got := Config{}.withDefaults()
	if got.Window != 10*time.Millisecond || got.WindowBytes != 1<<20 || got.Shards != 1 ||
		got.Timeout != 2*time.Minute {
		t.Errorf("got %+v", got)
	}
	own := Config{Window: 1, WindowBytes: 2, Shards: 3, Timeout: 4}
	if got := own.withDefaults(); got.Window != 1 || got.WindowBytes != 2 || got.Shards != 3 || got.Timeout != 4 {
		t.Errorf("got %+v, want %+v", got, own)
	}
	if c := NewSeries(SeriesConfig{}); c.cfg.Bytes != SeriesBytes {
		t.Errorf("the series cache has %d bytes, want %d", c.cfg.Bytes, SeriesBytes)
	}
}

// Each error has its reason. Those of the store, after which a client sends again, differ from those of a point.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		err     error
		want    string
		storage bool
	}{
		{ErrNoMetric, "no metric", false},
		{ErrTimestamp, "time", false},
		{ErrNoValue, "value", false},
		{ErrValue, "value", false},
		{ErrNoTags, "no tags", false},
		{&uid.NoSuchNameError{}, "unknown name", false},
		{&uid.NameTooLongError{}, "long name", false},
		{&uid.FullError{}, "no UID is left", false},
		{&uid.ConflictError{}, "UID conflict", false},
		{ErrClosing, "the gateway is stopping", true},
		{errAbandoned, "the gateway is stopping", true},
		{context.Canceled, "given up", false},
		{errors.New("else"), "illegal argument", false},
		{&storageError{errors.New("else")}, "storage", true},
		{&store.ApplyError{}, "storage", true},
		{store.ErrUnavailable, "storage", true},
		{store.ErrNoTable, "storage", true},
		{store.ErrDenied, "storage", true},
		{store.ErrRefused, "storage", true},
		{store.ErrFull, "storage", true},
		{store.ErrStalled, "storage", true},
		{store.ErrDamaged, "storage", true},
		{store.ErrClosed, "storage", true},
		{context.DeadlineExceeded, "storage", true},
	} {
		err := fmt.Errorf("a point: %w", c.err)
		if got := Reason(err); got != c.want || IsStorage(err) != c.storage {
			t.Errorf("%T %v: got %q, of the store: %v, want %q and %v", c.err, c.err, got, IsStorage(err), c.want,
				c.storage)
		}
	}
}

// A point is refused for its first fault, in OpenTSDB's words, and for nothing that is allowed.
func TestPoint_validate(t *testing.T) {
	schema := encoding.DefaultSchema()
	schema.MaxTags = 2
	tags := func(n int) (out []Tag) {
		for i := range n {
			out = append(out, Tag{string(rune('c' - i)), "v"})
		}
		return out
	}
	const last = int64(encoding.MaxTime)*1000 + 999
	for _, c := range []struct {
		metric string
		time   int64
		tags   []Tag
		want   string
	}{
		{"m", 1, tags(1), "<nil>"},
		{"m", 1, tags(2), "<nil>"},
		{"m", last, tags(1), "<nil>"},
		{"", 0, nil, "Metric name was empty"},
		{"m", 0, nil, "Invalid timestamp"},
		{"m", -1, tags(1), "Invalid timestamp"},
		{"m", last + 1, tags(1), "Invalid timestamp: got 4294967296000 ms, want at most 4294967295999"},
		{"m", maxMillis, tags(1), "Invalid timestamp: got 9999999999999 ms"},
		{"m", maxMillis + 1, tags(1), "Invalid timestamp\n"},
		{"m", 1, nil, "Missing tags"},
		{"m", 1, tags(3), "Too many tags: 3 maximum allowed: 2, tags: {a=v, b=v, c=v}"},
		{"m m", 1, tags(1), `Invalid metric name ("m m"): illegal character:  `},
		{"m", 1, []Tag{{"k", "v"}, {"k k", "v"}}, `Invalid tag name with value [v] ("k k"): illegal character:  `},
		{"m", 1, []Tag{{"k", "v v"}}, `Invalid tag value with key [k] ("v v"): illegal character:  `},
		{"m!", 1, []Tag{{"k!", "v!"}}, "<nil>"}, // as the setting allows
	} {
		p := &Point{Metric: c.metric, Time: c.time, Tags: c.tags}
		if got := fmt.Sprintln(p.Validate(schema, '!')); !strings.Contains(got, c.want) {
			t.Errorf("%q %d %v: got %s, want %s", c.metric, c.time, c.tags, got, c.want)
		}
	}
}

// Only one class of histograms is configured, and a histogram from which OpenTSDB would compute nonsense is refused.
func TestCodec(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "-1 <nil>",
		"{":                                   "-1 want a JSON object",
		`{}`:                                  "-1 got 0 classes",
		`{"x":1}`:                             "-1 got 1 classes",
		`{"` + simpleHistogram + `":0}`:       "0 <nil>",
		`{"` + simpleHistogram + `":127}`:     "127 <nil>",
		`{"` + simpleHistogram + `":128}`:     "-1 " + simpleHistogram + " has number 128, want 0 to 127",
		`{"` + simpleHistogram + `":-1}`:      "-1 " + simpleHistogram + " has number -1",
		`{"` + simpleHistogram + `":1,"x":2}`: "-1 got 2 classes",
	} {
		c, err := ParseCodec(text)
		enabled := err == nil && text != ""
		if got := fmt.Sprint(int(c), " ", err); !strings.HasPrefix(got, want) || c.Enabled() != enabled {
			t.Errorf("%s: got %s, enabled: %v, want %s", text, got, c.Enabled(), want)
		}
	}

	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		id        int
		under     int64
		over      int64
		b         encoding.HistogramBucket
		want      string
		manyTimes int
	}{
		{7, 0, 0, encoding.HistogramBucket{Lower: 1, Upper: 1}, "<nil>", 1},
		{8, 0, 0, encoding.HistogramBucket{}, "No codec found mapped to ID 8", 1},
		{7, -1, 0, encoding.HistogramBucket{}, "got the underflow -1 and the overflow 0", 1},
		{7, 0, -1, encoding.HistogramBucket{}, "got the underflow 0 and the overflow -1", 1},
		{7, 0, 0, encoding.HistogramBucket{Lower: 2, Upper: 1}, errBoundsOrder.Error(), 1},
		{7, 0, 0, encoding.HistogramBucket{Lower: nan, Upper: 1}, errBoundsFinite.Error(), 1},
		{7, 0, 0, encoding.HistogramBucket{Lower: 1, Upper: inf}, errBoundsFinite.Error(), 1},
		{7, 0, 0, encoding.HistogramBucket{Lower: 1, Upper: 2, Count: -1}, "got the count -1", 1},
		{7, 0, 0, encoding.HistogramBucket{Lower: 1, Upper: 1}, "<nil>", encoding.MaxHistogramBuckets},
		{7, 0, 0, encoding.HistogramBucket{}, "Too many buckets", encoding.MaxHistogramBuckets + 1},
	} {
		h := encoding.Histogram{Underflow: c.under, Overflow: c.over}
		for range c.manyTimes {
			h.Buckets = append(h.Buckets, c.b)
		}
		if cell, err := Codec(7).Cell(c.id, &h); !strings.Contains(fmt.Sprint(err), c.want) ||
			err == nil && cell[0] != 7 {
			t.Errorf("%d times %+v, %d, %d: got %v, want %s", c.manyTimes, c.b, c.under, c.over, err, c.want)
		}
	}
}

func TestParseHistogramWords(t *testing.T) {
	h, err := ParseHistogramWords("u=1:0,1.75=12:O=2:2,3=4")
	if err != nil || h.Underflow != 1 || h.Overflow != 2 || len(h.Buckets) != 2 || h.Buckets[0].Upper != 1.75 ||
		h.Buckets[0].Count != 12 || h.Buckets[1].Count != 4 {
		t.Errorf("got %+v, %v", h, err)
	}
	for text, want := range map[string]string{
		"u": "Improperly formatted bucket: u", "u=1=2": "Improperly formatted bucket: u=1=2",
		"u=x":     "Improperly formatted bucket: u=x: got the count x, want an integer",
		"1=2":     "Improperly formatted bounds: 1=2",
		"1,2,3=2": "Improperly formatted bounds: 1,2,3=2", "": "Improperly formatted bucket: ",
	} {
		if _, err := ParseHistogramWords(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// Base64 that is whole has the bytes that it encodes.
func TestDecodeBase64(t *testing.T) {
	r := seedtest.Rand(t)
	for n := range 100 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		if got := decodeBase64(base64.StdEncoding.EncodeToString(b)); string(got) != string(b) {
			t.Fatalf("got % X, want % X", got, b)
		}
	}
	for text, want := range map[string]string{
		"ab": `"ab"`, " ~": `" ~"`, "\x1f\x7f": "[31, 127]", "a\x7f": `"a\x7F"`, "\n\t\x00": "[10, 9, 0]",
		"\x00": `"\x00"`,
	} {
		if got := prettyBytes([]byte(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
