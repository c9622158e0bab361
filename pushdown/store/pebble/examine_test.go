package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// A repair on a disk that fails is an error that names the file, and leaves the damaged file as it was: the next one
// goes through, and saves it.
func TestExamine_repairFails(t *testing.T) {
	i := logged(t, 50)
	log, whole := logOf(t, i)
	for _, name := range slices.Sorted(maps.Keys(i)) {
		at := len(i[name]) - 1 // the copy of the MANIFEST stays whole
		if name == log {
			at = int(whole.Records[25].End) - 1
		} else if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		data := bytes.Clone(i[name])
		data[at] ^= 1
		repairFails(t, i.with(name, data), name)
	}
}

func repairFails(t *testing.T, damaged image, name string) {
	t.Helper()
	mem := damaged.files(t)
	for _, fault := range []struct {
		kind errorfs.OpKind
		path string
	}{
		{errorfs.OpOpen, "data/" + name},
		{errorfs.OpFileRead, "data/" + name},
		{errorfs.OpCreate, "data/mending.damaged-" + name},
		{errorfs.OpFileWrite, "data/mending.damaged-" + name},
		{errorfs.OpFileSync, "data/mending.damaged-" + name},
		{errorfs.OpRename, "data/mending.damaged-" + name}, // to damaged-
	} {
		files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == fault.kind && op.Path == fault.path {
				return &fs.PathError{Op: "try", Path: op.Path, Err: syscall.EIO}
			}
			return nil
		}))
		_, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: true})
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), name) ||
			strings.Contains(fault.path, "mending.") != strings.Contains(err.Error(), "cannot repair "+name) {
			t.Fatalf("%v of %s: got %v, want %v of %s", fault.kind, fault.path, err, syscall.EIO, name)
		}
		if !bytes.Equal(take(t, mem)[name], damaged[name]) {
			t.Fatalf("%v of %s: the file is changed, and not saved", fault.kind, fault.path)
		}
	}
	s, err := Open("data", Options{FS: mem, IdleFlush: -1, Logger: quiet(), Salvage: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := take(t, mem)["damaged-"+name]; !bytes.Equal(got, damaged[name]) {
		t.Errorf("damaged-%s has %d bytes, want the %d that were damaged", name, len(got), len(damaged[name]))
	}
}

// So is that of a marker, on a disk that cannot list its files.
func TestExamine_markerFails(t *testing.T) {
	killed, _, _ := smallStore(t)
	const marker = "marker.manifest.000001.MANIFEST-000001"
	unmarked := maps.Clone(killed)
	delete(unmarked, marker)
	mem := unmarked.files(t)
	e, err := examine(mem, "data", hourly)
	if err != nil {
		t.Fatal(err)
	}
	_, e.files = failing(mem, errorfs.OpList, 0)
	if err := e.repair(store.Lost); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "marker.manifest") {
		t.Errorf("got %v, want %v of the marker", err, syscall.EIO)
	}
	e.files = mem
	if err := e.repair(store.Lost); err != nil || take(t, mem)[marker] == nil {
		t.Errorf("afterwards: got %v, %v, want the marker", err, slices.Sorted(maps.Keys(take(t, mem))))
	}
}

// A store that has lost something does not open, whatever cannot be read once while that is found out.
func TestExamine_failsOnce(t *testing.T) {
	i := logged(t, 50)
	log, whole := logOf(t, i)
	damaged := bytes.Clone(i[log])
	damaged[whole.Records[25].End-1] ^= 1
	mem := i.with(log, damaged).files(t)
	for _, kind := range []errorfs.OpKind{errorfs.OpList, errorfs.OpOpen, errorfs.OpFileRead} {
		for after := 0; ; after++ {
			failed, files := failing(mem, kind, after)
			_, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("%v of %v: got %v, want %v, or damage", kind, failed.Load(), err, syscall.EIO)
			}
			if failed.Load() == nil {
				break
			}
		}
	}
}

// Copies of MANIFESTs that are not used any more are removed, and that is no news.
func TestExamine_oldCopies(t *testing.T) {
	_, closed, want := smallStore(t)
	old := disk.CopyOf("MANIFEST-000000")
	i := closed.with(old, []byte("old"))
	if r := check(t, i); len(r.Faults) != 0 {
		t.Errorf("check: got %v, want no faults", r.Faults)
	}
	if got, told, err := reading(t, i, Options{}); got != want || told != "" || err != nil {
		t.Errorf("got %q, %v, %s, want %q and no line", got, err, told, want)
	}
	files := i.files(t)
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	if _, err := files.Stat("data/" + old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old copy: got %v, want it gone", err)
	}
	if got := dump(t, s, store.Scan{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a repair has written is there after a crash: what is saved first must not be lost with what is written over.
func TestExamine_writeIsDurable(t *testing.T) {
	files := vfs.NewCrashableMem()
	if err := errors.Join(files.MkdirAll("data", 0o700), syncDir(files, "")); err != nil {
		t.Fatal(err)
	}
	e := &examination{files: files, dir: "data"}
	if err := e.write("MANIFEST-000001", []byte("mended")); err != nil {
		t.Fatal(err)
	}
	if i := take(t, files.CrashClone(vfs.CrashCloneCfg{})); string(i["MANIFEST-000001"]) != "mended" {
		t.Errorf("after a crash: got %v, want the file", i)
	}
}

// Without a marker, tables alone or logs alone are those of a store.
func TestExamine_unmarkedFiles(t *testing.T) {
	for name, want := range map[string]int{
		"000005.sst": 1, "000005.log": 1, "MANIFEST-000001": 0, "OPTIONS-000003": 0, "LOCK": 0,
	} {
		r := check(t, image{name: []byte("x"), "marker.format-version.000001.021": nil})
		lost := slices.DeleteFunc(r.Faults, func(f store.Fault) bool { return f.Kind != store.Lost })
		if len(lost) != want || want > 0 && !strings.Contains(lost[0].What, name) {
			t.Errorf("%s: got %v, want %d fault that names it", name, lost, want)
		}
	}
}

// Without a marker and a MANIFEST nobody knows which tables count: not even Salvage opens the store, and it stays as it
// is. A directory in which nothing but a MANIFEST was begun is a new one.
func TestExamine_unmarked(t *testing.T) {
	_, closed, _ := smallStore(t)
	i := maps.Clone(closed)
	maps.DeleteFunc(i, func(name string, _ []byte) bool { return strings.Contains(name, "MANIFEST") })
	files := i.files(t)
	for _, salvage := range []bool{false, true} {
		_, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: salvage})
		if err == nil || strings.Contains(err.Error(), "there is no MANIFEST either") != salvage ||
			errors.Is(err, store.ErrDamaged) == salvage {
			t.Errorf("salvage %t: got %v", salvage, err)
		}
	}
	after := take(t, files)
	delete(after, "LOCK")
	delete(i, "LOCK")
	if !maps.EqualFunc(after, i, bytes.Equal) {
		t.Errorf("%v is left of %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(i)))
	}
	if got, told, err := reading(t, image{"MANIFEST-000001": []byte("begun")}, Options{}); !errors.Is(err,
		store.ErrNoTable) || told != "" {
		t.Errorf("a MANIFEST alone: got %q, %v, %s, want a store without tables", got, err, told)
	}
}

// What is wrong with a MANIFEST or its copy is one fault, of exactly the bytes that are damaged. Where the copy does
// not go on at the damage, what follows is lost: to be as long as what is intact is not to go on.
func TestExamine_manifest(t *testing.T) {
	killed, _, _ := smallStore(t)
	const name, copied = "MANIFEST-000001", "copy.MANIFEST-000001"
	whole := killed[name]
	records := journal.Manifest(whole).Records
	if len(records) < 4 || !bytes.Equal(whole, killed[copied]) {
		t.Fatalf("%d records, want four or more, and a copy of them", len(records))
	}
	start := func(n int) int { return int(records[n].Start) }
	size, second, third, last := len(whole), start(1), start(2), start(len(records)-1)
	flip := func(at int) []byte {
		data := bytes.Clone(whole)
		data[at] ^= 1
		return data
	}
	fault := func(kind store.FaultKind, file string, offset, bytes int, what string) string {
		return fmt.Sprint(kind, " ", store.Fault{File: file, Offset: int64(offset), Bytes: int64(bytes), What: what})
	}
	lost := func(offset int) string {
		const what = "damaged: no record can be read from there, while records follow"
		return fault(store.Lost, name, offset, size-offset, what)
	}
	mended := func(offset int) string {
		return fault(store.Mended, name, offset, size-offset, "damaged, and repaired from its copy")
	}
	differs := func(offset, bytes int) string {
		const what = "differs from the MANIFEST, which is intact, and is written again"
		return fault(store.Mended, copied, offset, bytes, what)
	}
	torn := fault(store.Torn, name, last, 3, "a torn end, left out")
	for what, c := range map[string]struct {
		own, other []byte
		want       []string
	}{
		"whole":                          {whole, whole, nil},
		"damaged":                        {flip(second), whole, []string{mended(second)}},
		"cut at a record":                {whole[:third], whole, []string{mended(third)}},
		"cut":                            {whole[:third+3], whole, []string{mended(third)}},
		"missing":                        {nil, whole, []string{mended(0)}},
		"damaged, the copy, too":         {flip(second), flip(second), []string{lost(second)}},
		"damaged, the copy later":        {flip(second), flip(third), []string{lost(second)}},
		"damaged, the copy ends there":   {flip(second), whole[:second], []string{lost(second)}},
		"damaged, the copy ends before":  {flip(third), whole[:second], []string{lost(third)}},
		"damaged, the copy is of others": {flip(second), flip(0), []string{lost(second)}},
		"damaged, no copy":               {flip(second), nil, []string{lost(second)}},
		"nothing is left": {[]byte("none"), whole[:5],
			[]string{fault(store.Lost, name, 0, 4, "damaged: no record can be read")}},
		"torn, as its copy":         {whole[:last+3], whole[:last+3], []string{torn, differs(last, 3)}},
		"torn, and its copy is not": {whole[:last+3], whole[:last], []string{torn}},
		"the copy is damaged":       {whole, flip(third), []string{differs(third, size-third)}},
		"the copy is cut":           {whole, whole[:third], []string{differs(third, 0)}},
		"the copy is empty":         {whole, []byte{}, []string{differs(0, 0)}},
		"the copy is longer":        {whole, append(bytes.Clone(whole), 1, 2), []string{differs(size, 2)}},
		"no copy":                   {whole, nil, []string{fault(store.Mended, copied, 0, 0, "")}}, // which is no news
	} {
		i := image{}
		if c.own != nil {
			i[name] = c.own
		}
		if c.other != nil {
			i[copied] = c.other
		}
		e := &examination{files: i.files(t), dir: "data"}
		if _, err := e.examineManifest(name); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range e.found {
			got = append(got, fmt.Sprint(f.Kind, " ", f.Fault))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

// Files whose numbers have seven digits are newer than those with six.
func TestExamine_sevenDigits(t *testing.T) {
	_, closed, want := smallStore(t)
	i := image{}
	for name, data := range closed {
		switch {
		case strings.HasPrefix(name, "MANIFEST-"):
			i["MANIFEST-999999"], i["MANIFEST-1000000"] = []byte("old"), data
		case strings.HasPrefix(name, "OPTIONS-"):
			other := bytes.Replace(data, []byte("comparer="), []byte("comparer=another."), 1)
			i["OPTIONS-999999"], i["OPTIONS-1000000"] = other, data
		case !strings.Contains(name, "MANIFEST-"):
			i[name] = data
		}
	}
	for what, c := range map[string]struct {
		marker string
		opts   Options
		said   string
	}{
		"a marker":             {"MANIFEST-1000000", Options{}, ""},
		"a marker of no file":  {"MANIFEST-1000001", Options{}, "MANIFEST-1000000 holds"},
		"no marker, salvaged:": {"", Options{Salvage: true}, "marker.manifest.*"},
	} {
		harmed := i
		if c.marker != "" {
			harmed = i.with("marker.manifest.000900."+c.marker, nil)
		}
		got, said, err := reading(t, harmed, c.opts)
		if err != nil || got != want || !strings.Contains(said, c.said) || (said == "") != (c.said == "") {
			t.Errorf("%s: got %q, %v, want %q, and a line with %q: %s", what, got, err, want, c.said, said)
		}
	}
}

// Logs are in the order of their numbers, whatever that of a directory is: a checkpoint is looked at as it is listed.
func TestLogNumbers(t *testing.T) {
	e := &examination{names: []string{
		"1000000.log", "999999.log", "MANIFEST-999999", "000012.log", "000011.log", "000013-001.log", "000014.sst",
	}}
	if got, want := e.logNumbers(12), []uint64{12, 999999, 1000000}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The first log that is not flushed is that of the last edit that names one.
func TestFirstUnflushedLog(t *testing.T) {
	edit := func(fields ...any) journal.Record {
		var b []byte
		for _, f := range fields {
			switch f := f.(type) {
			case int:
				b = binary.AppendUvarint(b, uint64(f))
			case string:
				b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
			}
		}
		return journal.Record{Data: b}
	}
	f := func(want uint64, edits ...journal.Record) {
		t.Helper()
		if got := firstUnflushedLog(edits); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	f(0)
	f(7, edit(1, "comparer", 2, 7))
	f(7, edit(2, 7))
	f(9, edit(1, "comparer", 2, 7), edit(2, 9), edit(3, 11))
	f(300, edit(2, 300), edit(1, "comparer"), edit(1, "comparer", 3, 8), edit())
	f(300, edit(2, 300), edit(1, 200, 2, 5), edit(1, 3, 2, 5), edit(1), edit(2), journal.Record{Data: []byte{2, 0x80}})
	f(3, edit(1, "", 2, 3))
	// A length of more than ten bytes.
	f(300, edit(2, 300), journal.Record{Data: append([]byte{1}, bytes.Repeat([]byte{0xff}, 11)...)})
}

// Only a MANIFEST has the number of one.
func TestManifestNumber(t *testing.T) {
	for name, want := range map[string]uint64{
		"MANIFEST-000007": 7, "MANIFEST-1000000": 1000000, "MANIFEST-": 0, "MANIFEST-99999999999999999999": 0,
		"copy.MANIFEST-000007": 0, "000007.log": 0, "000007": 0,
	} {
		if got := manifestNumber(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// Of an error that a read returns, what pebble says of damage becomes the damage of a file.
func TestUnreadable(t *testing.T) {
	found := errors.New("found before")
	for _, c := range []struct{ err, want error }{
		{nil, nil},
		{syscall.EIO, syscall.EIO},
		{&disk.DamagedError{Err: found}, found},
	} {
		if got := unreadable(c.err); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
	got := unreadable(pebble.ErrCorruption)
	if !errors.Is(got, store.ErrDamaged) || !errors.Is(got, pebble.ErrCorruption) {
		t.Errorf("got %v, want that it is damage, and what pebble says", got)
	}
}
