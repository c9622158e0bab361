package settingspage_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/extra/docsite/settingspage"
	"downpour/pushdown/process/settings"
)

const root = "../../../.."

var update = flag.Bool("update", false, "write the table into the page")

// The table of all variables on the page of settings is that of the code, and the code of both
// programs has all variables that are known.
func TestSettings_current(t *testing.T) {
	page, err := os.ReadFile(root + "/" + settingspage.Path)
	if err != nil {
		t.Fatal(err)
	}
	made, err := settingspage.Made(page)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(root+"/"+settingspage.Path, made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(string(made), string(page)); d != "" {
		t.Errorf("the page is not as the code is, run make docs: -want +got\n%s", d)
	}

	var names []string
	for _, s := range settingspage.Settings() {
		if strings.HasPrefix(s.Name, "DOWNPOUR_") {
			names = append(names, s.Name)
		}
	}
	known := slices.DeleteFunc(settings.Known(), func(name string) bool {
		return !strings.HasPrefix(name, "DOWNPOUR_")
	})
	if d := cmp.Diff(known, names); d != "" {
		t.Errorf("variables: -known +made\n%s", d)
	}
}

// The upper table of the page of settings, which is written by hand, has the defaults of the code where
// it has one for each variable of a row.
func TestSettings_defaults(t *testing.T) {
	page, err := os.ReadFile(root + "/" + settingspage.Path)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, s := range settingspage.Settings() {
		byName[s.Name] = s.Default
	}

	plain := strings.NewReplacer("`", "", ",", "")
	compared := 0
	upper, _, _ := strings.Cut(string(page), "\n## ")
	for line := range strings.Lines(upper) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		names, defaults := strings.Split(strings.TrimPrefix(cells[0], "| "), ", "), strings.Split(cells[1], ", ")
		if len(names) != len(defaults) {
			continue // described in words
		}
		for i, name := range names {
			said, want := plain.Replace(defaults[i]), plain.Replace(byName[plain.Replace(name)])
			if strings.Contains(said, " ") || said == "" {
				continue
			}
			compared++
			if said != want && !(want == "" && name == "`DOWNPOUR_SELF_METRICS`") {
				t.Errorf("%s: the page says %q, the code has %q", name, said, want)
			}
		}
	}
	if compared < 15 {
		t.Errorf("only %d defaults were compared", compared)
	}
}
