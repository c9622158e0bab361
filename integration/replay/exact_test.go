package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/differential"
)

// tenth is the share of the recorded questions that is asked without -whole.
const tenth = 10

// A gateway answers questions of another generator as OpenTSDB has answered them: irregular times, seconds and
// milliseconds in one row, integers and floats of all widths, calendars of all zones, options in odd orders and spellings.
func TestReplay_exact(t *testing.T) {
	for _, name := range []string{"exact_seed3", "exact_seed3_salted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points, r := data(t, "exact_seed3"), data(t, name)
			schema := encoding.DefaultSchema()
			if strings.HasSuffix(name, "salted") {
				schema.SaltWidth, schema.SaltBuckets = 1, 20
			}
			at := (&recording{T: t}).bothStores(t, schema, func(*gateway.Config) {}, func(st gateway.Store, cfg *gateway.Config) {
				assign(t, st, cfg, points.Assign)
			})
			for _, f := range at.fronts {
				for points := points.Points; len(points) > 0; {
					n := min(len(points), 2000)
					body, _ := json.Marshal(points[:n])
					if a := f.ask(t, differential.Request{Path: "/api/put", Body: string(body)}); a.Status != http.StatusNoContent {
						t.Fatalf("put: %d %s", a.Status, a.Body)
					}
					points = points[n:]
				}
			}
			at.askAll(r.Queries)
		})
	}
}

// Rare and damaged cells are read as OpenTSDB has read them.
func TestReplay_oddCells(t *testing.T) {
	t.Parallel()
	r := data(t, "cells_odd")
	at := (&recording{T: t}).bothStores(t, encoding.DefaultSchema(), func(*gateway.Config) {}, func(st gateway.Store, cfg *gateway.Config) {
		assign(t, st, cfg, r.Assign)
		var cells []differential.Cell
		for _, line := range r.Cells {
			w := strings.Split(line, " ") // a value may be empty
			stamp, err := strconv.ParseInt(w[4], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			cells = append(cells, differential.Cell{Cell: encoding.Cell{Row: bytesOf(t, w[1]), Family: "t", Qualifier: bytesOf(t, w[2]), Value: bytesOf(t, w[3])}, Timestamp: stamp})
		}
		apply(t, st, cfg.TableData, cells)
	})
	at.askAll(r.Queries)
}

func data(t *testing.T, name string) *conformance.Data {
	t.Helper()
	d, err := conformance.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// assign gives names the UIDs that they had in OpenTSDB.
func assign(t *testing.T, st gateway.Store, cfg *gateway.Config, names [][2]string) {
	t.Helper()
	d := uid.New(uid.Config{Store: st, Table: cfg.TableUID, Schema: cfg.Schema()})
	kinds := map[string]encoding.UIDKind{"metric": encoding.UIDMetric, "metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK, "tagv": encoding.UIDTagV}
	for _, n := range names {
		if _, err := d.Assign(t.Context(), kinds[n[0]], n[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// askAll compares the answers to recorded questions: to each tenth, on the stores by turns, or to all on both.
func (f fronts) askAll(all []conformance.Query) {
	f.Helper()
	for i, q := range all {
		if !*whole && i%tenth != 0 {
			continue
		}
		for j, at := range f.fronts {
			if !*whole && i/tenth%len(f.fronts) != j {
				continue
			}
			if d := at.differs(f.T, q); d != "" {
				f.Errorf("%s, question %d: %s", at.store, i, d)
			}
		}
	}
}

// differs asks a recorded question and says how the answer differs from the recorded one, or "".
func (f front) differs(t *testing.T, q conformance.Query) string {
	t.Helper()
	body := string(q.Request)
	want := compare.Answer{Status: q.Status, Body: q.Response}
	got := f.send(t, q.Method, differential.Request{Path: q.Path, Body: body})
	r, _, err := compare.WithReference(want, got)
	if err != nil || !r.Equal() {
		return fmt.Sprintf("%s %s %s: error %v, %v\nOpenTSDB: %d %.1000s\nours:     %d %.1000s", q.Method, q.Path, body, err, r, want.Status, want.Body, got.Status, got.Body)
	}
	return ""
}
