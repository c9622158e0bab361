package builds

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"downpour/integration/e2e"
)

// Tree names the build of the sources as they lie in the module's directory.
const Tree = "tree"

// Prefixes of the other names of builds.
const (
	Revision = "git:"   // before a revision, which is built
	Program  = "build:" // before the path of a gateway, or of a directory with programs
)

// Named reports whether a text names a build. The address of a server does not.
func Named(text string) bool {
	return text == Tree || strings.HasPrefix(text, Revision) || strings.HasPrefix(text, Program)
}

// Maker gets builds.
type Maker struct {
	Root string // the module's directory, in a git repository
	Dir  string // takes what is built; the caller removes it
}

// The programs of a build, as main packages.
const (
	gatewayMain  = "./gateway/cmd/gateway"
	pushdownMain = "./pushdown/cmd/pushdown"
)

// Make returns the build that text names: it builds the tree or a revision, or finds
// programs. It checks a revision out into a worktree, which it removes again, and leaves
// the tree as it is.
func (m Maker) Make(ctx context.Context, name, text string) (Build, error) {
	out, err := filepath.Abs(filepath.Join(m.Dir, name))
	if err != nil {
		return Build{}, err
	}

	var b Build
	commit := ""
	switch revision, isRevision := strings.CutPrefix(text, Revision); {
	case text == Tree:
		b, err = built(out, e2e.BuildPrograms(ctx, m.Root, out))
		if commit = m.commit(ctx, "HEAD"); commit != "" && m.changed(ctx) {
			commit += "+" // as reports mark it
		}
	case isRevision:
		b, err = built(out, e2e.BuildRevision(ctx, m.Root, revision, out))
		commit = m.commit(ctx, revision)
	case strings.HasPrefix(text, Program):
		b, err = find(strings.TrimPrefix(text, Program))
	default:
		err = fmt.Errorf("got %q, want %s, %sREVISION or %sPATH", text, Tree, Revision, Program)
	}
	if err != nil {
		return Build{}, fmt.Errorf("build %s: %w", name, err)
	}

	b.Name, b.Version = name, text
	// Programs that were found, and not built here, may report their commit themselves.
	if commit == "" {
		commit = stamped(b.Gateway)
	}
	if commit != "" {
		b.Version += ", commit " + commit
	}

	sum, err := fingerprint(b.Gateway)
	if err != nil {
		return Build{}, fmt.Errorf("build %s: %w", name, err)
	}
	b.Version += ", sha256 " + sum
	return b, nil
}

// commit returns the commit of a revision, empty if git does not know it.
func (m Maker) commit(ctx context.Context, revision string) string {
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", revision+"^{commit}")
	cmd.Dir = m.Root
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// changed reports whether the source tree differs from its commit. A new file, which no
// commit has, is a difference too.
func (m Maker) changed(ctx context.Context) bool {
	cmd := exec.CommandContext(ctx, "git", "status", "--porcelain")
	cmd.Dir = m.Root
	out, err := cmd.Output()
	return err != nil || len(out) > 0
}

// built returns the build in a directory, unless making it has failed.
func built(dir string, failed error) (Build, error) {
	if failed != nil {
		return Build{}, failed
	}
	return find(dir)
}

// find returns the build at a path: a gateway, or a directory with a gateway and perhaps
// a pushdown server.
func find(path string) (Build, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Build{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Build{}, err
	}

	if !info.IsDir() {
		return Build{Gateway: path}, nil
	}

	b := Build{Gateway: filepath.Join(path, filepath.Base(gatewayMain))}
	if _, err := os.Stat(b.Gateway); err != nil {
		return Build{}, err
	}
	pushdown := filepath.Join(path, filepath.Base(pushdownMain))
	switch _, err := os.Stat(pushdown); {
	case err == nil:
		b.Pushdown = pushdown
	case !errors.Is(err, fs.ErrNotExist): // a build may be of a gateway alone
		return Build{}, err
	}

	return b, nil
}

// fingerprint returns the beginning of the SHA-256 of a program.
func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()

	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.6x", sum.Sum(nil)), nil
}

// stamped returns the commit that a program says it was built from, with a + if its tree
// had changes. It is empty if the program does not say.
func stamped(path string) (commit string) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "" // the program is perhaps not made by Go
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}

	if commit == "" {
		return ""
	}
	return commit + changed
}
