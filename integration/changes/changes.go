// Package changes says which files of a git repository a change is made of, for whatever runs only what the change can
// break.
package changes

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Since returns the commit to compare the tree with: where HEAD left the branch base, or, if base
// is empty, origin/main or main. On that branch itself nothing has left it: there it is the commit
// before the last, as for a clone that continuous integration makes.
func Since(ctx context.Context, root, base string) (string, error) {
	if base != "" {
		return Git(ctx, root, "merge-base", base, "HEAD")
	}
	head, err := Git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	for _, branch := range []string{"origin/main", "main"} {
		left, err := Git(ctx, root, "merge-base", branch, "HEAD") // an error is a clone without this branch
		if err == nil && left != head {
			return left, nil
		}
	}
	if before, err := Git(ctx, root, "rev-parse", "--verify", "HEAD~1"); err == nil {
		return before, nil
	}
	return head, nil // the only commit of the clone
}

// Files returns the files that differ from a commit, those that are not committed yet among them.
func Files(ctx context.Context, root, commit string) ([]string, error) {
	differ, err := Git(ctx, root, "diff", "--name-only", "--no-renames", "--relative", commit)
	if err != nil {
		return nil, err
	}
	untracked, err := Git(ctx, root, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(differ+"\n"+untracked, func(r rune) bool { return r == '\n' }), nil
}

// Git runs a git command in the repository at root, and returns what it printed without the blanks around it.
func Git(ctx context.Context, root string, args ...string) (string, error) {
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
