//go:build prometheus

// Command promtsdb is Prometheus' own storage, its TSDB, loaded with samples: what the law of PromQL in gateway/extra
// asks in soak. It reads JSON, a value a line: a list of series, and then selections, and answers each by the
// series that it has for it, sorted by their labels. Most samples are in blocks, as the TSDB keeps older ones.
//
//	go run -modfile=integration/setup/prometheus.mod -tags prometheus ./integration/promtsdb DIRECTORY
//
// The TSDB needs modules that the product does not, so the command has a go.mod and a build tag of its own.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// series are labels with points: times in ms, and the bits of float64 values.
type series struct {
	Labels map[string]string
	Times  []int64
	Bits   []uint64
}

// selection is what a selector of PromQL reads.
type selection struct {
	Start, End int64
	Matchers   []struct {
		Type        labels.MatchType
		Name, Value string
	}
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "promtsdb:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want a directory", len(args))
	}
	options := tsdb.DefaultOptions()
	options.RetentionDuration = math.MaxInt64 / 2 // the samples are old
	db, err := tsdb.Open(args[0], slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	lines := json.NewDecoder(bufio.NewReader(in))
	var all []series
	if err := lines.Decode(&all); err != nil {
		return fmt.Errorf("series: %w", err)
	}
	if err := load(db, all); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	answers := json.NewEncoder(out)
	for {
		var s selection
		if err := lines.Decode(&s); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("selection: %w", err)
		}
		found, err := choose(db, s)
		if err != nil {
			return err
		}
		if err := answers.Encode(found); err != nil {
			return err
		}
	}
}

// load appends all samples in the order of their times, as scrapes do, and makes blocks of the older hours.
func load(db *tsdb.DB, all []series) error {
	type sample struct {
		of, at int // of the list, of the series
	}
	var samples []sample
	for i, s := range all {
		for j := range s.Times {
			samples = append(samples, sample{i, j})
		}
	}
	time := func(s sample) int64 { return all[s.of].Times[s.at] }
	slices.SortStableFunc(samples, func(a, b sample) int { return cmp.Compare(time(a), time(b)) })
	app := db.Appender(context.Background())
	for _, s := range samples {
		of := all[s.of]
		v := math.Float64frombits(of.Bits[s.at])
		if _, err := app.Append(0, labels.FromMap(of.Labels), time(s), v); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return err
	}
	if err := db.Compact(context.Background()); err != nil {
		return err
	}
	if len(db.Blocks()) == 0 {
		return errors.New("no block was made")
	}
	return nil
}

// choose returns the series that match, with their points.
func choose(db *tsdb.DB, s selection) (found []series, err error) {
	var matchers []*labels.Matcher
	for _, m := range s.Matchers {
		matcher, err := labels.NewMatcher(m.Type, m.Name, m.Value)
		if err != nil {
			return nil, err
		}
		matchers = append(matchers, matcher)
	}
	q, err := db.Querier(s.Start, s.End)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	found = []series{}
	set := q.Select(context.Background(), true, nil, matchers...)
	for set.Next() {
		one := series{Labels: set.At().Labels().Map()}
		points := set.At().Iterator(nil)
		for points.Next() == chunkenc.ValFloat {
			t, v := points.At()
			one.Times, one.Bits = append(one.Times, t), append(one.Bits, math.Float64bits(v))
		}
		if err := points.Err(); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, set.Err()
}
