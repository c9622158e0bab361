package disk

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// markName is the name of the marker on disk.
const markName = "downpour-logs"

// Logs are the numbers of the first and the newest log that records were synced
// to since a database was opened; 0 for none.
type Logs struct{ First, Newest uint64 }

// ReadLogs returns what the marker of a directory says. Zeros say that there is
// none, as in what earlier versions have written.
func ReadLogs(files vfs.FS, dir string) (Logs, error) {
	value, err := atomicfs.ReadMarker(files, dir, markName)
	if err != nil || value == "" {
		return Logs{}, err
	}
	return parseLogs(value)
}

func parseLogs(value string) (l Logs, err error) {
	if _, err := fmt.Sscanf(value, "%d-%d", &l.First, &l.Newest); err != nil || l.First > l.Newest {
		return Logs{}, fmt.Errorf("marker %s: got %q, want the numbers of two logs, as in 000014-000016", markName, value)
	}
	return l, nil
}

func (l Logs) String() string { return fmt.Sprintf("%06d-%06d", l.First, l.Newest) }

// marks keeps the marker.
type marks struct {
	mu     sync.Mutex
	marker *atomicfs.Marker
	now    Logs // of this opening
}

func openMarks(d *FS, dir string) (*marks, error) {
	marker, _, err := atomicfs.LocateMarker(d, dir, markName)
	if err != nil {
		return nil, err
	}
	m := &marks{marker: marker}
	if err := marker.RemoveObsolete(); err != nil {
		return nil, errors.Join(err, marker.Close())
	}
	return m, nil
}

// synced notes that records were synced to a log for the first time.
func (m *marks) synced(number uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := Logs{First: m.now.First, Newest: max(m.now.Newest, number)}
	if now.First == 0 {
		now.First = number
	}
	if err := m.marker.Move(now.String()); err != nil {
		return fmt.Errorf("marker %s: %w", markName, err)
	}
	m.now = now
	return nil
}

// Forget makes the marker say that no log need exist.
func (d *FS) Forget() error {
	d.marks.mu.Lock()
	defer d.marks.mu.Unlock()
	return d.marks.marker.Move(Logs{}.String())
}

func (m *marks) close() error { return m.marker.Close() }
