package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Store is one embedded database. It implements store.Store and store.Admin.
type Store struct {
	db   *pebble.DB
	lock *pebble.Lock
	opts Options
	log  fatalLogger
	idle *idleFlush

	life   sync.RWMutex // held for reading by every call, for writing by Close
	closed bool
	later  sync.WaitGroup // waits for the disk that nobody else waits for

	// change is held for reading while a batch becomes visible, for writing
	// while an atomic operation reads a cell and writes it. Nobody holds it
	// while waiting for the disk.
	change sync.RWMutex

	tables   tables
	scanners scanners
	watches  watches
	changes  *changes
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Admin = (*Store)(nil)
)

// Open opens the database in dir, and makes it if there is none: the directory
// belongs to its user alone (0700). A directory that another process, or
// another Store of this one, has open gives store.ErrLocked with dir's name.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := makeDir(opts.FS, dir); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, opts: opts, log: fatalLogger{opts.Logger, dir, opts.Exit}, changes: newChanges(opts.Head)}
	if err := s.start(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, err), lock.Close())
	}
	return s, nil
}

// start opens the database under the lock that s holds.
func (s *Store) start(dir string) error {
	s.idle = newIdleFlush(s.opts.IdleFlush, s.flushIdle)
	p := s.opts.engine(s.log)
	p.Lock = s.lock
	p.EventListener = s.events()
	db, err := pebble.Open(dir, p)
	if err != nil {
		return err
	}
	s.db = db
	if err := s.tables.load(db); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// events listens to pebble. A corrupt block is an error of the call that meets
// it, not the end of the process.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) { s.log.Errorf("background work: %v", err) },
		DataCorruption:  func(i pebble.DataCorruptionInfo) { s.log.Errorf("corrupt data: %v", i) },
		WALCreated:      func(pebble.WALCreateInfo) { s.idle.rotated() },
	}
}

// begin starts a call; the caller ends it by releasing s.life.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// Close waits for the calls in progress, ends every scan and closes the files.
// Closing again does nothing.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.idle.stop()
	s.later.Wait()
	return errors.Join(s.scanners.end(), s.db.Close(), s.lock.Close())
}

// Flush writes memtables to tables, which joins the appends that lie in them.
// Nobody has to call it: the store flushes by itself when writing pauses.
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

// makeDir makes dir and its missing parents, for their user alone, and syncs
// each parent, so that a crash leaves no acknowledged point in a lost folder.
func makeDir(files vfs.FS, dir string) error {
	if _, err := files.Stat(dir); err == nil {
		return nil
	}
	parent := files.PathDir(dir)
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

// lockDir takes the directory's lock and tells a lock held elsewhere from a
// file that cannot be made.
func lockDir(files vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, files)
	if err == nil {
		return lock, nil
	}
	var path *fs.PathError
	held := !errors.As(err, &path) && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES))
	if held || strings.Contains(err.Error(), "lock held by current process") {
		return nil, fmt.Errorf("data directory %s: %w (%w)", dir, store.ErrLocked, err)
	}
	return nil, fmt.Errorf("data directory %s: %w", dir, err)
}
