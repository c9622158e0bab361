package limit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"
)

// Overrides are bounds of single metrics. They are read from a file, and read again when
// it changes:
//
//	[{"regex":"^sys\\.", "byteLimit":1073741824, "dataPointsLimit":50000000}, …]
//
// The first regular expression (RE2) that matches anywhere in the metric's name counts. A
// bound that is 0 or not given means no bound.
type Overrides struct {
	path string
	log  *slog.Logger

	mu struct {
		sync.Mutex
		checked  time.Time // when the file was last looked at
		modified time.Time // modification time of the file that items are from
		items    []item
	}
}

// item is one entry of the file.
type item struct {
	Regex           string `json:"regex"`
	ByteLimit       int64  `json:"byteLimit"`
	DataPointsLimit int64  `json:"dataPointsLimit"`

	pattern *regexp.Regexp
}

// recheckInterval is how often the file's modification time is looked at.
const recheckInterval = time.Second

// LoadOverrides reads a file. It returns nil for an empty path.
func LoadOverrides(path string, log *slog.Logger) (*Overrides, error) {
	if path == "" {
		return nil, nil
	}

	o := &Overrides{path: path, log: log}
	return o, o.loadLocked()
}

// forMetric returns the bounds of a metric; ok is false if the file has none.
func (o *Overrides) forMetric(metric string) (points, bytes int64, ok bool) {
	if o == nil || metric == "" {
		return 0, 0, false
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	o.refreshLocked(time.Now())
	for _, i := range o.mu.items {
		if i.pattern.MatchString(metric) {
			return i.DataPointsLimit, i.ByteLimit, true
		}
	}
	return 0, 0, false
}

// refreshLocked reads the file again if it has changed. A file that is not valid leaves
// the bounds as they were.
func (o *Overrides) refreshLocked(now time.Time) {
	if now.Sub(o.mu.checked) < recheckInterval {
		return
	}
	o.mu.checked = now

	info, err := os.Stat(o.path)
	if err == nil && info.ModTime().Equal(o.mu.modified) {
		return
	}
	if err == nil {
		err = o.loadLocked()
	}
	if err != nil {
		o.log.Warn("cannot reread the limits of metrics; the previous ones stay valid", "err", err)
	}
}

// loadLocked reads the file. If it cannot be read, the limits stay as they were.
func (o *Overrides) loadLocked() error {
	// Before the text is read: a change in between shows as one the next time.
	info, err := os.Stat(o.path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(o.path)
	if err != nil {
		return err
	}
	items, err := parseOverrides(text)
	if err != nil {
		return fmt.Errorf("cannot read the limits of metrics from %s: %w", o.path, err)
	}
	o.mu.items, o.mu.modified = items, info.ModTime()
	return nil
}

// parseOverrides parses the file's JSON; an empty file has no entries.
func parseOverrides(text []byte) (items []item, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &items); err != nil {
		return nil, err
	}

	for i := range items {
		it := &items[i]
		switch {
		case it.Regex == "":
			return nil, fmt.Errorf("entry %d: regex is empty", i)
		case it.ByteLimit < 0, it.DataPointsLimit < 0:
			return nil, fmt.Errorf("entry %d: byteLimit %d, dataPointsLimit %d, want at least 0", i, it.ByteLimit,
				it.DataPointsLimit)
		}
		if it.pattern, err = regexp.Compile(it.Regex); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return items, nil
}
