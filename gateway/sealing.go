package gateway

import (
	"downpour/gateway/admin/sealing"
	"downpour/pushdown/process/settings"
)

// maxSealRate is more rows a second than a store can write.
const maxSealRate = 1_000_000

// sealRate returns how many rows a second are sealed at most, 0 for none.
func (c *Config) sealRate() (float64, error) {
	return settings.Rate("DOWNPOUR_SEAL", c.Seal, maxSealRate, "rows a second, such as 2000")
}

// newSealer returns the worker that seals old rows, nil if there is to be none: HBase has no such rows, and in
// mode ro nothing is written.
func (c *common) newSealer(busy func() int) *sealing.Worker {
	rate, _ := c.cfg.sealRate() // Validate reports an error
	seal := c.store.Features().Seal
	if rate == 0 || seal == nil || c.readOnly() {
		return nil
	}
	w := &sealing.Worker{Seal: seal, Table: c.cfg.TableData, Rate: rate, Busy: busy, Now: c.cfg.Now, Log: c.log}
	c.count.registry.MustRegister(w)
	return w
}
