//go:build integration

package bench_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/builds"
	"downpour/bench/report"
	"downpour/integration/e2e"
	"downpour/integration/e2e/e2etest"
)

// Every row of a comparison of two builds is measured on every store. The ratios themselves are not
// checked, because both builds are the same program.
func TestBuilds_everyRow(t *testing.T) {
	t.Parallel() // its times are not checked
	ctx := e2etest.Within(t, 15*time.Minute)
	same := builds.Build{
		Version:  "this tree",
		Gateway:  e2etest.Must[string](t)(e2e.Build(ctx, "./gateway/cmd/gateway")),
		Pushdown: e2etest.Must[string](t)(e2e.Build(ctx, "./pushdown/cmd/pushdown")),
	}
	a, b := same, same
	a.Name, b.Name = "A", "B"

	r := report.New("compare", nil)
	saved := 0
	err := builds.Run(ctx, builds.Config{
		A:           a,
		B:           b,
		HBase:       e2etest.HBase(t),
		Open:        openBenchStore,
		Data:        shortData(),
		Rounds:      1,
		Turns:       1,
		Connections: 2,
		Tolerance:   0.05,
		Report:      r,
		Save:        func() error { saved++; return nil },
	})
	if err != nil || saved != 1 {
		t.Errorf("saved %d times, error %v; want once and no error", saved, err)
	}

	onHBase := slices.DeleteFunc(slices.Clone(builds.Rows), func(row string) bool {
		return row == "put-http" || strings.HasPrefix(row, "frames")
	})
	// Pushdown servers are asked for rows that are read: never for puts, nor for what is answered from
	// memory.
	byPushdown := slices.DeleteFunc(slices.Clone(onHBase), func(row string) bool {
		return row == "put-telnet" || row == "memory-put" || row == "dashboards" || row == "living"
	})
	for store, rows := range map[string][]string{
		"embedded": builds.Rows, "HBase, single": onHBase, "HBase, multi": onHBase,
		"HBase, pushdown": byPushdown,
	} {
		for _, row := range rows {
			i := slices.IndexFunc(r.Changes, func(c report.Change) bool { return c.Row == row && c.Store == store })
			if i < 0 {
				t.Errorf("%s: row %s is missing", store, row)
			} else if c := r.Changes[i]; c.Missing != "" || len(c.A) != 1 || len(c.B) != 1 || c.Ratio.Median <= 0 ||
				c.Verdict() != report.TooFew {
				t.Errorf("%s: %s", store, c.Line())
			}
		}
	}
	if path, err := r.Save(t.TempDir()); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// The bench command, run as users run it, compares a build with itself without a result cache. The
// row dashboards, which asks the same again, is worse, and the exit status is 1.
func TestBuilds_worse(t *testing.T) {
	ctx := e2etest.Within(t, 10*time.Minute)
	gateway := e2etest.Must[string](t)(e2e.Build(ctx, "./gateway/cmd/gateway"))
	status, out, err := e2e.Run(ctx, "./bench/cmd/bench", e2e.ProgramOptions{Dir: e2etest.Must[string](t)(e2e.Root()),
		Args: []string{"compare", "-a", "build:" + gateway, "-b", "build:" + gateway,
			"-b-env", "DOWNPOUR_RESULT_CACHE=off",
			"-rows", "dashboards", "-rounds", "6", "-turns", "3", "-turn-for", "100ms", "-hosts", "300", "-hours", "3",
			"-results", t.TempDir()}})
	if err != nil || status != 1 ||
		!strings.Contains(out, "bench: B is worse than A in 1 of 1 rows: embedded dashboards") {
		t.Errorf("status %d, %v; want 1, and dashboards worse\n%s", status, err, out)
	}
}

// A revision is built from its own sources, whatever the work tree holds, and the build leaves
// nothing behind in the repository.
func TestBuilds_revision(t *testing.T) {
	t.Parallel() // it shares nothing with other tests
	ctx := e2etest.Within(t, 5*time.Minute)
	root := t.TempDir()
	in := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write := func(says string) {
		t.Helper()
		for _, program := range []string{"gateway", "pushdown"} {
			dir := filepath.Join(root, program, "cmd", program)
			text := "package main\n\nfunc main() { print(\"" + says + "\") }\n"
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in("git", "init", "--quiet")
	write("before")
	in("git", "add", ".")
	in("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "before")
	write("after")

	m := builds.Maker{Root: root, Dir: t.TempDir()}
	for text, want := range map[string]string{"git:HEAD": "before", "tree": "after"} {
		b, err := m.Make(ctx, "A-"+want, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{b.Gateway, b.Pushdown} {
			if got := in(program); got != want {
				t.Errorf("%s: %s says %q, want %q", text, program, got, want)
			}
		}
		commit := strings.TrimSpace(in("git", "rev-parse", "--short=12", "HEAD"))
		if !strings.Contains(b.Version, "commit "+commit) || strings.Contains(b.Version, "+") != (text == "tree") {
			t.Errorf("version %q, want commit %s in it", b.Version, commit)
		}
	}

	if _, err := m.Make(ctx, "B", "git:nowhere"); err == nil || !strings.Contains(err.Error(), "git worktree add") {
		t.Errorf("an unknown revision: error %v, want that of git worktree add", err)
	}
	write("what does not compile \" )")
	in("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-am", "broken")
	if _, err := m.Make(ctx, "C", "git:HEAD"); err == nil || !strings.Contains(err.Error(), "go build") {
		t.Errorf("sources that do not compile: error %v, want that of go build", err)
	}
	if trees := in("git", "worktree", "list"); strings.Count(trees, "\n") != 1 {
		t.Errorf("worktrees are left:\n%s", trees)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := m.Make(stopped, "D", "tree"); err == nil {
		t.Error("an interrupted build: no error, want one")
	}
}
