package main

import (
	"context"

	"downpour/integration/changes"
)

// changed names the files that differ from where the branch left main, or from the requested revision.
func (r *runner) changed(ctx context.Context, o options) ([]string, error) {
	base, err := changes.Since(ctx, r.root, o.base)
	if err != nil {
		return nil, err
	}
	return changes.Files(ctx, r.root, base)
}

// commit is the short name of HEAD, with a + behind it if the tree has changes that are not committed.
func (r *runner) commit(ctx context.Context) (string, error) {
	name, err := changes.Git(ctx, r.root, "rev-parse", "--short=8", "HEAD")
	if err != nil {
		return "", err
	}
	dirty, err := changes.Git(ctx, r.root, "status", "--porcelain", "--untracked-files=no", "--", ":!"+recordFile)
	if dirty != "" {
		name += "+"
	}
	return name, err
}
