package gateway

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"

	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/query/limit"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
)

// LimitConfig bounds queries and connections; 0 is no bound. The first five are
// for each sub-query. Source: tsd.query.limits.*, where those are named so.
type LimitConfig struct {
	// LimitPoints and LimitBytes bound what is read from the store; the
	// overrides let a query lift them, by overrideDataPointLimit and
	// overrideByteLimit.
	LimitPoints         int64 `env:"DOWNPOUR_LIMIT_POINTS" envDefault:"1000000000"`
	LimitPointsOverride bool  `env:"DOWNPOUR_LIMIT_POINTS_OVERRIDE" envDefault:"false"`
	LimitBytes          int64 `env:"DOWNPOUR_LIMIT_BYTES" envDefault:"17179869184"`
	LimitBytesOverride  bool  `env:"DOWNPOUR_LIMIT_BYTES_OVERRIDE" envDefault:"false"`
	// LimitOverrides is a file with bounds of single metrics, see
	// limit.Overrides. Source: tsd.query.limits.overrides.config.
	LimitOverrides string `env:"DOWNPOUR_LIMIT_OVERRIDES"`
	// LimitMemory bounds the bytes that a result takes on one machine.
	LimitMemory int64 `env:"DOWNPOUR_LIMIT_MEMORY" envDefault:"1073741824"`
	// LimitName bounds the bytes of a name that gets a UID; names that have one
	// may be longer.
	LimitName int `env:"DOWNPOUR_LIMIT_NAME" envDefault:"1024"`
	// LimitQueries bounds the sub-queries of one query.
	LimitQueries int `env:"DOWNPOUR_LIMIT_QUERIES" envDefault:"64"`
	// LimitJSON and LimitArrow bound the points of an answer of either form.
	LimitJSON  int64 `env:"DOWNPOUR_LIMIT_JSON" envDefault:"1000000"`
	LimitArrow int64 `env:"DOWNPOUR_LIMIT_ARROW" envDefault:"100000000"`
	// HeavyQueries is how many queries that have read HeavyPoints may go on at the
	// same time; further ones wait. -1 is twice the number of CPUs.
	HeavyQueries int   `env:"DOWNPOUR_HEAVY_QUERIES" envDefault:"-1"`
	HeavyPoints  int64 `env:"DOWNPOUR_HEAVY_POINTS" envDefault:"10000000"`
	// LimitConnections bounds the connections from one address. Behind a proxy all
	// connections come from the address of the proxy.
	LimitConnections int `env:"DOWNPOUR_LIMIT_CONNECTIONS" envDefault:"4096"`
}

// validate names each variable that is out of range.
func (c *LimitConfig) validate() (errs []error) {
	if c.LimitName < 0 || c.LimitName > uid.MostName {
		errs = append(errs, fmt.Errorf("DOWNPOUR_LIMIT_NAME: got %d, want 1 to %d, or 0 for that", c.LimitName,
			uid.MostName))
	}
	for _, v := range []struct {
		name       string
		got, least int64
	}{
		{"DOWNPOUR_LIMIT_POINTS", c.LimitPoints, 0},
		{"DOWNPOUR_LIMIT_BYTES", c.LimitBytes, 0},
		{"DOWNPOUR_LIMIT_MEMORY", c.LimitMemory, 0},
		{"DOWNPOUR_LIMIT_QUERIES", int64(c.LimitQueries), 0},
		{"DOWNPOUR_LIMIT_JSON", c.LimitJSON, 0},
		{"DOWNPOUR_LIMIT_ARROW", c.LimitArrow, 0},
		{"DOWNPOUR_HEAVY_QUERIES", int64(c.HeavyQueries), -1}, // -1 is twice the number of CPUs
		{"DOWNPOUR_HEAVY_POINTS", c.HeavyPoints, 0},
		{"DOWNPOUR_LIMIT_CONNECTIONS", int64(c.LimitConnections), 0},
	} {
		if v.got < v.least {
			errs = append(errs, fmt.Errorf("%s: got %d, want at least %d", v.name, v.got, v.least))
		}
	}
	return errs
}

// newLimits returns the limits that queries are held to.
func newLimits(c *LimitConfig, pool *memory.Pool, log *slog.Logger) (*limit.Limits, error) {
	overrides, err := limit.LoadOverrides(c.LimitOverrides, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_LIMIT_OVERRIDES: %w", err)
	}

	heavy := c.HeavyQueries
	if heavy < 0 {
		heavy = 2 * runtime.GOMAXPROCS(0)
	}

	return limit.New(limit.Config{
		Points:         c.LimitPoints,
		Bytes:          c.LimitBytes,
		PointsOverride: c.LimitPointsOverride,
		BytesOverride:  c.LimitBytesOverride,
		Overrides:      overrides,
		Heavy:          heavy,
		HeavyPoints:    c.HeavyPoints,
		Memory:         pool,
	}), nil
}

// subQueries returns how many sub-queries a query may have.
func (c *LimitConfig) subQueries() int {
	if c.LimitQueries == 0 {
		return math.MaxInt
	}
	return c.LimitQueries
}

// answerLimits returns the bounds of the points in an answer.
func (c *LimitConfig) answerLimits() queryroutes.AnswerLimits {
	return queryroutes.AnswerLimits{JSON: c.LimitJSON, Arrow: c.LimitArrow}
}
