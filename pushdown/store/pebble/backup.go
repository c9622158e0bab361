package pebble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// Beginnings of the names of backups that are not complete, because they are being written
// or removed.
const (
	unfinishedPrefix = "unfinished-"
	removingPrefix   = "removing-"
)

// Backup says what to back up, and where.
type Backup struct {
	// Store is the data directory, and Checkpoint the name of a checkpoint in it.
	Store, Checkpoint string
	// To is a directory for backups. It is made if it is not there, for its user alone.
	To string
	// Keep is how many backups stay in To, this one included; 0: all.
	Keep int
	// Done, if not nil, is called with the number of files that are done, and of all.
	Done func(files, of int)
}

// BackUp makes a backup of a checkpoint: a directory in b.To, named by the time, that is a
// data directory itself. Tables are links where that can be done, to the store or to the
// newest backup in b.To, or else are copied. Each table that is new in b.To is read, and each
// of its blocks is checked. Until the backup is complete and on the disk it has another name;
// an attempt that fails, or a crash, leaves the backups that there are as they were.
//
// Errors: store.ErrFull; *store.DamageError for a checkpoint that is damaged.
func BackUp(ctx context.Context, b Backup, opts Options) (store.BackupReport, error) {
	opts = opts.withDefaults()
	if err := b.checkPlace(opts.FS); err != nil {
		return store.BackupReport{}, err
	}
	if _, err := opts.FS.Stat(opts.FS.PathJoin(b.Store, b.Checkpoint)); err != nil {
		return store.BackupReport{}, fmt.Errorf(
			"the checkpoint is not in the data directory %s; the gateway that made it has another one, "+
				"or is on another machine: %w",
			b.Store, err)
	}
	if err := makeDir(opts.FS, b.To); err != nil {
		return store.BackupReport{}, fmt.Errorf("directory of backups %s: %w", b.To, err)
	}
	lock, err := lockFile(opts.FS, b.To)
	if errors.Is(err, store.ErrLocked) {
		return store.BackupReport{}, fmt.Errorf("directory of backups %s: another backup is being written there", b.To)
	}
	if err != nil {
		return store.BackupReport{}, fmt.Errorf("directory of backups %s: %w", b.To, err)
	}

	w := backupWriter{Backup: b, opts: opts, files: opts.FS, from: opts.FS.PathJoin(b.Store, b.Checkpoint)}
	err = w.run(ctx)
	if disk.IsFull(err) {
		err = fmt.Errorf("%w for the backup: %w", store.ErrFull, err)
	}
	if err != nil {
		err = fmt.Errorf("directory of backups %s: %w", b.To, err)
	}
	return w.report, errors.Join(err, lock.Close())
}

// checkPlace refuses a place inside of the store, which a restore would have to overwrite,
// and a checkpoint that is none.
func (b *Backup) checkPlace(files vfs.FS) error {
	if !strings.HasPrefix(b.Checkpoint, checkpointPrefix) || strings.ContainsAny(b.Checkpoint, `/\`) {
		return fmt.Errorf("checkpoint: got %q, want the name of a directory that begins with %s",
			b.Checkpoint, checkpointPrefix)
	}
	to, err := resolve(files, b.To)
	if err != nil {
		return err
	}
	dir, err := resolve(files, b.Store)
	if err != nil {
		return err
	}
	if to == dir || strings.HasPrefix(to, dir+string(filepath.Separator)) {
		return fmt.Errorf("directory of backups %s: it lies in the data directory %s, want it elsewhere", b.To, b.Store)
	}
	return nil
}

// resolve returns the absolute path without symbolic links of a directory that need not be
// there yet.
func resolve(files vfs.FS, dir string) (string, error) {
	if files != vfs.Default { // a test's, which has no links
		return filepath.Clean(dir), nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		// A link to nothing is there itself.
		if _, e := os.Lstat(dir); !errors.Is(e, fs.ErrNotExist) {
			return "", fmt.Errorf("%s: %w", dir, err)
		}
		dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest)
	}
}

// backupWriter writes one backup.
type backupWriter struct {
	Backup
	opts  Options
	files vfs.FS
	from  string // the checkpoint

	name   string // of the backup
	dir    string // where it is while it is not complete
	before string // the newest backup there is, "" for none
	// old are the files of that one, by name.
	old    map[string]backupFile
	list   backupList
	known  map[string]bool // tables that were checked for an earlier backup
	report store.BackupReport
	buffer []byte
}

// run writes the backup. What it leaves if it fails, the next one removes.
func (w *backupWriter) run(ctx context.Context) error {
	if err := w.clear(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	err := w.fill(ctx)
	if err == nil {
		err = w.check(ctx)
	}
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		return errors.Join(err, w.files.RemoveAll(w.dir))
	}
	return w.removeOld()
}

// clear removes what backups that were not completed, or not removed, have left.
func (w *backupWriter) clear() error {
	names, err := w.files.List(w.To)
	for _, name := range names {
		if strings.HasPrefix(name, unfinishedPrefix) || strings.HasPrefix(name, removingPrefix) {
			err = errors.Join(err, w.files.RemoveAll(w.files.PathJoin(w.To, name)))
		}
	}
	return err
}

// begin looks for the newest backup there is, and makes the directory of the new one.
func (w *backupWriter) begin() error {
	names, err := backupsIn(w.files, w.To)
	if err != nil {
		return err
	}
	now := w.opts.Now().UTC().Truncate(time.Millisecond)
	if len(names) > 0 {
		newest := names[len(names)-1]
		// The newest is the last by name, also where the clock was set back.
		if last, err := time.Parse(backupName, newest); err == nil && !now.After(last) {
			now = last.Add(time.Millisecond)
		}
	}
	w.readNewest(names)

	w.name = now.Format(backupName)
	w.dir = w.files.PathJoin(w.To, unfinishedPrefix+w.name)
	w.list = backupList{Format: listFormat, Taken: now}
	logs, err := disk.ReadLogs(w.files, w.from)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if logs.Columns {
		w.list.Format = listFormatColumns //fault:backup-of-columns-as-before TestSeal_backup
	}
	w.report.Path = w.files.PathJoin(w.To, w.name)
	return w.files.MkdirAll(w.dir, 0o700)
}

// readNewest reads the list of the newest of the backups that there are. Of one that cannot be read
// nothing is taken over.
func (w *backupWriter) readNewest(names []string) {
	if len(names) == 0 {
		return
	}
	newest := w.files.PathJoin(w.To, names[len(names)-1])
	if l, err := readList(w.files, newest); err == nil {
		w.before, w.old = newest, map[string]backupFile{}
		for _, f := range l.Files {
			w.old[f.Name] = f
		}
	}
}

// fill puts all files into the directory of the backup.
func (w *backupWriter) fill(ctx context.Context) error {
	names, err := w.files.List(w.from)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	slices.Sort(names)
	w.known = map[string]bool{}
	for i, name := range names {
		if w.Done != nil {
			w.Done(i, len(names))
		}
		if !isStoreFile(name) {
			continue
		}
		f, err := w.add(ctx, name)
		if err != nil {
			return err
		}
		w.list.Files = append(w.list.Files, f)
		w.report.Files++
		w.report.Bytes += f.Bytes
	}
	return nil
}

// add puts one file into the backup.
func (w *backupWriter) add(ctx context.Context, name string) (f backupFile, err error) {
	from, to := w.files.PathJoin(w.from, name), w.files.PathJoin(w.dir, name)
	info, err := w.files.Stat(from)
	if err != nil {
		return f, fmt.Errorf("checkpoint: %w", err)
	}
	f.Name = name
	f.origin, f.Bytes = originOf(info)

	// Only tables are never written to again.
	if strings.HasSuffix(name, ".sst") {
		old, ok := w.old[name]
		same := ok && old.Bytes == f.Bytes && old.origin == f.origin
		linked := w.files.Link(from, to) == nil
		if same && (linked || w.files.Link(w.files.PathJoin(w.before, name), to) == nil) {
			f.SHA256, w.known[name] = old.SHA256, true
		}
		if linked {
			w.report.Linked++
		}
		if linked && f.SHA256 == "" {
			f.SHA256, _, err = w.read(ctx, from, nil)
		}
	}
	if f.SHA256 == "" && err == nil {
		f.SHA256, err = w.copy(ctx, from, to, f.Bytes)
	}
	if !w.known[name] {
		w.report.New++
		w.report.NewBytes += f.Bytes
	}
	return f, err
}

// copy copies a file of the checkpoint.
func (w *backupWriter) copy(ctx context.Context, from, to string, size int64) (sum string, err error) {
	dst, err := w.files.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", err
	}
	sum, n, err := w.read(ctx, from, dst)
	if err == nil {
		err = dst.Sync()
	}
	if err == nil && n != size {
		err = fmt.Errorf("%s: %d bytes were read, want %d", from, n, size)
	}
	return sum, errors.Join(err, dst.Close())
}

// read reads a file, writes it to another unless that is nil, and returns its checksum.
func (w *backupWriter) read(ctx context.Context, name string, to io.Writer) (sum string, n int64, err error) {
	if w.buffer == nil {
		w.buffer = make([]byte, 1<<20)
	}
	f, err := w.files.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return "", 0, err
	}
	sum, n, err = digest(ctx, f, to, w.buffer)
	return sum, n, errors.Join(err, f.Close())
}

// digest reads all of a file, writes it to another unless that is nil, and returns its
// checksum in hex and its size.
func digest(ctx context.Context, from io.Reader, to io.Writer, buffer []byte) (sum string, n int64, err error) {
	hash := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", n, err
		}
		k, err := from.Read(buffer)
		n += int64(k)
		hash.Write(buffer[:k])
		if k > 0 && to != nil {
			if _, err := to.Write(buffer[:k]); err != nil {
				return "", n, err
			}
		}
		if err == io.EOF {
			return hex.EncodeToString(hash.Sum(nil)), n, nil
		}
		if err != nil {
			return "", n, err
		}
	}
}

// check reads the new tables of the backup, and its journals.
func (w *backupWriter) check(ctx context.Context) error {
	report, err := checkFiles(ctx, w.dir, w.opts, w.known, nil)
	if err == nil && len(report.Faults) > 0 {
		err = fmt.Errorf("no backup is made, because something is damaged: %w",
			&store.DamageError{Faults: report.Faults})
	}
	return err
}

// commit makes the backup durable and gives it its name.
func (w *backupWriter) commit() error {
	if err := w.list.write(w.files, w.dir); err != nil {
		return err
	}
	if err := syncDir(w.files, w.dir); err != nil {
		return err
	}
	if err := w.files.Rename(w.dir, w.report.Path); err != nil {
		return err
	}
	return syncDir(w.files, w.To)
}

// removeOld removes the oldest backups and leaves w.Keep. Each loses its name first, so that
// half a backup never has one.
func (w *backupWriter) removeOld() error {
	if w.Keep == 0 {
		return nil
	}
	names, err := backupsIn(w.files, w.To)
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-w.Keep)] {
		path := w.files.PathJoin(w.To, name)
		// Only what a backup has made is removed.
		if _, err := w.files.Stat(w.files.PathJoin(path, listName)); err != nil {
			continue
		}
		removing := w.files.PathJoin(w.To, removingPrefix+name)
		if err := w.files.Rename(path, removing); err != nil {
			return err
		}
		if err := errors.Join(syncDir(w.files, w.To), w.files.RemoveAll(removing)); err != nil {
			return err
		}
		w.report.Removed = append(w.report.Removed, path)
	}
	return nil
}
