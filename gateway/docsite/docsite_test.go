package docsite_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/docsite"
	"downpour/pushdown/process/settings"
)

const root = "../.."

// The committed site is what the pages and the code make now.
func TestSite_current(t *testing.T) {
	files, err := docsite.Build(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadDir(root + "/gateway/web/site")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range there {
		names = append(names, f.Name())
		text, err := os.ReadFile(root + "/gateway/web/site/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := files[f.Name()]; ok && !bytes.Equal(text, want) {
			t.Errorf("%s is not what its page makes now: run make docs", f.Name())
		}
	}
	if d := cmp.Diff(files.Names(), names); d != "" {
		t.Errorf("files of the site (run make docs): -want +got\n%s", d)
	}
}

// The table of all variables on the page of settings is that of the code, and the code of both
// programs has all variables that are known.
func TestSettings_current(t *testing.T) {
	page, err := os.ReadFile(root + "/" + docsite.SettingsPath)
	if err != nil {
		t.Fatal(err)
	}
	made, err := docsite.WithSettings(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(made), string(page)); d != "" {
		t.Errorf("the page is not as the code is, run make docs: -want +got\n%s", d)
	}

	var names []string
	for _, s := range docsite.Settings() {
		if strings.HasPrefix(s.Name, "DOWNPOUR_") {
			names = append(names, s.Name)
		}
	}
	known := slices.DeleteFunc(settings.Known(), func(name string) bool { return !strings.HasPrefix(name, "DOWNPOUR_") })
	if d := cmp.Diff(known, names); d != "" {
		t.Errorf("variables: -known +made\n%s", d)
	}
}

// The upper table of the page of settings, which is written by hand, has the defaults of the code where
// it has one for each variable of a row.
func TestSettings_defaults(t *testing.T) {
	page, err := os.ReadFile(root + "/" + docsite.SettingsPath)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, s := range docsite.Settings() {
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
			continue // told in words
		}
		for i, name := range names {
			said, want := plain.Replace(defaults[i]), byName[plain.Replace(name)]
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

// Every page of the source has a topic.
func TestTopics_allPages(t *testing.T) {
	listed := map[string]bool{}
	for _, topic := range docsite.Topics() {
		for _, p := range topic.Pages {
			listed[p.Path] = true
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := len(name) > 1 && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden || slices.Contains([]string{"node_modules", "build", "bin", "data", "testdata", "__pycache__"}, d.Name())) {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" && !listed[name] {
			t.Errorf("%s is on no topic of gateway/docsite/pages.go", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
