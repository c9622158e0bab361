package tools_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// onDisk returns an embedded store in a real directory.
func onDisk(t *testing.T, dir string, change ...func(*gateway.Config)) *place {
	return newPlace(t, "pebble:"+dir, func() (tools.Store, error) { return pebble.Open(dir, pebble.Options{}) },
		change...)
}

// settled waits until a store has no checkpoint any more: a gateway removes it once it has noticed
// that the client has left.
func settled(t *testing.T, dir string) {
	t.Helper()
	for t.Context().Err() == nil {
		names, err := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			return
		}
	}
}

// A store is backed up while a gateway has it open and while nobody has, in every mode, and the
// restored store has the same points and meta data.
func TestBackup(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for _, mode := range []string{"rw", "ro", "wo", "nobody"} {
		dir, backups := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "a", "backups")
		p := onDisk(t, dir)
		if err := p.tool("",
			strings.NewReader(lines(0, 500)+`#note {"value":{"startTime":1356998401,"description":"a"}}`+"\n"),
			"import", "-"); err != nil {
			t.Fatal(err)
		}
		want := p.mustTool("export", "-all", "1")
		if mode == "nobody" {
			p.mustTool("backup", backups)
		} else {
			p.cfg.Mode = mode
			p.serve(func(url string, _ tools.Store) {
				for range 3 {
					if err := p.tool(url, nil, "backup", "-keep", "2", backups); err != nil {
						t.Fatalf("mode %s: %v", mode, err)
					}
					p.said("files are new")
					settled(t, dir)
				}
				p.said("removed")
				if err := p.tool(url, nil, "restore", backups); err == nil ||
					!strings.Contains(err.Error(), "in use by another process") ||
					!strings.Contains(err.Error(), "end its gateway first") {
					t.Errorf("restore into a store in use: %v", err)
				}
			})
		}
		p.mustTool("check", backups)
		p.said("all is well")
		p.failTool("not empty", "restore", backups)

		restored := *p.cfg
		restored.Store = "pebble:" + filepath.Join(t.TempDir(), "restored")
		q := &place{T: t, cfg: &restored, open: func() (tools.Store, error) {
			return pebble.Open(strings.TrimPrefix(restored.Store, "pebble:"), pebble.Options{})
		}}
		q.mustTool("restore", backups)
		q.said("every block of which is checked")
		if got := q.mustTool("export", "-all", "1"); got != want {
			t.Errorf("mode %s: %d bytes are exported, want %d", mode, len(got), len(want))
		}
	}
}

// Wrong arguments, a place in the store, and a store on HBase are reported.
func TestBackup_refused(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	dir := filepath.Join(t.TempDir(), "data")
	p := onDisk(t, dir)
	p.failTool("want one directory", "backup")
	p.failTool("want one directory", "backup", "-keep", "-1", t.TempDir())
	p.failTool("want one backup", "restore")
	p.failTool("want one backup", "restore", "-gateway", "http://127.0.0.1:1", t.TempDir())
	p.failTool("no arguments or one backup", "check", "a", "b")
	p.failTool("lies in the data directory", "backup", filepath.Join(dir, "backups"))
	p.failTool("is no backup, and holds none", "restore", t.TempDir())
	p.failTool("is no backup, and holds none", "check", t.TempDir())
	settled(t, dir)

	h := onHBase(t)
	for _, args := range [][]string{{"backup", t.TempDir()}, {"restore", t.TempDir()}, {"check", t.TempDir()}} {
		h.failTool("take snapshots there", args[0], args[1:]...)
	}
	h.serve(func(url string, _ tools.Store) {
		if status := request(t, "POST", url+"/api/tools/checkpoint", "{}", "", ""); status != 400 {
			t.Errorf("a checkpoint of HBase: %d, want 400", status)
		}
	})
}

// With -gateway the store is the gateway's, wherever it lies and whatever the settings here say: a backup has its
// points, and is not made in it.
//
//fault:own-store-with-gateway c.Address = serves => _ = serves
func TestBackup_otherSettings(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	t.Chdir(t.TempDir())
	p := newPlace(t, "pebble:data", func() (tools.Store, error) { return pebble.Open("data", pebble.Options{}) })
	if err := p.tool("", strings.NewReader(lines(0, 50)), "import", "-"); err != nil {
		t.Fatal(err)
	}
	want := p.mustTool("export", "-all", "1")
	data, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	other, backups := onDisk(t, filepath.Join(t.TempDir(), "other")), filepath.Join(t.TempDir(), "backups")
	p.serve(func(url string, _ tools.Store) {
		if err := other.tool("", nil, "backup", "-gateway", url, filepath.Join(data, "backups")); err == nil ||
			!strings.Contains(err.Error(), "lies in the data directory "+data) {
			t.Errorf("a backup in the gateway's store: %v", err)
		}
		for _, args := range [][]string{{"-dry-run"}, {}} {
			if err := other.tool("", nil, "backup", append(args, "-gateway", url, backups)...); err != nil {
				t.Errorf("backup %v: %v", args, err)
			}
		}
		settled(t, data)
	})
	other.cfg.Store = "pebble:" + filepath.Join(t.TempDir(), "restored")
	restored := onDisk(t, strings.TrimPrefix(other.cfg.Store, "pebble:"), func(*gateway.Config) {})
	if err := os.RemoveAll(strings.TrimPrefix(other.cfg.Store, "pebble:")); err != nil {
		t.Fatal(err)
	}
	restored.mustTool("restore", backups)
	if got := restored.mustTool("export", "-all", "1"); got != want {
		t.Errorf("restored: %d bytes are exported, want %d", len(got), len(want))
	}
}

// A gateway keeps one checkpoint at a time, until its client leaves. It takes no path.
func TestServedCheckpoint(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	dir := filepath.Join(t.TempDir(), "data")
	p := onDisk(t, dir)
	p.serve(func(url string, st tools.Store) {
		hold := func(ctx context.Context) (*http.Response, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(ctx, "POST", url+"/api/tools/checkpoint", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return resp, strings.TrimSpace(line)
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		resp, name := hold(ctx)
		defer resp.Body.Close()
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(name, "checkpoint-") {
			t.Errorf("the checkpoint is %q: %v", name, err)
		}
		if status := request(t, "POST", url+"/api/tools/checkpoint", "{}", "", ""); status != 409 {
			t.Errorf("a second checkpoint: %d, want 409", status)
		}
		if status := request(t, "POST", url+"/api/tools/checkpoint", `{"dir":"/tmp/x"}`, "", ""); status != 400 {
			t.Errorf("a path: %d, want 400", status)
		}
		leave()
		settled(t, dir)
	})
}

// fullSoon is a store whose disk is full once a checkpoint was made.
type fullSoon struct{ tools.Store }

func (s *fullSoon) Features() store.Features {
	return store.Features{Checkpoint: s.Store.Features().Checkpoint, Writable: s.Writable}
}

func (s *fullSoon) Writable() error { return fmt.Errorf("%w, says the test", store.ErrFull) }

// A checkpoint is given up when the gateway ends, and when the store needs the room. The client
// that has it is notified, and a backup of it fails.
func TestServedCheckpoint_givenUp(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for _, reason := range []string{"the gateway ends", "the store needs its room"} {
		dir := filepath.Join(t.TempDir(), "data")
		p := onDisk(t, dir)
		answer := make(chan string, 1)
		p.use(func(st tools.Store) {
			p.open = func() (tools.Store, error) { return st, nil }
			if strings.Contains(reason, "room") {
				p.open = func() (tools.Store, error) { return &fullSoon{st}, nil }
			}
			p.serveOpen(func(url string) {
				resp, err := http.Post(url+"/api/tools/checkpoint", "application/json", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(resp.Body)
				lines.Scan()
				wait := make(chan struct{})
				go func() {
					defer resp.Body.Close()
					last := ""
					for lines.Scan() {
						last = lines.Text()
						if strings.Contains(last, "#error") {
							break
						}
					}
					answer <- last
					close(wait)
				}()
				if strings.Contains(reason, "room") {
					<-wait
				}
			})
			if got := <-answer; !strings.Contains(got, reason) {
				t.Errorf("the last line is %q, want %q", got, reason)
			}
			settled(t, dir)
		})
	}
}
