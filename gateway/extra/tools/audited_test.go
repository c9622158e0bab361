package tools_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"downpour/gateway/extra/tools"
)

// A command that changes something on the tables themselves has a line at its beginning and one at
// its end, with the user, the arguments and the outcome. One that only reads has none.
func TestAudited(t *testing.T) {
	var log bytes.Buffer
	p := onHBase(t)
	p.log, p.user = slog.New(slog.NewTextHandler(&log, nil)), "alice"
	p.fake.KeepVersions("tsdb")
	retained(p)
	points := write(t, "m1 1356998400 1 host=a\n")
	board := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(board, []byte(`{"form":1,"title":"b","panels":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}

	run := func(arguments, outcome string) {
		t.Helper()
		log.Reset()
		words := strings.Fields(arguments)
		err := p.tool("", nil, words[0], words[1:]...)
		got := log.String()
		if outcome == "" {
			if got != "" || err != nil {
				t.Errorf("%s: %v, got %s, want no line", arguments, err, got)
			}
			return
		}
		begun, ended, _ := strings.Cut(got, "\n")
		same := strings.Join(words[1:], " ")
		if len(words) > 2 {
			same = `"` + same + `"`
		}
		same = `command=` + words[0] + ` arguments=` + same + ` user=alice store=` + p.cfg.Store
		if !strings.Contains(begun, `msg="an administrative request" `+same) ||
			!strings.Contains(ended, `msg="an administrative request ended" `+same+` outcome=`+outcome) ||
			strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %v, got\n%swant %s and the outcome %s", arguments, err, got, same, outcome)
		}
	}
	const hour = "1356998400 1357001999 "
	run("mkmetric m3 m4", "done")
	run("uid assign tagk dc rack", "done")
	run("uid grep metrics m", "")
	run("uid rename metrics m3 m5", "done")
	run("uid rename metrics m3 m6", `"No such name`)
	run("uid delete -force metrics m5", "done")
	run("uid fsck fix", "done")
	run("uid metasync -dry-run", "")
	run("uid metasync", "done")
	run("uid metapurge -dry-run", "")
	run("uid metapurge", "done")
	run("uid treesync", "done")
	run("import "+points+" -no-state", "done")
	run("export 1356998400 m1", "")
	run("query "+hour+"sum m1", "")
	run("scan "+hour+"sum m1", "")
	run("fsck "+hour+"sum m2", "")
	run("fsck --fix "+hour+"sum m2", "done")
	run("compact -dry-run "+hour+"m1", "")
	run("compact "+hour+"m1", "done")
	run("rollup "+hour+"m1", `"DOWNPOUR_ROLLUPS`)
	run("retention plan", "")
	run("retention run -rate 0", "done")
	run("scan --delete "+hour+"sum m2", "done")
	run("dashboard list", "")
	run("dashboard put b "+board, "done")
	run("dashboard get b", "")
	run("backup "+t.TempDir(), `"only an embedded store`)
}

// A backup and a restore have their lines, too. What a gateway does for a command is in that gateway's
// log, and so is what is asked of one that has the store open.
func TestAudited_gateway(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	var log bytes.Buffer
	p := onDisk(t, filepath.Join(t.TempDir(), "data"))
	p.log, p.user = slog.New(slog.NewTextHandler(&log, nil)), "alice"
	to := filepath.Join(t.TempDir(), "backups")
	p.serve(func(url string, _ tools.Store) {
		for _, args := range [][]string{
			{"mkmetric", "m"},
			{"uid", "rename", "metrics", "m", "n"},
			{"backup", to},
			{"mkmetric", "-gateway", url, "o"},
		} {
			if err := p.tool(url, nil, args[0], args[1:]...); err != nil {
				t.Fatalf("%q: %v", args, err)
			}
		}
	})
	if log.Len() > 0 {
		t.Errorf("through a gateway: got %s, want no line", &log)
	}

	p.mustTool("backup", to)
	if got := log.String(); strings.Count(got, "command=backup arguments="+to+" user=alice") != 2 {
		t.Errorf("backup: got %s, want two lines", got)
	}
	restored := onDisk(t, filepath.Join(t.TempDir(), "new"))
	restored.log, restored.user = p.log, p.user
	log.Reset()
	_ = restored.tool("", nil, "restore", to) // which is refused: the directory has a store
	if got := log.String(); strings.Count(got, "command=restore arguments="+to+" user=alice") != 2 ||
		strings.Contains(got, "outcome=done") {
		t.Errorf("restore: got %s, want two lines and why it was refused", got)
	}
}
