package settings

import (
	"errors"
	"fmt"
	"time"
)

// Compaction is how rows are compacted in the background, by a pushdown server or by a gateway that
// has none.
type Compaction struct {
	// Compact is how many rows a second are compacted in the background at most; "off"
	// compacts none. CompactMargin is the age that a row's hour and newest cell have at least.
	Compact       string        `env:"DOWNPOUR_COMPACT" envDefault:"off"`
	CompactMargin time.Duration `env:"DOWNPOUR_COMPACT_MARGIN" envDefault:"10m"`
}

// maxCompactRate is more than a region server can do.
const maxCompactRate = 1_000_000

// CompactRate returns how many rows a second are compacted in the background at most, 0 for
// none.
func (c *Compaction) CompactRate() (float64, error) {
	return Rate("DOWNPOUR_COMPACT", c.Compact, maxCompactRate, "rows a second, such as 500")
}

// Validate returns all faults together, each with the name of its variable.
func (c *Compaction) Validate(common *Common) (err error) {
	rate, err := c.CompactRate()
	if rate == 0 {
		return err
	}
	if common.Embedded() {
		err = fmt.Errorf(
			"DOWNPOUR_COMPACT: got %s, but DOWNPOUR_STORE=%s needs no compaction of rows: "+
				"it keeps the points of a row in one cell by itself; want off",
			c.Compact, common.Store)
	}
	if c.CompactMargin < time.Second {
		err = errors.Join(
			err, fmt.Errorf(
				"DOWNPOUR_COMPACT_MARGIN: got %v, want more than the clocks of all servers differ, at least 1s",
				c.CompactMargin))
	}
	return err
}
