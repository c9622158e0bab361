package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// stretch is a stretch of the data table that a tool reads, and which of its rows.
type stretch struct {
	store.KeyRange
	filter   store.RowFilter
	compiled *plan.Compiled // nil for every row
	// before are stretches of other sub-queries that have keys of this one. Rows that they
	// admit are theirs.
	before []*stretch
}

// queried returns the stretches of the rows that queries read, in the order of their keys:
// START [END] and one or more sub-queries, as query takes them. Rates and downsampling are
// left out: they are about values, and a downsampler would read intervals beyond START and END.
func (x *work) queried(ctx context.Context, args []string) ([]stretch, error) {
	body, err := queryArguments(args, x.parser())
	if err != nil {
		return nil, err
	}
	for i := range body.Queries {
		q := &body.Queries[i]
		q.Downsample, q.Rate, q.RateOptions = "", false, nil
	}
	q, err := body.parse(x.parser())
	if err != nil {
		return nil, err
	}
	plans, err := x.engine().Compile(ctx, q)
	if err != nil {
		return nil, err
	}

	var all []stretch
	for _, compiled := range plans {
		all = append(all, stretchesOf(compiled)...)
	}
	slices.SortStableFunc(all, func(a, b stretch) int { return bytes.Compare(a.Start, b.Start) })

	dealOverlaps(all)
	return all, nil
}

// stretchesOf returns the stretches that a sub-query reads.
func stretchesOf(compiled *plan.Compiled) (all []stretch) {
	if compiled.Nothing != "" {
		return nil
	}
	for _, r := range compiled.Plan.Ranges {
		access := operator.ChooseFilter(&scanplan.Part{Plan: *compiled.Plan, Range: r})
		if !access.Nothing {
			all = append(all, stretch{
				KeyRange: store.KeyRange{Start: r.Start, Stop: r.Stop},
				filter:   access.Filter,
				compiled: compiled,
			})
		}
	}
	return all
}

// seriesRow is a row with the series that it is of.
type seriesRow struct {
	store.Row
	key   encoding.RowKey
	named *namedSeries
	// bad is why the key is none; nil for a row of a series, or of global annotations.
	bad error
}

// walk reads the rows of a stretch that it is about, and those of impossible keys. A row is valid until the next one.
func (x *work) walk(ctx context.Context, s *stretch, names *namer, keysOnly bool) iter.Seq2[seriesRow, error] {
	scan := store.Scan{
		Table:    x.Tables.Data,
		Start:    s.Start,
		Stop:     s.Stop,
		Family:   encoding.FamilyData,
		Filter:   s.filter,
		KeysOnly: keysOnly,
	}
	return func(yield func(seriesRow, error) bool) {
		for row, err := range wholetable.Rows(ctx, x.Store, scan) {
			of, admitted := seriesRow{Row: row}, true
			if err == nil {
				of.key, of.bad = x.Schema.ParseRowKey(row.Key)
			}
			if err == nil && of.bad == nil {
				if of.named, admitted, err = s.look(ctx, row.Key, of.key, names); err != nil {
					err = fmt.Errorf("row %x: %w", row.Key, err)
				}
			}
			if (err != nil || admitted) && !yield(of, err) || err != nil {
				return
			}
		}
	}
}

// look returns the series of a row, unless the row is one that the stretch is not about. Names are
// looked up last, because that is slow.
func (s *stretch) look(ctx context.Context, row []byte, key encoding.RowKey, names *namer) (*namedSeries, bool, error) {
	if !s.wants(key) {
		return nil, false, nil
	}
	named, err := names.series(ctx, key)
	if err != nil {
		return nil, false, err
	}
	ok, err := s.admits(row, key, named)
	return named, ok, err
}

// dealOverlaps gives rows that two sub-queries ask for to the first of them, so that they
// are read once. Stretches are in the order of their first keys.
func dealOverlaps(all []stretch) {
	// before points to copies, because startAt moves and cuts the stretches of all.
	asRead := slices.Clone(all)
	var open []*stretch // those that go beyond the first key of the next one
	for i := range all {
		open = slices.DeleteFunc(open, func(s *stretch) bool {
			return len(s.Stop) > 0 && bytes.Compare(s.Stop, all[i].Start) <= 0
		})
		for _, s := range open {
			// Ranges of one plan do not overlap, and those of another may.
			if s.compiled != all[i].compiled {
				all[i].before = append(all[i].before, s)
			}
		}
		open = append(open, &asRead[i])
	}
}

// contains reports whether the stretch has a key.
func (s *stretch) contains(key []byte) bool {
	return bytes.Compare(s.Start, key) <= 0 && (len(s.Stop) == 0 || bytes.Compare(key, s.Stop) < 0)
}

// metricsPerStretch is the number of metrics that a stretch of an embedded store has.
const metricsPerStretch = 16

// everything returns the stretches of the whole data table: its regions, or, where there is
// one, some metrics each.
func (x *work) everything(ctx context.Context) ([]stretch, error) {
	regions, err := x.Store.Regions(ctx, x.Tables.Data, nil, nil)
	if err != nil {
		return nil, err
	}
	if len(regions) > 1 {
		var all []stretch
		for _, r := range regions {
			all = append(all, stretch{KeyRange: store.KeyRange{Start: bytes.Clone(r.Start), Stop: bytes.Clone(r.Stop)}})
		}
		return all, nil
	}

	// In the order of their UIDs, as row keys are.
	metrics, err := namesInOrder(ctx, x.Names, encoding.UIDMetric, anyName)
	if err != nil {
		return nil, err
	}
	// The stretches have all keys between them, those of metrics without a name, too.
	var cuts [][]byte
	for bucket := range x.Schema.Buckets() {
		salt := x.Schema.AppendSalt(nil, bucket)
		if bucket > 0 { // nothing is before the first one
			cuts = append(cuts, salt)
		}
		for i := metricsPerStretch; i < len(metrics); i += metricsPerStretch {
			cuts = append(cuts, slices.Concat(salt, metrics[i].UID))
		}
	}

	var all []stretch
	var start []byte
	for _, cut := range append(cuts, nil) {
		all = append(all, stretch{KeyRange: store.KeyRange{Start: start, Stop: cut}})
		start = cut
	}
	return all, nil
}

// startAt drops what comes before a key.
func startAt(all []stretch, from []byte) []stretch {
	kept := all[:0]
	for _, s := range all {
		if len(s.Stop) > 0 && bytes.Compare(s.Stop, from) <= 0 {
			continue
		}
		if bytes.Compare(s.Start, from) < 0 {
			s.Start = from
		}
		kept = append(kept, s)
	}
	return kept
}

// namer spells the series of rows: each hour has the same series again, and a look-up of
// their names is slow. It is for one goroutine.
type namer struct {
	names  *uid.Dictionary
	schema encoding.Schema
	cache  map[string]*namedSeries // by TSUID
	bytes  int                     // size of cache
	bound  int                     // of bytes
	key    []byte                  // scratch
}

// namedSeries is a series with its names.
type namedSeries struct {
	metric string
	tags   []write.Tag       // in the order of their UIDs
	values map[string]string // of tags, by the UID of the key
	orphan string            // which of its UIDs has no name, "" if all have

	// lineTags are the tags as import lines have them, " host=web01 cpu=0". noLine is why
	// lines cannot hold the series.
	lineTags string
	noLine   error
}

// Bounds of what a namer keeps, in bytes: of each of several, or in a gateway, and of one
// that has a process for itself.
const (
	namerBytes      = 4 << 20
	aloneNamerBytes = 64 << 20
)

func (s *Served) namer(bound int) *namer {
	return &namer{names: s.Names, schema: s.Schema, cache: map[string]*namedSeries{}, bound: bound}
}

// series returns the series of a row.
func (n *namer) series(ctx context.Context, key encoding.RowKey) (*namedSeries, error) {
	n.key = append(append(n.key[:0], key.Metric...), key.Tags...)
	if s, ok := n.cache[string(n.key)]; ok {
		return s, nil
	}
	s, err := n.read(ctx, key)
	if err != nil {
		return nil, err
	}
	n.keep(s)
	return s, nil
}

// What a series takes in a namer on top of its names and UIDs, and each of its tags.
const (
	seriesCost = 256
	tagCost    = 128
)

// keep keeps a series, whose key is n.key, for the hours to come. A full cache is emptied:
// the series that come next are looked up again.
func (n *namer) keep(s *namedSeries) {
	cost := seriesCost + 2*len(n.key) + len(s.metric) + len(s.tags)*tagCost
	for _, t := range s.tags {
		cost += 2 * (len(t.K) + len(t.V)) // once more in its line
	}
	if n.bytes+cost > n.bound {
		clear(n.cache)
		n.bytes = 0
	}
	n.cache[string(n.key)] = s
	n.bytes += cost
}

// read asks for the names of a series.
func (n *namer) read(ctx context.Context, key encoding.RowKey) (*namedSeries, error) {
	s := &namedSeries{values: map[string]string{}}
	var missing *uid.NoSuchIDError
	name := func(kind encoding.UIDKind, u encoding.UID) (string, error) {
		text, err := n.names.Name(ctx, kind, u)
		if errors.As(err, &missing) {
			if s.orphan == "" {
				s.orphan = fmt.Sprintf("%s %x", kind, []byte(u))
			}
			// The name stands in as its UID: a row with it is reported, or exported as damage.
			return fmt.Sprintf("[%x]", []byte(u)), nil
		}
		return text, err
	}

	var err error
	if s.metric, err = name(encoding.UIDMetric, key.Metric); err != nil {
		return nil, err
	}
	for _, p := range n.schema.AppendPairs(nil, key.Tags) {
		k, err := name(encoding.UIDTagK, p.K)
		if err != nil {
			return nil, err
		}
		v, err := name(encoding.UIDTagV, p.V)
		if err != nil {
			return nil, err
		}
		s.tags = append(s.tags, write.Tag{K: k, V: v})
		s.values[string(p.K)] = v
	}
	s.lineTags, s.noLine = s.spell()
	return s, nil
}

// spell returns the tags as lines have them, or an error if lines cannot hold the series.
func (s *namedSeries) spell() (string, error) {
	switch {
	case s.orphan != "":
		return "", fmt.Errorf("%s has no name", s.orphan)
	case len(s.tags) == 0:
		return "", fmt.Errorf("%s has no tags, which an import line must have", s.metric)
	}
	if err := checkName(s.metric); err != nil {
		return "", err
	}
	var text []byte
	var err error
	for _, t := range s.tags {
		if text, err = appendTag(text, t.K, t.V); err != nil {
			return "", err
		}
	}
	return string(text), nil
}

// forget drops what is known of a series, so that its names are read again.
func (n *namer) forget(key encoding.RowKey) {
	delete(n.cache, string(append(append([]byte(nil), key.Metric...), key.Tags...)))
}

// wants reports whether a row has the metric, the time and the tags that the stretch is about. Queries read rows before
// and after those that have points between their start and end, and the store may return others still.
func (s *stretch) wants(key encoding.RowKey) bool {
	if s.compiled == nil {
		return true
	}
	p := s.compiled.Plan
	base := int64(key.BaseTime) * 1000
	return base <= p.End && base+encoding.RowSeconds*1000 > p.Start && bytes.Equal(key.Metric, p.Metric) &&
		admits(p, key.Tags)
}

// admits reports whether a row is one that the stretch is about, and not one of those before.
func (s *stretch) admits(row []byte, key encoding.RowKey, named *namedSeries) (bool, error) {
	if s.compiled == nil {
		return true, nil
	}
	if !s.wants(key) {
		return false, nil
	}
	if ok, err := named.matches(s.compiled); err != nil || !ok {
		return false, err
	}
	for _, b := range s.before {
		if !b.contains(row) {
			continue
		}
		if is, err := b.admits(row, key, named); err != nil || is {
			return false, err
		}
	}
	return true, nil
}

// matches applies those filters of a query to a series that its plan leaves to the names.
func (s *namedSeries) matches(c *plan.Compiled) (bool, error) {
	if c.PostFilter == nil {
		return true, nil
	}
	keep := c.PostFilter.Keep(func(tagk encoding.UID) (string, bool) {
		v, ok := s.values[string(tagk)]
		return v, ok
	})
	return keep, c.PostFilter.Err()
}

// admits applies a plan's tag predicates to a series: the store may return rows
// that they do not admit.
func admits(p *scanplan.Plan, tags []byte) bool {
	for _, want := range p.Tags {
		v, ok := p.Schema.Tag(tags, want.TagK)
		if !ok {
			return false
		}
		in := slices.ContainsFunc(want.Values, func(u encoding.UID) bool { return bytes.Equal(u, v) })
		if want.Op == scanplan.In && !in || want.Op == scanplan.NotIn && in {
			return false
		}
	}
	// All tags of the plan are there: with as many in all, there is no other.
	return !p.Exact || len(tags) == len(p.Tags)*p.Schema.TagWidth()
}
