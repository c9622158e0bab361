package write

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// In every cell form a histogram is a cell of its own. If a batch has several histograms of one
// series and time, only the last one is written. A time in seconds and one in ms are two cells.
func TestWriter_histograms(t *testing.T) {
	const at = 1356998400
	cell := func(count int64) []byte {
		h := encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: count}}, 0, 0)
		value, err := Codec(42).Cell(42, &h)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	f := func(form Form, own bool, points string) {
		t.Helper()
		m := &memory{}
		cfg := Config{Form: form, Window: time.Hour, Shards: 3, Histograms: 42}
		if own {
			cfg.RequestBatchFrom = 1
		}
		w := newTestWriter(m, cfg)
		request := w.RequestBatch(9)
		resolve := func(host string) *SeriesKey {
			s, err := w.series.Resolve(t.Context(), "m", []Tag{{"host", host}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		add := func(host string, at, count int64) {
			t.Helper()
			if _, err := request.AddHistogram(t.Context(), resolve(host), at, cell(count)); err != nil {
				t.Fatal(err)
			}
		}
		add("a", at, 1)
		add("b", at, 2)
		if _, err := request.AddTo(t.Context(), resolve("a"),
			&Point{Time: at + 1, Value: encoding.IntValue(7)}); err != nil {
			t.Fatal(err)
		}
		add("a", at+60, 3)
		add("a", at*1000+250, 4)
		add("a", at, 5)
		if _, err := request.AddHistogram(t.Context(), resolve("a"), 0, cell(1)); err != ErrTimestamp {
			t.Errorf("time 0: got %v, want ErrTimestamp", err)
		}
		request.Send()
		w.Close()

		// Rows are metric, base time and tags. A value is codec 42 (2A), one bucket (0001) from 0
		// to 1 (3F800000 as a float), its count, and underflow and overflow of 0.
		a, b := "000001"+"50E22700"+"000001000001", "000001"+"50E22700"+"000001000002"
		want := map[string]string{
			a + " 060000": "2A0001000000003F800000050000", b + " 060000": "2A0001000000003F800000020000",
			a + " 06003C": "2A0001000000003F800000030000", a + " 06000000FA": "2A0001000000003F800000040000",
			a + " " + points[:strings.Index(points, "=")]: points[strings.Index(points, "=")+1:],
		}
		got := map[string]string{}
		for _, mu := range m.applied {
			name := fmt.Sprintf("%X %X", mu.Row, mu.Qualifier)
			if got[name] != "" {
				t.Errorf("form %d: %s is written twice", form, name)
			}
			got[name] = fmt.Sprintf("%X", mu.Value)
			if appended := mu.Kind == store.Append; appended != (form == Appended &&
				!encoding.IsHistogram(mu.Qualifier)) {
				t.Errorf("form %d: %s is a mutation of kind %v", form, name, mu.Kind)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("form %d, batch of its own %t: want -, got +: %s", form, own, diff)
		}
	}
	for _, own := range []bool{false, true} {
		f(Single, own, "0010=07")
		f(MultiPoint, own, "0010=07")
		f(Appended, own, "050000=001007")
	}
}

// Base64 is decoded as OpenTSDB does it, which skips characters that are not Base64 and an
// incomplete group at the end, and errors have its texts.
func TestParseHistogram_text(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := ParseHistogram(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	short := "Byte array shorter than 6 bytes detected: "
	f("", short+`""`)
	f("!!!", short+`""`)
	f("5", short+`""`)
	f("AAE=", short+"[0, 1]")
	f("AAH/", short+"[0, 1, -1]")
	f("aGFsbA==", short+`"hall"`)
	f("CgkgAQ==", short+"[10, 9, 32, 1]")
	f("eAp5CQ==", short+`"x\ny\t"`)
	f("AA=A", short+"[0, -64]") // the bits of a misplaced = are in the bytes, as in Java

	want := encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1.75, Count: 411}}, 1, 2)
	text := base64.StdEncoding.EncodeToString(encoding.AppendHistogram(nil, &want))
	for _, spelled := range []string{text, text[:4] + "\r\n " + text[4:], text + "AAA"} {
		got, err := ParseHistogram(spelled)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v, want -, got +: %s", spelled, err, diff)
		}
	}
}

// The shortest body is read, and one that is damaged is refused.
func TestParseHistogram_body(t *testing.T) {
	for body, ok := range map[string]bool{
		"\x00\x00\x80\x01\x80\x01": true, "\x00\x00\x80\x01\x00": false, "\xff\xff\xff\xff\xff\xff": false,
	} {
		if _, err := ParseHistogram(base64.StdEncoding.EncodeToString([]byte(body))); (err == nil) != ok {
			t.Errorf("% X: got %v", body, err)
		}
	}
}

// A request that has batches of its own has its histograms in them, another one in those of the shards.
func TestRequestBatch_histograms(t *testing.T) {
	w := newTestWriter(&memory{}, Config{RequestBatchFrom: 2, Histograms: 1})
	defer w.Close()
	never := newTestWriter(&memory{}, Config{})
	defer never.Close()
	s, err := w.series.Resolve(t.Context(), "m", oneTag)
	if err != nil {
		t.Fatal(err)
	}
	for b, own := range map[*RequestBatch]bool{
		w.RequestBatch(1): false, w.RequestBatch(2): true,
		never.RequestBatch(0): false, never.RequestBatch(1000): false,
	} {
		if _, err := b.AddHistogram(t.Context(), s, 1356998400, []byte{1}); err != nil {
			t.Fatal(err)
		}
		if (b.open != nil) != own {
			t.Errorf("a batch of its own: %v, want %v", b.open != nil, own)
		}
		b.Send()
	}
}

func TestParseBounds(t *testing.T) {
	f := func(text string, lower, upper float32) {
		t.Helper()
		if got, err := ParseBounds(text); err != nil || got.Lower != lower || got.Upper != upper {
			t.Errorf("%q: %v %v, want %v and %v", text, got, err, lower, upper)
		}
	}
	f("0,1.75", 0, 1.75)
	f(" -1e3 , +2. ", -1000, 2)
	f("1f,2.5D", 1, 2.5)
	f("1e-60,1", 0, 1)
	for _, bad := range []string{"", "1", "1,2,3", "a,1", "1,", "f,1", "1x,2", "1ff,2"} {
		got, err := ParseBounds(bad)
		if err == nil {
			t.Errorf("%q is read as %v, want an error", bad, got)
		}
		if two := strings.Count(bad, ",") == 1; errors.Is(err, ErrValue) != two {
			t.Errorf("%q: got %v, of a number: want %v", bad, err, two)
		}
	}
}
