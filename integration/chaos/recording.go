package chaos

import (
	"encoding/json"

	"downpour/integration/conformance"
)

// Recording is what a site is filled with and what is requested from it.
type Recording struct {
	Name string
	*conformance.Data
}

// LoadRecording reads one of conformance.Queries.
func LoadRecording(name string) (*Recording, error) {
	d, err := conformance.Load(name)
	return &Recording{Name: name, Data: d}, err
}

// metrics lists all metrics, in the order of their UIDs.
func (r *Recording) metrics() (names []string) {
	for _, a := range r.Assign {
		if a[0] == "metric" || a[0] == "metrics" {
			names = append(names, a[1])
		}
	}
	return names
}

// probes picks one answered question for each metric.
func (r *Recording) probes() (out []conformance.Query) {
	seen := map[string]bool{}
	for _, q := range r.Queries {
		var request struct{ Queries []struct{ Metric string } }
		// An answer without points shows nothing, and a question of several metrics is of none alone.
		if q.Status != 200 || len(q.Response) < 10 || json.Unmarshal(q.Request, &request) != nil ||
			len(request.Queries) != 1 {
			continue
		}
		if m := request.Queries[0].Metric; !seen[m] {
			seen[m] = true
			out = append(out, q)
		}
	}
	return out
}
