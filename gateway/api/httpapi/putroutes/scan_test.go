package putroutes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanned returns the points that scanPoints reads, in the form of the decoder's.
func scanned(body []byte) (points []dataPoint, ok bool) {
	plain, ok := scanPoints(body, nil)
	if !ok {
		return nil, false
	}
	for i := range plain {
		points = append(points, *plain[i].decode(body))
	}
	return points, ok
}

// JSON as collectors write it is read without the decoder, with the same points.
func TestScanPoints_plain(t *testing.T) {
	f := func(body string) {
		t.Helper()
		want, err := decodePoints[dataPoint]([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got, ok := scanned([]byte(body))
		if !ok {
			t.Errorf("%s: left to the decoder", body)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -decoder +scan\n%s", body, d)
		}
	}
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`)
	f(`[{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}},{"metric":"m","timestamp":1356998400,` +
		`"value":1,"tags":{"host":"a"}}]`)
	f("[ {\n\t\"tags\" : { \"host\" : \"a\" , \"dc\" : 7 } , \"value\" : \"1.5\" , \"timestamp\" : " +
		"\"1356998400.25\" ,\r\n \"metric\" : \"m\" } ]")
	f(`{"metric":"","timestamp":-0.5e+3,"value":1E-7,"tags":{}}`)
	// Of two values of a key the later counts.
	f(`{"metric":"m","timestamp":0,"value":"","tags":{"host":"a","host":"b"}}`)
	f(`{"metric":"m","timestamp":1.5,"value":10,"tags":{"host":-0,"":"}"}}`)
}

// All other JSON is left to the decoder, which reads it or says what is wrong.
func TestScanPoints_left(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if _, ok := scanned([]byte(body)); ok {
			t.Errorf("%s: was read by the scanner, want it left to the decoder", body)
		}
	}
	good := `{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}`
	f(``)
	f(`[]`)
	f(`[` + good + `,]`)
	f(`[` + good)
	f(`[` + good + ` ` + good + `]`)
	f(`[` + good + `]]`)
	f(good + good)
	f(`[[` + good + `]]`)
	f("[" + strings.Repeat(good+",", maxPoints) + good + "]")
	for _, change := range [][2]string{
		{`"m"`, `"m\u0041"`}, {`"m"`, `"mü"`}, {`"m"`, "\"m\x01\""}, {`"m"`, `null`}, {`"m"`, `1`},
		{`"metric"`, `"Metric"`}, {`"metric"`, `"name"`}, {`"value":1,`, ``}, {`"value":1`, `"value":1,"value":2`},
		{`"tags":{"a":"b"}`, `"tags":null`},
		{`"timestamp":1`, `"timestamp":01`}, {`"timestamp":1`, `"timestamp":+1`},
		{`"timestamp":1`, `"timestamp":true`}, {`"timestamp":1`, `"timestamp":1e`},
		{`"value":1`, `"value":.5`}, {`"value":1`, `"value":1.`}, {`"value":1`, `"value":-`},
		{`"value":1`, `"value":[1]`}, {`"value":1`, `"value":NaN`},
		{`"b"`, `null`}, {`"b"`, `true`}, {`"b"`, `{}`}, {`"b"}`, `"b",}`}, {`"a":`, `a:`}, {`"a":"b"`, `"a"`},
		{`"b"}}`, `"b"}`}, {`{"m`, `{,"m`},
	} {
		f(strings.Replace(good, change[0], change[1], 1))
	}
}

// firstEscaped finds the same byte as a look at each, whatever stands behind it.
func TestFirstEscaped(t *testing.T) {
	for at := range 8 {
		for c := range 256 {
			for next := range 256 {
				eight := []byte("abcdefgh?")
				eight[at+1], eight[at] = byte(next), byte(c)
				eight = eight[:8]
				want := 0
				for want < 8 && unescaped(eight[want]) {
					want++
				}
				if got := firstEscaped(binary.LittleEndian.Uint64(eight)); got != want {
					t.Fatalf("% X: the first byte that stands for itself no more is number %d, want %d", eight, got,
						want)
				}
			}
		}
	}
}

// joined puts the parts of a spelling together.
func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Points of different series have different spellings.
func TestScannedPoint_spelling(t *testing.T) {
	seen := map[string]string{}
	for _, names := range []string{`"metric":"m","tags":{"a":"b"}`, `"metric":"m","tags":{"a":"c"}`,
		`"metric":"n","tags":{"a":"b"}`, `"metric":"m","tags":{"a":"b","c":"d"}`} {
		body := []byte(`{` + names + `,"timestamp":1,"value":1}`)
		points, ok := scanPoints(body, nil)
		if !ok {
			t.Fatalf("%s: left to the decoder", body)
		}
		spelling := string(joined(points[0].spelling(body)))
		if other, ok := seen[spelling]; ok {
			t.Errorf("%s and %s have the same spelling %q", names, other, spelling)
		}
		seen[spelling] = names
	}
}

// What is read without the decoder is what the decoder reads.
func FuzzScanPoints(f *testing.F) {
	f.Add([]byte(`[{"metric":"m","timestamp":1356998400,"value":1.5,"tags":{"host":"a","dc":1}}]`))
	f.Add([]byte(`{"metric":"m","timestamp":"1e9","value":-0.0E+1,"tags":{"a":"b","a":2}}`))
	f.Add(
		[]byte(
			` [{"tags":{},"value":"x","timestamp":0,"metric":""} , {"metric":"m\n","timestamp":1,"value":2,` +
				`"tags":{}}] `))
	f.Fuzz(func(t *testing.T, body []byte) {
		body = bytes.TrimSpace(body)
		got, ok := scanned(body)
		if !ok {
			return
		}
		want, err := decodePoints[dataPoint](body)
		if err != nil {
			t.Fatalf("%q: was read by the scanner, but the decoder says %v", body, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: -decoder +scan\n%s", body, d)
		}
	})
}

// BenchmarkReadPoints reads a body of 1,000 points, without and with the decoder.
func BenchmarkReadPoints(b *testing.B) {
	body := []byte("[")
	for i := range 1000 {
		body = fmt.Appendf(body,
			`{"metric":"cpu.user","timestamp":1700000000,"value":%d.25,"tags":{"host":"host-%06d",`+
				`"region":"region-%d","dc":"dc-%02d"}},`, i%101, i, i%9, i%27)
	}
	body[len(body)-1] = ']'
	f := func(name string, read func() int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := read(); n != 1000 {
					b.Fatalf("%d points, want 1000", n)
				}
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "points/s")
		})
	}
	var kept []scannedPoint
	f("scan", func() int { kept, _ = scanPoints(body, kept[:0]); return len(kept) })
	f("decoder", func() int { p, _ := decodePoints[dataPoint](body); return len(p) })
}
