package changes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What has changed: on a branch all since it left main, on main the last commit, with a base what it says, and always
// what is not committed.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"},
			args...)
		if _, err := Git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(name string) {
		t.Helper()
		write(name)
		do("add", name)
		do("commit", "-q", "-m", name)
	}
	check := func(base string, want ...string) {
		t.Helper()
		from, err := Since(t.Context(), dir, base)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Files(t.Context(), dir, from)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("base %q: -want +got\n%s", base, d)
		}
	}

	do("init", "-q", "-b", "main")
	commit("0")
	check("")
	commit("1")
	check("", "1")
	commit("2")
	check("", "2")
	check("HEAD~2", "1", "2")

	do("checkout", "-q", "-b", "branch", "HEAD~1")
	commit("a")
	commit("b")
	write("c")
	check("", "a", "b", "c")
	check("HEAD~1", "b", "c")
	check("main", "a", "b", "c")
	if _, err := Since(t.Context(), dir, "none"); err == nil {
		t.Error("a base that is not there: got no error, want one")
	}
}
