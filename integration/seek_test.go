//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// A gateway that has learnt the key prefixes of a host, which are those of data centres, answers as
// a real OpenTSDB does after each change that OpenTSDB makes to old hours: late points, series with
// an unknown data centre, with fewer and with more tags, compaction, deletes, and puts after them.
func TestSeek_changesByOpenTSDB(t *testing.T) {
	t.Parallel()
	tested := layouts[:1]
	if *soak {
		tested = layouts[:3]
	}
	for _, l := range tested {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 5*time.Minute)
			s := &seeking{T: t, ctx: ctx, l: l, tables: createTables(t)}
			s.start()
			s.fill()
			s.same("at first")
			s.learn()
			for _, step := range s.steps() {
				step.do()
				s.same(step.what)
			}
		})
	}
}

// seeking is one table with both servers on it.
type seeking struct {
	*testing.T
	ctx    context.Context
	l      layout
	tables e2e.Tables
	tsd    *e2e.OpenTSDB
	ours   *e2e.Program
}

func (s *seeking) start() {
	var err error
	s.tsd, err = e2e.StartOpenTSDB(within(s.T, time.Minute), e2e.OpenTSDBOptions{
		Quorum: hbase(s.T).Quorum(), Tables: s.tables, SaltWidth: s.l.saltWidth, SaltBuckets: s.l.saltBuckets,
		UIDMetricWidth: s.l.metric, TagKWidth: s.l.tagK, TagVWidth: s.l.tagV, QuickStart: !*soak,
		Config: map[string]string{"tsd.storage.enable_compaction": "true", "tsd.http.query.allow_delete": "true"},
	})
	if err != nil {
		s.Fatal(err)
	}
	closeAtEnd(s.T, s.tsd)
	s.ours = s.l.gateway(s.T, s.tables, nil)
}

const seekMetric = "seek.load"

// seekCentres and seekHosts, the latter in each salt bucket, are so many that skip scans pay.
const (
	seekCentres = 4
	seekHosts   = 120
)

// fill writes two old hours. The tag key "another" gets the first UID, so that it comes before the
// others in row keys, but no series has it yet.
func (s *seeking) fill() {
	names := "metric=" + seekMetric + "&tagk=another,dc,host"
	if a := send(s.ctx, s.T, s.tsd.URL, call{"GET", "/api/uid/assign?" + names, ""}); a.Status != http.StatusOK {
		s.Fatalf("assign: %d %s", a.Status, a.Body)
	}
	var points []e2e.Point
	for host := range seekHosts * max(1, s.l.saltBuckets) {
		for hour := range 2 {
			tags := map[string]string{
				"dc":   fmt.Sprintf("dc%d", host/7%seekCentres),
				"host": fmt.Sprintf("web%03d", host),
			}
			points = append(points, s.point(hour, 60*(1+host%7), host, tags))
		}
	}
	put(s.ctx, s.T, s.tsd.URL, points)
}

func (s *seeking) point(hour, second, value int, tags map[string]string) e2e.Point {
	return e2e.Point{
		Metric:    seekMetric,
		Timestamp: int64(dataStart + 3600*hour + second),
		Value:     fmt.Appendf(nil, "%d", value),
		Tags:      tags,
	}
}

// same asks both servers for some hosts in several ways and compares the answers.
func (s *seeking) same(when string) {
	s.Helper()
	var asked []question
	for _, m := range []string{
		"sum:%s{host=web017}", "sum:1h-sum:%s{host=web017|web100|new}", "sum:%s{host=web017,dc=*}",
		"none:%s{dc=dc2|dc9,host=web017|new}", "sum:%s{another=x}",
	} {
		asked = append(asked, question{name: fmt.Sprintf("%s, %s", when, m),
			path: fmt.Sprintf("/api/query?start=%d&end=%d&m=%s",
				dataStart, dataStart+7199, url.QueryEscape(fmt.Sprintf(m, seekMetric)))})
	}
	if when == "at first" {
		asked = asked[:1] // the other names have no UIDs yet
	}
	askBoth(s.ctx, s.T, s.tsd.URL, s.ours.URL, asked)
}

// learn asks until the gateway knows key prefixes, which the steps may make wrong: one for each
// data centre, and the empty one. It learns from the second query on, but gives up if that takes
// too long.
func (s *seeking) learn() {
	s.Helper()
	path := fmt.Sprintf("/api/query?start=%d&end=%d&m=%s",
		dataStart, dataStart+7199, url.QueryEscape("sum:"+seekMetric+"{host=web017}"))
	want := fmt.Sprintf("known prefixes: %d;", seekCentres+1)
	err := e2e.Until(s.ctx, 50*time.Millisecond, func(ctx context.Context) error {
		ask(ctx, s.T, s.ours.URL, question{path: path})
		a := ask(ctx, s.T, s.ours.URL, question{path: path + "&explain=true"})
		if !strings.Contains(string(a.Body), want) || strings.Contains(string(a.Body), "known prefixes: 1;") {
			return fmt.Errorf("not %q everywhere in %s", want, a.Body)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

type seekStep struct {
	what string
	do   func()
}

// steps are what OpenTSDB does between two rounds of questions.
func (s *seeking) steps() []seekStep {
	puts := func(points ...e2e.Point) func() {
		return func() { put(s.ctx, s.T, s.tsd.URL, points) }
	}
	tags := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	return []seekStep{
		{"new names", puts(s.point(0, 5, 1, tags("another", "x", "host", "new", "dc", "dc9")))},
		{"late points", puts(s.point(0, 1800, 7, tags("host", "web017", "dc", "dc2")),
			s.point(1, 1, 8, tags("host", "web017", "dc", "dc2")))},
		{"another data centre", puts(s.point(1, 30, 9, tags("host", "web017", "dc", "dc77")))},
		{"one tag", puts(s.point(0, 40, 10, tags("host", "web017")))},
		{"a tag before the others", puts(s.point(0, 50, 11, tags("another", "y", "host", "web017", "dc", "dc3")))},
		{"only that tag before", puts(s.point(1, 55, 12, tags("another", "x", "host", "web017")))},
		{"compacted", func() { awaitCompaction(s.T, s.tsd, s.tables, seekMetric) }},
		{"late after compaction", puts(s.point(0, 2000, 13, tags("host", "web017", "dc", "dc2")))},
		{"deleted", func() { s.delete("none:" + seekMetric + "{host=web017,dc=dc2}") }},
		{
			"put again",
			puts(s.point(0, 2100, 14, tags("host", "web017", "dc", "dc2")), s.point(1, 20, 15, tags("host", "new"))),
		},
	}
}

// delete lets OpenTSDB delete rows; it answers before they are gone.
func (s *seeking) delete(m string) {
	path := fmt.Sprintf("/api/query?start=%d&end=%d&m=%s", dataStart, dataStart+7199, url.QueryEscape(m))
	if a := send(s.ctx, s.T, s.tsd.URL, call{"DELETE", path, ""}); a.Status != http.StatusOK {
		s.Fatalf("delete: %d %s", a.Status, a.Body)
	}
	err := e2e.Until(s.ctx, 100*time.Millisecond, func(ctx context.Context) error {
		if a := ask(ctx, s.T, s.tsd.URL, question{path: path}); string(a.Body) != "[]" {
			return fmt.Errorf("rows are still there: %s", a.Body)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}
