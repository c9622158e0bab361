package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// endOfLog is the chunk that ends log 1.
var endOfLog = []byte{0, 0, 0, 0, 0, 0, 5, 2, 0, 0, 0}

// size returns the size of a file; 0 if there is none.
func size(files vfs.FS, name string) int64 {
	s, err := files.Stat(name)
	if err != nil {
		return 0
	}
	return s.Size()
}

// A log begins with 64 KiB, doubles when more than half of it is used, and is at least 64 bytes longer than what was
// written to it.
func TestLog_size(t *testing.T) {
	const k = 1 << 10
	w := newWorld(t)
	f := w.make(t, "data/000001.log")
	for _, c := range []struct{ write, size int64 }{
		{0, 64 * k}, {32 * k, 64 * k}, {1, 128 * k}, {31*k - 1, 128 * k}, {k + 1, 256 * k},
		// This one alone does not fit, and then takes more than half.
		{500*k - 1 - 64, 2048 * k},
		{460*k + 64, 2048 * k}, {1, 4096 * k},
	} {
		if _, err := f.Write(make([]byte, c.write)); err != nil {
			t.Fatal(err)
		}
		if got := size(w.mem, "data/000001.log"); got != c.size {
			t.Errorf("after %d bytes more: %d bytes, want %d", c.write, got, c.size)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// Just as many zeros as the header of a chunk takes follow a write for which a log was made longer, durably.
func TestLog_zeros(t *testing.T) {
	for _, more := range []int{0, 1} {
		w := newWorld(t)
		f := w.make(t, "data/000001.log")
		write(t, f, "record")
		w.ops = nil
		if _, err := f.Write(make([]byte, newLogSize-LogZeros-len("record")+more)); err != nil {
			t.Fatal(err)
		}
		var did []errorfs.OpKind
		for _, op := range w.ops {
			did = append(did, op.Kind)
		}
		want := []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
		if more > 0 {
			want = []errorfs.OpKind{errorfs.OpFileWriteAt, errorfs.OpFileSyncData, errorfs.OpFileWrite}
		}
		if !slices.Equal(did, want) {
			t.Errorf("%d bytes more than fit: %v, want %v", more, did, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// After a crash a log with a synced record is there, whole, and zeros follow what was written to it since.
// A sync each few records makes the size durable: no other syncs are needed.
func TestLog_crash(t *testing.T) {
	const records, longest = 120, 60
	rng := rand.New(rand.NewPCG(1, 1))
	w := newWorld(t)
	f := w.make(t, "data/000001.log")
	if err := w.syncDir(); err != nil {
		t.Fatal(err)
	}
	at, synced := 0, 0
	for i := range records {
		text := bytes.Repeat([]byte{byte(i + 1)}, 1+rng.IntN(5000))
		if i == longest { // more than the size that is durable
			text = bytes.Repeat([]byte{1}, 1<<20)
		}
		w.ops = nil
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
		at += len(text)
		syncs := 0
		for _, op := range w.ops {
			if op.Kind == errorfs.OpFileSyncData {
				syncs++
			}
		}
		if want := map[bool]int{i == longest: 1}[true]; syncs != want {
			t.Errorf("record %d at %d: %d syncs, want %d", i, at, syncs, want)
		}
		if i%3 == 0 {
			if err := f.SyncData(); err != nil {
				t.Fatal(err)
			}
			synced = at
		}
		crashed := w.mem.CrashClone(vfs.CrashCloneCfg{})
		if n := size(crashed, "data/000001.log"); n < int64(at+LogZeros) {
			t.Fatalf("record %d: %d bytes after a crash, of %d that were written", i, n, at)
		}
		if i%10 == 0 && strings.Trim(read(t, crashed, "data/000001.log")[:synced], "\x00") == "" {
			t.Errorf("record %d: it is not in the log after a crash", i)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// Before the first sync of a record nothing of a log need be durable.
func TestLog_unsynced(t *testing.T) {
	w := newWorld(t)
	f := w.make(t, "data/000001.log")
	w.ops = nil
	for range 3 {
		if _, err := f.Write(make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range w.ops {
		if op.Kind == errorfs.OpFileSyncData {
			t.Errorf("got %v, want no sync", w.ops)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// The marker names, durably, the first and the newest log with a synced record, before the sync returns. The
// end of a log is no record, and a log without records is not filled.
func TestLog_marker(t *testing.T) {
	w := newWorld(t)
	says := func(what string, filled bool, want Logs) {
		t.Helper()
		got, err := ReadLogs(w.mem.CrashClone(vfs.CrashCloneCfg{}), "data")
		if err != nil || got != want || w.Filled() != filled {
			t.Errorf("%s: %+v, filled %t, %v, want %+v, %t", what, got, w.Filled(), err, want, filled)
		}
	}
	if err := w.syncDir(); err != nil {
		t.Fatal(err)
	}
	var logs []vfs.File
	for i, name := range []string{"data/000003.log", "data/000004.log", "data/000005.log"} {
		f := w.make(t, name)
		logs = append(logs, f)
		last := []Logs{{}, {First: 3, Newest: 3}, {First: 3, Newest: 4}}[i]
		says("made", false, last)
		write(t, f, string(endOfLog))
		says("with an end", false, last)
		for _, text := range []string{"record 1", "record 2"} {
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			says("written", true, last)
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			last = Logs{First: 3, Newest: uint64(3 + i)}
			says("synced", true, last)
		}
	}
	// A marker goes nowhere when an older log is synced again.
	write(t, logs[0], "record 3")
	if got, err := ReadLogs(w.mem, "data"); err != nil || got != (Logs{First: 3, Newest: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, f := range logs {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What looks nearly like the end of a log is a record.
func TestLog_end(t *testing.T) {
	if !isEndOfLog(endOfLog) {
		t.Error("it is no end")
	}
	for i := range 7 {
		p := bytes.Clone(endOfLog)
		p[i] ^= 1
		if isEndOfLog(p) || isEndOfLog(endOfLog[:i]) {
			t.Errorf("byte %d: it is an end", i)
		}
	}
	if isEndOfLog(append(bytes.Clone(endOfLog), 0)) {
		t.Error("with a byte more it is an end")
	}
}

// A log that fails in any way is broken, and its error is returned. Closing it ends the process while it serves.
func TestLog_fails(t *testing.T) {
	steps := []struct {
		kind errorfs.OpKind
		name string
		run  func(vfs.File) error
	}{
		{errorfs.OpFileWrite, ".log", func(f vfs.File) error { _, err := f.Write([]byte("record")); return err }},
		{errorfs.OpFileWriteAt, ".log", func(f vfs.File) error { _, err := f.Write(make([]byte, 99_000)); return err }},
		{errorfs.OpFileWriteAt, ".log", func(f vfs.File) error { _, err := f.Write(make([]byte, 40_000)); return err }},
		{errorfs.OpFileSyncData, ".log", vfs.File.Sync},
		{errorfs.OpFileSyncData, ".log", vfs.File.SyncData},
		{errorfs.OpCreate, "marker.", func(f vfs.File) error {
			_, err := f.Write([]byte("record"))
			return errors.Join(err, f.Sync())
		}},
		{errorfs.OpFileSyncTo, ".log", func(f vfs.File) error { _, err := f.SyncTo(1); return err }},
		{errorfs.OpFileClose, ".log", nil},
	}
	for i, step := range steps {
		for _, serving := range []bool{true, false} {
			w := newWorld(t)
			w.SetServing(serving)
			f := w.make(t, "data/000001.log")
			w.fail = failing(syscall.EIO, step.kind, step.name, -1)
			if step.run != nil {
				if err := step.run(f); !errors.Is(err, syscall.EIO) || !w.Broken() {
					t.Errorf("step %d: %v, broken %t", i, err, w.Broken())
				}
			}
			if w.Broken() != (step.run != nil) || len(w.fatal) > 0 {
				t.Errorf("step %d: broken %t, ended by %q before it is closed", i, w.Broken(), w.fatal)
			}
			err := f.Close()
			if errors.Is(err, syscall.EIO) != (step.run == nil) || !w.Broken() || len(w.fatal) == 1 != serving {
				t.Errorf("step %d, serving %t: %v, broken %t, ended by %q", i, serving, err, w.Broken(), w.fatal)
			}
			w.fail = nil
		}
	}
}

// A record for which the log cannot be made longer durably is not written.
func TestLog_notLonger(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWriteAt, errorfs.OpFileSyncData} {
		w := newWorld(t)
		f := w.make(t, "data/000001.log")
		write(t, f, "record")
		w.fail, w.ops = failing(syscall.EIO, kind, ".log", 1), nil
		if n, err := f.Write(make([]byte, 100_000)); n != 0 || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: got %d, %v", kind, n, err)
		}
		if slices.ContainsFunc(w.ops, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }) {
			t.Errorf("%v: the record is written: %v", kind, w.ops)
		}
		// A shorter one fits, and takes more than half of the 64 KiB.
		if _, err := f.Write(make([]byte, 60_000)); err != nil || size(w.mem, "data/000001.log") != 128<<10 {
			t.Errorf("%v: another record: %v, the log has %d bytes", kind, err, size(w.mem, "data/000001.log"))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The first part of a record that fails then may fill more than half of a log.
func TestLog_inPart(t *testing.T) {
	w := newWorld(t)
	l := w.make(t, "data/000001.log").(*logFile)
	whole := l.File
	l.File = inPart{whole}
	if n, err := l.Write(make([]byte, 60_000)); n != 50_000 || !errors.Is(err, syscall.EIO) || !w.Broken() {
		t.Errorf("got %d, %v, broken %t", n, err, w.Broken())
	}
	l.File = whole
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// inPart is a file whose writes each fail after 50,000 bytes.
type inPart struct{ vfs.File }

func (f inPart) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:50_000])
	return n, errors.Join(err, syscall.EIO)
}

// A log that cannot be made, or not as long, ends the process while it serves, and is an error before that. One that
// has not failed does not end it.
func TestLog_unmade(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWriteAt} {
		for _, serving := range []bool{true, false} {
			w := newWorld(t)
			w.SetServing(serving)
			w.fail = failing(syscall.EIO, kind, "000001.log", -1)
			if f, err := w.Create("data/000001.log", category); !errors.Is(err, syscall.EIO) || f != nil ||
				len(w.fatal) == 1 != serving {
				t.Errorf("%v, serving %t: %v, %v, ended by %q", kind, serving, f, err, w.fatal)
			}
			w.fail = nil
		}
	}
	w := newWorld(t)
	w.SetServing(true)
	err := errors.Join(w.make(t, "data/000001.log").Close(), w.make(t, "data/below/000001.log").Close())
	if err != nil || len(w.fatal) > 0 || w.Broken() {
		t.Errorf("%v, ended by %q", err, w.fatal)
	}
	if n := size(w.mem, "data/below/000001.log"); n != 0 {
		t.Errorf("a log in another directory has %d bytes", n)
	}
	w.fail = failing(syscall.EIO, errorfs.OpCreate, "OPTIONS", -1)
	f, err := w.Create("data/OPTIONS-000001", category)
	if !errors.Is(err, syscall.EIO) || f != nil || len(w.fatal) > 0 {
		t.Errorf("another file: %v, %v, ended by %q", f, err, w.fatal)
	}
	w.fail = nil
}

// SyncTo starts to write, and promises nothing.
func TestLog_syncTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.make(t, "data/000001.log")
		if _, err := f.Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
		w.ops = nil
		if all, err := f.SyncTo(1); all || err != nil || len(w.ops) != 1 || w.ops[0].Kind != errorfs.OpFileSyncTo {
			t.Errorf("got %t, %v, %v", all, err, w.ops)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The marker says whether there may be sealed columns, from when that was set on, next to the logs that count.
func TestLogs_columns(t *testing.T) {
	w := newWorld(t)
	is := func(want Logs) {
		t.Helper()
		got, err := ReadLogs(w.mem, "data")
		if err != nil || got != want || w.Columns() != want.Columns {
			t.Errorf("%+v, %v, columns %t, want %+v", got, err, w.Columns(), want)
		}
	}
	write(t, w.make(t, "data/000007.log"), "record")
	is(Logs{First: 7, Newest: 7})

	// Opened again, with no record yet: the logs of before count.
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.FS, err = New(w.cfg); err != nil {
		t.Fatal(err)
	}
	is(Logs{First: 7, Newest: 7})
	if err := w.SetColumns(); err != nil {
		t.Fatal(err)
	}
	is(Logs{First: 7, Newest: 7, Columns: true})
	w.ops = nil
	if err := w.SetColumns(); err != nil || len(w.ops) > 0 {
		t.Errorf("set again: %v, %v", err, w.ops)
	}
	write(t, w.make(t, "data/000009.log"), "record")
	is(Logs{First: 9, Newest: 9, Columns: true})
}
