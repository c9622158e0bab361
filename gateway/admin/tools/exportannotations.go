package tools

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// notes writes the annotations of the row that was decoded last, or counts them
// as left out.
func (x *exporter) notes(p *scanplan.Plan, series string) error {
	for _, value := range x.decoder.Annotations() {
		if err := x.note(value, series, p.Start, p.End); err != nil {
			return err
		}
	}
	return nil
}

// note writes an annotation that begins between two times in ms.
func (x *exporter) note(value []byte, series string, from, to int64) error {
	a, err := encoding.ParseAnnotation(value)
	if err != nil {
		x.counts.Unsaid++
		return nil
	}
	at := a.StartTime
	if !write.IsMillis(at) {
		at *= 1000
	}
	switch {
	case at < from || at > to:
		return nil
	case !x.noting:
		x.counts.Notes++
		return nil
	}
	a.TSUID = "" // the series says it
	return x.say(remark{mark: noteMark, Series: series, Value: encoding.AppendAnnotation(nil, a)})
}

// say writes a remark.
func (x *exporter) say(r remark) (err error) {
	if x.line, err = appendRemark(x.line[:0], r); err != nil {
		x.counts.Unsaid++
		return nil
	}
	x.line = append(x.line, '\n')
	x.counts.Remarks++
	_, err = x.out.Write(x.line)
	return err
}

// rest writes what is of no metric's rows: global annotations, and meta data.
func (x *exporter) rest(ctx context.Context, times [2]string) error {
	if err := x.globals(ctx, times); err != nil {
		return fmt.Errorf("global annotations: %w", err)
	}
	if err := x.cells(ctx, store.Scan{Table: x.call.Tables.UID, Family: encoding.FamilyName}, x.uidMeta); err != nil {
		return fmt.Errorf("%s: %w", x.call.Tables.UID, err)
	}
	if err := x.cells(ctx, store.Scan{Table: x.call.Tables.Meta, Family: encoding.FamilyName}, x.tsMeta); err != nil {
		return fmt.Errorf("%s: %w", x.call.Tables.Meta, err)
	}
	return nil
}

// cells passes the rows of a scan.
func (x *exporter) cells(ctx context.Context, s store.Scan, each func(context.Context, store.Row) error) error {
	s.BlockBytes = exportBlock
	for row, err := range store.Rows(ctx, x.conn.store, s) {
		if err != nil {
			return err
		}
		if err := each(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// globals writes the global annotations: their rows have the metric 0 and no
// tags.
func (x *exporter) globals(ctx context.Context, times [2]string) error {
	values := url.Values{"start": {times[0]}, "m": {"none:m"}}
	if times[1] != "" {
		values.Set("end", times[1])
	}
	q, err := x.call.parser().URI(values)
	if err != nil {
		return err
	}
	schema := x.call.Schema
	metric := make(encoding.UID, schema.MetricWidth)
	s := store.Scan{Table: x.call.Tables.Data, Family: encoding.FamilyData, Start: schema.AppendRangeKey(nil, 0, metric, 0)}
	s.Stop = append(schema.AppendRangeKey(nil, 0, metric, 1<<32-1), 0)
	return x.cells(ctx, s, func(_ context.Context, row store.Row) error {
		for _, c := range row.Cells {
			if _, _, err := encoding.ParseAnnotationQualifier(c.Qualifier); err != nil {
				continue
			}
			if err := x.note(c.Value, "", q.Start, q.End); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *exporter) uidMeta(ctx context.Context, row store.Row) error {
	for _, c := range row.Cells {
		kind, isMeta, ok := encoding.ParseUIDKind(c.Qualifier)
		if !ok || !isMeta {
			continue
		}
		name, err := x.conn.names.Name(ctx, kind, append(encoding.UID{}, row.Key...))
		if err = x.gone(err); err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if err := x.say(remark{mark: uidMetaMark, Kind: kind.String(), Name: name, Value: c.Value}); err != nil {
			return err
		}
	}
	return nil
}

// gone counts what is of a name that is gone, and lets other errors pass.
func (x *exporter) gone(err error) error {
	var none *uid.NoSuchIDError
	if errors.As(err, &none) || errors.Is(err, errName) {
		x.counts.Unsaid++
		return nil
	}
	return err
}

func (x *exporter) tsMeta(ctx context.Context, row store.Row) error {
	series, err := x.spell(ctx, row.Key)
	if err = x.gone(err); err != nil || series == "" {
		return err
	}
	r := remark{mark: tsMetaMark, Series: series}
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case encoding.TSMetaQualifier:
			m, err := encoding.ParseTSMeta(c.Value)
			if err != nil {
				x.counts.Unsaid++
				continue
			}
			m.TSUID = "" // the series says it
			r.Value = encoding.AppendTSMeta(nil, m)
		case encoding.MetaCounterQualifier:
			n, err := encoding.ParseCounter(c.Value)
			if err != nil {
				x.counts.Unsaid++
				continue
			}
			r.Counter = &n
		}
	}
	if r.Value == nil && r.Counter == nil {
		return nil
	}
	return x.say(r)
}

// spell is a TSUID as a line spells the series, "" if it is no TSUID.
func (x *exporter) spell(ctx context.Context, tsuid []byte) (string, error) {
	schema := x.call.Schema
	metric, tags, err := schema.SplitTSUID(append([]byte{}, tsuid...))
	if err != nil {
		x.counts.Unsaid++
		return "", nil
	}
	name, err := x.conn.names.Name(ctx, encoding.UIDMetric, metric)
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return "", err
	}
	text, _, err := x.spellTags(ctx, tags)
	if err != nil {
		return "", err
	}
	return name + text, nil
}
