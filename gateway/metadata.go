package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/write"
)

// MetaConfig says what puts record in the meta data, see meta.Flags. Each setting is
// true, false, or empty: then it is true on an embedded store, where lookups and last
// points need it, and false on HBase, where it costs as much as the points.
// Source: tsd.core.meta.enable_tsuid_tracking, _tsuid_incrementing,
// _realtime_ts, _realtime_uid.
type MetaConfig struct {
	MetaTracking     string `env:"DOWNPOUR_META_TRACKING"`
	MetaIncrementing string `env:"DOWNPOUR_META_INCREMENTING"`
	MetaRealtimeTS   string `env:"DOWNPOUR_META_REALTIME_TS"`
	MetaRealtimeUID  string `env:"DOWNPOUR_META_REALTIME_UID"`
}

// setDefaults fills in what is not set.
func (m *MetaConfig) setDefaults(embedded bool) {
	for _, v := range []*string{&m.MetaTracking, &m.MetaIncrementing, &m.MetaRealtimeTS, &m.MetaRealtimeUID} {
		if *v == "" {
			*v = fmt.Sprint(embedded)
		}
	}
}

// validate names each variable that is neither true nor false.
func (m *MetaConfig) validate() (errs []error) {
	for name, got := range map[string]string{"TRACKING": m.MetaTracking, "INCREMENTING": m.MetaIncrementing,
		"REALTIME_TS": m.MetaRealtimeTS, "REALTIME_UID": m.MetaRealtimeUID} {
		if got != "true" && got != "false" {
			errs = append(errs, fmt.Errorf("DOWNPOUR_META_%s: got %q, want true or false", name, got))
		}
	}
	return errs
}

func (m *MetaConfig) metaFlags() meta.Flags {
	return meta.Flags{Tracking: m.MetaTracking == "true", Incrementing: m.MetaIncrementing == "true",
		RealtimeTS: m.MetaRealtimeTS == "true", RealtimeUID: m.MetaRealtimeUID == "true"}
}

// startTracker starts the tracker that records what puts store, if the settings ask
// for one.
func (s *Server) startTracker() {
	flags := s.cfg.metaFlags()
	if flags.Tracking || flags.RealtimeUID {
		s.tracker = meta.NewTracker(meta.TrackerConfig{Config: s.metaTables(), Flags: flags, Log: s.log})
	}
}

func (s *Server) metaTables() meta.Config {
	return meta.Config{Store: s.store, UIDTable: s.cfg.TableUID, MetaTable: s.cfg.TableMeta, Schema: s.cfg.Schema(), Names: s.names}
}

// observer returns the tracker for the writer. Without a tracker it returns a nil
// interface, not one that holds a nil pointer.
func (s *Server) observer() write.Observer {
	if s.tracker == nil {
		return nil
	}
	return s.tracker
}

// assigned tells the tracker of a new UID.
func (s *Server) assigned(kind encoding.UIDKind, name string, u encoding.UID) {
	if s.tracker != nil {
		s.tracker.Assigned(kind, name, u)
	}
}

// stopTracker writes what is still to be recorded, and stops the tracker.
func (s *Server) stopTracker() {
	if s.tracker == nil {
		return
	}
	if err := s.tracker.Close(); err != nil {
		s.log.Error("the last points are not recorded in the meta data", "err", err)
	}
}

// addMetadata gives the API what its routes of metadata work with.
func (s *Server) addMetadata(a *httpapi.API) {
	schema := s.cfg.Schema()
	a.Meta = meta.New(s.metaTables())
	a.Notes = annotation.New(annotation.Config{Store: s.store, Table: s.cfg.TableData, Schema: schema})
	a.Find = lookup.New(lookup.Config{Store: s.store, DataTable: s.cfg.TableData, MetaTable: s.cfg.TableMeta, Schema: schema, Names: s.names})
	a.Last = last.New(last.Config{Store: s.store, DataTable: s.cfg.TableData, MetaTable: s.cfg.TableMeta, Schema: schema, Find: a.Find,
		Counted: s.cfg.metaFlags().Tracking, FixDuplicates: s.cfg.FixDuplicates})
	if s.tracker != nil {
		a.FlushMeta = func(ctx context.Context) error { return s.tracker.Flush(ctx) }
	}
	a.Allowed = []rune(s.cfg.AllowSpecialChars)
	a.AllowDelete, a.Rows = s.cfg.AllowDelete, s.store
	a.Stats = s.stats
}

// stats are the counters as /api/stats tells them: under OpenTSDB's names where
// it keeps the same, and under ours. Source: TSDB.collectStats.
func (s *Server) stats() []httpapi.Stat {
	now, host := time.Now().Unix(), version().Host
	var out []httpapi.Stat
	add := func(metric string, value float64, tags map[string]string) {
		all := map[string]string{"host": host}
		for k, v := range tags {
			all[k] = v
		}
		out = append(out, httpapi.Stat{Metric: metric, Timestamp: now, Value: fmt.Sprintf("%.0f", value), Tags: all})
	}

	families, err := s.count.registry.Gather()
	if err != nil {
		s.log.Warn("stats are incomplete", "err", err)
	}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			value, ok := ownNumber(f, m)
			if !ok {
				continue
			}

			tags := map[string]string{}
			for _, l := range m.GetLabel() {
				tags[l.GetName()] = l.GetValue()
			}

			switch {
			case f.GetName() == "downpour_put_points_total" && tags["outcome"] == "stored":
				add("tsd.datapoints.added", value, map[string]string{"type": "all"})
			case f.GetName() == "downpour_put_points_total" && tags["outcome"] == "refused":
				add("tsd.rpc.errors", value, map[string]string{"type": "illegal_arguments"})
			}

			add(strings.ReplaceAll(f.GetName(), "_", "."), value, tags)
		}
	}

	return out
}
