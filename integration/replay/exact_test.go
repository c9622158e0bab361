package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/differential"
)

// tenth is the share of the recorded questions that is asked without -whole.
const tenth = 10

// A gateway answers questions of another generator as OpenTSDB has answered them: irregular times,
// seconds and milliseconds in one row, integers and floats of all widths, calendars of all zones,
// options in odd orders and spellings. The second recording has all of those questions, and of
// more, to which the answers once differed: each is the same now, or a difference that is meant.
func TestReplay_exact(t *testing.T) {
	for _, name := range []string{"exact_seed3", "exact_seed3_salted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points, r := data(t, "exact_seed3"), data(t, name)
			schema := encoding.DefaultSchema()
			if strings.HasSuffix(name, "salted") {
				schema.SaltWidth, schema.SaltBuckets = 1, 20
			}
			at := (&recording{T: t}).bothStores(t, schema,
				func(cfg *gateway.Config) { cfg.MetaTracking = "true" }, func(st gateway.Store, cfg *gateway.Config) {
					assign(t, st, cfg, points.Assign)
				})
			for _, f := range at.fronts {
				for points := points.Points; len(points) > 0; {
					n := min(len(points), 2000)
					body, _ := json.Marshal(points[:n])
					a := f.ask(t, differential.Request{Path: "/api/put", Body: string(body)})
					if a.Status != http.StatusNoContent {
						t.Fatalf("put: %d %s", a.Status, a.Body)
					}
					points = points[n:]
				}
			}
			at.seal()
			at.askAll(r.Queries, tenth)
			at.askAll(data(t, strings.Replace(name, "seed3", "differing", 1)).Queries, 1)
		})
	}
}

// Rare and damaged cells are read as OpenTSDB has read them.
func TestReplay_oddCells(t *testing.T) {
	t.Parallel()
	r := data(t, "cells_odd")
	var cells []differential.Cell
	for _, line := range r.Cells {
		w := strings.Split(line, " ") // a value may be empty
		stamp, err := strconv.ParseInt(w[4], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		cells = append(cells, differential.Cell{
			Cell: encoding.Cell{
				Row:       bytesOf(t, w[1]),
				Family:    "t",
				Qualifier: bytesOf(t, w[2]),
				Value:     bytesOf(t, w[3]),
			},
			Timestamp: stamp,
		})
	}
	at := (&recording{T: t}).bothStores(t,
		encoding.DefaultSchema(), func(*gateway.Config) {}, func(st gateway.Store, cfg *gateway.Config) {
			assign(t, st, cfg, r.Assign)
		})
	for _, f := range at.fronts {
		apply(t, f.tables, "tsdb", cells) // behind the start, which would not believe such tables
	}
	differed := map[string]string{}
	for i, q := range r.Queries {
		for j, f := range at.fronts {
			if !*gatewaytest.Whole && i%len(at.fronts) != j {
				continue
			}
			verdict := odd[metricOf(t, q)]
			d, got := f.differs(t, q, nulls...)
			if d == "" {
				continue
			}
			differed[metricOf(t, q)] = verdict
			switch {
			case verdict == refused &&
				(got.Status != http.StatusBadRequest || !strings.Contains(string(got.Body), `"message":"row`)):
				t.Errorf("%s, question %d: want a refusal that names the row\n%s", f.store, i, d)
			case verdict == shown && got.Status != http.StatusOK:
				t.Errorf("%s, question %d: want the rest of the rows\n%s", f.store, i, d)
			case verdict == "":
				t.Errorf("%s, question %d: %s", f.store, i, d)
			}
		}
	}
	if d := cmp.Diff(odd, differed); *gatewaytest.Whole && d != "" {
		t.Errorf("metrics that differ: -listed +found\n%s", d)
	}
}

// What is answered where OpenTSDB reads a cell in another way.
const (
	refused = "refused" // the answer would be wrong or short: it names the row, and how to repair it or leave it out
	shown   = "shown"   // OpenTSDB fails, or answers what it did not store
)

// odd are the metrics whose cells OpenTSDB reads in another way.
var odd = func() map[string]string {
	of := map[string]string{}
	list := func(verdict, metrics string) {
		for _, m := range strings.Fields(metrics) {
			of["y."+m] = verdict
		}
	}
	// It shows what it can of compacted cells with a wrong last byte or length, and of times outside of the hour, and
	// fails in other words, or by the side of the query, over values of a length that no number has.
	list(refused, "notrail trail9 short long off4095 msbig len0 len3 len5 fl1 fl2 fl8as4bad msmis q0 appcut "+
		"appcutq appbad halftag")
	// It fails over an append column without a point, notes that are no JSON, and keys without
	// tags, which are not of the question; it takes points of a compacted cell in their order
	// there, and the second of two tags of one name.
	list(shown, "app0 annbad annnull annempty notag unsorted dbltag")
	// It answers with the notes of all series, which are not among these cells.
	list(shown, "unkuid")
	return of
}()

// nulls are those that a note has, which ours lacks.
var nulls = []compare.Permit{
	{
		Path:   compare.Path{"*", "annotations", "*", "notes"},
		Kinds:  []compare.Kind{compare.Extra},
		Reason: "null is an empty text",
	},
	{
		Path:   compare.Path{"*", "annotations", "*", "custom", "*"},
		Kinds:  []compare.Kind{compare.Type},
		Reason: "null is an empty text",
	},
}

// metricOf is the metric y.… that a question is about.
func metricOf(t *testing.T, q conformance.Query) string {
	t.Helper()
	path, err := url.QueryUnescape(q.Path)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`y\.[a-z0-9]+`).FindString(path)
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
	kinds := map[string]encoding.UIDKind{
		"metric": encoding.UIDMetric, "metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK,
		"tagv": encoding.UIDTagV,
	}
	for _, n := range names {
		if _, err := d.Assign(t.Context(), kinds[n[0]], n[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// askAll compares the answers to every so-manieth of recorded questions, on the stores by turns, or to all on both.
func (f fronts) askAll(all []conformance.Query, every int) {
	f.Helper()
	for i, q := range all {
		for j, at := range f.fronts {
			if !*gatewaytest.Whole && (i%every != 0 || i/every%len(f.fronts) != j) {
				continue
			}
			d, got := at.differs(f.T, q)
			if d != "" && explains(q, compare.Answer{Status: q.Status, Body: q.Response}, got) == "" {
				f.Errorf("%s, question %d: %s", at.store, i, d)
			}
		}
	}
}

// differs asks a recorded question, and says how the answer differs from the recorded one, or "".
// Of errors only code and message were recorded, and a message up to where it quotes Java objects.
func (f front) differs(
	t *testing.T, q conformance.Query, permits ...compare.Permit,
) (difference string, got compare.Answer) {
	t.Helper()
	want := compare.Answer{Status: q.Status, Body: q.Response}
	got = f.send(t, q.Method, differential.Request{Path: q.Path, Body: q.Body + string(q.Request)})
	c := compare.Comparer{Permits: append(permits, compare.Standard...), MessageStart: true}
	r, err := c.Answers(want, got)
	if string(q.Response) == "null" && want.Status == got.Status {
		return "", got // the recorded body is no JSON: a page, a script, or none
	}
	if err != nil || !r.Equal() {
		difference = fmt.Sprintf("%s %s %s: error %v, %v\nOpenTSDB: %d %.1000s\nours:     %d %.1000s",
			q.Method, q.Path, q.Body+string(q.Request), err, r, want.Status, want.Body, got.Status, got.Body)
	}
	return difference, got
}
