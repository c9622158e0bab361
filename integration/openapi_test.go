//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"downpour/gateway/api/openapi"
	"downpour/integration/e2e"
)

// The description of the HTTP API that a gateway serves is a valid OpenAPI document, as a validator of
// OpenAPI sees it; one with a fault is not.
func TestOpenAPI_valid(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	ours := embedded(t, nil)
	served := must[e2e.Answer](t)(e2e.Get(ctx, ours.URL+"/docs/openapi.json"))
	if served.Status != 200 || string(served.Body) != string(openapi.JSON) {
		t.Fatalf("the gateway serves another document: %d %.100s", served.Status, served.Body)
	}
	out, err := e2e.PythonOpenAPI(ctx, "integration/readers/openapi.py",
		writeFile(t, "openapi.json", string(served.Body)))
	if err != nil || !strings.HasPrefix(string(out), "valid: ") {
		t.Errorf("error %v: %s", err, out)
	}

	broken := strings.Replace(string(served.Body), `"responses"`, `"answers"`, 1)
	if out, err := e2e.PythonOpenAPI(ctx, "integration/readers/openapi.py",
		writeFile(t, "broken.json", broken)); err == nil {
		t.Errorf("a document without the answers of an operation is taken for valid: %s", out)
	}
}
