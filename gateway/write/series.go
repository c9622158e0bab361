package write

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

// Names gives UIDs to names. uid.Staged implements it.
type Names interface {
	// Resolve returns the UID of a name that exists.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Assign returns the UID of a name and gives it one if it has none. It is
	// durable before any row that is written later.
	Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Prepare gives UIDs to the names that have none, as far as it can, faster than Assign
	// would one by one. Assign then finds them, or tells why there is none.
	Prepare(ctx context.Context, kind encoding.UIDKind, names []string)
	// Cached reports whether the UID of a name is in memory.
	Cached(kind encoding.UIDKind, name string) bool
	// Generation grows when names change. What was resolved in an earlier
	// generation must not be used any more.
	Generation() uint64
	// Hold keeps the names that were resolved in the returned generation or later
	// from being deleted until release is called. An error of release means that
	// they may have been deleted all the same; whoever waits for the rows gets it.
	Hold() (generation uint64, release func() error)
}

// SeriesKey is a series as it stands in row keys.
type SeriesKey struct {
	Metric encoding.UID
	Tags   []byte // tag pairs of UIDs, ascending by tagk

	generation uint64 // of names, in which it was resolved
	names      string // as canonical spells them
	hash       uint64
	// lastRow is the index, among the rows of a batch, of the row to which the
	// series' last point went: a guess for the next point, which is checked.
	lastRow atomic.Uint32
}

// seed is the seed of all hashes of series.
var seed = maphash.MakeSeed()

// newSeriesKey returns a series that has no names and no generation yet.
func newSeriesKey(metric encoding.UID, tags []byte) *SeriesKey {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(metric)
	h.Write(tags)
	return &SeriesKey{Metric: metric, Tags: tags, hash: h.Sum64()}
}

// bytes returns the memory of a series without the text of its names,
// approximately.
func (k *SeriesKey) bytes() int { return seriesBytes + len(k.Metric) + len(k.Tags) }

// rowHash spreads rows over shards: also the hours of one series.
func (k *SeriesKey) rowHash(base uint32) uint64 { return k.hash + uint64(base)/encoding.RowSeconds }

// SeriesCache finds series by their names. It caches them, under their names and under
// the spellings of clients (see Resolver).
type SeriesCache struct {
	cfg   SeriesConfig
	cache *otter.Cache[string, *SeriesKey]
}

// SeriesConfig says how names become series.
type SeriesConfig struct {
	Schema encoding.Schema
	Names  Names
	// Auto says which unknown names are assigned a UID.
	Auto Auto
	// Bytes bounds the memory of the cache. Default SeriesBytes.
	Bytes int64
}

// Auto says of which kinds unknown names are assigned a UID on put.
// Source: tsd.core.auto_create_metrics, _tagks, _tagvs.
type Auto struct{ Metrics, TagKs, TagVs bool }

// SeriesBytes is the memory for some 90,000 series of three tags, each cached under
// its names and one spelling.
const SeriesBytes = 64 << 20

// Approximate sizes in bytes.
const (
	seriesBytes = 144 // of a SeriesKey, without the text of its names
	entryBytes  = 96  // of a cache entry, without its key
)

// NewSeries returns an empty cache over names.
func NewSeries(cfg SeriesConfig) *SeriesCache {
	if cfg.Bytes <= 0 {
		cfg.Bytes = SeriesBytes
	}
	return &SeriesCache{cfg: cfg, cache: otter.Must(&otter.Options[string, *SeriesKey]{MaximumWeight: uint64(cfg.Bytes), Weigher: weigh})}
}

// weigh returns the bytes of a cache entry. The series counts with each of its
// spellings, since any of them may be the last that refers to it.
func weigh(key string, k *SeriesKey) uint32 {
	n := entryBytes + len(key) + k.bytes()
	if key != k.names {
		n += len(k.names)
	}
	return uint32(n)
}

// Drop empties the cache.
func (s *SeriesCache) Drop() { s.cache.InvalidateAll() }

// cached returns the series that is cached under a key, canonical or a client's
// spelling, if no name has changed since it was resolved.
func (s *SeriesCache) cached(key string) (*SeriesKey, bool) {
	k, ok := s.cache.GetIfPresent(key)
	if !ok || k.generation != s.cfg.Names.Generation() {
		return nil, false
	}
	return k, true
}

// cacheSpelling caches a series under a client's spelling. A spelling that is much
// longer than the names, because of blanks for example, is not worth the memory.
func (s *SeriesCache) cacheSpelling(key string, k *SeriesKey) {
	if len(key) <= 2*len(k.names)+spellingRoom {
		s.cache.Set(key, k)
	}
}

// spellingRoom is the room for quotes, braces and some blanks in a spelling.
const spellingRoom = 64

// Resolve returns the series of validated names. Unknown names are assigned a UID
// if SeriesConfig.Auto says so. It waits for names that are being deleted or
// renamed.
func (s *SeriesCache) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	return s.resolve(ctx, metric, tags, func() {})
}

// resolve is Resolve. It calls beforeWait before it waits for a name that is being
// changed: the change in turn waits for the batches opened before it, so a caller
// that has such a batch open must send it.
func (s *SeriesCache) resolve(ctx context.Context, metric string, tags []Tag, beforeWait func()) (*SeriesKey, error) {
	key := canonical(metric, tags)
	if k, ok := s.cached(key); ok {
		return k, nil
	}

	for {
		// The generation is read before the names: a change in between then makes
		// the series outdated, and not wrong.
		generation := s.cfg.Names.Generation()
		k, err := s.lookUp(ctx, metric, tags)
		var busy *uid.BusyError
		if errors.As(err, &busy) {
			beforeWait()
			if err := busy.Wait(ctx); err != nil {
				return nil, &storageError{err}
			}
			continue
		}
		if err != nil {
			return nil, err
		}

		k.generation, k.names = generation, key
		// A series that is outdated already is resolved again by the batch that it goes to.
		if generation == s.cfg.Names.Generation() {
			s.cache.Set(key, k)
		}
		return k, nil
	}
}

// resolveAgain resolves the names of an outdated series.
func (s *SeriesCache) resolveAgain(ctx context.Context, old *SeriesKey, beforeWait func()) (*SeriesKey, error) {
	metric, tags := parseCanonical(old.names)
	return s.resolve(ctx, metric, tags, beforeWait)
}

// canonical spells a series the same way whatever the order of its tags:
//
//	metric 00 tagk 01 tagv 00 tagk 01 tagv
//
// Valid names hold neither byte.
func canonical(metric string, tags []Tag) string {
	if !slices.IsSortedFunc(tags, compareTags) {
		tags = slices.Clone(tags)
		slices.SortFunc(tags, compareTags)
	}

	// The size is computed first, because the text is kept and should have no spare
	// capacity.
	n := len(metric)
	for _, t := range tags {
		n += 2 + len(t.K) + len(t.V)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteString(metric)
	for _, t := range tags {
		b.WriteByte(0)
		b.WriteString(t.K)
		b.WriteByte(1)
		b.WriteString(t.V)
	}
	return b.String()
}

// parseCanonical is the inverse of canonical.
func parseCanonical(key string) (metric string, tags []Tag) {
	metric, rest, more := strings.Cut(key, "\x00")
	for more {
		var pair string
		pair, rest, more = strings.Cut(rest, "\x00")
		k, v, _ := strings.Cut(pair, "\x01")
		tags = append(tags, Tag{k, v})
	}
	return metric, tags
}

func compareTags(a, b Tag) int { return strings.Compare(a.K, b.K) }

// lookUp looks all names up in the dictionary.
func (s *SeriesCache) lookUp(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	// Before any UID is assigned.
	for i, t := range tags {
		if slices.ContainsFunc(tags[:i], func(o Tag) bool { return o.K == t.K }) {
			return nil, fmt.Errorf("duplicate tag: %s", t.K)
		}
	}

	m, err := s.uid(ctx, encoding.UIDMetric, metric, s.cfg.Auto.Metrics)
	if err != nil {
		return nil, err
	}
	pairs := make([]encoding.TagPair, len(tags))
	for i, t := range tags {
		if pairs[i].K, err = s.uid(ctx, encoding.UIDTagK, t.K, s.cfg.Auto.TagKs); err != nil {
			return nil, err
		}
		if pairs[i].V, err = s.uid(ctx, encoding.UIDTagV, t.V, s.cfg.Auto.TagVs); err != nil {
			return nil, err
		}
	}

	key := newSeriesKey(m, s.cfg.Schema.AppendTags(nil, pairs)) // sorts pairs
	for i := 1; i < len(pairs); i++ {
		// Two names of one UID: one is cached from before a rename, one is the new.
		if slices.Equal(pairs[i-1].K, pairs[i].K) {
			return nil, fmt.Errorf("two tag keys of %s have the UID %s", metric, pairs[i].K)
		}
	}
	return key, nil
}

// uid returns the UID of a name. A storageError says that the same point may be sent
// again; any other error is the fault of the name.
func (s *SeriesCache) uid(ctx context.Context, kind encoding.UIDKind, name string, assign bool) (u encoding.UID, err error) {
	row, err := encoding.AppendName(nil, name)
	if err != nil {
		return nil, err
	}
	if len(row) > uid.MostName { // no name of this length can have a UID
		return nil, &uid.NameTooLongError{Kind: kind, Got: len(row), Limit: uid.MostName}
	}

	if assign {
		u, err = s.cfg.Names.Assign(ctx, kind, name)
	} else {
		u, err = s.cfg.Names.Resolve(ctx, kind, name)
	}
	if err != nil && !nameRefused(err) {
		return nil, &storageError{err}
	}
	return u, err
}

// nameRefused reports whether the name is at fault, so that no repetition could
// give it a UID.
func nameRefused(err error) bool {
	var unknown *uid.NoSuchNameError
	var full *uid.FullError
	var conflict *uid.ConflictError
	var long *uid.NameTooLongError
	return errors.As(err, &unknown) || errors.As(err, &full) || errors.As(err, &conflict) || errors.As(err, &long)
}
