package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// metaWriter stores the names and the meta lines of an import file.
type metaWriter struct {
	settings *Settings
	st       Store
	names    *uid.Dictionary
	auto     write.Auto
	series   *write.SeriesCache
	// flush writes the meta data of points that were put before and whose meta data
	// is still pending. It is nil if points record no meta data. It runs first, so
	// that the objects of the file replace those that points create.
	flush func(context.Context) error
}

// assign gives names their UIDs, in the order given, if the settings allow new
// names of that kind.
func (m *metaWriter) assign(ctx context.Context, names []nameLine) error {
	for part := range slices.Chunk(names, namesAtOnce) {
		if err := m.assignSome(ctx, part); err != nil {
			return err
		}
	}
	return m.names.Sync(ctx)
}

// namesAtOnce bounds the names that assignSome is given, and so its memory.
const namesAtOnce = 1000

// assignSome is assign, but the UIDs are durable only with the next write.
func (m *metaWriter) assignSome(ctx context.Context, names []nameLine) error {
	allowed := [...]bool{m.auto.Metrics, m.auto.TagKs, m.auto.TagVs}
	var byKind [3][]string
	for _, n := range names {
		// A name that is not allowed is no error here: the points that use it are
		// refused later, with their line numbers.
		if allowed[n.kind] && encoding.ValidateName(n.kind.String(), n.name, m.settings.Allowed...) == nil {
			byKind[n.kind] = append(byKind[n.kind], n.name)
		}
	}

	for k, list := range byKind {
		kind := encoding.UIDKind(k)
		uid.Staged{Dictionary: m.names}.Prepare(ctx, kind, list)
		for _, name := range list {
			// Not prepared: Assign gives it a UID, or says why it has none.
			if !m.names.Cached(kind, name) {
				if _, err := m.names.Assign(ctx, kind, name); err != nil {
					return fmt.Errorf("%s %s: %w", kind, name, err)
				}
			}
		}
	}
	return nil
}

// metaCells are the cells of some meta lines, by table.
type metaCells struct {
	data, uid, meta []store.Mutation
	counters        []seriesCounter
}

// seriesCounter is the number of points that a series had where it was exported.
type seriesCounter struct {
	tsuid []byte
	value int64
}

// store writes meta lines; each replaces the stored object. A counter is written
// only if the series has none, because imported points are counted as they are
// written. It refuses lines that are wrong or whose names may not be assigned.
func (m *metaWriter) store(ctx context.Context, all []metaLine) (refused []refusal, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	// Otherwise pending meta data of points would replace these objects later.
	if m.flush != nil {
		if err := m.flush(ctx); err != nil {
			return nil, err
		}
	}

	var c metaCells
	for i := range all {
		err := m.addCells(ctx, &c, &all[i])
		// An answer from a cache comes even after the request has ended.
		if err == nil {
			err = context.Cause(ctx)
		}
		switch {
		case err == nil:
		case fatal(ctx, err):
			return refused, fmt.Errorf("line %d: %w", all[i].line, err)
		default:
			refused = append(refused, refusal{all[i].line, fmt.Errorf("%s: %w", all[i].prefix, err)})
		}
	}

	return refused, m.write(ctx, &c)
}

// write stores the cells of each table, then the counters.
func (m *metaWriter) write(ctx context.Context, c *metaCells) error {
	for _, t := range []struct {
		table string
		cells []store.Mutation
	}{{m.settings.Tables.Data, c.data}, {m.settings.Tables.UID, c.uid}, {m.settings.Tables.Meta, c.meta}} {
		if len(t.cells) == 0 {
			continue
		}
		if err := m.st.Apply(ctx, t.table, t.cells); err != nil {
			return err
		}
	}

	for _, counter := range c.counters {
		if err := m.writeCounter(ctx, counter); err != nil {
			return err
		}
	}
	return nil
}

func (m *metaWriter) writeCounter(ctx context.Context, c seriesCounter) error {
	key := store.CellKey{Row: c.tsuid, Family: encoding.FamilyName, Qualifier: []byte(encoding.MetaCounterQualifier)}
	_, err := m.st.CompareAndPut(ctx, m.settings.Tables.Meta, key, nil, encoding.AppendCounter(nil, c.value))
	return err
}

// addCells adds the cells of one meta line.
func (m *metaWriter) addCells(ctx context.Context, c *metaCells, r *metaLine) error {
	if r.prefix == uidMetaPrefix {
		return m.addUIDMeta(ctx, c, r)
	}

	tsuid, err := m.tsuid(ctx, r.Series)
	if err != nil {
		return err
	}
	if r.prefix == annotationPrefix {
		return m.addAnnotation(c, r, tsuid)
	}
	// Only a TSMeta must have a series: an annotation without one is a global one.
	if tsuid == nil {
		return fmt.Errorf("series: got %q, want metric and tags", r.Series)
	}
	return m.addTSMeta(c, r, tsuid)
}

// addAnnotation adds the cell of an annotation. tsuid is empty for a global one.
func (m *metaWriter) addAnnotation(c *metaCells, r *metaLine, tsuid []byte) error {
	a, err := encoding.ParseAnnotation(r.Value)
	if err != nil {
		return err
	}

	// The TSUID of where it was exported may be another series' here.
	a.TSUID = hexText(tsuid)
	row, err := m.settings.Schema.AppendAnnotationKey(nil, tsuid, a.StartTime)
	if err != nil {
		return err
	}

	c.data = append(c.data, store.Mutation{Kind: store.Put, Row: row, Family: encoding.FamilyData,
		Qualifier: encoding.AppendAnnotationQualifier(nil, a.StartTime), Value: encoding.AppendAnnotation(nil, a)})
	return nil
}

// addUIDMeta adds the cell of a UIDMeta object, in the row of the UID that the name has
// here.
func (m *metaWriter) addUIDMeta(ctx context.Context, c *metaCells, r *metaLine) error {
	kind, ok := kinds[r.Kind]
	if !ok {
		return fmt.Errorf("kind: got %q, want metrics, tagk or tagv", r.Kind)
	}

	v, err := encoding.ParseUIDMeta(r.Value)
	if err != nil {
		return err
	}
	u, err := m.names.Resolve(ctx, kind, r.Name)
	if err != nil {
		return err
	}

	c.uid = append(c.uid, store.Mutation{Kind: store.Put, Row: u, Family: encoding.FamilyName,
		Qualifier: kind.MetaQualifier(), Value: encoding.AppendUIDMeta(nil, v)})
	return nil
}

// addTSMeta adds the cell of a TSMeta object and the counter of its series; a line may
// have either alone.
func (m *metaWriter) addTSMeta(c *metaCells, r *metaLine, tsuid []byte) error {
	if r.Counter != nil {
		c.counters = append(c.counters, seriesCounter{tsuid, *r.Counter})
	}
	if len(r.Value) == 0 {
		return nil
	}

	v, err := encoding.ParseTSMeta(r.Value)
	if err != nil {
		return err
	}

	v.TSUID = hexText(tsuid)
	c.meta = append(c.meta, store.Mutation{Kind: store.Put, Row: tsuid, Family: encoding.FamilyName,
		Qualifier: []byte(encoding.TSMetaQualifier), Value: encoding.AppendTSMeta(nil, v)})
	return nil
}

// tsuid returns the TSUID of a series as lines spell it, or nil for "". It assigns
// UIDs as a put does.
func (m *metaWriter) tsuid(ctx context.Context, series string) ([]byte, error) {
	if series == "" {
		return nil, nil
	}
	metric, tags, err := splitNames([]byte(series))
	if err != nil {
		return nil, err
	}

	// A point is only made for its check of the names.
	p := write.Point{Metric: metric, Tags: tags, Time: 1, Value: encoding.IntValue(1)}
	if err := p.Validate(m.settings.Schema, m.settings.Allowed...); err != nil {
		return nil, err
	}

	s, err := m.series.Resolve(ctx, metric, tags)
	if err != nil {
		return nil, err
	}
	return append(append([]byte{}, s.Metric...), s.Tags...), nil
}

// hexText returns a TSUID as stored JSON has it: upper-case hex, "" for none. Source: UniqueId.uidToString.
func hexText(tsuid []byte) string { return strings.ToUpper(fmt.Sprintf("%x", tsuid)) }
