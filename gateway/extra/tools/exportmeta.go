package tools

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// writeAnnotations writes the annotations of the row that was decoded last, or
// counts them as left out.
func (x *exporter) writeAnnotations(p *scanplan.Plan, series string) error {
	for _, value := range x.decoder.Annotations() {
		if err := x.writeAnnotation(value, series, p.Start, p.End); err != nil {
			return err
		}
	}
	return nil
}

// writeAnnotation writes an annotation if it begins between two times in ms.
func (x *exporter) writeAnnotation(value []byte, series string, from, to int64) error {
	a, err := encoding.ParseAnnotation(value)
	// A broken text, or one that cannot be a line, is counted and does not end the export.
	if err != nil {
		x.counts.SkippedMeta++
		return nil
	}

	at := a.StartTime
	if !write.IsMillis(at) {
		at *= 1000
	}

	switch {
	case at < from || at > to:
		return nil
	case !x.withMeta:
		x.counts.Annotations++
		return nil
	}

	a.TSUID = "" // the series says it
	return x.writeMetaLine(metaLine{prefix: annotationPrefix, Series: series, Value: encoding.AppendAnnotation(nil, a)})
}

// writeMetaLine writes a meta line. One that cannot be written is counted.
func (x *exporter) writeMetaLine(r metaLine) (err error) {
	if x.line, err = appendMetaLine(x.line[:0], r); err != nil {
		x.counts.SkippedMeta++
		return nil
	}

	x.line = append(x.line, '\n')
	x.counts.Meta++
	_, err = x.out.Write(x.line)
	return err
}

// writeMetadata writes what is not in the rows of metrics: global annotations, and
// the objects of the UID and meta tables.
func (x *exporter) writeMetadata(ctx context.Context, times [2]string) error {
	if err := x.writeGlobalAnnotations(ctx, times); err != nil {
		return fmt.Errorf("global annotations: %w", err)
	}
	if err := x.scanRows(ctx, store.Scan{
		Table:  x.Tables.UID,
		Family: encoding.FamilyName,
	}, x.writeUIDMeta); err != nil {
		return fmt.Errorf("%s: %w", x.Tables.UID, err)
	}
	if err := x.scanRows(ctx, store.Scan{
		Table:  x.Tables.Meta,
		Family: encoding.FamilyName,
	}, x.writeTSMeta); err != nil {
		return fmt.Errorf("%s: %w", x.Tables.Meta, err)
	}
	return nil
}

// scanRows calls each with every row of a scan.
func (x *exporter) scanRows(ctx context.Context, s store.Scan, each func(context.Context, store.Row) error) error {
	for row, err := range wholetable.Rows(ctx, x.Store, s) {
		if err != nil {
			return err
		}
		if err := each(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// writeGlobalAnnotations writes the annotations of no series: their rows have the
// metric 0 and no tags.
func (x *exporter) writeGlobalAnnotations(ctx context.Context, times [2]string) error {
	// No query is run: parsing one reads the times, and any metric will do.
	values := url.Values{"start": {times[0]}, "m": {"none:m"}}
	if times[1] != "" {
		values.Set("end", times[1])
	}
	q, err := x.parser().URI(values)
	if err != nil {
		return err
	}

	// All hours: these rows are few, and their annotations are selected by their own times.
	schema := x.Schema
	metric := make(encoding.UID, schema.MetricWidth)
	s := store.Scan{Table: x.Tables.Data, Family: encoding.FamilyData, Start: schema.AppendRangeKey(nil, 0, metric, 0)}
	// The keys end with their hours: a zero byte makes the first key behind the last one.
	s.Stop = append(schema.AppendRangeKey(nil, 0, metric, 1<<32-1), 0)

	return x.scanRows(ctx, s, func(_ context.Context, row store.Row) error {
		for _, c := range row.Cells {
			if _, _, err := encoding.ParseAnnotationQualifier(c.Qualifier); err != nil {
				continue
			}
			if err := x.writeAnnotation(c.Value, "", q.Start, q.End); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeUIDMeta writes the UIDMeta objects of a row of the UID table, and those that the times of mappings stand for.
func (x *exporter) writeUIDMeta(ctx context.Context, row store.Row) error {
	var values [3][]byte // by kind
	for _, c := range row.Cells {
		switch kind, isMeta, ok := encoding.ParseUIDKind(c.Qualifier); {
		case ok && isMeta:
			values[kind] = c.Value
		case ok && values[kind] == nil && x.mappingTimes():
			values[kind] = encoding.AppendUIDMeta(nil,
				encoding.UIDMeta{Type: kind.MetaType(), Created: c.Timestamp / 1000})
		}
	}

	for k, value := range values {
		if value == nil {
			continue
		}
		kind := encoding.UIDKind(k)
		name, err := x.Names.Name(ctx, kind, append(encoding.UID{}, row.Key...))
		if err = x.ignoreDeletedName(err); err != nil {
			return err
		}
		if name == "" { // which is counted
			continue
		}
		if err := x.writeMetaLine(metaLine{
			prefix: uidMetaPrefix,
			Kind:   kind.String(),
			Name:   name,
			Value:  value,
		}); err != nil {
			return err
		}
	}
	return nil
}

// ignoreDeletedName counts an object whose name was deleted, or cannot be written
// in a line, and returns nil for it. It returns any other error.
func (x *exporter) ignoreDeletedName(err error) error {
	var none *uid.NoSuchIDError
	if errors.As(err, &none) || errors.Is(err, errName) {
		x.counts.SkippedMeta++
		return nil
	}
	return err
}

// writeTSMeta writes the TSMeta object and the counter of a row of the meta table.
func (x *exporter) writeTSMeta(ctx context.Context, row store.Row) error {
	series, err := x.spellTSUID(ctx, row.Key)
	if err != nil || series == "" {
		return err
	}

	r := metaLine{prefix: tsMetaPrefix, Series: series}
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case encoding.TSMetaQualifier:
			m, err := encoding.ParseTSMeta(c.Value)
			if err != nil {
				x.counts.SkippedMeta++
				continue
			}
			m.TSUID = "" // the series says it
			r.Value = encoding.AppendTSMeta(nil, m)
		case encoding.MetaCounterQualifier:
			n, err := encoding.ParseCounter(c.Value)
			if err != nil {
				x.counts.SkippedMeta++
				continue
			}
			r.Counter = &n
		}
	}

	// Neither column is there, or could be read.
	if r.Value == nil && r.Counter == nil {
		return nil
	}
	return x.writeMetaLine(r)
}

// spellTSUID returns the series of a TSUID as a line spells it. It returns "", and counts
// an object that is left out, if it is no TSUID, or of a series that no line can hold.
func (x *exporter) spellTSUID(ctx context.Context, tsuid []byte) (string, error) {
	schema := x.Schema
	metric, tags, err := schema.SplitTSUID(append([]byte{}, tsuid...))
	if err != nil {
		x.counts.SkippedMeta++
		return "", nil
	}

	s, err := x.names.series(ctx, encoding.RowKey{Metric: metric, Tags: tags})
	if err != nil {
		return "", err
	}
	if s.noLine != nil {
		x.counts.SkippedMeta++
		return "", nil
	}
	return s.metric + s.lineTags, nil
}
