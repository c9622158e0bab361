package scenario

import (
	"context"
	"fmt"
	"maps"

	"downpour/bench/peer"
	"downpour/bench/place"
)

// side is who is asked.
type side struct {
	system  string // peer.OpenTSDB or peer.Victoria; empty is Downpour
	name    string // in figures; empty is that of the system
	reads   bool   // it is to read every row: it has Config.ScanEnv
	pushed  bool   // a pushdown server executes its queries
	env     map[string]string
	tsd     map[string]string                // keys of opentsdb.conf
	further func(s *stage) map[string]string // settings that are known when the data set is there
	beside  func(s *stage) map[string]string // and of the pushdown server
}

// Sides by name. What a row is compared with is one of them, or a floor.
const (
	tsd        = peer.OpenTSDB
	victoria   = peer.Victoria
	ours       = peer.Downpour
	users      = "with the settings that users have"
	pushed     = "by a pushdown server"
	timestamps = "proof by timestamps"
	proving    = "Downpour, proof by timestamps"
	everyRow   = "every row read"
	uncached   = "without remembered answers"
	made       = "rollups made"
	compactor  = "by a pushdown server that compacts"

	compactingTSD = "OpenTSDB that compacts"
	singly        = "single cells"
	multi         = "DOWNPOUR_PUT_CELLS=multi"
	frugal        = "with " + podMemory
)

// sides are all of them; those of the scenario protections follow.
var sides = map[string]side{
	tsd:        {system: peer.OpenTSDB},
	victoria:   {system: peer.Victoria},
	ours:       {reads: true},
	users:      {},
	pushed:     {reads: true, pushed: true},
	timestamps: {env: map[string]string{"DOWNPOUR_RESULT_CACHE_PROOF": "timestamps"}},
	proving:    {name: proving, env: map[string]string{"DOWNPOUR_RESULT_CACHE_PROOF": "timestamps"}},
	everyRow:   {name: everyRow, env: map[string]string{"DOWNPOUR_RESULT_CACHE": "off"}},
	uncached:   {env: map[string]string{"DOWNPOUR_RESULT_CACHE": "off"}},
	compactor:  {reads: true, pushed: true, beside: compactsBeside},
	made:       {name: made, further: makesRollups},
	singly:     {name: "Downpour, " + singly},
	multi:      {name: "Downpour, " + multi, env: map[string]string{"DOWNPOUR_PUT_CELLS": "multi"}},
	frugal:     {reads: true, env: map[string]string{"DOWNPOUR_MEMORY": podMemory}},

	compactingTSD: {system: peer.OpenTSDB, tsd: map[string]string{
		"tsd.storage.enable_compaction":              "true",
		"tsd.storage.compaction.flush_interval":      "1",
		"tsd.storage.compaction.min_flush_threshold": "1",
	}},

	plain:          protectedBy("simple", "plain connections"),
	authentication: protectedBy("authentication", "Kerberos, authentication"),
	integrity:      protectedBy("integrity", "Kerberos, integrity"),
	privacy:        protectedBy("privacy", "Kerberos, privacy"),
	encrypted:      protectedBy("TLS", "TLS"),
}

// inWords is what reports call that which ours is compared with.
var inWords = map[string]string{
	tsd:        "OpenTSDB, same tables",
	victoria:   "VictoriaMetrics, own storage",
	bare:       "bare scan of the same rows",
	promEngine: "Prometheus' engine, same points in memory",
	everyRow:   everyRow,
	plain:      "plain connections",
}

// reported is the name of a side in figures.
func reported(name string) string {
	switch one := sides[name]; {
	case one.name != "":
		return one.name
	case one.system != "":
		return one.system
	}
	return peer.Downpour
}

// side returns the server of a side over the data set, which it starts unless it runs.
func (s *stage) side(ctx context.Context, name string) (*peer.Server, error) {
	return s.sideAt(ctx, s.set.of(name), name)
}

// sideAt returns the server of a side over a place.
func (s *stage) sideAt(ctx context.Context, at *place.Place, name string) (*peer.Server, error) {
	one, ok := sides[name]
	if !ok {
		return nil, fmt.Errorf("side: got %q, want one of those in sides.go", name)
	}

	to := place.Side{Name: name, System: one.system, Pushed: one.pushed}
	to.Env, to.TSD, to.PushdownEnv = map[string]string{}, map[string]string{}, map[string]string{}
	if s.set != nil {
		maps.Copy(to.Env, s.set.env)
		maps.Copy(to.TSD, s.set.tsd)
	}
	maps.Copy(to.TSD, one.tsd)
	maps.Copy(to.Env, one.env)
	if one.further != nil {
		maps.Copy(to.Env, one.further(s))
	}
	if one.reads {
		maps.Copy(to.Env, s.cfg.ScanEnv)
		maps.Copy(to.PushdownEnv, s.cfg.ScanEnv)
	}
	if one.beside != nil && at != nil {
		maps.Copy(to.PushdownEnv, one.beside(s))
	}
	server, err := at.Server(ctx, to)
	if err != nil {
		if name == victoria { // the report says why its rows are missing
			s.cfg.Report.AddPeer(missingPeer(peer.Victoria, err))
		}
		return nil, err
	}
	s.cfg.Report.AddPeer(server.Peer)
	return server, nil
}
