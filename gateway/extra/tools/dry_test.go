package tools_test

import (
	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/extra/tools"
	"downpour/pushdown/store"
)

// dryLine begins what a command prints in a dry run.
const dryLine = "dry run, nothing is changed; this would be done:\n"

// everyCell returns the cells of all tables, a line each.
func (p *place) everyCell(st tools.Store) (lines []string) {
	p.Helper()
	t := p.cfg.TableNames()
	for _, table := range []string{t.Data, t.UID, t.Meta, t.Tree, t.State} {
		for row, err := range store.Rows(p.Context(), st, store.Scan{Table: table}) {
			if err != nil {
				p.Fatal(err)
			}
			for _, c := range row.Cells {
				lines = append(lines, fmt.Sprintf("%s %x %s:%x=%x@%d",
					table, row.Key, c.Family, c.Qualifier, c.Value, c.Timestamp))
			}
		}
	}
	return lines
}

// A dry run of each command that changes something leaves every cell as it was and prints what the command then prints:
// on a store, and through a gateway that has it open.
func TestDryRun(t *testing.T) {
	const document = `{"form": 1, "panels": []}`
	check := func(p *place, url string, use func(func(tools.Store))) {
		t.Helper()
		use(func(st tools.Store) { withFaults(p, st) })
		cells := func() (all []string) {
			use(func(st tools.Store) { all = p.everyCell(st) })
			return all
		}
		for _, args := range [][]string{
			{"uid", "fsck", "fix", "-collisions", "owner"},
			{"uid", "treepurge", "1", "true"},
			{"dashboard", "put", "web", "-"},
			{"dashboard", "put", "-replace", "any", "web", "-"},
			{"fsck", "--fix-all", "--full-scan"},
			{"retention", "run"}, // which is refused, as two thirds are past
			{"retention", "run", "-yes-delete", "7"},
			{"retention", "run", "-yes-delete", "8"},
			{"scan", "--delete", "1356998400", "1357020000", "sum", "m2"},
		} {
			if args[0] == "scan" && url != "" {
				continue // a gateway deletes nothing for it
			}
			run := func(more ...string) (string, error) {
				err := p.tool(url, strings.NewReader(document), args[0],
					append(args[1:len(args):len(args)], more...)...)
				return p.out.String(), err
			}
			before := cells()
			out, fault := run("-dry-run")
			if diff := cmp.Diff(before, cells()); diff != "" {
				p.Fatalf("%q: a dry run has changed the tables (-before +now):\n%s", args, diff)
			}
			said := out
			if args[0] == "scan" {
				said = p.errs.String()
			}
			if !strings.HasPrefix(said, dryLine) {
				p.Errorf("%q: a dry run says\n%s, want %s", args, said, dryLine)
			}

			real, err := run()
			refused := err != nil && strings.Contains(err.Error(), "nothing is deleted")
			if refused && url != "" { // its error names the gateway
				if !strings.HasSuffix(err.Error(), fmt.Sprint(fault)) {
					p.Errorf("%q: a dry run ends with %v, the run with %v", args, fault, err)
				}
				fault = err
			}
			if diff := cmp.Diff(real, strings.TrimPrefix(out, dryLine)); diff != "" {
				p.Errorf("%q: a dry run prints something else (-run +dry run):\n%s", args, diff)
			}
			after := cells()
			if refused { // it may have had a lease
				ofState := func(line string) bool { return strings.HasPrefix(line, p.cfg.TableState+" ") }
				before, after = slices.DeleteFunc(before, ofState), slices.DeleteFunc(after, ofState)
			}
			if changed := !cmp.Equal(before, after); changed == refused {
				p.Errorf("%q: changed %v, %v", args, changed, err)
			}
			// A dry run after which something is to be repaired does not end with 0.
			ofUID := args[0] == "uid" && args[1] == "fsck"
			if ofUID != (fault != nil && err == nil) || !ofUID && fmt.Sprint(fault) != fmt.Sprint(err) {
				p.Errorf("%q: a dry run ends with %v, the run with %v", args, fault, err)
			}
		}
	}

	for _, p := range []*place{embedded(t), onHBase(t)} {
		withPast(p)
		check(p, "", p.use)
	}
	p := embedded(t)
	withPast(p)
	p.serve(func(url string, st tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		check(p, url, func(f func(tools.Store)) { f(st) })
	})
}

// withFaults gives two names one UID, and makes a branch.
func withFaults(p *place, st tools.Store) {
	uidCell(p.T, st, "m9", "id", "metrics", []byte{0, 0, 1}) // that of m1
	branch := store.Mutation{Row: []byte{0, 1}, Family: "t", Qualifier: []byte("branch"), Value: []byte("{}")}
	if err := st.Apply(p.Context(), p.cfg.TableTree, []store.Mutation{branch}); err != nil {
		p.Fatal(err)
	}
}

// withPast lays damaged rows; some of them are past by the rules that it sets.
func withPast(p *place) {
	p.hourly("fsck")
	gateway.SettingsOf[retention.Settings](p.cfg).Retention = write(p.T, "^m.$ 2d\n")
}

// A dry run of what adds and renames names prints what the command then prints, whether a gateway has the store open or
// not; and that of an import on the store itself. What only reads does what it does.
func TestDryRun_others(t *testing.T) {
	p := embedded(t)
	file := write(t, lines(0, 3)+"#uid tagk more\nbad\n")
	check := func(url string, use func(func(tools.Store)), args ...string) {
		t.Helper()
		var before, after []string
		use(func(st tools.Store) { before = p.everyCell(st) })
		fault := p.tool(url, nil, args[0], append(args[1:len(args):len(args)], "-dry-run")...)
		dry := p.out.String()
		use(func(st tools.Store) { after = p.everyCell(st) })
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%q: a dry run has changed the tables:\n%s", args, diff)
		}
		err := p.tool(url, nil, args[0], args[1:]...)
		if fmt.Sprint(fault) != fmt.Sprint(err) || dry != dryLine+p.out.String() {
			t.Errorf("%q: a dry run prints\n%s%v, the run\n%s%v", args, dry, fault, &p.out, err)
		}
		use(func(st tools.Store) { after = p.everyCell(st) })
		if err == nil && cmp.Equal(before, after) {
			t.Errorf("%q has changed nothing", args)
		}
	}
	check("", p.use, "import", "-skip-errors", file)
	if _, err := os.Stat(file + ".import"); !os.IsNotExist(err) {
		t.Errorf("the state of a dry run: %v", err)
	}
	p.serve(func(url string, st tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		if err := p.tool(url, nil, "import", "-dry-run", file); err == nil ||
			!strings.Contains(err.Error(), "imports nothing without storing it") {
			t.Errorf("a dry run of an import through a gateway: %v", err)
		}
		open := func(f func(tools.Store)) { f(st) }
		check(url, open, "mkmetric", "x1", "x2")
		check(url, open, "uid", "rename", "metrics", "x1", "x3")
		// After this no meta data of the others is pending.
		if err := p.tool(url, nil, "uid", "metapurge", "-dry-run"); err != nil {
			t.Error(err)
		}
		check(url, open, "uid", "delete", "metrics", "x3")
	})
	check("", p.use, "mkmetric", "y1", "y2")
	check("", p.use, "uid", "assign", "tagk", "y")
	check("", p.use, "uid", "rename", "metrics", "y1", "y3")
	check("", p.use, "uid", "rename", "metrics", "nobody", "y4")
	check("", p.use, "uid", "delete", "metrics", "y3")
	gateway.SettingsOf[retention.Settings](p.cfg).Retention = "4000d"
	for _, args := range [][]string{
		{"export", "-all", "1"},
		{"uid", "fsck"},
		{"uid", "grep", "."},
		{"dashboard", "list"},
		{"series", "top"},
		{"retention", "plan"},
		{"fsck", "--full-scan"},
	} {
		want := p.mustTool(args[0], args[1:]...)
		if got := p.mustTool(args[0], append(args[1:], "-dry-run")...); got != want {
			t.Errorf("%q -dry-run prints\n%s, want\n%s", args, got, want)
		}
	}
}

// files returns what is in a directory, with sizes and times.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, fmt.Sprintf("%s %d %v", path, info.Size(), info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return all
}

// A dry run of a backup and of a restore leaves all files as they are, says what would be written
// and where, and refuses what would be refused.
func TestDryRun_backup(t *testing.T) {
	top := t.TempDir()
	data, to := filepath.Join(top, "data"), filepath.Join(top, "backups")
	p := onDisk(t, data)
	if err := p.tool("", strings.NewReader(lines(0, 500)), "import", "-"); err != nil {
		t.Fatal(err)
	}
	dry := func(p *place, want, fault string, args ...string) {
		t.Helper()
		before := files(t, top)
		err := p.tool("http://127.0.0.1:1", nil, args[0], append(args[1:], "-dry-run")...)
		if (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) ||
			!strings.Contains(p.out.String(), want) {
			t.Errorf("%q: %v, %s, want %q and %q", args, err, &p.out, want, fault)
		}
		if diff := cmp.Diff(before, files(t, top)); diff != "" {
			t.Errorf("%q: a dry run has changed files (-before +now):\n%s", args, diff)
		}
	}
	dry(p, dryLine+"a backup in "+to+": about ", "", "backup", to)
	dry(p, "", "lies in the data directory", "backup", filepath.Join(data, "x"))
	dry(p, "", "is no directory", "backup", write(t, "a file"))
	dry(p, "", "holds none", "restore", top)
	p.serve(func(url string, _ tools.Store) { // next to a gateway that has the store open
		if err := p.tool(url, nil, "backup", "-dry-run", to); err != nil ||
			!strings.HasPrefix(p.out.String(), dryLine) {
			t.Errorf("%v: %s", err, &p.out)
		}
	})

	p.mustTool("backup", to)
	first, _, _ := strings.Cut(p.out.String(), ":")
	dry(p, "files are new", "", "backup", to)
	dry(p, first+": removed", "", "backup", "-keep", "1", to)
	dry(p, "", "it is not empty", "restore", to)

	other := *p.cfg
	other.Store = "pebble:" + filepath.Join(top, "new", "data")
	q := &place{T: t, cfg: &other}
	dry(q, dryLine+first+" is in place in "+other.Store, "", "restore", to)
	said := strings.TrimPrefix(q.out.String(), dryLine)
	if got := q.mustTool("restore", to); got != said {
		t.Errorf("restore prints %s, its dry run %s", got, said)
	}

	tables, err := filepath.Glob(filepath.Join(first, "MANIFEST-*"))
	if err != nil || len(tables) == 0 {
		t.Fatal(err, tables)
	}
	if err := os.Truncate(tables[0], 1); err != nil {
		t.Fatal(err)
	}
	other.Store = "pebble:" + filepath.Join(top, "newer")
	dry(q, "", "should have", "restore", to)
}
