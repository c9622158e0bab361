package gateway_test

import (
	"net/http"
	"testing"
)

// A date without a zone is in the configured zone: at 01:00 in Berlin it is midnight in UTC.
func TestTimezone(t *testing.T) {
	f := func(zone, from, want string) {
		t.Helper()
		cfg := config(0)
		cfg.Timezone = zone
		g := start(t, cfg, memoryStore(t, cfg))
		if status, body := post(t, g.URL()+"api/put", []byte(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"}}`)); status != http.StatusNoContent {
			t.Fatalf("put: %d %s", status, body)
		}
		_, body := post(t, g.URL()+"api/query", []byte(`{"start":"`+from+`","end":"2013/01/02","queries":[{"metric":"m","aggregator":"sum"}]}`))
		if string(body) != want {
			t.Errorf("zone %q, start %s: %s, want %s", zone, from, body, want)
		}
	}
	const found, without = `[{"metric":"m","tags":{"a":"b"},"aggregateTags":[],"dps":{"1356998400":1}}]`, `[{"metric":"m","tags":{"a":"b"},"aggregateTags":[],"dps":{}}]`
	f("", "2013/01/01-00:00", found)
	f("", "2013/01/01-00:01", without)
	f("Europe/Berlin", "2013/01/01-01:00", found)
	f("Europe/Berlin", "2013/01/01-01:01", without)
}
