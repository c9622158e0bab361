package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/encoding"
	"downpour/integration/e2e"
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
	formName := s.flags.String("form", "", "cells, compacted or appended; empty is appended embedded, compacted on HBase")
	c := bench.ScaleConfig{}
	s.flags.IntVar(&c.Steps, "steps", 2, "how often hours and hosts are doubled, and halved")
	s.flags.IntVar(&c.Rounds, "rounds", 7, "measured rounds")
	s.flags.IntVar(&c.MemoryHours, "memory-hours", 0, "hours of the data sets for the gateway's memory; 0 is as -hours")
	memory := s.flags.String("memory-steps", "16,4,1", "seconds between two points in those data sets, by comma, descending divisors of 3600")
	if err := s.parse(0); err != nil {
		return err
	}

	var err error
	if c.MemorySteps, err = numbers(*memory); err != nil {
		return fmt.Errorf("memory-steps: %w", err)
	}
	r := s.report()
	place, err := s.use(ctx, *address, r)
	if err != nil {
		return err
	}
	defer place.close()

	c.Store, c.Data, c.Settle = place.store, *d, place.settle
	if c.Form, err = form(*formName, place.address); err != nil {
		return err
	}
	if strings.HasPrefix(place.address, "hbase:") {
		c.Pushdown = func(ctx context.Context, prefix string, schema encoding.Schema) (string, func(), error) {
			return startPushdown(ctx, place, prefix, schema)
		}
		c.Gateway = func(ctx context.Context, prefix, pushdown string) (*bench.MeasuredGateway, error) {
			return startGateway(ctx, place, prefix, pushdown)
		}
	} else {
		r.Note("with -store hbase there are also the figures of pushdown in a process of its own: bytes, time, parts in flight, and the gateway's memory")
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

// startGateway starts a gateway over the tables of a prefix, with a pushdown
// server or none.
func startGateway(ctx context.Context, place *place, prefix, pushdown string) (*bench.MeasuredGateway, error) {
	n := bench.TableNames(prefix)
	o := peer.Options{Quorum: strings.TrimPrefix(place.address, "hbase:"), Tables: e2e.Tables{Data: n.Data, UID: n.UID, Meta: n.Meta, Tree: n.Tree},
		Env: map[string]string{resultCache: "off", "DOWNPOUR_PUSHDOWN": pushdown}}
	g, err := peer.StartDownpour(ctx, o)
	if err != nil {
		return nil, err
	}
	return bench.Measured(g), nil
}

// startPushdown starts a pushdown server over the tables of a prefix.
func startPushdown(ctx context.Context, place *place, prefix string, schema encoding.Schema) (string, func(), error) {
	names := bench.TableNames(prefix)
	env := map[string]string{"DOWNPOUR_STORE": place.address, "DOWNPOUR_TABLE_DATA": names.Data, "DOWNPOUR_TABLE_UID": names.UID,
		"DOWNPOUR_TABLE_META": names.Meta, "DOWNPOUR_TABLE_TREE": names.Tree, resultCache: "off"}
	if schema.SaltWidth > 0 {
		env["DOWNPOUR_SALT_WIDTH"], env["DOWNPOUR_SALT_BUCKETS"] = fmt.Sprint(schema.SaltWidth), fmt.Sprint(schema.SaltBuckets)
	}

	if place.beside != "" {
		env["DOWNPOUR_BESIDE"] = place.beside
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	p, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env})
	if err != nil {
		return "", nil, err
	}
	return p.Addr, func() { p.Close() }, nil
}
