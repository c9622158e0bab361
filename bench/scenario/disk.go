package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"downpour/bench/place"
	"downpour/bench/workload"
)

// compactedBytes returns the size of the files that a major compaction has written
// under a table's directory. They are the newest of each region and family: the files
// that the compaction has read stay there for some minutes.
func compactedBytes(table string) (sum int64, err error) {
	families, err := filepath.Glob(filepath.Join(table, "*", "t"))
	if err != nil {
		return 0, err
	}
	for _, dir := range families {
		size, err := newestBytes(dir)
		if err != nil {
			return 0, err
		}
		sum += size
	}

	if sum == 0 {
		return 0, fmt.Errorf("%s: no compacted file of family t", table)
	}
	return sum, nil
}

// newestBytes returns the size of the newest store file of a family, 0 if it has none.
func newestBytes(dir string) (size int64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}

	var newest time.Time
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed after the directory was read
		}
		if err != nil {
			return 0, err
		}
		// Hidden files are checksums.
		if info.Mode().IsRegular() && !strings.HasPrefix(f.Name(), ".") && info.ModTime().After(newest) {
			newest, size = info.ModTime(), info.Size()
		}
	}

	return size, nil
}

// treeBytes returns the size of all files under a directory.
func treeBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed after its directory was read
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}

		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}

// tableBytes returns the bytes of the data table's files after a major compaction.
func (s *stage) tableBytes(at *place.Place) (int64, error) {
	return compactedBytes(filepath.Join(s.maker.HBase.Dir(), "root", "data", "default", at.Tables.Data))
}

// bytesStored compares what a point takes on disk: in HBase, in rows compacted as by
// OpenTSDB, and in the embedded store once that has come to rest.
func bytesStored(ctx context.Context, s *stage) error {
	// The bytes in HBase are measured when the tables are filled, usually by an earlier group.
	if s.hbaseBytes == 0 {
		if err := s.use(ctx); err != nil {
			return err
		}
	}

	d := s.cfg.dataAt(s.group.scale)
	at, err := s.maker.Embedded()
	if err != nil {
		return err
	}
	defer at.Drop()
	server, err := s.sideAt(ctx, at, ours)
	if err != nil {
		return err
	}
	c := s.sending(server, d, workload.Telnet)
	if _, err := c.Send(ctx, c.Stream()); err != nil {
		return err
	}
	size, err := quiet(ctx, filepath.Join(at.Dir, "data"))
	if err != nil {
		return err
	}

	s.cfg.add(s.amounts("bytes", "bytes stored per point, embedded, at rest", "OpenTSDB compacted, HBase files", 1,
		float64(size)/float64(d.Points()), s.hbaseBytes, inBytes))
	return nil
}

// inBytes writes the bytes of a point.
func inBytes(x float64) string { return fmt.Sprintf("%.2f B", x) }

// quiet waits until the size of a directory has not changed for some seconds, and
// returns it.
func quiet(ctx context.Context, dir string) (size int64, err error) {
	const still, patience = 8 * time.Second, 90 * time.Second
	end, since := time.Now().Add(patience), time.Now()
	if size, err = treeBytes(dir); err != nil {
		return 0, err
	}

	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < still {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}

		now, err := treeBytes(dir)
		if err != nil {
			return 0, err
		}
		if now != size {
			size, since = now, time.Now()
		}

		if time.Now().After(end) {
			return 0, errors.New("the embedded store did not come to rest within " + patience.String())
		}
	}

	return size, nil
}
