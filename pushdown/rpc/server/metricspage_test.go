package server_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page of metrics, whose names and meanings are stable, has every metric that a
// pushdown server exports for itself, and no other.
func TestMetricsPage(t *testing.T) {
	p := start(t, points(10), nil)
	_, exported := p.get("http", "/metrics", "", nil)
	text, err := os.ReadFile("../../../gateway/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Pushdown servers\n")
	page, _, _ = strings.Cut(page, "\n## ")
	read := func(text, pattern string) []string {
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[m[1]+": "+m[2]] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	got, want := read(page, "(?m)^\\| `(downpour_pushdown_\\w+)` .* \\| ([^|]*) \\|$"),
		read(exported, `(?m)^# HELP (downpour_pushdown_\w+) (.*)$`)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the page has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
