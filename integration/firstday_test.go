//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// firstDayPage is what TestFirstDay runs.
const firstDayPage = "gateway/docs/first-day.md"

// shellBlocks returns the blocks of a page that are marked as shell.
func shellBlocks(page string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// The blocks of the page of an operator's first day, one script, run in a clean Debian from the
// installation on: on the disk of the machine, and then on a real HBase. What the test sets in
// place of the page's own is the port, HBase's address and tables, and systemd.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("installing packages into a system of its own needs root")
	}
	ctx := within(t, 20*time.Minute)
	root := must[string](t)(e2e.Root())
	debian := must[*e2e.Debian](t)(e2e.NewDebian(ctx, filepath.Join(t.TempDir(), "root")))
	if err := debian.Lend(ctx, "curl", "openssl", "/usr/lib/ssl/openssl.cnf", "/etc/hosts"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(debian.Root, "opt", "downpour")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	layPackages(ctx, t, dir)

	port := must[int](t)(e2e.FreePort())
	tables, cluster := e2e.TablesWithPrefix("firstday"), hbase(t)
	t.Cleanup(func() {
		for _, name := range tables.All() {
			_ = cluster.Admin.DropTable(context.Background(), name) // those that were made
		}
	})
	units := newUnits(ctx, t, debian)
	script := "set -euo pipefail\ncd /opt/downpour\nPATH=/opt/units:$PATH\nPS4='+ line $LINENO: '\nset -x\n" +
		fmt.Sprintf("echo DOWNPOUR_LISTEN=127.0.0.1:%d > /opt/port\n", port)
	blocks := shellBlocks(string(must[[]byte](t)(os.ReadFile(filepath.Join(root, firstDayPage)))))
	if len(blocks) < 9 {
		t.Fatalf("%s has %d blocks of shell, want at least 9", firstDayPage, len(blocks))
	}
	for i, block := range blocks {
		script += block
		if i == 0 { // the port has to be another one before the first start
			script = strings.Replace(script, "systemctl start",
				"cat /opt/port >> /etc/downpour/gateway.env\nsystemctl start", 1)
		}
	}
	hbaseSettings := fmt.Sprintf(
		`hbase:%s\nDOWNPOUR_TABLE_DATA=%s\nDOWNPOUR_TABLE_UID=%s\nDOWNPOUR_TABLE_META=%s\nDOWNPOUR_TABLE_TREE=%s`,
		cluster.Quorum(), tables.Data, tables.UID, tables.Meta, tables.Tree,
	)
	for _, replaced := range [][2]string{
		{"0.0.0.0:4242", "127.0.0.1:4242"},
		{"127.0.0.1:4242", fmt.Sprintf("127.0.0.1:%d", port)},
		{"hbase:zk1:2181,zk2:2181,zk3:2181", hbaseSettings},
	} {
		if !strings.Contains(script, replaced[0]) {
			t.Fatalf("%s does not have %s, which the test has to replace", firstDayPage, replaced[0])
		}
		script = strings.ReplaceAll(script, replaced[0], replaced[1])
	}
	if err := os.WriteFile(filepath.Join(debian.Root, "opt", "script"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, err := debian.Run(ctx, "bash", "/opt/script")
	if status != 0 || err != nil {
		t.Errorf("the commands of %s: status %d, %v\n%s\n%s", firstDayPage, status, err, out, units.logs())
	}
	version := must[string](t)(runIn(ctx, debian, "dpkg-query", "-W", "-f", "${Version}", "downpour-gateway"))
	if !strings.HasSuffix(version, "+later") {
		t.Errorf("version %s is installed in the end, want the later one", version)
	}
	if cells, err := cluster.Admin.Scan(ctx, tables.Data); err != nil || len(cells) == 0 {
		t.Errorf("%d cells are on HBase in the end, %v; want the points", len(cells), err)
	}
}

// layPackages lays the packages of this machine's architecture into a directory and, into the
// directory new in it, that of the gateway under a later revision.
func layPackages(ctx context.Context, t *testing.T, dir string) {
	t.Helper()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	run("cp", "-a", packages(ctx, t)+"/.", dir)

	made := must[[]string](t)(filepath.Glob(filepath.Join(dir, "downpour-gateway_*.deb")))
	if len(made) != 1 {
		t.Fatalf("packages of the gateway: %q, want one", made)
	}
	tree, later := filepath.Join(t.TempDir(), "tree"), filepath.Join(dir, "new")
	run("dpkg-deb", "-R", made[0], tree)
	run("sed", "-i", "s/^Version: .*/&+later/", filepath.Join(tree, "DEBIAN", "control"))
	if err := os.Mkdir(later, 0o755); err != nil {
		t.Fatal(err)
	}
	run("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, filepath.Join(later, filepath.Base(made[0])))
}

// runIn runs a command in the system that must end with status 0.
func runIn(ctx context.Context, debian *e2e.Debian, command ...string) (string, error) {
	status, out, err := debian.Run(ctx, command...)
	if err == nil && status != 0 {
		err = fmt.Errorf("%q: status %d: %s", command, status, out)
	}
	return out, err
}

// units acts for systemd in a Debian system that has none: its systemctl and journalctl ask here.
type units struct {
	ctx    context.Context
	debian *e2e.Debian
	dir    string // of the logs

	mu      sync.Mutex
	started map[string]*e2e.Process
}

func newUnits(ctx context.Context, t *testing.T, debian *e2e.Debian) *units {
	t.Helper()
	u := &units{ctx: ctx, debian: debian, dir: t.TempDir(), started: map[string]*e2e.Process{}}
	server := httptest.NewServer(u)
	t.Cleanup(func() {
		server.Close()
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, p := range u.started {
			p.Kill()
		}
	})
	for name, text := range map[string]string{
		"systemctl":  `exec curl -fsS -X POST "` + server.URL + `/$1/$2"`,
		"journalctl": `[ "$1" = -u ] && exec curl -fsS "` + server.URL + `/log/$2"`,
	} {
		path := filepath.Join(debian.Root, "opt", "units", name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte("#!/bin/bash\n"+text+"\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// ServeHTTP does what systemctl VERB UNIT would: POST /VERB/UNIT. GET /log/UNIT is its log.
func (u *units) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	verb, unit, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if verb == "log" {
		http.ServeFile(w, r, filepath.Join(u.dir, unit+".log"))
		return
	}
	var err error
	if p := u.started[unit]; p != nil && (verb == "stop" || verb == "restart") {
		err = p.Stop(u.ctx)
		delete(u.started, unit)
	}
	if err == nil && (verb == "start" || verb == "restart") {
		u.started[unit], err = u.debian.StartUnit(u.ctx, unit, u.dir)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// logs are the ends of the logs of all units.
func (u *units) logs() (all string) {
	files, _ := filepath.Glob(filepath.Join(u.dir, "*.log")) // the pattern is right
	for _, f := range files {
		text, err := os.ReadFile(f)
		all += fmt.Sprintf("-- %s, %v\n%s", f, err, text[max(0, len(text)-4000):])
	}
	return all
}
