package gateway_test

import (
	"testing"

	"downpour/gateway"
)

// withHistograms has a gateway take histograms.
func withHistograms(c *gateway.Config) {
	c.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder":1}`
}

// onFakeHBase starts a gateway on a simulated HBase.
func onFakeHBase(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg, st := fakeHBase(t)
	if change != nil {
		change(cfg)
	}
	at := &faulty{Store: st}
	at.set()
	return &bench{T: t, cfg: cfg, store: at, g: start(t, cfg, st)}
}
