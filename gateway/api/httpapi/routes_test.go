package httpapi

import (
	"testing"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
)

// A route has one handler: another one is a fault that no start hides.
func TestRoutes_twice(t *testing.T) {
	t.Parallel()
	a := &API{
		Query: new(queryroutes.Handlers),
		More:  []map[string]httpio.Endpoint{{"api/mine": {}}, {"api/put": {}}},
	}
	defer func() {
		if recover() == nil {
			t.Error("two handlers of api/put are taken")
		}
	}()
	a.Routes()
}
