package pebble

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// checkpointPrefix begins the names of the directories that hold checkpoints.
const checkpointPrefix = "checkpoint-"

// Checkpoint is described by store.Features. Tables are links; MANIFEST and logs are
// copies.
func (s *Store) Checkpoint(ctx context.Context) (name string, remove func() error, err error) {
	if err := s.begin(ctx); err != nil {
		return "", nil, err
	}
	defer s.life.RUnlock()
	if err := s.checkSpace(); err != nil {
		return "", nil, err
	}

	for range checkpointTries {
		name, err = s.tryCheckpoint()
		if !errors.Is(err, errFlushed) {
			break
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("checkpoint: %w", err)
	}
	return name, func() error { return s.opts.FS.RemoveAll(s.opts.FS.PathJoin(s.dir, name)) }, nil
}

// errFlushed is returned for a checkpoint whose mark is in no log any more: that log is flushed
// already.
var errFlushed = errors.New("the mark of its beginning is in none of the logs")

// checkpointTries bounds how often a checkpoint is made because of errFlushed. Between mark
// and list of logs are some microseconds, and a flush takes milliseconds.
const checkpointTries = 20

// tryCheckpoint makes a checkpoint, or returns errFlushed.
func (s *Store) tryCheckpoint() (name string, err error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	name = checkpointPrefix + hex.EncodeToString(random)

	// The name is its mark in the log. All that is visible now comes before it, so a copy of the
	// logs that has it, and is whole up to there, has all that was acknowledged. Pebble copies
	// the newest log while it is written to, and nothing else would distinguish a copy that
	// was read between two writes from one that is damaged.
	if err := s.db.LogData([]byte(name), pebble.Sync); err != nil {
		return "", err
	}
	dir := s.opts.FS.PathJoin(s.dir, name)
	if err := s.db.Checkpoint(dir); err != nil { // removes what it has made
		return "", err
	}
	if err := completeCheckpoint(s.disk, dir, name, s.disk.Columns()); err != nil {
		return "", errors.Join(err, s.opts.FS.RemoveAll(dir))
	}
	return name, nil
}

// completeCheckpoint makes a data directory of what pebble has written to dir: it cuts the
// newest log behind its last whole record, and adds what package disk would have added. The
// record that has the mark, and everything before it, must be there. columns says whether there may be sealed columns
// in it: it is found out after pebble has written, since the store may have got its first one by then.
func completeCheckpoint(files vfs.FS, dir, mark string, columns bool) error {
	manifest, err := atomicfs.ReadMarker(files, dir, "manifest")
	if err != nil {
		return err
	}
	data, err := readFile(files, files.PathJoin(dir, manifest))
	if err != nil {
		return err
	}
	edits := journal.Manifest(data)
	if len(edits.Records) == 0 || len(edits.Holes) > 0 || edits.Torn > 0 {
		return fmt.Errorf("%w: %s cannot be read", store.ErrDamaged, manifest)
	}
	if err := writeFile(files, files.PathJoin(dir, disk.CopyOf(manifest)), data); err != nil {
		return err
	}

	names, err := files.List(dir)
	if err != nil {
		return err
	}
	e := &examination{files: files, dir: dir, names: names}
	from := firstUnflushedLog(edits.Records)
	// Pebble copies some logs that are flushed, too.
	for _, n := range e.logNumbers(0) {
		if n < from {
			if err := files.Remove(files.PathJoin(dir, disk.LogName(n))); err != nil {
				return err
			}
		}
	}
	return completeLogs(files, dir, e.logNumbers(from), mark, columns)
}

// completeLogs rewrites the logs of the given numbers, without what is not whole at the end
// of the last one, and writes the marker that names them.
func completeLogs(files vfs.FS, dir string, numbers []uint64, mark string, columns bool) error {
	marked := false
	named := disk.Logs{Columns: columns}
	for i, number := range numbers {
		path := files.PathJoin(dir, disk.LogName(number))
		data, err := readFile(files, path)
		if err != nil {
			return err
		}
		r := journal.Log(data, number)
		records, hole := r.Records, int64(-1)
		if len(r.Holes) > 0 {
			hole = r.Holes[0].Start
			records = records[:countBefore(records, hole)]
		}
		marked = marked || slices.ContainsFunc(records, func(r journal.Record) bool {
			return bytes.Contains(r.Data, []byte(mark))
		})

		// A log that another one follows was closed before, and the last one was whole up to
		// the mark before it was copied.
		last := i == len(numbers)-1
		if hole >= 0 && (!last || !marked) || !last && !r.Closed {
			return fmt.Errorf("%w: log %s cannot be read at offset %d",
				store.ErrDamaged, disk.LogName(number), max(hole, r.End))
		}
		// A log without records need not be there.
		if len(records) == 0 {
			if err := files.Remove(path); err != nil {
				return err
			}
			continue
		}
		if err := writeFile(files, path, journal.AppendLog(nil, number, records)); err != nil {
			return err
		}
		if named.Newest = number; named.First == 0 {
			named.First = number
		}
	}
	if !marked { //fault:checkpoint-without-its-mark TestCompleteLogs
		return errFlushed
	}
	return disk.WriteLogs(files, dir, named)
}

// removeCheckpoints removes the checkpoints that a killed process has left in a data
// directory.
func removeCheckpoints(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	for _, name := range names {
		if strings.HasPrefix(name, checkpointPrefix) {
			err = errors.Join(err, files.RemoveAll(files.PathJoin(dir, name)))
		}
	}
	return err
}

// readFile returns the content of a file.
func readFile(files vfs.FS, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// writeFile writes a file and waits until its bytes, but not yet its name, are on the disk.
func writeFile(files vfs.FS, path string, data []byte) error {
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Clone(data)) // a file may change what it is given
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
