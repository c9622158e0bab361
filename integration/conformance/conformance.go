// Package conformance holds what a real OpenTSDB 2.4.1 on HBase stored and answered, for
// every test that replays it. README.md says what each file is and how it is
// compared.
package conformance

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed *.json.gz
var files embed.FS

// Queries names the recordings of random queries, each a Data.
func Queries() []string { return []string{"seed1", "seed2", "seed3_salted", "edges"} }

// Data is a recording of random queries: on empty tables, what Assign, Points and Cells
// say is done first.
type Data struct {
	Assign  [][2]string       // kind and name, in the order in which UIDs were given
	Points  []json.RawMessage // as /api/put takes them
	Cells   []string          // of the data table: a word, row, qualifier and value in hex, and a timestamp
	Queries []Query
}

// Query is a request to Path, and the recorded answer. Without a Method it was POSTed.
type Query struct {
	Method          string
	Path            string
	Headers         map[string]string // of the request
	Request         json.RawMessage   // the body
	Body            string            // or that, where it is no JSON
	Status          int
	Response        json.RawMessage
	ResponseHeaders map[string]string `json:"response_headers"`
}

// Load reads a recording of random queries.
func Load(name string) (*Data, error) {
	d := new(Data)
	return d, Decode(name, d)
}

// Decode reads any recording by its name, which is that of its file without
// ".json.gz", into a value that encoding/json can fill.
func Decode(name string, into any) error {
	f, err := files.Open(name + ".json.gz")
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	if err := json.NewDecoder(z).Decode(into); err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	return nil
}
