package pebble

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// Store is one embedded database. It implements store.Store.
type Store struct {
	db          *pebble.DB
	lock        *pebble.Lock
	dir         string
	disk        *disk.FS
	opts        Options
	log         fatalLogger
	early       *earlyFlush
	compactions *schedule

	life    sync.RWMutex // held for reading by every call, for writing by Close
	closing atomic.Bool  // set by Close before it waits for calls in progress
	closed  bool
	trouble trouble
	staging sync.WaitGroup // waits for the disk on behalf of staged operations

	// change is held for reading while a batch becomes visible, and for writing
	// while an atomic operation reads a cell and writes it. Nobody waits for the
	// disk while holding it.
	change sync.RWMutex

	tables   tables
	scanners scanners
	watches  watches
	changes  *changes
	marks    marks
}

// Open opens the database in dir, and makes it if there is none; the directory then
// belongs to its user alone (0700). Open returns store.ErrLocked for a directory that
// is open already, in this process or another one, store.ErrFull if the disk is full,
// and a *store.DamageError for a database that has lost data, unless opts.Salvage is
// set. The end of a log that a crash may have torn is left out, and logged.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := makeDir(opts.FS, dir); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return nil, err
	}

	if err := errors.Join(endRestore(opts.FS, dir), removeCheckpoints(opts.FS, dir)); err != nil {
		return nil, errors.Join(err, lock.Close())
	}

	s := &Store{lock: lock, dir: dir, opts: opts, changes: newChanges(opts.Grouping)}
	s.log = fatalLogger{opts.Logger, dir, opts.Exit}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, err), lock.Close())
	}
	return s, nil
}

// start opens the database under the lock that s holds.
func (s *Store) start() error {
	keep, err := s.recover()
	if err != nil {
		return err
	}

	s.disk, err = disk.New(disk.Config{
		FS:         s.opts.FS,
		Dir:        s.dir,
		Keep:       keep,
		Fatal:      s.log.Fatalf,
		OnFull:     s.logNoSpace,
		SpaceAgain: s.logSpaceAgain,
	})
	if err != nil {
		return err
	}
	s.fitMemTables()
	s.early = newEarlyFlush(s.opts.IdleFlush, s.flushEarly)
	s.compactions = newSchedule(compactionPauses * s.opts.IdleFlush)
	if s.db, err = s.openPebble(); err != nil {
		return errors.Join(err, s.disk.Close())
	}
	// While the database opened, a log that failed was an error; from now on it ends the process.
	s.disk.SetServing(true)

	// Tables that can be read are worth more than none: a damaged catalogue does
	// not keep the store from opening.
	if err := s.tables.load(s.db); err != nil {
		if !errors.Is(err, store.ErrDamaged) {
			return errors.Join(err, s.db.Close(), s.disk.Close())
		}
		s.log.Errorf("the table of tables cannot be read, every table is taken to be there: %v", err)
	}
	if err := s.loadMarks(); err != nil {
		return errors.Join(err, s.db.Close(), s.disk.Close())
	}
	return nil
}

// begin starts a call, which ends with s.life.RUnlock. It returns store.ErrClosed once
// Close was called, and the error of a context that has ended.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// While Close waits for the lock, a call that requested it would wait behind Close.
	if s.closing.Load() {
		return store.ErrClosed
	}

	s.life.RLock()
	// Close may have had the lock since closing was looked at.
	if s.closed {
		s.life.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// Flush writes memtables to tables, which joins the appends in them. Nobody has to
// call it: the store flushes by itself when writing pauses.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()

	done, err := s.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("flush: %w", ctx.Err())
	}
}

// makeDir makes dir and its missing parents, for their user alone, and syncs each
// parent: a crash could otherwise remove a directory that holds acknowledged points.
func makeDir(files vfs.FS, dir string) error {
	if _, err := files.Stat(dir); err == nil {
		return nil
	}
	parent := files.PathDir(dir)
	// The root, and the working directory, need not be made.
	if parent == dir {
		return nil
	}

	if err := makeDir(files, parent); err != nil {
		return err
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(files, parent)
}

// syncDir makes the entries of dir durable.
func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
