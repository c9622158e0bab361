package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// finding is a fault, and how to repair it as far as that can be done.
type finding struct {
	store.Fault
	repair func() error // nil: there is nothing to do
}

// examination reads the MANIFEST and the logs before pebble does. Pebble takes
// damage in the last block of a log, and anywhere in a MANIFEST, for the end of the
// file, and says nothing. An examination changes no file unless repair is called.
type examination struct {
	files    vfs.FS
	dir      string
	grouping Grouping
	names    []string // of the files in dir; those of one kind by their numbers, ascending

	found  []finding
	logs   int   // logs that were read
	bytes  int64 // in MANIFEST, its copy and logs
	replay int64 // bytes of records that pebble will replay
	// unmarked says that no marker names a MANIFEST: nothing else was examined.
	unmarked bool
	// manifest is the content that the MANIFEST of the name manifestName should
	// have; nil if it has it.
	manifest     []byte
	manifestName string
	markers      []string // files of markers that pebble must see to open the database
	// unreadOptions is a damaged file of pebble's options, which it must not see; empty if there is none.
	unreadOptions string
}

// examine examines the database in dir.
func examine(files vfs.FS, dir string, grouping Grouping) (*examination, error) {
	e := &examination{files: files, dir: dir, grouping: grouping}
	var err error
	if e.names, err = files.List(dir); err != nil {
		return nil, err
	}
	// Pebble writes numbers with six digits, or with as many as they have: 1000000 comes after 999999.
	slices.SortFunc(e.names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })

	name, err := atomicfs.ReadMarker(files, dir, "manifest")
	if err != nil {
		return nil, err
	}
	// Without the marker nobody knows which MANIFEST counts, nor which logs it needs.
	if name == "" {
		e.unmarked = true
		e.examineUnmarked()
		return e, nil
	}

	if err := e.examineVersion(); err != nil {
		return nil, err
	}
	if name, err = e.ofMarker(name); err != nil {
		return nil, err
	}
	records, err := e.examineManifest(name)
	if err != nil {
		return nil, err
	}
	return e, e.examineLogs(firstUnflushedLog(records))
}

// examineUnmarked examines a directory in which no marker names a MANIFEST. Pebble
// would make a new database there and remove the files of the old one.
func (e *examination) examineUnmarked() {
	var newest, other string
	for _, name := range e.names {
		switch {
		case strings.HasPrefix(name, "MANIFEST-"):
			newest = name // numbers ascend
		case strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log"):
			other = name
		}
	}
	if other == "" {
		return // a new directory, or one in which a crash has ended the making of a database
	}

	lost := store.Fault{
		Kind:   store.Lost,
		File:   "marker.manifest.*",
		Offset: -1,
		Bytes:  -1,
		What:   "missing, while " + other + " is there",
	}
	e.add(lost, func() error {
		if newest == "" {
			return errors.New("there is no MANIFEST either, nobody knows which tables there are; " +
				"take the directory from a backup")
		}
		return e.moveMarker("manifest", newest)
	})
}

// examineVersion looks for the marker of pebble's format version, which is always
// the same here. A database that is being made gets it last, so it must be there as
// soon as there is a table.
func (e *examination) examineVersion() error {
	value, err := atomicfs.ReadMarker(e.files, e.dir, "format-version")
	used := slices.ContainsFunc(e.names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
	if err == nil && value == "" && used {
		mended := store.Fault{
			Kind:   store.Mended,
			File:   "marker.format-version.*",
			Offset: -1,
			Bytes:  -1,
			What:   "missing, and written again",
		}
		e.addMarker(mended, "format-version", formatVersion.String())
	}
	return err
}

// ofMarker returns the MANIFEST that holds, given the one that the marker names. That is another one if the named one
// was never in the directory: a crash may leave its marker alone, and then the one before it holds. Its
// logs and tables show whether anything is missing there.
func (e *examination) ofMarker(name string) (string, error) {
	if slices.Contains(e.names, name) || slices.Contains(e.names, disk.CopyOf(name)) {
		return name, nil
	}
	synced, err := disk.ReadLogs(e.files, e.dir)
	if err != nil {
		return "", err
	}
	var before string
	for _, other := range e.names { // numbers ascend
		if n := manifestNumber(other); n > 0 && n < manifestNumber(name) {
			before = other
		}
	}
	// A store that has opened with the named one, and has taken records since, had it.
	if before == "" || synced.First > manifestNumber(name) { //fault:lost-taken-for-unwritten TestRotation_lost
		return name, nil
	}

	mended := store.Fault{
		Kind:   store.Mended,
		File:   name,
		Offset: -1,
		Bytes:  -1,
		What:   "never written, as after a crash while it was being made; " + before + " holds",
	}
	e.addMarker(mended, "manifest", before)
	return before, nil
}

// manifestNumber returns the number in the name of a MANIFEST, 0 for another file.
func manifestNumber(name string) uint64 {
	digits, ok := strings.CutPrefix(name, "MANIFEST-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return n
}

// moveMarker makes one of pebble's markers name a value.
func (e *examination) moveMarker(name, value string) error {
	m, _, err := atomicfs.LocateMarker(e.files, e.dir, name)
	if err != nil {
		return err
	}
	return errors.Join(m.Move(value), m.Close())
}

// addMarker adds a fault that is repaired once one of pebble's markers names a value.
func (e *examination) addMarker(f store.Fault, name, value string) {
	// Of several files of a marker the one with the highest number counts.
	e.markers = append(e.markers, fmt.Sprintf("marker.%s.%d.%s", name, uint64(math.MaxUint64), value))
	e.add(f, func() error { return e.moveMarker(name, value) })
}

func (e *examination) add(f store.Fault, repair func() error) {
	e.found = append(e.found, finding{f, repair})
}

// faults returns the faults of a kind.
func (e *examination) faults(kind store.FaultKind) (faults []store.Fault) {
	for _, f := range e.found {
		if f.Kind == kind {
			faults = append(faults, f.Fault)
		}
	}
	return faults
}

// repair repairs the faults of a kind.
func (e *examination) repair(kind store.FaultKind) error {
	for _, f := range e.found {
		if f.Kind != kind || f.repair == nil {
			continue
		}
		if err := f.repair(); err != nil {
			return fmt.Errorf("cannot repair %s: %w", f.File, err)
		}
	}
	return nil
}

// read returns a file's content, nil if there is no such file.
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

// write replaces a file atomically and durably.
func (e *examination) write(name string, data []byte) error {
	path, temporary := e.files.PathJoin(e.dir, name), e.files.PathJoin(e.dir, "mending."+name)
	f, err := e.files.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(bytes.Clone(data)); err != nil { // a file may change what it is given
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

// saveDamaged saves a damaged file under another name, for people who want to
// examine it by hand.
func (e *examination) saveDamaged(name string, data []byte) error {
	return e.write("damaged-"+name, data)
}

// examineManifest examines the MANIFEST of a name and its copy. It adds their faults, and returns the records
// that pebble will read once these are repaired. It fails only if a file cannot be read.
func (e *examination) examineManifest(name string) ([]journal.Record, error) {
	data, err := e.read(name)
	if err != nil {
		return nil, err
	}
	copyName := disk.CopyOf(name)
	copyData, err := e.read(copyName)
	if err != nil {
		return nil, err
	}
	e.removeOldCopies(copyName)

	own, copied := journal.Manifest(data), journal.Manifest(copyData)
	intact, intactCopy := data[:intactEnd(own)], copyData[:intactEnd(copied)]
	// The copy is used only if it goes on where the MANIFEST breaks off: one that
	// differs before may be of another state.
	best, reading := intact, own
	if len(intactCopy) > len(intact) && bytes.HasPrefix(intactCopy, intact) {
		best, reading = intactCopy, copied
	}
	fault := func(kind store.FaultKind, length int, what string) store.Fault {
		return store.Fault{Kind: kind, File: name, Offset: int64(len(intact)), Bytes: int64(length), What: what}
	}

	switch broken := len(data) - len(intact); {
	case len(best) == 0:
		e.add(fault(store.Lost, broken, "damaged: no record can be read"), func() error {
			return errors.New("nobody knows which tables there are; take the directory from a backup")
		})
	case len(reading.Holes) > 0:
		// The copy does not help: it is damaged too, missing, shorter or of another
		// state. Records that follow the damage would be applied to a state that is not
		// known, so they are left out.
		lost := fault(store.Lost, broken, "damaged: no record can be read from there, while records follow")
		e.add(lost, func() error {
			err := e.saveDamaged(name, data)
			if len(copyData) > 0 {
				err = errors.Join(err, e.saveDamaged(copyName, copyData))
			}
			if err != nil {
				return err // nothing is written over what is not saved
			}
			return errors.Join(e.write(name, best), e.write(copyName, best))
		})
	case len(best) > len(intact):
		e.manifest, e.manifestName = best, name
		e.add(fault(store.Mended, len(best)-len(intact), "damaged, and repaired from its copy"), func() error {
			if err := e.saveDamaged(name, data); err != nil {
				return err
			}
			return e.write(name, best)
		})
	default: // the MANIFEST is intact and has all that its copy has, or more
		if own.Torn > 0 {
			e.add(fault(store.Torn, int(own.Torn), "a torn end, left out"), nil)
		}
		e.compareCopy(copyName, copyData, intact)
	}
	return reading.Records[:countBefore(reading.Records, int64(len(best)))], nil
}

// removeOldCopies has the copies of earlier MANIFESTs removed. That is no news: the
// faults have no text.
func (e *examination) removeOldCopies(current string) {
	for _, old := range e.names {
		if strings.HasPrefix(old, disk.CopyOf("MANIFEST-")) && old != current {
			mended := store.Fault{Kind: store.Mended, File: old, Offset: -1, Bytes: -1}
			e.add(mended, func() error { return e.files.Remove(e.files.PathJoin(e.dir, old)) })
		}
	}
}

// compareCopy has the copy of an intact MANIFEST written again if it differs. A
// missing copy is no news, because earlier versions have made none.
func (e *examination) compareCopy(name string, copyData, manifest []byte) {
	if bytes.Equal(copyData, manifest) {
		return
	}

	f := store.Fault{Kind: store.Mended, File: name, Offset: 0, Bytes: int64(len(copyData))}
	for f.Offset < f.Bytes && f.Offset < int64(len(manifest)) && copyData[f.Offset] == manifest[f.Offset] {
		f.Offset++
	}
	// A fault without a text is no news.
	if f.Bytes -= f.Offset; copyData != nil {
		f.What = "differs from the MANIFEST, which is intact, and is written again"
	}
	e.add(f, func() error { return e.write(name, manifest) })
}

// intactEnd returns the offset up to which all records are intact.
func intactEnd(r journal.Reading) int64 {
	if len(r.Holes) > 0 {
		return r.Holes[0].Start
	}
	return r.End
}

// countBefore returns how many records end at or before an offset.
func countBefore(records []journal.Record, end int64) int {
	n := 0
	for n < len(records) && records[n].End <= end {
		n++
	}
	return n
}

// firstUnflushedLog returns the number of the first log that pebble will replay. A
// record of a MANIFEST is a version edit, a list of tagged fields. It begins with
// the comparer's name (tag 1) and that number (tag 2), if it has them.
func firstUnflushedLog(records []journal.Record) (number uint64) {
	for _, rec := range records {
		rest := rec.Data
		tag, n := binary.Uvarint(rest)
		if tag == 1 { // a field that is cut off has the tag 0
			length, m := binary.Uvarint(rest[n:])
			if m <= 0 || length > uint64(len(rest)-n-m) {
				continue
			}
			rest = rest[n+m+int(length):]
			tag, n = binary.Uvarint(rest)
		}

		if tag != 2 {
			continue
		}
		if v, m := binary.Uvarint(rest[n:]); m > 0 {
			// Each such edit takes the place of those before it.
			number = v
		}
	}
	return number
}

// logNumbers returns the numbers of the logs that pebble will replay, ascending.
func (e *examination) logNumbers(from uint64) (numbers []uint64) {
	for _, name := range e.names {
		// Other indexes are of pebble's failover to a second disk, which is not used.
		if n, index, ok := wal.ParseLogFilename(name); ok && index == 0 && uint64(n) >= from {
			numbers = append(numbers, uint64(n))
		}
	}
	slices.Sort(numbers)
	return numbers
}
