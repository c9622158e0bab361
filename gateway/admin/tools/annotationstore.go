package tools

import (
	"context"
	"fmt"
	"strings"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// remarks stores what an import file says beside points.
type remarks struct {
	settings *Settings
	st       Store
	names    *uid.Dictionary
	auto     write.Auto
	series   *write.Series
	// flush records in the meta data what points have left to be recorded; nil
	// where they record nothing. What is stored here is stored over that.
	flush func(context.Context) error
}

// assign gives names their UIDs, in this order, as far as that is allowed.
func (m *remarks) assign(ctx context.Context, names []listedName) error {
	allowed := [...]bool{m.auto.Metrics, m.auto.TagKs, m.auto.TagVs}
	for _, n := range names {
		// Points of a name that is not allowed are refused, with their lines.
		if !allowed[n.kind] || encoding.ValidateName(n.kind.String(), n.name, m.settings.Allowed...) != nil {
			continue
		}
		if _, err := m.names.Assign(ctx, n.kind, n.name); err != nil {
			return fmt.Errorf("%s %s: %w", n.kind, n.name, err)
		}
	}
	return nil
}

// cellsOf are the cells of some remarks, by table.
type cellsOf struct {
	data, uid, meta []store.Mutation
	counters        []counterOf
}

// counterOf is the counter of a series that had so many points elsewhere.
type counterOf struct {
	tsuid []byte
	value int64
}

// store writes remarks, each in the place of what was there; a counter is
// written where there is none, for points that are imported count by themselves.
// Refused are remarks that are wrong or whose names may not be assigned.
func (m *remarks) store(ctx context.Context, all []remark) (refused []refusal, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	if m.flush != nil {
		if err := m.flush(ctx); err != nil {
			return nil, err
		}
	}
	var c cellsOf
	for i := range all {
		if err := m.cells(ctx, &c, &all[i]); fatal(ctx, err) {
			return refused, fmt.Errorf("line %d: %w", all[i].line, err)
		} else if err != nil {
			refused = append(refused, refusal{all[i].line, fmt.Errorf("%s: %w", all[i].mark, err)})
		}
	}
	return refused, m.write(ctx, &c)
}

func (m *remarks) write(ctx context.Context, c *cellsOf) error {
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
		if err := m.count(ctx, counter); err != nil {
			return err
		}
	}
	return nil
}

func (m *remarks) count(ctx context.Context, c counterOf) error {
	key := store.CellKey{Row: c.tsuid, Family: encoding.FamilyName, Qualifier: []byte(encoding.MetaCounterQualifier)}
	_, err := m.st.CompareAndPut(ctx, m.settings.Tables.Meta, key, nil, encoding.AppendCounter(nil, c.value))
	return err
}

// cells adds the cells of one remark.
func (m *remarks) cells(ctx context.Context, c *cellsOf, r *remark) error {
	if r.mark == uidMetaMark {
		return m.uidMeta(ctx, c, r)
	}
	tsuid, err := m.tsuid(ctx, r.Series)
	if err != nil {
		return err
	}
	if r.mark == noteMark {
		return m.note(c, r, tsuid)
	}
	if tsuid == nil {
		return fmt.Errorf("series: got %q, want metric and tags", r.Series)
	}
	return m.tsMeta(c, r, tsuid)
}

func (m *remarks) note(c *cellsOf, r *remark, tsuid []byte) error {
	a, err := encoding.ParseAnnotation(r.Value)
	if err != nil {
		return err
	}
	a.TSUID = hexText(tsuid)
	row, err := m.settings.Schema.AppendAnnotationKey(nil, tsuid, a.StartTime)
	if err != nil {
		return err
	}
	c.data = append(c.data, store.Mutation{Kind: store.Put, Row: row, Family: encoding.FamilyData,
		Qualifier: encoding.AppendAnnotationQualifier(nil, a.StartTime), Value: encoding.AppendAnnotation(nil, a)})
	return nil
}

func (m *remarks) uidMeta(ctx context.Context, c *cellsOf, r *remark) error {
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

func (m *remarks) tsMeta(c *cellsOf, r *remark, tsuid []byte) error {
	if r.Counter != nil {
		c.counters = append(c.counters, counterOf{tsuid, *r.Counter})
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

// tsuid is the TSUID of a series as lines spell it, nil for "".
func (m *remarks) tsuid(ctx context.Context, series string) ([]byte, error) {
	if series == "" {
		return nil, nil
	}
	metric, tags, err := splitNames([]byte(series))
	if err != nil {
		return nil, err
	}
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

// hexText is a TSUID as stored JSON has it. Source: UniqueId.uidToString.
func hexText(tsuid []byte) string { return strings.ToUpper(fmt.Sprintf("%x", tsuid)) }
