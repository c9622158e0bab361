package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	sstblock "github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

// Check reads all files of the database in dir and reports what is wrong with them.
// It changes nothing. A database that is open returns store.ErrLocked. done, if not
// nil, is called with the number of tables that are read, and of all there are.
func Check(ctx context.Context, dir string, opts Options, done func(tables, of int)) (
	report store.CheckReport, err error) {
	opts = opts.withDefaults()
	if _, err := opts.FS.Stat(dir); err != nil {
		return report, err
	}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return report, err
	}
	if err := checkRestored(opts.FS, dir); err != nil {
		return report, errors.Join(err, lock.Close())
	}

	c := checker{opts: opts, dir: dir, lock: lock, report: &report}
	err = errors.Join(c.run(ctx, done), lock.Close())
	return report, err
}

// checkFiles is Check of a data directory that nobody can have open, and that may be
// read-only. Known tables are left out. Options have their defaults already.
func checkFiles(ctx context.Context, dir string, opts Options, known map[string]bool, done func(tables, of int)) (
	report store.CheckReport, err error) {
	opts.FS = unlocked{opts.FS}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return report, err
	}
	c := checker{opts: opts, dir: dir, lock: lock, known: known, report: &report}
	err = errors.Join(c.run(ctx, done), lock.Close())
	return report, err
}

// unlocked is a file system on which a lock is no file.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// checker is one check.
type checker struct {
	opts   Options
	dir    string
	lock   *pebble.Lock
	known  map[string]bool // tables that are not read
	report *store.CheckReport
}

// run examines the journals, then all tables that the database uses. It puts what it
// finds into the report; its own error says what it could not look at.
func (c *checker) run(ctx context.Context, done func(tables, of int)) error {
	e, err := examine(c.opts.FS, c.dir, c.opts.Grouping)
	if err != nil {
		return err
	}
	e.examineOptions(c.opts.pebbleOptions(c.log()))

	c.report.Logs, c.report.Bytes = e.logs, e.bytes
	for _, f := range e.found {
		if f.What != "" { // without a text it is no news
			c.report.Faults = append(c.report.Faults, f.Fault)
		}
	}

	tables := tableNames(e.names)
	// Pebble does not open a database that has lost data, and takes one without a
	// marker for a new one. All tables are read then.
	if len(e.faults(store.Lost)) == 0 && !e.unmarked {
		if tables, err = c.tablesInUse(e, tables); err != nil {
			return err
		}
	}
	return c.checkTables(ctx, tables, done)
}

func (c *checker) log() fatalLogger { return fatalLogger{c.opts.Logger, c.dir, c.opts.Exit} }

// tablesInUse opens the database read-only, which makes pebble look for missing
// tables, and returns those of the given tables that the database uses. A process
// that is killed leaves tables that are not in use, half-written ones among them,
// which pebble removes at its next start. If the database does not open, all given
// tables are returned.
func (c *checker) tablesInUse(e *examination, tables []string) ([]string, error) {
	p := c.opts.pebbleOptions(c.log())
	p.FS, p.Lock, p.ReadOnly = repaired{c.opts.FS, e}, c.lock, true

	db, err := pebble.Open(c.dir, p)
	if err == nil {
		levels, err := db.SSTables()
		return onlyInUse(tables, levels), errors.Join(err, db.Close())
	}
	faults := tableFaults(err)
	if len(faults) == 0 {
		return nil, err
	}
	c.report.Faults = append(c.report.Faults, faults...)
	return tables, nil
}

// onlyInUse returns those of the named tables that are in levels.
func onlyInUse(tables []string, levels [][]pebble.SSTableInfo) []string {
	used := map[string]bool{}
	for _, level := range levels {
		for _, t := range level {
			used[t.BackingSSTNum.String()+".sst"] = true
		}
	}
	return slices.DeleteFunc(tables, func(name string) bool { return !used[name] })
}

// tableNames returns the names of tables among those of files.
func tableNames(files []string) (tables []string) {
	for _, name := range files {
		if strings.HasSuffix(name, ".sst") {
			tables = append(tables, name)
		}
	}
	return tables
}

// repaired is a file system in which pebble sees the MANIFEST, its markers and the file of its options as a
// repair would leave them. A check repairs nothing.
type repaired struct {
	vfs.FS
	e *examination
}

func (r repaired) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	// The name is empty while the MANIFEST is as it should be.
	if r.PathBase(name) == r.e.manifestName {
		return vfs.NewMemFile(r.e.manifest), nil
	}
	return r.FS.Open(name, opts...)
}

func (r repaired) List(dir string) ([]string, error) {
	names, err := r.FS.List(dir)
	names = slices.DeleteFunc(names, func(name string) bool { return name == r.e.unreadOptions })
	return append(names, r.e.markers...), err
}

func (c *checker) checkTables(ctx context.Context, tables []string, done func(tables, of int)) error {
	for i, name := range tables {
		if done != nil {
			done(i, len(tables))
		}
		if c.known[name] {
			continue
		}
		if err := c.checkTable(ctx, name); err != nil {
			return fmt.Errorf("cannot check table %s: %w", name, err)
		}
	}
	return nil
}

// checkTable reads one table, block by block.
func (c *checker) checkTable(ctx context.Context, name string) error {
	f, err := c.opts.FS.Open(c.opts.FS.PathJoin(c.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the directory was listed
	}
	if err != nil {
		return err
	}
	from, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	c.report.Tables++
	c.report.Bytes += from.Size()

	t := tableFile{name: name, from: from, grouping: c.opts.Grouping}
	options := c.opts.pebbleOptions(c.log())
	options.EnsureDefaults()
	// A table that does not open is a fault to report and no failure of the check.
	if t.reader, err = sstable.NewReader(ctx, from, options.MakeReaderOptions()); err != nil {
		t.addUnreadable(err)
		c.report.Faults = append(c.report.Faults, t.faults...)
		return from.Close() // NewReader leaves it open if it fails
	}
	err = t.checkBlocks(ctx)
	c.report.Faults = append(c.report.Faults, t.faults...)
	return errors.Join(err, t.reader.Close())
}

// tableFile is a table that is being checked.
type tableFile struct {
	name     string
	from     objstorage.Readable
	reader   *sstable.Reader
	grouping Grouping
	faults   []store.Fault
}

// addUnreadable adds the fault of a table in which nothing can be read.
func (t *tableFile) addUnreadable(err error) {
	t.faults = append(t.faults, store.Fault{
		Kind:   store.Unreadable,
		File:   t.name,
		Offset: -1,
		Bytes:  t.from.Size(),
		What:   fmt.Sprintf("damaged, nothing in it can be read (%v)", err),
	})
}

// addDamaged adds the fault of a damaged block.
func (t *tableFile) addDamaged(h sstblock.Handle, what string) {
	t.faults = append(t.faults, store.Fault{
		Kind:   store.Unreadable,
		File:   t.name,
		Offset: int64(h.Offset),
		Bytes:  int64(h.Length),
		What:   what,
	})
}

// checkBlocks reads all blocks, and adds a fault for each whose checksum is wrong.
func (t *tableFile) checkBlocks(ctx context.Context) error {
	l, err := t.reader.Layout()
	// Where nobody knows where the blocks are, none can be read.
	if err != nil {
		t.addUnreadable(err)
		return nil
	}

	for _, b := range l.Data {
		ok, err := t.checkBlock(ctx, b.Handle)
		if err != nil {
			return err
		}
		if !ok {
			t.addDamaged(b.Handle, "damaged block of rows")
		}
	}
	// So far all faults are in blocks of rows: what is read next has no times.
	if len(t.faults) > 0 {
		t.fillTimes()
	} else if err := t.checkColumns(ctx); err != nil {
		return err
	}

	rest := append(l.Index, l.TopIndex, l.RangeDel, l.RangeKey)
	rest = append(rest, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex)
	rest = append(rest, l.ValueBlock...)
	for _, b := range l.Filter {
		rest = append(rest, b.Handle)
	}
	for _, b := range rest {
		ok, err := t.checkBlock(ctx, b)
		if err != nil {
			return err
		}
		if !ok {
			t.addDamaged(b, "damaged block of an index, a filter or properties")
		}
	}
	// Reading a table's file ignores ctx, so a cancelled check ends here at the latest, between tables.
	return ctx.Err()
}

// checkColumns reads all sealed columns of a table whose blocks are as they were written, and adds a fault for each
// that is not.
func (t *tableFile) checkColumns(ctx context.Context) error {
	it, err := t.reader.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	var u encoding.Unsealer
	var entries []byte
	n := 0
	for kv := it.First(); kv != nil; kv = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return errors.Join(ctx.Err(), it.Close())
		}
		stored, _, err := kv.Value(nil)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if len(stored) > 0 && stored[0] == tagSealed {
			v, err := parseValue(stored)
			if err == nil {
				entries, err = v.entries(entries, &u)
			}
			if err != nil {
				t.addDamagedColumn(kv.K.UserKey, len(stored))
			}
		}
	}
	return it.Close()
}

func (t *tableFile) addDamagedColumn(key []byte, size int) {
	f := store.Fault{
		Kind:   store.Unreadable,
		File:   t.name,
		Offset: -1,
		Bytes:  int64(size),
		What:   fmt.Sprintf("damaged sealed column with key %v", keyFormat(key)),
	}
	times := rowTimes{grouping: t.grouping}
	times.addKey(key)
	times.fill(&f)
	t.faults = append(t.faults, f)
}

// checkBlock reports whether a block has the right checksum. One byte, the kind of its
// compression, follows a block, and then the checksum of both.
func (t *tableFile) checkBlock(ctx context.Context, h sstblock.Handle) (bool, error) {
	if h.Length == 0 { // the table has no block of this kind
		return true, ctx.Err()
	}
	b := make([]byte, h.Length+sstblock.TrailerLen)
	if err := t.from.ReadAt(ctx, b, int64(h.Offset)); err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint32(b[h.Length+1:]) == journal.Checksum(b[:h.Length+1]), nil
}

// fillTimes sets the times of all faults found so far, which must be damaged blocks
// of rows: from the last row that can be read before the first damaged block to the first row
// that can be read after the last one.
func (t *tableFile) fillTimes() {
	before, after := rowTimes{grouping: t.grouping}, rowTimes{grouping: t.grouping}
	it, err := t.reader.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		// The damaged blocks are reported without times then.
		return
	}
	defer it.Close()

	// An iterator stops at the first damaged block it meets, from either end.
	// A last key that stays empty has no time.
	var last []byte
	for kv := it.First(); kv != nil; kv = it.Next() {
		last = append(last[:0], kv.K.UserKey...)
	}
	before.addKey(last)
	last = last[:0]
	for kv := it.Last(); kv != nil; kv = it.Prev() {
		last = append(last[:0], kv.K.UserKey...)
	}
	after.addKey(last)

	for i := range t.faults {
		times := rowTimes{first: before.first, last: after.first}
		// The damage may reach to an end of the table, where no row has a time.
		if times.first == 0 || times.last == 0 {
			times.first, times.last = max(times.first, times.last), max(times.first, times.last)
		}
		// Rows are ordered by metric first: the later row may be of an earlier time.
		if times.first > times.last {
			times.first, times.last = times.last, times.first
		}
		times.fill(&t.faults[i])
	}
}
