package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	sstblock "github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

// Check reads all files of the database in dir and tells what is wrong with
// them. It changes nothing. A database that is open gives store.ErrLocked; done,
// if not nil, is told how many of how many tables are read.
func Check(ctx context.Context, dir string, opts Options, done func(tables, of int)) (report store.CheckReport, err error) {
	opts = opts.withDefaults()
	if _, err := opts.FS.Stat(dir); err != nil {
		return report, err
	}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return report, err
	}
	c := checker{opts: opts, dir: dir, lock: lock, report: &report}
	err = errors.Join(c.run(ctx, done), lock.Close())
	return report, err
}

// checker is one check.
type checker struct {
	opts   Options
	dir    string
	lock   *pebble.Lock
	report *store.CheckReport
}

func (c *checker) run(ctx context.Context, done func(tables, of int)) error {
	e, err := examine(c.opts.FS, c.dir, c.opts.Head)
	if err != nil {
		return err
	}
	e.options(c.opts.engine(c.log()))
	c.report.Logs, c.report.Bytes = e.logs, e.bytes
	for _, f := range e.found {
		if f.What != "" {
			c.report.Faults = append(c.report.Faults, f.Fault)
		}
	}
	tables := tablesOf(e.names)
	if len(e.of(store.Lost)) == 0 && !e.blind { // otherwise pebble does not open it, or would take it for a new one
		if tables, err = c.open(e, tables); err != nil {
			return err
		}
	}
	return c.tables(ctx, tables, done)
}

func (c *checker) log() fatalLogger { return fatalLogger{c.opts.Logger, c.dir, c.opts.Exit} }

// open opens the database to be read, which looks for tables that are missing.
// It returns those that are in use: what a kill leaves of a table that was being
// written is none of them, and pebble removes it at its next start. If there is
// no telling, they are the tables given, which are all.
func (c *checker) open(e *examination, tables []string) ([]string, error) {
	p := c.opts.engine(c.log())
	p.FS, p.Lock, p.ReadOnly = c.opts.FS, c.lock, true
	if e.whole != nil {
		p.FS = replaced{c.opts.FS, e.wholeOf, e.whole}
	}
	db, err := pebble.Open(c.dir, p)
	if err == nil {
		levels, err := db.SSTables()
		return inUse(tables, levels), errors.Join(err, db.Close())
	}
	faults := inconsistent(err)
	if len(faults) == 0 {
		return nil, err
	}
	c.report.Faults = append(c.report.Faults, faults...)
	return tables, nil
}

// inUse are those of tables that are in levels.
func inUse(tables []string, levels [][]pebble.SSTableInfo) []string {
	used := map[string]bool{}
	for _, level := range levels {
		for _, t := range level {
			used[t.BackingSSTNum.String()+".sst"] = true
		}
	}
	return slices.DeleteFunc(tables, func(name string) bool { return !used[name] })
}

// tablesOf are the tables among the names of files.
func tablesOf(names []string) (tables []string) {
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			tables = append(tables, name)
		}
	}
	return tables
}

// replaced is a file system in which one file has other bytes.
type replaced struct {
	vfs.FS
	name string
	data []byte
}

func (r replaced) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if r.PathBase(name) == r.name {
		return vfs.NewMemFile(r.data), nil
	}
	return r.FS.Open(name, opts...)
}

// tables reads tables whole.
func (c *checker) tables(ctx context.Context, tables []string, done func(tables, of int)) error {
	for i, name := range tables {
		if done != nil {
			done(i, len(tables))
		}
		if err := c.table(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// table reads one table, block by block.
func (c *checker) table(ctx context.Context, name string) error {
	f, err := c.opts.FS.Open(c.opts.FS.PathJoin(c.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
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
	t := tableFile{name: name, from: from, head: c.opts.Head}
	options := c.opts.engine(c.log())
	options.EnsureDefaults()
	if t.reader, err = sstable.NewReader(ctx, from, options.MakeReaderOptions()); err != nil {
		t.whole(err)
		c.report.Faults = append(c.report.Faults, t.faults...)
		return from.Close()
	}
	err = t.blocks(ctx)
	c.report.Faults = append(c.report.Faults, t.faults...)
	return errors.Join(err, t.reader.Close())
}

// tableFile is a table being read.
type tableFile struct {
	name   string
	from   objstorage.Readable
	reader *sstable.Reader
	head   int
	faults []store.Fault
}

// whole notes that nothing in the table can be read.
func (t *tableFile) whole(err error) {
	t.faults = append(t.faults, store.Fault{Kind: store.Unreadable, File: t.name, Offset: -1, Bytes: t.from.Size(), What: fmt.Sprintf("damaged, nothing in it can be read (%v)", err)})
}

// blocks compares the checksums of all blocks.
func (t *tableFile) blocks(ctx context.Context) error {
	l, err := t.reader.Layout()
	if err != nil {
		t.whole(err)
		return nil
	}
	damaged := 0
	for _, b := range l.Data {
		ok, err := t.block(ctx, b.Handle)
		if err != nil {
			return err
		}
		if !ok {
			damaged++
			t.faults = append(t.faults, store.Fault{Kind: store.Unreadable, File: t.name, Offset: int64(b.Offset), Bytes: int64(b.Length), What: "damaged block of rows"})
		}
	}
	if damaged > 0 {
		t.hours()
	}
	rest := append(l.Index, l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex)
	rest = append(rest, l.ValueBlock...)
	for _, b := range l.Filter {
		rest = append(rest, b.Handle)
	}
	for _, b := range rest {
		ok, err := t.block(ctx, b)
		if err != nil {
			return err
		}
		if !ok {
			t.faults = append(t.faults, store.Fault{Kind: store.Unreadable, File: t.name, Offset: int64(b.Offset), Bytes: int64(b.Length), What: "damaged block of an index, a filter or properties"})
		}
	}
	return ctx.Err()
}

// block tells whether a block's checksum is right. It is of the block and the
// byte behind it, and stands behind that.
func (t *tableFile) block(ctx context.Context, h sstblock.Handle) (bool, error) {
	if h.Length == 0 {
		return true, ctx.Err()
	}
	b := make([]byte, h.Length+sstblock.TrailerLen)
	if err := t.from.ReadAt(ctx, b, int64(h.Offset)); err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint32(b[h.Length+1:]) == journal.Checksum(b[:h.Length+1]), nil
}

// hours tells of which hours the rows of damaged blocks are: between the last
// that can be read before the first of them and the first behind the last.
func (t *tableFile) hours() {
	before, behind := hours{head: t.head}, hours{head: t.head}
	it, err := t.reader.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return
	}
	defer it.Close()
	var last []byte
	for kv := it.First(); kv != nil; kv = it.Next() {
		last = append(last[:0], kv.K.UserKey...)
	}
	before.key(last)
	last = last[:0]
	for kv := it.Last(); kv != nil; kv = it.Prev() {
		last = append(last[:0], kv.K.UserKey...)
	}
	behind.key(last)
	for i := range t.faults {
		h := hours{first: before.first, last: behind.first}
		if h.first == 0 || h.last == 0 {
			h.first, h.last = max(h.first, h.last), max(h.first, h.last)
		}
		if h.first > h.last {
			h.first, h.last = h.last, h.first // of two metrics
		}
		h.tell(&t.faults[i])
	}
}
