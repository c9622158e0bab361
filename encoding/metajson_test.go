package encoding

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Meta data that OpenTSDB 2.4.1 wrote is read, and written again as the same bytes.
func TestMeta_storedForm(t *testing.T) {
	uids := []string{
		`{"type":"METRIC","displayName":"","description":"","notes":"","created":1795221661,"custom":null}`,
		`{"type":"TAGV","displayName":"a\"b","description":"\n","notes":"é","created":0,"custom":{"owner":"ops"}}`,
	}
	for _, text := range uids {
		m, err := ParseUIDMeta([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(AppendUIDMeta(nil, m))); diff != "" {
			t.Error(diff)
		}
	}
	series := []string{
		`{"tsuid":"000001000001000001000002000002","displayName":"","description":"","notes":"",` +
			`"created":1795221661,"custom":null,"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}`,
		`{"tsuid":"000001000001000001","displayName":"d","description":"","notes":"","created":1,"custom":{},` +
			`"units":"ms","dataType":"gauge","retention":7,"max":1.0E10,"min":-0.5}`,
	}
	for _, text := range series {
		m, err := ParseTSMeta([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(AppendTSMeta(nil, m))); diff != "" {
			t.Error(diff)
		}
	}
}

// hashOrder lists keys in the order of a HashMap of Java 17 that was copied from a sorted map. Each
// text below is such a list.
func TestHashOrder(t *testing.T) {
	for _, want := range []string{
		"Aa BB a b", // Aa and BB have one hash
		"département owner 日本 q r s t u v w x y z",
		"1cky4 e 11qq",
		"1 gx g9 1llt 9zhrv",
		"1 188 1ldi4s 1h 1h3 1p",
		"1t 98iwj c rkdg79 3au 1bem n 1ks1 v1i 1 1ejdh vvmx",
		"nvl7 oo 1qazy qsh j 1 mgjr kh3wf8 1l 12oj2 1eri 106of0 zy",
		"1lxwd1 13 b 88nlvt e 1a5c 1ew1x4 1p30 dhxch 15q raied 1 149qjs r 1f v 1dmcut 1w6nu6 6gbr 1o",
	} {
		keys := map[string]string{}
		for k := range strings.SplitSeq(want, " ") {
			keys[k] = ""
		}
		if diff := cmp.Diff(want, strings.Join(hashOrder(keys), " ")); diff != "" {
			t.Error(diff)
		}
	}
}

// Doubles are shown as Java's Double.toString shows them.
func TestAppendJavaDouble(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", -7: "-7.0", 1.5: "1.5", -0.25: "-0.25", 0.001: "0.001", 0.00999: "0.00999",
		9.5e-4: "9.5E-4", 1e-5: "1.0E-5", -1e-12: "-1.0E-12", 9_999_999: "9999999.0", 9_999_999.5: "9999999.5",
		1e7: "1.0E7", -12_500_000: "-1.25E7", 1e10: "1.0E10", 1.5e300: "1.5E300", 2.5e-300: "2.5E-300",
	} {
		if got := string(AppendJavaDouble(nil, v)); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
	if got := string(AppendJavaDouble(nil, math.Copysign(0, -1))); got != "-0.0" {
		t.Errorf("-0: got %s", got)
	}
}

// What is no JSON, or of another type, is an error that says what it should have been.
func TestParse_noJSON(t *testing.T) {
	for _, text := range []string{"", "x", "{", "[]", `{"created":"x","startTime":{}}`} {
		_, note := ParseAnnotation([]byte(text))
		_, uid := ParseUIDMeta([]byte(text))
		_, series := ParseTSMeta([]byte(text))
		for what, err := range map[string]error{"annotation": note, "UIDMeta": uid, "TSMeta": series} {
			if want := fmt.Sprintf("encoding: cannot parse %s of %d bytes", what, len(text)); err == nil ||
				!strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", text, err, want)
			}
		}
	}
	var d JSONDouble
	if err := d.UnmarshalJSON([]byte(`"many"`)); err == nil {
		t.Errorf("a text is the double %v", d)
	}
	if got := string(appendJSONString(nil, "a b\x1f\"")); got != `"a b\u001F\""` {
		t.Errorf("got %s, want control characters and quotes escaped, and no space", got)
	}
}
