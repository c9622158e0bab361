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

// Overrides are bounds by metric, of a file that is read again when it changes:
//
//	[{"regex":"^sys\\.", "byteLimit":1073741824, "dataPointsLimit":50000000}, …]
//
// The first regular expression (RE2) that finds a match in the metric's name
// counts; a bound of 0, or one not given, is none.
type Overrides struct {
	path string
	log  *slog.Logger

	mu struct {
		sync.Mutex
		looked, stamp time.Time
		items         []item
	}
}

type item struct {
	Regex           string `json:"regex"`
	ByteLimit       int64  `json:"byteLimit"`
	DataPointsLimit int64  `json:"dataPointsLimit"`

	pattern *regexp.Regexp
}

// recheck is how often the file's time is looked at.
const recheck = time.Second

// LoadOverrides reads a file; an empty path gives none.
func LoadOverrides(path string, log *slog.Logger) (*Overrides, error) {
	if path == "" {
		return nil, nil
	}
	o := &Overrides{path: path, log: log}
	return o, o.loadLocked()
}

// of returns the bounds of a metric; ok is false where the file has none.
func (o *Overrides) of(metric string) (points, bytes int64, ok bool) {
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

// refreshLocked reads a changed file again; one that is wrong leaves the bounds
// as they were.
func (o *Overrides) refreshLocked(now time.Time) {
	if now.Sub(o.mu.looked) < recheck {
		return
	}
	o.mu.looked = now
	info, err := os.Stat(o.path)
	if err == nil && info.ModTime().Equal(o.mu.stamp) {
		return
	}
	if err == nil {
		err = o.loadLocked()
	}
	if err != nil {
		o.log.Warn("limits of metrics not read again, those before stay valid", "err", err)
	}
}

func (o *Overrides) loadLocked() error {
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
		return fmt.Errorf("%s: %w", o.path, err)
	}
	o.mu.items, o.mu.stamp = items, info.ModTime()
	return nil
}

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
			return nil, fmt.Errorf("entry %d: byteLimit %d, dataPointsLimit %d, want at least 0", i, it.ByteLimit, it.DataPointsLimit)
		}
		if it.pattern, err = regexp.Compile(it.Regex); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return items, nil
}
