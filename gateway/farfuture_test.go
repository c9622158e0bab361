package gateway_test

import (
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// onFakeHBase starts a gateway on a simulated HBase.
func onFakeHBase(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg, st := gatewaytest.FakeHBase(t)
	if change != nil {
		change(cfg)
	}
	return &bench{T: t, Config: cfg, Store: gatewaytest.NewFaulty(st), Gateway: start(t, cfg, st)}
}
