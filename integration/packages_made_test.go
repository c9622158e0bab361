//go:build integration

package integration

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// packagesMade remembers where this run's packages lie: several tests look at them.
var packagesMade struct {
	sync.Mutex
	dir string
}

// packages makes the packages of this machine's architecture, once, and returns where they lie.
func packages(ctx context.Context, t *testing.T) string {
	t.Helper()
	packagesMade.Lock()
	defer packagesMade.Unlock()
	if packagesMade.dir != "" {
		return packagesMade.dir
	}
	root := must[string](t)(e2e.Root())
	dir := filepath.Join(root, "build", "packages-tested")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(ctx, filepath.Join(root, "gateway/packaging/build.sh"), "-o", dir, runtime.GOARCH)
	build.Env = append(build.Environ(), "PACKAGE_MAINTAINER=Test <test@example.org>",
		"PACKAGE_PYTHON="+filepath.Join(root, "build/venv/bin/python"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build packages: %v\n%s", err, out)
	}
	packagesMade.dir = dir
	return dir
}

// Debian's lintian finds no error and nothing to warn of in the packages, except what their
// overrides explain.
func TestPackages_lintian(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	if err := e2e.SetUp(ctx, "package_checks"); err != nil {
		t.Fatal(err)
	}
	found := must[[]string](t)(filepath.Glob(filepath.Join(packages(ctx, t), "*.deb")))
	if len(found) != 2 {
		t.Fatalf("packages %q, want 2", found)
	}
	args := append([]string{"--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"}, found...)
	if out, err := exec.CommandContext(ctx, "lintian", args...).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// zstdInC is the one module that a program built without C lacks.
const zstdInC = "github.com/DataDog/zstd "

// The list of modules next to each program names the modules that Go has written into it, each in
// its version.
func TestPackages_modules(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	dir := packages(ctx, t)
	for _, program := range []string{"gateway", "pushdown"} {
		listed := must[[]string](t)(filepath.Glob(filepath.Join(dir, "downpour-"+program+"-*.cdx.json")))
		if len(listed) != 1 {
			t.Fatalf("%s: lists %q, want one", program, listed)
		}
		var list struct {
			BOMFormat  string
			Components []struct{ Name, Version, PURL string }
		}
		if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(listed[0])), &list); err != nil ||
			list.BOMFormat != "CycloneDX" {
			t.Fatalf("%s: error %v, format %q", listed[0], err, list.BOMFormat)
		}
		var got, want []string
		for _, c := range list.Components {
			if !strings.HasPrefix(c.PURL, "pkg:golang/") {
				t.Errorf("%s: %s has no address of a Go module: %q", listed[0], c.Name, c.PURL)
			}
			if c.Name != "std" {
				got = append(got, c.Name+" "+c.Version)
			}
		}

		tree := t.TempDir()
		deb := must[[]string](t)(filepath.Glob(filepath.Join(dir, "downpour-"+program+"_*.deb")))
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", deb[0], tree).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// The program of the image is built without C, so it lacks zstd in C, and holds nothing more.
		for _, path := range []string{
			filepath.Join(tree, "usr/bin/downpour-"+program),
			filepath.Join(dir, "image", program, "linux-"+runtime.GOARCH, "usr/bin/downpour-"+program),
		} {
			want = nil
			for _, m := range must[*buildinfo.BuildInfo](t)(buildinfo.ReadFile(path)).Deps {
				want = append(want, fmt.Sprintf("%s %s", m.Path, m.Version))
			}
			if strings.HasPrefix(path, dir) &&
				!slices.ContainsFunc(want, func(m string) bool { return strings.HasPrefix(m, zstdInC) }) {
				got = slices.DeleteFunc(slices.Clone(got), func(m string) bool { return strings.HasPrefix(m, zstdInC) })
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || len(want) < 30 {
				t.Errorf("%s holds %d modules; listed are (-want +got)\n%s", path, len(want), diff)
			}
		}
	}
}
