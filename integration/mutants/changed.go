package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// since returns the commit to compare the tree with: where HEAD left the branch base, or, if base is empty, origin/main
// or main. On that branch itself nothing has left it: there it is the commit before the last, as everywhere in make test.
func since(ctx context.Context, root, base string) (string, error) {
	if base != "" {
		return git(ctx, root, "merge-base", base, "HEAD")
	}
	head, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	for _, branch := range []string{"origin/main", "main"} {
		left, err := git(ctx, root, "merge-base", branch, "HEAD") // an error is a clone without this branch
		if err == nil && left != head {
			return left, nil
		}
	}
	if before, err := git(ctx, root, "rev-parse", "--verify", "HEAD~1"); err == nil {
		return before, nil
	}
	return head, nil // the only commit of the clone
}

// changedSince returns the files that differ from a commit, those that are not committed yet among them.
func changedSince(ctx context.Context, root, commit string) ([]string, error) {
	differ, err := git(ctx, root, "diff", "--name-only", "--no-renames", "--relative", commit)
	if err != nil {
		return nil, err
	}
	untracked, err := git(ctx, root, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(differ+"\n"+untracked, func(r rune) bool { return r == '\n' }), nil
}

// touched returns the faults whose source file or test file is among the files.
func touched(faults []fault, files []string) (out []fault) {
	for _, f := range faults {
		if slices.Contains(files, f.file) || slices.Contains(files, f.testFile) {
			out = append(out, f)
		}
	}
	return out
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
