package sealing

import (
	"context"

	"downpour/gateway"
	"downpour/pushdown/process/settings"
)

// Settings are those of sealing.
type Settings struct {
	// Seal is how many old rows of an embedded store are written in their compact form in a second at
	// most; off leaves them as they are. Older releases refuse the data directory once one is.
	Seal string `env:"DOWNPOUR_SEAL" envDefault:"off"`
}

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate returns the fault of a rate that is none.
func (s *Settings) Validate(*gateway.Config) error {
	_, err := s.rate()
	return err
}

// maxRate is more rows a second than a store can write.
const maxRate = 1_000_000

// rate returns how many rows a second are sealed at most, 0 for none.
func (s *Settings) rate() (float64, error) {
	return settings.Rate("DOWNPOUR_SEAL", s.Seal, maxRate, "rows a second, such as 2000")
}

// New returns the worker that seals old rows.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "sealing", Settings: s, Open: s.open}
}

// open makes the worker if there is to be one: HBase has no such rows, and in mode ro nothing is written.
func (s *Settings) open(_ context.Context, c *gateway.Core) (parts gateway.Parts, err error) {
	rate, _ := s.rate() // Validate reports an error
	seal := c.Store.Features().Seal
	if rate == 0 || seal == nil || c.ReadOnly() {
		return parts, nil
	}
	w := &Worker{
		Seal:  seal,
		Table: c.Config.TableData,
		Rate:  rate,
		Busy:  c.Queries.Running.Count,
		Now:   c.Config.Now,
		Log:   c.Log,
	}
	c.Metrics.MustRegister(w)
	parts.Jobs = []gateway.Job{{Name: "sealing", Run: func(ctx context.Context) {
		c.Log.Info("old rows are sealed in the background; older releases refuse the data directory from then on",
			"DOWNPOUR_SEAL", s.Seal)
		w.Run(ctx)
	}}}
	return parts, nil
}
