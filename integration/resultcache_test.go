//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// Gateways with a result cache give OpenTSDB's own answers after each change of past hours, and
// come to answer from the cache again. A real TSD writes, overwrites, compacts and deletes points;
// HBase flushes, compacts, moves and splits the regions; then other tables are put into the table's
// place, in random order.
func TestResultCache_exact(t *testing.T) {
	t.Parallel()
	limit, rounds := 30*time.Minute, 1
	if *soak {
		limit, rounds = 85*time.Minute, 12
	}
	seed := seedtest.Of(t)
	ctx := within(t, limit)
	s := startTableLife(t)
	for _, step := range append(s.steps(), s.replaced(rand.New(rand.NewPCG(seed, 0)), rounds)...) {
		if err := step.do(ctx); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		began := time.Now()
		s.agree(ctx, step.name)
		t.Logf("%s: agreed and remembered after %.1f s", step.name, time.Since(began).Seconds())
	}
}

// tableLife is a TSD, a gateway alone for each proof, and a gateway with pushdown servers, on the same
// tables.
type tableLife struct {
	*testing.T
	tables  e2e.Tables
	tsd     *e2e.OpenTSDB
	readers map[string]*e2e.Program
	metrics map[string][]string // /metrics of the processes that cache the answers of each reader
}

func startTableLife(t *testing.T) *tableLife {
	s := &tableLife{T: t, tables: createTables(t)}
	var err error
	s.tsd, err = e2e.StartOpenTSDB(within(t, 5*time.Minute), e2e.OpenTSDBOptions{
		Quorum:     hbase(t).Quorum(),
		Tables:     s.tables,
		QuickStart: !*soak,
		Config: map[string]string{
			"tsd.storage.enable_compaction": "true",
			"tsd.storage.fix_duplicates":    "true",
			"tsd.http.query.allow_delete":   "true",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s.tsd)
	put(t.Context(), t, s.tsd.URL, introduce())
	var l layout
	servers := pushdownServers(t.Context(), t, l, s.tables)
	env := map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true"}
	alone := l.gateway(t, s.tables, env)
	pushing := maps.Clone(env)
	pushing["DOWNPOUR_PUSHDOWN"] = strings.Join(servers, ",")
	byTimestamps := maps.Clone(env)
	byTimestamps["DOWNPOUR_RESULT_CACHE_PROOF"] = "timestamps"
	stamped := l.gateway(t, s.tables, byTimestamps)
	s.readers = map[string]*e2e.Program{
		"alone":      alone,
		"timestamps": stamped,
		"pushed":     l.gateway(t, s.tables, pushing),
	}
	s.metrics = map[string][]string{"alone": {alone.URL + "/metrics"}, "timestamps": {stamped.URL + "/metrics"}}
	for _, server := range servers {
		s.metrics["pushed"] = append(s.metrics["pushed"], "http://"+server+"/metrics")
	}
	return s
}

// step is something that happens between two rounds of questions.
type step struct {
	name string
	do   func(context.Context) error
}

func (s *tableLife) steps() []step {
	late := func(value string) func(context.Context) error {
		return func(ctx context.Context) error {
			return e2e.Put(ctx, s.tsd.URL, []e2e.Point{{
				Metric:    "load.int",
				Timestamp: dataStart + 1234,
				Value:     json.RawMessage(value),
				Tags:      map[string]string{"host": "a"},
			}})
		}
	}
	admin, table := hbase(s.T).Admin, s.tables.Data
	return []step{
		{"put", func(ctx context.Context) error { return e2e.Put(ctx, s.tsd.URL, dataset(9)) }},
		{"nothing", func(context.Context) error { return nil }},
		{"late point", late("5")},
		{"overwrite of the same length", late("6")},
		{
			"compaction by OpenTSDB",
			func(context.Context) error { awaitCompaction(s.T, s.tsd, s.tables, metrics...); return nil },
		},
		{"late point in a compacted row", late("7")},
		{"overwrite in a compacted row", late("8")},
		{"HBase flushes", func(ctx context.Context) error { return admin.Flush(ctx, table) }},
		{"delete", s.deleteRows},
		{"major compaction", func(ctx context.Context) error { return admin.Compact(ctx, table) }},
		{"late point after the delete", late("9")},
		{"region moves", s.move},
		{"region splits", s.split},
		{"late point after the split", late("4")},
		// Until then the halves refer to files of their parent, which HBase may lose from a
		// snapshot.
		{"major compaction of the halves", func(ctx context.Context) error { return admin.Compact(ctx, table) }},
	}
}

// deleteRows lets OpenTSDB delete rows of one metric, and waits until they are
// gone.
func (s *tableLife) deleteRows(ctx context.Context) error {
	url := fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:load.mixed", s.tsd.URL, dataStart, dataStart+3599)
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	return e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, url)
		if err == nil && string(bytes.TrimSpace(a.Body)) != "[]" {
			err = fmt.Errorf("not deleted: %d %.100s", a.Status, a.Body)
		}
		return err
	})
}

func (s *tableLife) move(ctx context.Context) error {
	regions, err := hbase(s.T).Admin.Regions(ctx, s.tables.Data)
	if err != nil {
		return err
	}
	for i := range hbase(s.T).Len() {
		if to := hbase(s.T).RegionServerAddr(i); to != regions[0].Server {
			return hbase(s.T).Admin.Move(ctx, s.tables.Data, regions[0].EncodedName, to)
		}
	}
	return fmt.Errorf("no other server than %s", regions[0].Server)
}

func (s *tableLife) split(ctx context.Context) error {
	cells, err := hbase(s.T).Admin.Scan(ctx, s.tables.Data)
	if err != nil {
		return err
	}
	return hbase(s.T).Admin.Split(ctx, s.tables.Data, cells[len(cells)/2].Row)
}

// questions are some panels, each over two windows of the same hours.
func (s *tableLife) questions() (all []question) {
	var ms []string
	for _, metric := range metrics {
		ms = append(ms, "sum:5m-avg:"+metric, "max:1h-max:"+metric+"{host=*}")
	}
	for _, m := range append(ms, "avg:load.int", "sum:7m-sum:load.float", "sum:5m-avg:load.int{host=a}") {
		for _, moved := range []int{0, 300} {
			path := fmt.Sprintf("/api/query?start=%d&end=%d&m=%s", dataStart+600+moved, dataStart+6600+moved, m)
			all = append(all, question{name: fmt.Sprintf("%s moved by %d s", m, moved), path: path})
		}
	}
	return all
}

// agree asks until each reader has answered all questions from its cache, the gateways alone, one
// for each proof, also as whole plans. Every answer on the way must be OpenTSDB's.
func (s *tableLife) agree(ctx context.Context, name string) {
	s.Helper()
	want := map[question]compare.Answer{}
	for _, q := range s.questions() {
		ask(ctx, s.T, s.tsd.URL, q) // warms the TSD's names
		want[q] = ask(ctx, s.T, s.tsd.URL, q)
	}
	for reader, program := range s.readers {
		before, wholeBefore := s.hits(ctx, reader)
		err := e2e.Until(within(s.T, 5*time.Minute), 20*time.Millisecond, func(ctx context.Context) error {
			for q, answer := range want {
				got := ask(ctx, s.T, program.URL, q)
				comparer := compare.Comparer{Permits: compare.Standard}
				if r, err := comparer.Answers(answer, got); err != nil || !r.Equal() {
					s.Fatalf("%s, %s: %s: error %v, %v", name, reader, q.name, err, r)
				}
			}
			hits, whole := s.hits(ctx, reader)
			if hits < before+len(want) || reader != "pushed" && whole < wholeBefore+len(want) {
				return fmt.Errorf("%d answers from memory, %d of them whole, want %d",
					hits-before, whole-wholeBefore, len(want))
			}
			return nil
		})
		if err != nil {
			s.Fatalf("%s, %s: %v", name, reader, err)
		}
	}
}

// hits is how often a reader has answered from its cache, and how often whole plans.
func (s *tableLife) hits(ctx context.Context, reader string) (all, whole int) {
	s.Helper()
	for _, url := range s.metrics[reader] {
		a, err := e2e.Get(ctx, url)
		if err != nil {
			s.Fatal(err)
		}
		all += count(s.T, string(a.Body), "downpour_result_cache_hits_total")
		whole += count(s.T, string(a.Body), "downpour_result_cache_plan_hits_total")
	}
	return all, whole
}

// count is one of the numbers of /metrics.
func count(t *testing.T, metrics, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` ([0-9]+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("/metrics has no %s", name)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
