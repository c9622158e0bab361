package putroutes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanned are the points that scanPoints reads, as the decoder gives them.
func scanned(body []byte) (points []dataPoint, ok bool) {
	plain, ok := scanPoints(body)
	for i := range plain {
		points = append(points, *plain[i].decode(body))
	}
	return points, ok
}

// What collectors write is read without the decoder, and means the same.
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
	f(`[{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}},{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}]`)
	f("[ {\n\t\"tags\" : { \"host\" : \"a\" , \"dc\" : 7 } , \"value\" : \"1.5\" , \"timestamp\" : \"1356998400.25\" ,\r\n \"metric\" : \"m\" } ]")
	f(`{"metric":"","timestamp":-0.5e+3,"value":1E-7,"tags":{}}`)
	f(`{"metric":"m","timestamp":0,"value":"","tags":{"host":"a","host":"b"}}`) // the later of two counts
	f(`{"metric":"m","timestamp":1.5,"value":10,"tags":{"host":-0,"":"}"}}`)
}

// All else is the decoder's, which says what is wrong with it or knows better.
func TestScanPoints_left(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if _, ok := scanned([]byte(body)); ok {
			t.Errorf("%s: read", body)
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
		{`"metric"`, `"Metric"`}, {`"metric"`, `"name"`}, {`"value":1,`, ``}, {`"value":1`, `"value":1,"value":2`}, {`"tags":{"a":"b"}`, `"tags":null`},
		{`"timestamp":1`, `"timestamp":01`}, {`"timestamp":1`, `"timestamp":+1`}, {`"timestamp":1`, `"timestamp":true`}, {`"timestamp":1`, `"timestamp":1e`},
		{`"value":1`, `"value":.5`}, {`"value":1`, `"value":1.`}, {`"value":1`, `"value":-`}, {`"value":1`, `"value":[1]`}, {`"value":1`, `"value":NaN`},
		{`"b"`, `null`}, {`"b"`, `true`}, {`"b"`, `{}`}, {`"b"}`, `"b",}`}, {`"a":`, `a:`}, {`"a":"b"`, `"a"`}, {`"b"}}`, `"b"}`}, {`{"m`, `{,"m`},
	} {
		f(strings.Replace(good, change[0], change[1], 1))
	}
}

// joined is a spelling in one part.
func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Spellings are told apart as far as their series may differ.
func TestScannedPoint_spelling(t *testing.T) {
	seen := map[string]string{}
	for _, names := range []string{`"metric":"m","tags":{"a":"b"}`, `"metric":"m","tags":{"a":"c"}`, `"metric":"n","tags":{"a":"b"}`, `"metric":"m","tags":{"a":"b","c":"d"}`} {
		body := []byte(`{` + names + `,"timestamp":1,"value":1}`)
		points, ok := scanPoints(body)
		if !ok {
			t.Fatalf("%s: left to the decoder", body)
		}
		spelling := string(joined(points[0].spelling(body)))
		if other, ok := seen[spelling]; ok {
			t.Errorf("%s and %s are spelled %q", names, other, spelling)
		}
		seen[spelling] = names
	}
}

// Whatever is read without the decoder, the decoder reads alike.
func FuzzScanPoints(f *testing.F) {
	f.Add([]byte(`[{"metric":"m","timestamp":1356998400,"value":1.5,"tags":{"host":"a","dc":1}}]`))
	f.Add([]byte(`{"metric":"m","timestamp":"1e9","value":-0.0E+1,"tags":{"a":"b","a":2}}`))
	f.Add([]byte(` [{"tags":{},"value":"x","timestamp":0,"metric":""} , {"metric":"m\n","timestamp":1,"value":2,"tags":{}}] `))
	f.Fuzz(func(t *testing.T, body []byte) {
		body = bytes.TrimSpace(body)
		got, ok := scanned(body)
		if !ok {
			return
		}
		want, err := decodePoints[dataPoint](body)
		if err != nil {
			t.Fatalf("%q: read, but the decoder says %v", body, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: -decoder +scan\n%s", body, d)
		}
	})
}

// BenchmarkReadPoints reads a body of 1,000 points, as it is and by the decoder.
func BenchmarkReadPoints(b *testing.B) {
	body := []byte("[")
	for i := range 1000 {
		body = fmt.Appendf(body, `{"metric":"cpu.user","timestamp":1700000000,"value":%d.25,"tags":{"host":"host-%06d","region":"region-%d","dc":"dc-%02d"}},`, i%101, i, i%9, i%27)
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
	f("scan", func() int { p, _ := scanPoints(body); return len(p) })
	f("decoder", func() int { p, _ := decodePoints[dataPoint](body); return len(p) })
}
