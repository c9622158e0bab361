package scenario

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/differential"
)

// dataset is what sides are asked about, and how it is stored.
type dataset struct {
	name string // in figures
	rows string // in words of reports: which rows are read
	data func(c *Config, scale string) workload.Devops
	// form is that of the rows that fill writes, if there is no other fill.
	form write.Form
	fill func(ctx context.Context, s *stage) error
	own  bool // each side has storage of its own, embedded
	pods bool // it is Config.Pods pods
	// rollups makes the tables of differential.RollupConfig.
	rollups  bool
	env, tsd map[string]string // settings of gateways and of OpenTSDB over it
}

// The data sets by name. Two scenarios that are about the same one share it and its servers.
var (
	compacted = &dataset{name: "compacted", rows: "compacted rows", form: write.MultiPoint}
	cells     = &dataset{name: "cells", rows: "uncompacted rows", form: write.Single}
	rolled    = &dataset{name: "rolled", rollups: true, fill: fillRollups}

	// Up to now, and written to in the meantime. Only in living-cells is the open hour none of compacted rows.
	living      = &dataset{name: "living", data: untilNow(1), form: write.MultiPoint}
	livingCells = &dataset{name: "living-cells", data: untilNow(0), form: write.MultiPoint}
	viewed      = &dataset{name: "viewed", data: viewedData, form: write.MultiPoint}
	rollable    = &dataset{
		name: "rollup-auto", rows: "compacted rows", data: untilNow(0), form: write.MultiPoint, rollups: true,
	}
	rollableCells = &dataset{
		name:    "rollup-auto-cells",
		rows:    "rows as puts leave them",
		data:    untilNow(0),
		form:    write.Single,
		rollups: true,
	}

	lately = &dataset{name: "ended lately", data: endedLately, form: write.Single, fill: fillCells}

	// Before now, with storage of its own on the side of VictoriaMetrics.
	own      = &dataset{name: "own storage", own: true, fill: putIntoBoth}
	sealed   = &dataset{name: "sealed", own: true, fill: putAndSeal}
	counters = &dataset{name: "sealed counters", own: true, data: oneMetricFrom(1), fill: putAndSeal}
	gauges   = &dataset{name: "sealed gauges", own: true, data: oneMetricFrom(2), fill: putAndSeal}
	tsbs     = &dataset{name: "TSBS", own: true, data: tsbsData, fill: fillAndSeal}
	manyPods = &dataset{name: "pods", own: true, pods: true}

	allTime         = &dataset{name: "all time", fill: fillHosts}
	allTimeSalted   = &dataset{name: "all time, salted", fill: fillHosts, env: saltedEnv, tsd: saltedTSD}
	allTimeEmbedded = &dataset{name: "all time, embedded", fill: fillHosts, own: true}

	protected = &dataset{name: "protected", rows: "compacted rows", data: oneMetric, form: write.MultiPoint}
)

// Settings of salt.
var (
	saltedEnv = map[string]string{"DOWNPOUR_SALT_WIDTH": "1", "DOWNPOUR_SALT_BUCKETS": "20"}
	saltedTSD = map[string]string{"tsd.storage.salt.width": "1", "tsd.storage.salt.buckets": "20"}
)

// set is a data set that is there, and where.
type set struct {
	*dataset
	scale string
	data  workload.Devops
	pods  *workload.Pods // instead of data, if it is set
	// at is the place of all sides, or that of our side if each has its own; theirs is that of VictoriaMetrics.
	at, theirs *place.Place
	metric     encoding.UID // of the data's first metric, if fill has written rows
	env, tsd   map[string]string
	rollupFile string // configuration of rollups
	secured    *securedCluster
	end        []func()
}

// of is the place of a side.
func (t *set) of(side string) *place.Place {
	if side == victoria {
		return t.theirs
	}
	return t.at
}

// put is the data set as it can be put.
func (t *set) put() workload.Data {
	if t.pods != nil {
		return *t.pods
	}
	return t.data
}

// whole is a query over all of the data set.
func (t *set) whole(m string) workload.Query {
	if t.pods != nil {
		return t.pods.Whole(m)
	}
	return t.data.Whole(m)
}

// use makes the data set of the group, unless it is there.
func (s *stage) use(ctx context.Context) error {
	if s.set != nil { // that of another group has been dropped
		return nil
	}
	if err := s.empty(ctx); err != nil {
		return err
	}
	if err := s.filled(ctx); err != nil {
		s.dropSet() // it is no data set yet
		return err
	}
	return nil
}

// empty makes new storage for the data set of the group.
func (s *stage) empty(ctx context.Context) (err error) {
	s.dropSet()
	defer func() {
		if err != nil {
			s.dropSet()
		}
	}()
	on := s.group.on
	t := &set{dataset: on, scale: s.group.scale, data: s.cfg.dataAt(s.group.scale), env: on.env, tsd: on.tsd}
	if on.data != nil {
		t.data = on.data(s.cfg, t.scale)
	}
	if on.pods {
		p := s.cfg.podsOf(s.cfg.Pods)
		t.pods = &p
	}
	s.set = t
	switch {
	case on == protected:
		return t.secure(ctx, s)
	case !on.own:
		t.at, err = s.maker.OnHBase(ctx, on.rollupTables())
		return err
	}
	if t.at, err = s.maker.Embedded(); err == nil {
		t.theirs, err = s.maker.Embedded()
	}
	return err
}

// rollupTables are the names of further tables; nil if there are none.
func (d *dataset) rollupTables() func(data string) []string {
	if d.rollups {
		return differential.RollupTables
	}
	return nil
}

// filled loads the data set.
func (s *stage) filled(ctx context.Context) error {
	t := s.set
	if t.rollups {
		// OpenTSDB takes a file or one line.
		t.rollupFile = filepath.Join(os.TempDir(), t.at.Tables.Data+"-rollups.json")
		if err := os.WriteFile(t.rollupFile, []byte(differential.RollupConfig(t.at.Tables.Data)), 0o600); err != nil {
			return err
		}
		t.end = append(t.end, func() { os.Remove(t.rollupFile) })
	}

	if t.fill != nil {
		s.cfg.Progress.Sayf("loading %s", t.name)
		return t.fill(ctx, s)
	}
	s.cfg.Progress.Sayf("loading %s, %s", t.name, t.data)
	return fillRows(ctx, s)
}

// fillRows writes the data set as rows of its form. They are flushed, and compacted into one file a region.
func fillRows(ctx context.Context, s *stage) (err error) {
	t := s.set
	if t.metric, err = s.load(ctx, t.at, t.data, t.form); err != nil {
		return err
	}

	// The row bytes, of scale 1x alone, compares with this size.
	if t.dataset == compacted && t.scale == "1x" {
		size, err := s.tableBytes(t.at)
		s.hbaseBytes = float64(size) / float64(t.data.Points())
		return err
	}
	return nil
}

// load writes a data set as rows into the tables of a place, and has each region's files compacted into one. It returns
// the UID of the data's first metric.
func (s *stage) load(ctx context.Context, at *place.Place, d workload.Devops, form write.Form) (encoding.UID, error) {
	metric, err := targetAt(at, form).Load(ctx, d, nil)
	if err != nil {
		return nil, err
	}
	return metric, at.Compact(ctx)
}

// targetAt are the tables of a place, into which rows of a form are written.
func targetAt(at *place.Place, form write.Form) bench.Target {
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: at.Store(), Table: at.Tables.UID, Schema: schema})
	return bench.Target{
		Store: at.Store(), Schema: schema, Table: at.Tables.Data, Form: form, Names: uid.Staged{Dictionary: names},
	}
}

// dropSet ends the servers over the data set and removes it.
func (s *stage) dropSet() {
	if s.set == nil {
		return
	}
	s.set.at.Drop()
	s.set.theirs.Drop()
	for _, end := range s.set.end {
		end()
	}
	s.set = nil
}

// putIntoBoth puts the data set by telnet into VictoriaMetrics and ours, in time order.
func putIntoBoth(ctx context.Context, s *stage) error {
	for _, name := range []string{victoria, ours} {
		server, err := s.side(ctx, name)
		if err != nil {
			return err
		}
		s.cfg.Progress.Sayf("loading %s: %s", server.Name, s.set.data)
		c := s.sending(server, s.set.data, workload.Telnet)
		if _, err := c.Send(ctx, c.Stream()); err != nil {
			return err
		}
	}
	servers, err := s.sides(ctx, []string{victoria, ours})
	if err != nil {
		return err
	}
	return s.untilEqual(ctx, time.Minute, s.set.whole(sum), servers)
}

// sending returns how a data set is put to a server.
func (s *stage) sending(server *peer.Server, d workload.Data, format workload.Format) bench.SendConfig {
	return bench.SendConfig{Server: server, Data: d, Format: format, Connections: s.cfg.Connections}
}

// untilNow returns hours of a point a minute that end with this one, and so many more.
func untilNow(more int) func(*Config, string) workload.Devops {
	return func(c *Config, scale string) workload.Devops {
		d := c.dataAt(scale)
		d.MetricCount, d.Step, d.Hours = 1, 60, 24*c.LivingDays+more
		now := time.Now().Unix()
		d.Start = now - now%encoding.RowSeconds - int64(24*c.LivingDays)*encoding.RowSeconds
		return d
	}
}

// oneMetricFrom is the data set with one metric of workload.Metrics: 1 is a counter, 2 a gauge with two decimals.
func oneMetricFrom(first int) func(*Config, string) workload.Devops {
	return func(c *Config, scale string) workload.Devops {
		d := c.dataAt(scale)
		d.FirstMetric, d.MetricCount = first, 1
		return d
	}
}

// oneMetric is the data set with one metric.
func oneMetric(c *Config, scale string) workload.Devops {
	d := c.dataAt(scale)
	d.MetricCount = 1
	return d
}
