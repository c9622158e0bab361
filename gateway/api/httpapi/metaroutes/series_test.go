package metaroutes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSeries(t *testing.T) {
	f := func(text, metric string, tags map[string]string, wantErr string) {
		t.Helper()
		gotMetric, gotTags, err := parseSeries(text)
		switch {
		case wantErr != "":
			if err == nil || err.Error() != wantErr {
				t.Errorf("%q: %v, want %s", text, err, wantErr)
			}
		case err != nil || gotMetric != metric || !cmp.Equal(tags, gotTags):
			t.Errorf("%q: %q, %v, %v", text, gotMetric, gotTags, err)
		}
	}
	f("m", "m", map[string]string{}, "")
	f("m{}", "m", map[string]string{}, "")
	f("m{a=b,c=d,a=b}", "m", map[string]string{"a": "b", "c": "d"}, "")
	f("m{a=b", "", nil, "Missing '}' at the end of: m{a=b")
	f("m{a}", "", nil, "When parsing tag 'a': invalid tag: a")
	f("m{a=b=c}", "", nil, "When parsing tag 'a=b=c': invalid tag: a=b=c")
	f("m{a=b,a=c}", "", nil, "When parsing tag 'a=c': duplicate tag: a=c, tags={a=b}")
}

// Whatever the text, the metric and the tags that are read from it are parts of it.
func FuzzParseLookupSeries(f *testing.F) {
	for _, text := range []string{"m", "m{}", "{}", "m{a=b}", "{=b}", "m{a=}", "m{a=b,c=*", "*{*=*}", "m{{}}", "}{",
		"m{,}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		metric, tags, err := parseLookupSeries(text)
		if err != nil {
			return
		}
		if metric != nil && !strings.HasPrefix(text, *metric) {
			t.Errorf("%q: got the metric %q, which the text does not begin with", text, *metric)
		}
		for _, tag := range tags {
			if tag.Key == nil && tag.Value == nil {
				t.Errorf("%q: got a tag without key and value", text)
			}
			for _, part := range []*string{tag.Key, tag.Value} {
				if part != nil && !strings.Contains(text, *part) {
					t.Errorf("%q: got %q, which is not in the text", text, *part)
				}
			}
		}
		if _, _, err := parseSeries(text); err == nil && strings.Count(text, "{") > 1 && !strings.Contains(text, "=") {
			t.Errorf("%q is taken for a series, want an error", text)
		}
	})
}
