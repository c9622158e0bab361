package names

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"downpour/encoding"
)

// A text is stored under a name that OpenTSDB can hold, by the rule of the documentation, and comes back.
//
//fault:names-escaped-twice-lost unescaped(text) => unescaped("")
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"up":                   "up",
		"web01.fra":            "web01.fra",
		"/var/lib":             "/var/lib",
		"a_b__c":               "a_b__c",
		"_":                    "_",
		"U":                    "U",
		"U_":                   "U_",
		"Äpfel":                "Äpfel",
		"10.0.0.7:9100":        "U__10.0.0.7_3a_9100",
		"job:errors:rate5m":    "U__job_3a_errors_3a_rate5m",
		"GET /a_b":             "U__GET_20_/a__b",
		"日本":                   "U___65e5__672c_",
		"😀":                    "U___1f600_",
		"\u00d7":               "U___d7_", // a sign, no letter
		"\x00":                 "U___0_",
		"�":                    "U___fffd_",
		":":                    "U___3a_",
		"U__a_3a_b":            "U__U____a__3a__b", // the name of a:b
		"U__a":                 "U__a",             // no text has this name
		"U__":                  "U__U____",         // None
		"U__A_3A_":             "U__A_3A_",
		"U__U____a__3a__b":     "U__U____U________a____3a____b",
		strings.Repeat(":", 3): "U___3a__3a__3a_",
	} {
		got := Stored(text)
		if got != want || Shown(got) != text || string(AppendStored([]byte("x"), text)) != "x"+want {
			t.Errorf("%q: stored as %q and shown as %q, want %q", text, got, Shown(got), want)
		}
		if err := encoding.ValidateName("tag value", got); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	// Names that other protocols have stored, and nothing was escaped to.
	for _, name := range []string{"", None, "U__a", "U__a_", "U__a_zz_", "U___3A_", "U___03a_",
		"U__110000_", "U__d800_", "U___61_", "a:b", "日本", "U__a b", "U____", "U__-1_", "U___+3a_"} {
		if got := Shown(name); got != name {
			t.Errorf("%q is shown as %q, want as it is", name, got)
		}
	}
}

// Each text has one name, each name shows one text, and Prometheus reads an escaped name as the same text.
func FuzzNames(f *testing.F) {
	for _, text := range []string{
		"a", "a:b", "U__a_3a_b", "U__", "日本 ä_", "U__U____a__3a__b", "U___", "a\x00", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || !utf8.ValidString(text) {
			return
		}
		name := Stored(text)
		if err := encoding.ValidateName("tag value", name); err != nil {
			t.Fatalf("%q is stored as %q: %v", text, name, err)
		}
		if _, err := encoding.AppendName(nil, name); err != nil {
			t.Fatalf("%q is stored as %q: %v", text, name, err)
		}
		if got := Shown(name); got != text {
			t.Fatalf("%q is stored as %q, which is shown as %q", text, name, got)
		}
		if name != text && model.UnescapeName(name, model.ValueEncodingEscaping) != text {
			t.Fatalf("%q is stored as %q, which Prometheus reads as %q", text, name,
				model.UnescapeName(name, model.ValueEncodingEscaping))
		}
		// As the name of a point that was put: what is shown is stored under it, or under itself.
		if shown := Shown(text); shown != text && Stored(shown) != text {
			t.Fatalf("the name %q is shown as %q, which is stored as %q", text, shown, Stored(shown))
		}
		// The names of a text begin with one of the starts of each beginning of it.
		for i := range text {
			for _, name := range Of(text) {
				found := 0
				for _, start := range Starts(text[:i]) {
					if strings.HasPrefix(name, start) {
						found++
					}
				}
				if found != 1 || Shown(name) != text {
					t.Fatalf("the name %q of %q begins with %d of %q", name, text, found, Starts(text[:i]))
				}
			}
		}
	})
}
