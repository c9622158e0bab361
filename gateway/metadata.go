package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
	"downpour/gateway/uid/completion"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
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

// MetaFlags returns what puts record.
func (m *MetaConfig) MetaFlags() meta.Flags {
	return meta.Flags{Tracking: m.MetaTracking == "true", Incrementing: m.MetaIncrementing == "true",
		RealtimeTS: m.MetaRealtimeTS == "true", RealtimeUID: m.MetaRealtimeUID == "true"}
}

// names are the series that the tables hold: their UIDs, and what is recorded of them.
type names struct {
	*common
	*uid.Dictionary
	completion *completion.Index
	tracker    *meta.Tracker // nil if puts record no meta data
	// newSeries learn of series that got a TSMeta. They are set before the first one gets one.
	newSeries []func(ctx context.Context, tsuids []string) (again []string, err error)
}

// newNames returns the names of the configured tables, and starts the tracker that records what puts
// store, if the settings ask for one.
func newNames(c *common) *names {
	n := &names{common: c}
	flags := c.cfg.MetaFlags()
	// The tables come without names: the names report new UIDs to the tracker, so it is made first, and a
	// tracker reads no names.
	if flags.Tracking || flags.RealtimeUID {
		n.tracker = meta.NewTracker(meta.TrackerConfig{
			Config: n.metaTables(),
			Flags:  flags,
			// Full for moments only, so nothing is reserved.
			Bytes: int(min(meta.DefaultBytes, memory.CacheShare(c.memory.Total()))),
			Wait:  c.cfg.Embedded(),
			Log:   c.log,
		})
	}
	// Shared: gateways and TSDs on the same HBase change names, too; an embedded store is this
	// process's alone.
	shared := !c.cfg.Embedded()
	n.Dictionary = uid.New(uid.Config{
		Store:    c.store,
		Table:    c.cfg.TableUID,
		Schema:   c.cfg.Schema(),
		MaxName:  c.cfg.LimitName,
		Bytes:    c.memory.Cache(uid.DefaultBytes),
		Shared:   shared,
		Assigned: n.assigned,
		OnChange: n.forgetMeta,
		Log:      c.log,

		MappingTimes: n.mappingTimes(),
	})
	n.completion = completion.New(completion.Config{
		Names:  n.Dictionary,
		Bytes:  c.memory.Cache(completion.DefaultBytes),
		Shared: shared,
		Now:    time.Now,
	})
	return n
}

// described passes series that got a TSMeta on to those who wait for them, and returns those that
// are to be passed again.
func (n *names) described(ctx context.Context, tsuids []string) (again []string, err error) {
	for _, take := range n.newSeries {
		left, failed := take(ctx, tsuids)
		again, err = append(again, left...), errors.Join(err, failed)
	}
	return again, err
}

// describedOne passes a series on to which a client has given a TSMeta, which is stored whether that succeeds or not.
func (n *names) describedOne(ctx context.Context, tsuid encoding.UID) {
	if _, err := n.described(ctx, []string{string(tsuid)}); err != nil {
		n.log.Warn("a new series is not everywhere yet", "tsuid", tsuid, "err", err)
	}
}

func (n *names) metaTables() meta.Config {
	return meta.Config{
		Store:     n.store,
		UIDTable:  n.cfg.TableUID,
		MetaTable: n.cfg.TableMeta,
		Schema:    n.cfg.Schema(),
		Names:     n.Dictionary,

		MappingTimes: n.mappingTimes(),
	}
}

// mappingTimes reports whether UIDs are recorded by the times of their mappings: an embedded store has those of
// this process alone.
func (n *names) mappingTimes() bool { return n.cfg.Embedded() && n.cfg.MetaFlags().RealtimeUID }

// observer returns the tracker for the writer. Without a tracker it returns a nil
// interface, not one that holds a nil pointer.
func (n *names) observer() write.Observer {
	if n.tracker == nil {
		return nil
	}
	return n.tracker
}

// assigned passes a new UID to the tracker.
func (n *names) assigned(kind encoding.UIDKind, name string, u encoding.UID) {
	if n.tracker != nil {
		n.tracker.Assigned(kind, name, u)
	}
}

// stopTracker writes what is still to be recorded, and stops the tracker.
func (n *names) stopTracker() {
	if n.tracker == nil {
		return
	}
	if err := n.tracker.Close(); err != nil {
		n.log.Error("the last points are not recorded in the meta data", "err", err)
	}
}

// handlers returns what the metadata routes work with.
func (n *names) handlers(guard *access.Guard) metaroutes.Handlers {
	schema := n.cfg.Schema()
	finder := lookup.New(lookup.Config{
		Store:     n.store,
		DataTable: n.cfg.TableData,
		MetaTable: n.cfg.TableMeta,
		Schema:    schema,
		Names:     n.Dictionary,
	})
	handlers := metaroutes.Handlers{
		Names:       n.Dictionary,
		Completion:  n.completion,
		Meta:        meta.New(n.metaTables()),
		Annotations: annotation.New(annotation.Config{Store: n.store, Table: n.cfg.TableData, Schema: schema}),
		Lookup:      finder,
		Last: last.New(last.Config{
			Store:         n.store,
			DataTable:     n.cfg.TableData,
			MetaTable:     n.cfg.TableMeta,
			Schema:        schema,
			Find:          finder,
			Counted:       n.cfg.MetaFlags().Tracking,
			FixDuplicates: n.cfg.FixDuplicates,
		}),
		Allowed: []rune(n.cfg.AllowSpecialChars),
		Guard:   guard,
		Timeout: n.cfg.QueryTimeout,
		Now:     time.Now,
		Zone:    n.zone,

		Described: n.describedOne,
	}

	if n.tracker != nil {
		handlers.FlushMeta = n.flushMeta
	}

	return handlers
}

// flushMeta has the meta data written that puts have still to record. For the request that asks for
// it, it takes as long as a write may: it is the work of all puts.
func (n *names) flushMeta(ctx context.Context) error {
	if n.cfg.PutTimeout <= 0 { // a Config that no environment was read into
		return n.tracker.Flush(ctx)
	}
	late := &httpio.WriteTimeError{Limit: n.cfg.PutTimeout}
	ctx, cancel := context.WithTimeoutCause(ctx, n.cfg.PutTimeout, late)
	defer cancel()
	err := n.tracker.Flush(ctx)
	if err != nil && context.Cause(ctx) == error(late) {
		return late
	}
	return err
}

// forgetMeta makes the tracker of meta data look again which series have some.
func (n *names) forgetMeta() {
	if n.tracker != nil {
		n.tracker.Forget()
	}
}

// abandon stops all waiting for the store.
func (n *names) abandon() {
	if n.tracker != nil {
		n.tracker.Abandon()
	}
}
