//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// pageCommand is a command of data-life.md.
type pageCommand struct {
	line string
	env  map[string]string
	args []string
}

// pageCommands are the commands below a heading of data-life.md, with places of this test in
// place of those on the page.
func pageCommands(t *testing.T, heading string, places ...string) (all []pageCommand) {
	t.Helper()
	root := must[string](t)(e2e.Root())
	page := string(must[[]byte](t)(os.ReadFile(filepath.Join(root, "gateway", "docs", "data-life.md"))))
	_, section, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("data-life.md has no %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		c := pageCommand{line: strings.TrimSpace(line), env: map[string]string{}}
		words := strings.Fields(strings.NewReplacer(places...).Replace(line))
		for len(words) > 0 && words[0] != "gateway" {
			name, value, ok := strings.Cut(words[0], "=")
			if !ok {
				t.Fatalf("%q is no command of the gateway's program", c.line)
			}
			c.env[name], words = value, words[1:]
		}
		c.args = words[1:]
		all = append(all, c)
	}
	return all
}

// run runs the command in an environment, which must end with 0.
func (c pageCommand) run(ctx context.Context, t *testing.T, env map[string]string, dir string) {
	t.Helper()
	env = maps.Clone(env)
	maps.Copy(env, c.env)
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: env, Dir: dir, Args: c.args})
	if err != nil || status != 0 {
		t.Errorf("%s: status %d, %v, %s", c.line, status, err, out)
	}
	t.Logf("%s\n%s", c.line, lastLines(out, 3))
}

// livedPoints are points of the last 30 days.
func livedPoints() (points []e2e.Point) {
	now := time.Now().Unix()
	for at := now - 30*86400 + 3600; at < now; at += 3 * 3600 {
		for _, second := range []int64{0, 60} {
			points = append(points, e2e.Point{
				Metric:    "sys.cpu.user",
				Timestamp: at + second,
				Value:     json.RawMessage("1"),
				Tags:      map[string]string{"host": "web01"},
			})
		}
	}
	return points
}

const livedRules = "^sys\\.cpu 20d\n"

// The commands of data-life.md run as they stand there: on HBase.
func TestDocs_dataLifeHBase(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	l := layout{name: "plain"}
	tables := createTables(t)
	ours := l.gateway(t, tables, nil)
	put(ctx, t, ours.URL, livedPoints())
	env := l.env(t, tables)
	env["DOWNPOUR_TABLE_STATE"] = tables.Data + "-state"

	rollups := fmt.Sprintf(`{"aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3}, "intervals": [
 {"table": %[1]q, "preAggregationTable": "%[1]s-pre", "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
 {"table": "%[1]s-1h", "preAggregationTable": "%[1]s-1h-pre", "interval": "1h", "rowSpan": "1d"}]}`, tables.Data)
	commands := pageCommands(t, "On HBase", "/etc/downpour/retention.txt", writeFile(t, "retention.txt", livedRules),
		"/etc/downpour/rollups.json", writeFile(t, "rollups.json", rollups))
	if len(commands) < 12 {
		t.Errorf("%d commands, want 12 or more", len(commands))
	}
	for _, c := range commands {
		c.run(ctx, t, env, t.TempDir())
	}
}

// The commands of data-life.md run as they stand there, on the embedded store: some need a gateway
// that has it open, others one that does not.
func TestDocs_dataLifeEmbedded(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	at := embeddedPlace(t)
	at.serve(ctx, t, func(url string) { put(ctx, t, url, livedPoints()) })
	rules := writeFile(t, "retention.txt", livedRules)
	commands := pageCommands(t, "On the embedded store", "/etc/downpour/retention.txt", rules, "/backup/downpour",
		filepath.Join(t.TempDir(), "backup"), "/var/lib/downpour-restored", filepath.Join(t.TempDir(), "restored"))
	if len(commands) < 9 {
		t.Errorf("%d commands, want 9 or more", len(commands))
	}

	running := false
	for _, c := range commands {
		running = running || c.args[0] == "backup" // from then on
		if !running || c.line == "gateway check" {
			c.run(ctx, t, at.env, at.dir)
			continue
		}
		at.env["DOWNPOUR_RETENTION"] = rules
		at.serve(ctx, t, func(string) { c.run(ctx, t, at.env, at.dir) })
		delete(at.env, "DOWNPOUR_RETENTION")
	}
}
