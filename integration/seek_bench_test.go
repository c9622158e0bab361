//go:build integration

package integration

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/integration/e2e"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	hstore "downpour/pushdown/store/hbase"
)

// BenchmarkSeek_oneHost asks for one of 1,000 hosts, another one each round, over 6 hours with a
// point every 10 s. It asks in two ways in turn: with a key pattern that is tried on every row, and
// by skip scan with the key prefixes that are known. In some rows a tag stands before the host's,
// whose tag key has the UID 3. Run 20 rounds or more.
func BenchmarkSeek_oneHost(b *testing.B) {
	h := hbase(b)
	cfg, err := hstore.ParseAddress(h.Quorum())
	if err != nil {
		b.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	st, err := hstore.Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	for _, keys := range []hostKeys{
		{"host-first", func(host int) []encoding.TagPair { return nil }},
		{
			"27-dcs-first",
			func(host int) []encoding.TagPair { return []encoding.TagPair{operatortest.Tag(2, 1+host%27)} },
		},
	} {
		for _, compacted := range []bool{true, false} {
			name := map[bool]string{true: "compacted", false: "cells"}[compacted]
			b.Run(keys.name+"/"+name, func(b *testing.B) { keys.measure(b, h, st, compacted) })
		}
	}
}

// hostKeys is a kind of row keys, by the tags before the host's.
type hostKeys struct {
	name   string
	before func(host int) []encoding.TagPair
}

const benchHours = 6

var benchMetric = operatortest.UID(1)

// load writes the rows, flushes the table and compacts it, so that the rows are in one file.
func (k hostKeys) load(b *testing.B, h *e2e.HBase, st *hstore.Store, compacted bool) string {
	ctx, s := context.Background(), encoding.DefaultSchema()
	tables := createTables(b)
	for hour := range benchHours {
		var rows []store.Mutation
		for host := range 1000 {
			tags := s.AppendTags(nil,
				append(k.before(host), operatortest.Tag(3, 1+host), operatortest.Tag(4, 1+host%9)))
			row := s.AppendRowKey(nil, benchMetric, uint32(dataStart+3600*hour), tags)
			if rows = append(rows, benchRow(row, host+hour, compacted)...); host%50 < 49 {
				continue
			}
			if err := st.Apply(ctx, tables.Data, rows); err != nil {
				b.Fatal(err)
			}
			rows = rows[:0]
		}
	}
	if err := errors.Join(h.Admin.Flush(ctx, tables.Data), h.Admin.Compact(ctx, tables.Data)); err != nil {
		b.Fatal(err)
	}
	return tables.Data
}

// benchRow is an hour of one series.
func benchRow(row []byte, seed int, compacted bool) (all []store.Mutation) {
	var cell encoding.CellBuilder
	for i := range 360 {
		value := encoding.AppendInt(nil, int64((seed+i*7)%100))
		q := encoding.Qualifier{OffsetMS: int32(i * 10_000), Width: len(value)}
		cell.Add(q, value)
		all = append(all, store.Mutation{
			Row:       row,
			Family:    encoding.FamilyData,
			Qualifier: encoding.AppendQualifier(nil, q),
			Value:     value,
		})
	}
	if compacted {
		q, v := cell.Cell()
		return []store.Mutation{{Row: row, Family: encoding.FamilyData, Qualifier: q, Value: v}}
	}
	return all
}

// unsought is a store without the key ranges of skip scans, so servers look at every row.
type unsought struct{ store.Reader }

func (unsought) Features() store.Features { return store.Features{} }

func (u unsought) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	s.Filter.Ranges = nil
	return u.Reader.Scan(ctx, s)
}

func (k hostKeys) measure(b *testing.B, h *e2e.HBase, st *hstore.Store, compacted bool) {
	table := k.load(b, h, st, compacted)
	plan := operatortest.Plan(encoding.DefaultSchema(), benchMetric, dataStart, dataStart+benchHours*3600)
	plan.Table = table
	plan.Downsample = &scanplan.Downsample{
		Interval: 300_000,
		Count:    5,
		Unit:     "m",
		Function: "avg",
		Fill:     scanplan.FillNone,
	}
	memory := access.NewPrefixCache()
	ask := func(host int, from store.Reader, m *access.PrefixCache) (time.Duration, operator.Stats) {
		plan.Tags = []scanplan.TagPredicate{
			{TagK: operatortest.UID(3), Op: scanplan.In, Values: []encoding.UID{operatortest.UID(1 + host)}},
		}
		began := time.Now()
		op, err := operator.New(from, &scanplan.Part{Plan: plan, Range: plan.Ranges[0]}, operator.Options{Prefixes: m})
		if err != nil {
			b.Fatal(err)
		}
		defer op.Close()
		for err == nil {
			_, err = op.Next(context.Background())
		}
		if took := time.Since(began); err == io.EOF && op.Stats().Points == benchHours*360 {
			return took, op.Stats()
		}
		b.Fatalf("%d points, %v", op.Stats().Points, err)
		return 0, operator.Stats{}
	}
	for range 3 { // warms, and learns the prefixes
		ask(500, unsought{st}, nil)
		_, stats := ask(500, st, memory)
		b.Logf("%d ranges, %d rows looked at, %d probes", stats.Ranges, stats.RowsScanned, stats.Probes)
	}
	var walks, seeks []time.Duration
	b.ResetTimer()
	for i := range b.N {
		walk, _ := ask(i*389%1000, unsought{st}, nil)
		sought, _ := ask(i*389%1000, st, memory)
		walks, seeks = append(walks, walk), append(seeks, sought)
	}
	slices.Sort(walks)
	slices.Sort(seeks)
	walk, sought := walks[b.N/2].Seconds()*1000, seeks[b.N/2].Seconds()*1000
	b.ReportMetric(walk, "pattern-ms")
	b.ReportMetric(sought, "sought-ms")
	b.ReportMetric(walk/sought, "times-faster")
}
