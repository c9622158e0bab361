package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/treeroutes"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/forest"
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
	// TreeProcessing puts series that get a TSMeta into trees.
	// Source: tsd.core.tree.enable_processing.
	TreeProcessing bool `env:"DOWNPOUR_TREE_PROCESSING" envDefault:"false"`
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
	// The tables come without s.names, which is made later: a tracker does not read names.
	tracker := meta.TrackerConfig{Config: s.metaTables(), Flags: flags, Log: s.log}
	if s.cfg.TreeProcessing {
		// The trees are made after the names, which tell the tracker of new ones. It has no
		// series before both are there.
		tracker.Described = func(ctx context.Context, tsuids []string) ([]string, error) { return s.trees.Add(ctx, tsuids) }
		if !flags.Tracking || !flags.RealtimeTS {
			s.log.Warn("puts make no TSMeta, so no series goes into trees", "want", "DOWNPOUR_META_TRACKING and DOWNPOUR_META_REALTIME_TS")
		}
	}
	if flags.Tracking || flags.RealtimeUID {
		s.tracker = meta.NewTracker(tracker)
	}
}

// newTrees returns the trees of the configured table.
func (s *Server) newTrees() *forest.Forest {
	return forest.New(forest.Config{Store: s.store, TreeTable: s.cfg.TableTree, UIDTable: s.cfg.TableUID, MetaTable: s.cfg.TableMeta,
		Schema: s.cfg.Schema(), Names: s.names, Log: s.log})
}

// growTrees puts a series into trees that a client has described. The description is stored
// whether that succeeds or not.
func (s *Server) growTrees(ctx context.Context, tsuid encoding.UID) {
	if _, err := s.trees.Add(ctx, []string{string(tsuid)}); err != nil {
		s.log.Warn("a new series is not in all trees; uid treesync puts it there", "tsuid", tsuid, "err", err)
	}
}

// treeHandlers returns what the routes of trees work with.
func (s *Server) treeHandlers(guard *access.Guard, flush func(context.Context) error) treeroutes.Handlers {
	return treeroutes.Handlers{Forest: s.trees, FlushMeta: flush, Guard: guard, Timeout: s.cfg.QueryTimeout, Now: time.Now}
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

// metadataHandlers returns what the metadata routes work with.
func (s *Server) metadataHandlers(guard *access.Guard) metaroutes.Handlers {
	schema := s.cfg.Schema()
	finder := lookup.New(lookup.Config{Store: s.store, DataTable: s.cfg.TableData, MetaTable: s.cfg.TableMeta, Schema: schema, Names: s.names})
	handlers := metaroutes.Handlers{
		Names:       s.names,
		Meta:        meta.New(s.metaTables()),
		Annotations: annotation.New(annotation.Config{Store: s.store, Table: s.cfg.TableData, Schema: schema}),
		Lookup:      finder,
		Last: last.New(last.Config{Store: s.store, DataTable: s.cfg.TableData, MetaTable: s.cfg.TableMeta, Schema: schema, Find: finder,
			Counted: s.cfg.metaFlags().Tracking, FixDuplicates: s.cfg.FixDuplicates}),
		Allowed: []rune(s.cfg.AllowSpecialChars),
		Guard:   guard,
		Timeout: s.cfg.QueryTimeout,
		Now:     time.Now,
		Zone:    s.zone,
	}

	if s.cfg.TreeProcessing {
		handlers.Described = s.growTrees
	}
	if s.tracker != nil {
		handlers.FlushMeta = s.flushMeta
	}

	return handlers
}

// flushMeta has the meta data written that puts have still to record. For the request that asks for
// it, it takes as long as a write may: it is the work of all puts.
func (s *Server) flushMeta(ctx context.Context) error {
	if s.cfg.PutTimeout <= 0 { // a Config that no environment was read into
		return s.tracker.Flush(ctx)
	}
	late := &httpio.WriteTimeError{Limit: s.cfg.PutTimeout}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.PutTimeout, late)
	defer cancel()
	err := s.tracker.Flush(ctx)
	if err != nil && context.Cause(ctx) == error(late) {
		return late
	}
	return err
}

// stats returns the counters for /api/stats. A counter that OpenTSDB has, too, is
// there under both names. Source: TSDB.collectStats.
func (s *Server) stats() []adminroutes.Stat {
	now, host := time.Now().Unix(), version().Host
	var out []adminroutes.Stat
	add := func(metric string, value float64, tags map[string]string) {
		all := map[string]string{"host": host}
		for k, v := range tags {
			all[k] = v
		}
		out = append(out, adminroutes.Stat{Metric: metric, Timestamp: now, Value: fmt.Sprintf("%.0f", value), Tags: all})
	}

	// Gather returns with its error what it could gather; that is answered.
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
