package put

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"downpour/encoding"
	"downpour/gateway/uid"
)

// Names gives UIDs to names. gateway/uid has it.
type Names interface {
	// Resolve returns the UID of a name that exists.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Assign returns the UID of a name and gives it one if it has none. It is
	// durable before any row that is written later.
	Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
}

// SeriesKey is a series as row keys name it.
type SeriesKey struct {
	Metric encoding.UID
	Tags   []byte // tag pairs, ascending by tagk

	hash uint64
	// place is where among the rows of a batch the series' last point went: a
	// guess for the next one, which is checked.
	place atomic.Uint32
}

// seed is that of all series' hashes.
var seed = maphash.MakeSeed()

func newSeriesKey(metric encoding.UID, tags []byte) *SeriesKey {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(metric)
	h.Write(tags)
	return &SeriesKey{Metric: metric, Tags: tags, hash: h.Sum64()}
}

// lane spreads rows: the hours of one series, too.
func (k *SeriesKey) lane(base uint32) uint64 { return k.hash + uint64(base)/encoding.RowSeconds }

// Series finds series by name. It remembers a bounded number of them.
type Series struct {
	schema encoding.Schema
	names  Names
	// AutoMetrics, AutoTagKs and AutoTagVs let unknown names be assigned.
	auto  Auto
	cache *otter.Cache[string, *SeriesKey]
}

// Auto tells for which kinds unknown names are assigned a UID on put.
// Source: tsd.core.auto_create_metrics, _tagks, _tagvs.
type Auto struct{ Metrics, TagKs, TagVs bool }

// cachedSeries bounds the memory of the series cache: some 300 bytes each.
const cachedSeries = 200_000

// NewSeries returns an empty cache over names.
func NewSeries(schema encoding.Schema, names Names, auto Auto) *Series {
	return &Series{schema: schema, names: names, auto: auto,
		cache: otter.Must(&otter.Options[string, *SeriesKey]{MaximumSize: cachedSeries})}
}

// Drop forgets all series, for /api/dropcaches.
func (s *Series) Drop() { s.cache.InvalidateAll() }

// Cached returns the series that Resolve or Remember has seen under key.
func (s *Series) Cached(key string) (*SeriesKey, bool) { return s.cache.GetIfPresent(key) }

// Remember lets Cached find a series under a spelling of its own.
func (s *Series) Remember(key string, k *SeriesKey) { s.cache.Set(key, k) }

// Resolve returns the series of validated names, assigning those that may be
// assigned.
func (s *Series) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	key := canonical(metric, tags)
	if k, ok := s.cache.GetIfPresent(key); ok {
		return k, nil
	}
	k, err := s.resolve(ctx, metric, tags)
	if err == nil {
		s.cache.Set(key, k)
	}
	return k, err
}

// canonical spells a series the same way whatever the order of its tags. The
// separators cannot stand in names.
func canonical(metric string, tags []Tag) string {
	if !slices.IsSortedFunc(tags, compareTags) {
		tags = slices.Clone(tags)
		slices.SortFunc(tags, compareTags)
	}
	var b strings.Builder
	b.WriteString(metric)
	for _, t := range tags {
		b.WriteByte(0)
		b.WriteString(t.K)
		b.WriteByte(1)
		b.WriteString(t.V)
	}
	return b.String()
}

func compareTags(a, b Tag) int { return strings.Compare(a.K, b.K) }

func (s *Series) resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	for i, t := range tags {
		if slices.ContainsFunc(tags[:i], func(o Tag) bool { return o.K == t.K }) {
			return nil, fmt.Errorf("duplicate tag: %s", t.K)
		}
	}
	m, err := s.uid(ctx, encoding.UIDMetric, metric, s.auto.Metrics)
	if err != nil {
		return nil, err
	}
	pairs := make([]encoding.TagPair, len(tags))
	for i, t := range tags {
		if pairs[i].K, err = s.uid(ctx, encoding.UIDTagK, t.K, s.auto.TagKs); err != nil {
			return nil, err
		}
		if pairs[i].V, err = s.uid(ctx, encoding.UIDTagV, t.V, s.auto.TagVs); err != nil {
			return nil, err
		}
	}
	key := newSeriesKey(m, s.schema.AppendTags(nil, pairs)) // sorts pairs
	for i := 1; i < len(pairs); i++ {
		if slices.Equal(pairs[i-1].K, pairs[i].K) { // a name remembered from before its rename, and the new one
			return nil, fmt.Errorf("two tag keys of %s have the UID %s", metric, pairs[i].K)
		}
	}
	return key, nil
}

// maxName is the longest name: it is a row key of the UID table, of which HBase
// allows no longer one.
const maxName = 1<<15 - 1

// uid tells the faults of a name, which the client must mend, from those of the
// dictionary's store, after which the same point may be sent again.
func (s *Series) uid(ctx context.Context, kind encoding.UIDKind, name string, assign bool) (u encoding.UID, err error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("Name of %d bytes, at most %d are allowed", len(name), maxName)
	}
	if _, err := encoding.AppendName(nil, name); err != nil {
		return nil, err
	}
	if assign {
		u, err = s.names.Assign(ctx, kind, name)
	} else {
		u, err = s.names.Resolve(ctx, kind, name)
	}
	if err != nil && !refused(err) {
		return nil, &storageError{err}
	}
	return u, err
}

// refused tells whether no repetition could give the name a UID.
func refused(err error) bool {
	var unknown *uid.NoSuchNameError
	var full *uid.FullError
	var conflict *uid.ConflictError
	return errors.As(err, &unknown) || errors.As(err, &full) || errors.As(err, &conflict)
}
