package disk

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// markerName is the name of the marker on disk.
const markerName = "downpour-logs"

// Logs are the numbers of the first and the newest log that records were synced to
// since a database was opened; zeros if there is none.
type Logs struct{ First, Newest uint64 }

// ReadLogs reads the marker of a directory. Without one, as in databases of earlier
// versions, it returns zeros.
func ReadLogs(files vfs.FS, dir string) (Logs, error) {
	value, err := atomicfs.ReadMarker(files, dir, markerName)
	if err != nil || value == "" {
		return Logs{}, err
	}
	return parseLogs(value)
}

// WriteLogs writes the marker of a directory, durably.
func WriteLogs(files vfs.FS, dir string, l Logs) error {
	marker, _, err := atomicfs.LocateMarker(files, dir, markerName)
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(l.String()), marker.Close())
}

func parseLogs(value string) (l Logs, err error) {
	if _, err := fmt.Sscanf(value, "%d-%d", &l.First, &l.Newest); err != nil || l.First > l.Newest {
		return Logs{}, fmt.Errorf("cannot parse marker %s: got %q, want the numbers of two logs, as in 000014-000016", markerName, value)
	}
	return l, nil
}

func (l Logs) String() string { return fmt.Sprintf("%06d-%06d", l.First, l.Newest) }

// logMarker writes the marker.
type logMarker struct {
	mu     sync.Mutex
	marker *atomicfs.Marker
	logs   Logs // what was written since the database was opened
}

func openLogMarker(d *FS, dir string) (*logMarker, error) {
	marker, _, err := atomicfs.LocateMarker(d, dir, markerName)
	if err != nil {
		return nil, err
	}
	m := &logMarker{marker: marker}
	if err := marker.RemoveObsolete(); err != nil {
		return nil, errors.Join(err, marker.Close())
	}
	return m, nil
}

// synced is called when records were synced to a log for the first time. The marker
// says so, durably, when it returns.
func (m *logMarker) synced(number uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	logs := Logs{First: m.logs.First, Newest: max(m.logs.Newest, number)}
	// It is the first log since the database was opened.
	if logs.First == 0 {
		logs.First = number
	}
	if err := m.marker.Move(logs.String()); err != nil {
		return fmt.Errorf("cannot move marker %s to %v: %w", markerName, logs, err)
	}
	m.logs = logs
	return nil
}

func (m *logMarker) close() error { return m.marker.Close() }
