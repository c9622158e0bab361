package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildPrograms compiles the gateway and the pushdown server of the source tree in root into the
// directory out, as out/gateway and out/pushdown. The programs do not hold the paths of their
// sources, so it makes no difference where the tree lies.
func BuildPrograms(ctx context.Context, root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return inDir(ctx, root, "go", "build", "-trimpath", "-o", out+string(filepath.Separator), "./gateway/cmd/gateway",
		"./pushdown/cmd/pushdown")
}

// BuildRevision is BuildPrograms of a revision of the git repository in root. It checks the revision
// out into a worktree next to out, which it removes again, and leaves the tree as it is.
func BuildRevision(ctx context.Context, root, revision, out string) (err error) {
	// git would take an empty revision for HEAD, and one like a flag for a flag.
	if revision == "" || strings.HasPrefix(revision, "-") {
		return fmt.Errorf("got the revision %q, want a commit, branch or tag", revision)
	}

	tree := out + "-source"
	if err := inDir(ctx, root, "git", "worktree", "add", "--detach", tree, revision); err != nil {
		return err
	}
	defer func() {
		// After an interrupt, too; otherwise git would list the worktree for ever.
		cleared := inDir(context.WithoutCancel(ctx), root, "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, cleared)
	}()
	return BuildPrograms(ctx, tree, out)
}

// HasCommit reports whether the git repository in root has a commit; a shallow clone has only the
// newest ones.
func HasCommit(ctx context.Context, root, commit string) bool {
	return inDir(ctx, root, "git", "cat-file", "-e", commit+"^{commit}") == nil
}

// inDir runs a program in a directory. Its output is part of the error.
func inDir(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
