package extra_test

import (
	"context"
	"testing"

	"downpour/gateway"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/gatewaytest"
)

func TestMain(m *testing.M) {
	gatewaytest.Extras = everything
	gatewaytest.Main(m)
}

// The gateways of these tests have all extras.
type (
	bench  = gatewaytest.Bench
	answer = gatewaytest.Answer
)

var (
	open        = gatewaytest.Open
	config      = gatewaytest.Config
	start       = gatewaytest.Start
	serve       = gatewaytest.Serve
	memoryStore = gatewaytest.Memory
	eventually  = gatewaytest.Eventually
)

// everything returns all extras, with settings of their own: nothing is done in the background.
func everything() []gateway.Extra {
	all := extra.All()
	gateway.SettingsOf[hostmetrics.Settings](&gateway.Config{Extras: all}).SelfMetrics = "0"
	return all
}

// routesOf returns all routes of a gateway: those of the core, and those that extras add.
func routesOf(t *testing.T) map[string]httpio.Endpoint {
	t.Helper()
	api, cfg := httpapi.API{Query: new(queryroutes.Handlers)}, config(0)
	for i, e := range cfg.Extras {
		cfg.Extras[i].Open = func(ctx context.Context, c *gateway.Core) (gateway.Parts, error) {
			parts, err := e.Open(ctx, c)
			api.More = append(api.More, parts.Routes)
			return parts, err
		}
	}
	serve(t, cfg, memoryStore(t, cfg))
	return api.Routes()
}
