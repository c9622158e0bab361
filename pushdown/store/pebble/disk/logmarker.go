package disk

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// markerName is the name of the marker on disk.
const markerName = "downpour-logs"

// columnsName begins the marker of a database that may have sealed columns. A release that does not know them cannot
// parse such a marker, and says so when it opens, checks or salvages the database: 0.1.0 wants a number there.
const columnsName = "columns.v1-"

// Logs are the numbers of the first and the newest log that records were synced to
// since a database was opened; zeros if there is none. Columns says that the database may have sealed columns.
type Logs struct {
	First, Newest uint64
	Columns       bool
}

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
	numbers, columns := strings.CutPrefix(value, columnsName)
	l.Columns = columns
	if _, err := fmt.Sscanf(numbers, "%d-%d", &l.First, &l.Newest); err != nil || l.First > l.Newest {
		return Logs{}, fmt.Errorf("cannot parse marker %s: got %q, want the numbers of two logs, "+
			"as in 000014-000016 or %s000014-000016; is it of a later version?",
			markerName, value, columnsName)
	}
	return l, nil
}

func (l Logs) String() string {
	name := ""
	if l.Columns {
		name = columnsName
	}
	return fmt.Sprintf("%s%06d-%06d", name, l.First, l.Newest)
}

// logMarker writes the marker.
type logMarker struct {
	mu     sync.Mutex
	marker *atomicfs.Marker
	before Logs // what the marker said when the database was opened
	// logs are those since then: zeros before the first. Columns holds from the start.
	logs Logs
}

// openLogMarker opens the marker of a directory, which need not exist yet, and removes what an interrupted
// move has left of earlier ones. It fails if the marker is of a later version.
func openLogMarker(d *FS, dir string) (*logMarker, error) {
	marker, value, err := atomicfs.LocateMarker(d, dir, markerName)
	if err != nil {
		return nil, err
	}

	m := &logMarker{marker: marker}
	var wrongValue error
	if value != "" {
		m.before, wrongValue = parseLogs(value)
	}
	m.logs.Columns = m.before.Columns
	if err := errors.Join(wrongValue, marker.RemoveObsolete()); err != nil {
		return nil, errors.Join(err, marker.Close())
	}
	return m, nil
}

// synced is called when records were synced to a log for the first time. The marker
// says so, durably, when it returns.
func (m *logMarker) synced(number uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	logs := Logs{First: m.logs.First, Newest: max(m.logs.Newest, number), Columns: m.logs.Columns}
	// It is the first log since the database was opened.
	if logs.First == 0 {
		logs.First = number
	}
	if err := m.move(logs); err != nil {
		return err
	}
	m.logs = logs
	return nil
}

func (m *logMarker) move(logs Logs) error {
	if err := m.marker.Move(logs.String()); err != nil {
		return fmt.Errorf("cannot move marker %s to %v: %w", markerName, logs, err)
	}
	return nil
}

// columns reports whether the marker says that there may be sealed columns.
func (m *logMarker) columns() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs.Columns
}

// setColumns makes the marker say, durably, that there may be sealed columns.
func (m *logMarker) setColumns() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.logs.Columns {
		return nil
	}
	logs := m.logs
	if logs.First == 0 { // no record was synced since: the logs of before still count
		logs = m.before
	}
	logs.Columns = true
	if err := m.move(logs); err != nil {
		return err
	}
	m.logs.Columns = true
	return nil
}

func (m *logMarker) close() error { return m.marker.Close() }
