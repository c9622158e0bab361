package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"downpour/bench"
	"downpour/bench/progress"
)

// scale is bench scale: how cost grows.
func scale(ctx context.Context, s *session) error {
	s.saveFlag()
	d := dataFlags(s.flags)
	d.Hosts, d.Hours = 400, 4
	// The help text must say these defaults, not those of other workloads.
	for name, value := range map[string]string{"hosts": "400", "hours": "4"} {
		s.flags.Lookup(name).DefValue = value
	}

	address := s.flags.String("store", "", storeHelp)
	formName := s.flags.String("form", "",
		"cells, compacted or appended; empty is appended embedded, compacted on HBase")
	c := bench.ScaleConfig{}
	s.flags.IntVar(&c.Steps, "steps", 2, "how often hours and hosts are doubled, and halved")
	s.flags.IntVar(&c.Rounds, "rounds", 7, "measured rounds")
	s.flags.IntVar(&c.MemoryHours, "memory-hours", 0, "hours of the data sets for the gateway's memory; 0 is as -hours")
	memory := s.flags.String("memory-steps", "16,4,1",
		"seconds between two points in those data sets, by comma, descending divisors of 3600")
	if err := s.parse(0); err != nil {
		return err
	}

	var err error
	if c.MemorySteps, err = numbers(*memory); err != nil {
		return fmt.Errorf("memory-steps: %w", err)
	}
	r := s.report()
	on, err := s.use(ctx, *address, r)
	if err != nil {
		return err
	}
	defer on.close()

	c.Store, c.Data, c.Settle = on.store, *d, on.settle
	if c.Form, err = form(*formName, on.address); err != nil {
		return err
	}
	if quorum, ok := strings.CutPrefix(on.address, "hbase:"); ok {
		beside := ""
		if on.hbase != nil {
			beside = on.hbase.RegionServerAddr(0)
		}
		c.OnHBase(quorum, beside, map[string]string{resultCache: "off"})
	} else {
		r.Note("with -store hbase there are also the figures of pushdown in a process of its own: bytes, time, " +
			"parts in flight, and the gateway's memory")
	}

	c.Progress = progress.New(s.errs, "load, points", 0)
	err = bench.Scale(ctx, c, r)
	c.Progress.End()
	return s.finish(r, err)
}

// numbers reads a list of whole numbers.
func numbers(text string) (out []int, err error) {
	for _, word := range list(text) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("got %q, want numbers", word)
		}
		out = append(out, n)
	}
	return out, nil
}

// resultCache is the setting of the result cache. It is off where the same query is asked
// again and again to measure how its rows are read.
const resultCache = "DOWNPOUR_RESULT_CACHE"
