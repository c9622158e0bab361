package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// finding is a fault, and what puts it right as far as that can be.
type finding struct {
	store.Fault
	mend func() error // nil: nothing is to be done
}

// examination looks at MANIFEST and logs before pebble does: pebble takes what is
// broken in the last block of a log, and anywhere in a MANIFEST, for its end, and
// says nothing. It changes nothing by itself.
type examination struct {
	files vfs.FS
	dir   string
	head  int // as in Options
	names []string

	found  []finding
	logs   int   // read
	bytes  int64 // in MANIFEST, copy and logs
	replay int64 // bytes of records that pebble will replay
	blind  bool  // no MANIFEST is named: nothing else was looked at
	// whole are the bytes that file wholeOf should have, nil if it has them.
	whole   []byte
	wholeOf string
}

// examine looks at a directory.
func examine(files vfs.FS, dir string, head int) (*examination, error) {
	e := &examination{files: files, dir: dir, head: head}
	var err error
	if e.names, err = files.List(dir); err != nil {
		return nil, err
	}
	slices.Sort(e.names)
	name, err := atomicfs.ReadMarker(files, dir, "manifest")
	if err != nil {
		return nil, err
	}
	if name == "" {
		e.blind = true
		e.unmarked()
		return e, nil
	}
	if err := e.version(); err != nil {
		return nil, err
	}
	manifest, err := e.manifest(name)
	if err != nil {
		return nil, err
	}
	return e, e.journals(unflushed(manifest))
}

// unmarked: pebble begins a new database in a directory whose marker does not
// name a MANIFEST, and removes what was there.
func (e *examination) unmarked() {
	var newest, other string
	for _, name := range e.names {
		switch {
		case strings.HasPrefix(name, "MANIFEST-"):
			newest = name // they ascend
		case strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log"):
			other = name
		}
	}
	if other == "" {
		return
	}
	e.add(store.Fault{Kind: store.Lost, File: "marker.manifest.*", Offset: -1, Bytes: -1, What: "missing, while " + other + " is there"}, func() error {
		if newest == "" {
			return errors.New("there is no MANIFEST either, nothing tells which tables there are; take the directory from a backup")
		}
		return e.mark("manifest", newest)
	})
}

// version looks for the marker of pebble's format, which is one here. A database
// that is being made gets it last.
func (e *examination) version() error {
	value, err := atomicfs.ReadMarker(e.files, e.dir, "format-version")
	used := slices.ContainsFunc(e.names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
	if err == nil && value == "" && used {
		e.add(store.Fault{Kind: store.Mended, File: "marker.format-version.*", Offset: -1, Bytes: -1, What: "missing, and written again"},
			func() error { return e.mark("format-version", formatVersion.String()) })
	}
	return err
}

// mark moves one of pebble's markers.
func (e *examination) mark(name, value string) error {
	m, _, err := atomicfs.LocateMarker(e.files, e.dir, name)
	if err != nil {
		return err
	}
	return errors.Join(m.Move(value), m.Close())
}

func (e *examination) add(f store.Fault, mend func() error) {
	e.found = append(e.found, finding{f, mend})
}

// of are the findings of a kind.
func (e *examination) of(kind store.FaultKind) (faults []store.Fault) {
	for _, f := range e.found {
		if f.Kind == kind {
			faults = append(faults, f.Fault)
		}
	}
	return faults
}

// mend puts right what is of a kind.
func (e *examination) mend(kind store.FaultKind) error {
	for _, f := range e.found {
		if f.Kind != kind || f.mend == nil {
			continue
		}
		if err := f.mend(); err != nil {
			return fmt.Errorf("%s: %w", f.File, err)
		}
	}
	return nil
}

// read returns a file's bytes, nil if there is none.
func (e *examination) read(name string) ([]byte, error) {
	f, err := e.files.Open(e.files.PathJoin(e.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	e.bytes += int64(len(data))
	return data, errors.Join(err, f.Close())
}

// write makes a file whole, in place of one of its name.
func (e *examination) write(name string, data []byte) error {
	path, temporary := e.files.PathJoin(e.dir, name), e.files.PathJoin(e.dir, "mending."+name)
	f, err := e.files.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(bytes.Clone(data)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := e.files.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(e.files, e.dir)
}

// keep saves a damaged file under another name, for who wants to look.
func (e *examination) keep(name string, data []byte) error {
	return e.write("damaged-"+name, data)
}

// manifest examines the MANIFEST and its copy, and returns the records of the
// one that has more.
func (e *examination) manifest(name string) ([]journal.Record, error) {
	own, err := e.read(name)
	if err != nil {
		return nil, err
	}
	twin := disk.CopyOf(name)
	copied, err := e.read(twin)
	if err != nil {
		return nil, err
	}
	for _, old := range e.names {
		if strings.HasPrefix(old, disk.CopyOf("MANIFEST-")) && old != twin {
			e.add(store.Fault{Kind: store.Mended, File: old, Offset: -1, Bytes: -1}, func() error { return e.files.Remove(e.files.PathJoin(e.dir, old)) })
		}
	}
	a, b := journal.Manifest(own), journal.Manifest(copied)
	ends, endsTwin := beforeHoles(a), beforeHoles(b)
	best, whole := own[:ends], a
	if endsTwin > ends && bytes.HasPrefix(copied, own[:ends]) {
		best, whole = copied[:endsTwin], b
	}
	broken := store.Fault{Kind: store.Lost, File: name, Offset: ends, Bytes: int64(len(own)) - ends, What: "damaged: no record can be read from there, while records follow"}
	switch {
	case len(best) == 0 || len(whole.Holes) > 0 && int64(len(best)) < whole.End:
		if len(best) == 0 {
			broken.What = "damaged: no record can be read"
		}
		e.add(broken, func() error {
			if len(best) == 0 {
				return errors.New("nothing tells which tables there are; take the directory from a backup")
			}
			return errors.Join(e.keep(name, own), e.write(name, best), e.write(twin, best))
		})
	case int64(len(best)) > ends:
		e.whole, e.wholeOf = best, name
		e.add(store.Fault{Kind: store.Mended, File: name, Offset: ends, Bytes: int64(len(best)) - ends, What: "damaged, and whole again from its copy"},
			func() error { return errors.Join(e.keep(name, own), e.write(name, best)) })
	default:
		e.ends(name, a)
		e.twin(twin, copied, own[:a.End])
	}
	return whole.Records[:countBefore(whole.Records, int64(len(best)))], nil
}

// ends is for a MANIFEST that has all that its copy has, or more.
func (e *examination) ends(name string, a journal.Reading) {
	if a.Torn > 0 {
		e.add(store.Fault{Kind: store.Torn, File: name, Offset: a.End, Bytes: a.Torn, What: "a torn end, left out"}, nil)
	}
}

// twin sees to the copy of a MANIFEST that is whole. Earlier versions have made
// none.
func (e *examination) twin(name string, copied, whole []byte) {
	if bytes.Equal(copied, whole) {
		return
	}
	f := store.Fault{Kind: store.Mended, File: name, Offset: 0, Bytes: int64(len(copied))}
	for f.Offset < f.Bytes && f.Offset < int64(len(whole)) && copied[f.Offset] == whole[f.Offset] {
		f.Offset++
	}
	if f.Bytes -= f.Offset; copied != nil {
		f.What = "differs from the MANIFEST, which is whole, and written again"
	}
	e.add(f, func() error { return e.write(name, whole) })
}

// beforeHoles is up to where all records are whole.
func beforeHoles(r journal.Reading) int64 {
	if len(r.Holes) > 0 {
		return r.Holes[0].Start
	}
	return r.End
}

func countBefore(records []journal.Record, end int64) int {
	n := 0
	for n < len(records) && records[n].End <= end {
		n++
	}
	return n
}

// unflushed returns the number from which on logs are replayed. A record of a
// MANIFEST is a version edit, which begins with the comparer's name (tag 1) and
// that number (tag 2) where it has them.
func unflushed(records []journal.Record) (number uint64) {
	for _, rec := range records {
		rest := rec.Data
		tag, n := binary.Uvarint(rest)
		if n > 0 && tag == 1 {
			length, m := binary.Uvarint(rest[n:])
			if m <= 0 || length > uint64(len(rest)-n-m) {
				continue
			}
			rest = rest[n+m+int(length):]
			tag, n = binary.Uvarint(rest)
		}
		if n <= 0 || tag != 2 {
			continue
		}
		if v, m := binary.Uvarint(rest[n:]); m > 0 {
			number = v
		}
	}
	return number
}

// logNumbers are those of the logs that pebble will replay, ascending.
func (e *examination) logNumbers(from uint64) (numbers []uint64) {
	for _, name := range e.names {
		if n, index, ok := wal.ParseLogFilename(name); ok && index == 0 && uint64(n) >= from {
			numbers = append(numbers, uint64(n))
		}
	}
	slices.Sort(numbers)
	return numbers
}
