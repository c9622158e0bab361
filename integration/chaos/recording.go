package chaos

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"downpour/integration/e2e"
)

// Recording is what a real OpenTSDB stored and answered, from
// gateway/testdata/conformance.
type Recording struct {
	Name   string
	Assign [][2]string // kind and name, in the order in which UIDs were given
	Points []json.RawMessage
	// Queries are requests and the recorded answers.
	Queries []Query
}

// Query is one request, POSTed to Path, and its answer.
type Query struct {
	Path     string
	Request  json.RawMessage
	Status   int
	Response json.RawMessage
}

// LoadRecording reads a recording by name: seed1, seed2, seed3_salted, edges.
func LoadRecording(name string) (*Recording, error) {
	root, err := e2e.Root()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(root, "gateway", "testdata", "conformance", name+".json.gz"))
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	r := &Recording{Name: name}
	if err := json.NewDecoder(z).Decode(r); err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	return r, nil
}

// metrics lists the metrics that the points have, in the order of their UIDs.
func (r *Recording) metrics() (names []string) {
	for _, a := range r.Assign {
		if a[0] == "metric" || a[0] == "metrics" {
			names = append(names, a[1])
		}
	}
	return names
}

// probes picks one answered question for each metric.
func (r *Recording) probes() (out []Query) {
	seen := map[string]bool{}
	for _, q := range r.Queries {
		var request struct{ Queries []struct{ Metric string } }
		if q.Status != 200 || len(q.Response) < 10 || json.Unmarshal(q.Request, &request) != nil || len(request.Queries) != 1 {
			continue
		}
		if m := request.Queries[0].Metric; !seen[m] {
			seen[m] = true
			out = append(out, q)
		}
	}
	return out
}
