package java

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, ",": nil, ",,": nil, "a": {"a"}, "a,": {"a"}, "a,,": {"a"}, ",a": {"", "a"},
		"a,,b": {"a", "", "b"},
	} {
		if d := cmp.Diff(want, Split(text)); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
}
