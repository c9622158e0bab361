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

// recover looks at the journals and puts right what it may. It returns the names
// of the files that must not be deleted, where something is lost.
func (s *Store) recover() (keep []string, err error) {
	e, err := examine(s.opts.FS, s.dir, s.opts.Head)
	if err != nil {
		return nil, err
	}
	if err := s.roomFor(e); err != nil {
		return nil, err
	}
	e.options(s.opts.engine(s.log))
	for _, f := range e.of(store.Torn) {
		s.log.Warnf("%v", f)
	}
	lost := e.of(store.Lost)
	if len(lost) > 0 && !s.opts.Salvage {
		return nil, &store.DamageError{Faults: lost}
	}
	for _, f := range e.of(store.Mended) {
		if f.What != "" {
			s.log.Warnf("%v", f)
		}
	}
	for _, f := range lost {
		s.log.Errorf("goes on without what is lost: %v", f)
	}
	if err := errors.Join(e.mend(store.Mended), e.mend(store.Lost)); err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		keep = e.names
	}
	if e.blind && len(lost) > 0 {
		more, err := s.recover() // now that a MANIFEST is named
		return append(keep, more...), err
	}
	return keep, nil
}

// options looks at the newest file of pebble's own options. One that cannot be
// read is set aside, for nothing in it is needed; one that names another comparer
// or merger is of another store, or of a later version of this one.
func (e *examination) options(p *pebble.Options) {
	var newest string
	for _, name := range e.names { // they ascend
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
	f := store.Fault{Kind: store.Mended, File: newest, Offset: -1, Bytes: -1, What: fmt.Sprintf("damaged, and not needed: %v", err)}
	if strings.Contains(err.Error(), " name from ") {
		f.Kind, f.What = store.Lost, fmt.Sprintf("damaged, or of another store: %v", err)
	}
	e.add(f, func() error {
		return e.files.Rename(e.files.PathJoin(e.dir, newest), e.files.PathJoin(e.dir, "damaged-"+newest))
	})
}

// open opens pebble. It refuses a database of whose tables one has another length
// than it should; here such a table is one that cannot be read.
func (s *Store) open() (*pebble.DB, error) {
	p := s.opts.engine(s.log)
	p.FS, p.Lock, p.EventListener = s.disk, s.lock, s.events()
	db, err := pebble.Open(s.dir, p)
	if err == nil {
		return db, nil
	}
	faults := inconsistent(err)
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
	for _, f := range lost { // who looks for it shall find that it is damaged
		if err := s.standIn(f.File); err != nil {
			return nil, err
		}
	}
	p = s.opts.engine(s.log)
	p.FS, p.Lock, p.EventListener = s.disk, s.lock, s.events()
	p.DisableConsistencyCheck = true
	return pebble.Open(s.dir, p)
}

// standIn makes an empty file.
func (s *Store) standIn(name string) error {
	f, err := s.opts.FS.Create(s.opts.FS.PathJoin(s.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(s.opts.FS, s.dir))
}

// What pebble says of tables that are not as its MANIFEST has them: a line each.
var (
	ofTable   = regexp.MustCompile(`L\d: (\d{6,}): (.*)`)
	ofLengths = regexp.MustCompile(`object size mismatch .*: (\d+) \(disk\) != (\d+) \(MANIFEST\)`)
)

// inconsistent reads pebble's error of tables that are missing or have another
// length, in the order of their names; none if it is another error.
func inconsistent(err error) (faults []store.Fault) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		m := ofTable.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f := store.Fault{Kind: store.Lost, File: m[1] + ".sst", Offset: -1, Bytes: -1, What: "missing"}
		if n := ofLengths.FindStringSubmatch(m[2]); n != nil {
			f.Kind, f.What = store.Unreadable, fmt.Sprintf("has %s bytes, should have %s", n[1], n[2])
		}
		faults = append(faults, f)
	}
	slices.SortFunc(faults, func(a, b store.Fault) int { return strings.Compare(a.File, b.File) })
	return faults
}
