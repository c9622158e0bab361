package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// git runs a git command in the module and returns what it printed.
func (r *runner) git(ctx context.Context, args ...string) (string, error) {
	return r.output(ctx, "git", args...)
}

// output runs a command in the module and returns what it printed.
func (r *runner) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// since names the revision that changes are counted from: the one that is asked for; else where this branch left
// the main branch that it is to land on; else, on that branch itself, the commit before the last.
func (r *runner) since(ctx context.Context, asked string) (string, error) {
	if asked != "" {
		return r.git(ctx, "rev-parse", "--verify", asked+"^{commit}")
	}
	head, err := r.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	for _, trunk := range []string{"origin/main", "main"} {
		if base, err := r.git(ctx, "merge-base", trunk, "HEAD"); err == nil && base != head {
			return base, nil
		}
	}
	if before, err := r.git(ctx, "rev-parse", "--verify", "HEAD~1"); err == nil {
		return before, nil
	}
	return head, nil // the only commit
}

// changed names the files that differ from a revision, committed or not.
func (r *runner) changed(ctx context.Context, base string) ([]string, error) {
	committed, err := r.git(ctx, "diff", "--name-only", base)
	if err != nil {
		return nil, err
	}
	untracked, err := r.git(ctx, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(committed + "\n" + untracked), nil
}

// commit is the short name of HEAD, with a + behind it if the tree has changes that are not committed.
func (r *runner) commit(ctx context.Context) (string, error) {
	name, err := r.git(ctx, "rev-parse", "--short=8", "HEAD")
	if err != nil {
		return "", err
	}
	dirty, err := r.git(ctx, "status", "--porcelain", "--untracked-files=no", "--", ":!"+recordFile)
	if dirty != "" {
		name += "+"
	}
	return name, err
}
