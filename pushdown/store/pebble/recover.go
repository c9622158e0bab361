package pebble

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// recover examines the journals before pebble opens them and repairs what may be
// repaired. Lost data is a *store.DamageError unless the store is to be salvaged; if
// it is, recover returns the names of the files that must not be deleted.
func (s *Store) recover() (keep []string, err error) {
	e, err := examine(s.opts.FS, s.dir, s.opts.Grouping)
	if err != nil {
		return nil, err
	}
	if err := s.spaceToOpen(e); err != nil {
		return nil, err
	}
	e.examineOptions(s.opts.pebbleOptions(s.log))

	for _, f := range e.faults(store.Torn) {
		s.log.Warnf("%v", f)
	}

	// Nothing is repaired in a store that does not open: its files stay as they were
	// found.
	lost := e.faults(store.Lost)
	if len(lost) > 0 && !s.opts.Salvage {
		return nil, &store.DamageError{Faults: lost}
	}

	for _, f := range e.faults(store.Mended) {
		if f.What != "" { // without a text it is no news
			s.log.Warnf("%v", f)
		}
	}
	for _, f := range lost {
		s.log.Errorf("goes on without what is lost: %v", f)
	}
	if err := errors.Join(e.repair(store.Mended), e.repair(store.Lost)); err != nil {
		return nil, err
	}

	// Pebble removes files that it takes to be unused. After a loss somebody may need them,
	// so the disk renames them instead.
	if len(lost) > 0 {
		keep = e.names
	}
	if e.unmarked && len(lost) > 0 {
		// Only the missing marker was found so far. It names a MANIFEST now, so the rest can
		// be examined. A new directory has no marker either, and has lost nothing.
		more, err := s.recover()
		return append(keep, more...), err
	}
	return keep, nil
}

// examineOptions examines the newest file of pebble's own options. A file that
// cannot be read is set aside, because nothing in it is needed. A file that names
// another comparer or merger is of another store, or of a later version of this one.
func (e *examination) examineOptions(p *pebble.Options) {
	var newest string
	for _, name := range e.names { // numbers ascend
		if strings.HasPrefix(name, "OPTIONS-") {
			newest = name
		}
	}
	if newest == "" {
		return
	}

	text, err := e.read(newest)
	if err == nil {
		p.EnsureDefaults()
		err = p.CheckCompatibility(e.dir, string(text))
	}
	if err == nil {
		return
	}

	f := store.Fault{
		Kind:   store.Mended,
		File:   newest,
		Offset: -1,
		Bytes:  -1,
		What:   fmt.Sprintf("damaged, and not needed: %v", err),
	}
	// Pebble has no error value for another comparer or merger, only a text.
	if strings.Contains(err.Error(), " name from ") {
		f.Kind, f.What = store.Lost, fmt.Sprintf("damaged, or of another store: %v", err)
	} else {
		e.unreadOptions = newest
	}
	e.add(f, func() error {
		return e.files.Rename(e.files.PathJoin(e.dir, newest), e.files.PathJoin(e.dir, "damaged-"+newest))
	})
}

// openPebble opens the database. Pebble refuses it if a table is missing or has
// another length than the MANIFEST says. Downpour goes on with a table of another
// length, whose reads fail, but with a missing one only under Salvage.
func (s *Store) openPebble() (*pebble.DB, error) {
	p := s.opts.pebbleOptions(s.log)
	p.FS, p.Lock, p.EventListener = s.disk, s.lock, s.events()
	p.Experimental.CompactionScheduler = s.compactions
	db, err := pebble.Open(s.dir, p)
	if err == nil {
		return db, nil
	}
	faults := tableFaults(err)
	if len(faults) == 0 {
		return nil, err
	}

	var lost []store.Fault
	for _, f := range faults {
		if f.Kind == store.Lost {
			lost = append(lost, f)
		}
	}

	if len(lost) > 0 && !s.opts.Salvage {
		return nil, &store.DamageError{Faults: lost}
	}

	for _, f := range faults {
		s.log.Errorf("goes on, but what needs it will fail: %v", f)
	}
	// So that a missing table is to all who read it what a damaged one is: an empty file is a
	// damaged table.
	for _, f := range lost {
		if err := s.createEmpty(f.File); err != nil {
			return nil, err
		}
	}

	// The check has said what is wrong; made again, it would refuse again.
	p.DisableConsistencyCheck = true
	return pebble.Open(s.dir, p)
}

// createEmpty makes an empty file, durably.
func (s *Store) createEmpty(name string) error {
	f, err := s.opts.FS.Create(s.opts.FS.PathJoin(s.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(s.opts.FS, s.dir))
}

// Pebble's error has a line for each table that is not as the MANIFEST says:
// "L6: 000005: object size mismatch (data/000005.sst): 100 (disk) != 820 (MANIFEST)".
var (
	tableLine   = regexp.MustCompile(`L\d: (\d{6,}): (.*)`)
	lengthsText = regexp.MustCompile(`object size mismatch .*: (\d+) \(disk\) != (\d+) \(MANIFEST\)`)
)

// isMissing matches the two texts of a table that does not exist, with which such a line ends.
var isMissing = regexp.MustCompile(`: (file does not exist|no such file or directory)$`)

// tableFaults turns pebble's error about tables that are missing or have another
// length into faults, in the order of the tables' names. It returns none for any
// other error, such as that of a disk that cannot say whether a table is there.
func tableFaults(err error) (faults []store.Fault) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		m := tableLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}

		f := store.Fault{Kind: store.Lost, File: m[1] + ".sst", Offset: -1, Bytes: -1, What: "missing"}
		if n := lengthsText.FindStringSubmatch(m[2]); n != nil {
			f.Kind, f.What = store.Unreadable, fmt.Sprintf("has %s bytes, should have %s", n[1], n[2])
		} else if !isMissing.MatchString(m[2]) { //fault:unseen-table-taken-for-missing TestSalvage_unseenTable
			return nil
		}
		faults = append(faults, f)
	}
	slices.SortFunc(faults, func(a, b store.Fault) int { return strings.Compare(a.File, b.File) })
	return faults
}
