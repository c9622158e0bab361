package write

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

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
	// would one by one. Assign then finds them, or returns the reason why there is none.
	Prepare(ctx context.Context, kind encoding.UIDKind, names []string)
	// Cached reports whether the UID of a name is in memory.
	Cached(kind encoding.UIDKind, name string) bool
	// Generation grows when names change. UIDs of an earlier generation must no longer be used.
	Generation() uint64
	// Hold keeps the names that were resolved in the returned generation or later from
	// being deleted until release is called. An error of release means that they may
	// still have been deleted; callers that wait for the rows get it.
	Hold() (generation uint64, release func() error)
}

// SeriesKey is a series in the form of row keys.
type SeriesKey struct {
	Metric encoding.UID
	Tags   []byte // tag pairs of UIDs, ascending by tagk

	generation uint64 // of names, in which it was resolved
	hash       uint64 // of the UIDs
	names      namesOf
}

// seed is that of all hashes of series and of their names.
var seed = maphash.MakeSeed()

// newSeriesKey returns a series without names and generation.
func newSeriesKey(metric encoding.UID, tags []byte) *SeriesKey {
	uids := slices.Concat(metric, tags) // one after the other, as in a seriesTable, for the same hash
	return &SeriesKey{Metric: uids[:len(metric):len(metric)], Tags: uids[len(metric):], hash: hashOf(uids)}
}

// hashOf returns the hash of a series by its UIDs, the metric's first.
func hashOf(uids []byte) uint64 { return maphash.Bytes(seed, uids) }

// rowHash spreads rows over shards: also the hours of one series.
func (k *SeriesKey) rowHash(base uint32) uint64 { return k.hash + uint64(base)/encoding.RowSeconds }

// SeriesCache finds series by their names. It caches them, under their names and under
// the spellings of clients (see Resolver).
type SeriesCache struct {
	cfg   SeriesConfig
	table *seriesTable
}

// SeriesConfig is how names become series.
type SeriesConfig struct {
	Schema encoding.Schema
	Names  Names
	// Auto is which unknown names are assigned a UID.
	Auto Auto
	// Bytes bounds the memory of the cache. Default SeriesBytes.
	Bytes int64
}

// Auto is the kinds whose unknown names are assigned a UID on put.
// Source: tsd.core.auto_create_metrics, _tagks, _tagvs.
type Auto struct{ Metrics, TagKs, TagVs bool }

// SeriesBytes is the memory for some two and a half million series of three tags that clients
// spell one way.
const SeriesBytes = 256 << 20

// NewSeries returns an empty cache over names.
func NewSeries(cfg SeriesConfig) *SeriesCache {
	if cfg.Bytes <= 0 {
		cfg.Bytes = SeriesBytes
	}
	return &SeriesCache{cfg: cfg, table: newSeriesTable(cfg.Bytes, cfg.Schema.MetricWidth)}
}

// Drop empties the cache.
func (s *SeriesCache) Drop() { s.table.drop() }

// findInto sets k to the series that is cached under a key, canonical or a client's spelling, and returns
// true. It returns false if there is none, or if a name may have changed since. It does not keep the key.
func (s *SeriesCache) findInto(k *SeriesKey, key string) bool {
	return s.table.findInto(k, key, s.cfg.Names.Generation())
}

// cacheSpelling caches a series of some names under a client's spelling and reports
// whether it does. A spelling that is much longer than the names, because of blanks for
// example, is not worth the memory. Nor is one cached that spells a name in another way, as JSON's escapes do.
func (s *SeriesCache) cacheSpelling(spelling, metric string, tags []Tag, k *SeriesKey) bool {
	if len(spelling) > 2*len(k.names.text)+spellingRoom {
		return false
	}
	return s.table.put(spelling, metric, tags, k)
}

// spellingRoom is the room for quotes, braces and some blanks in a spelling.
const spellingRoom = 64

// Resolve returns the series of validated names. Unknown names are assigned a UID if
// SeriesConfig.Auto allows it. It waits for names that are being deleted or renamed.
func (s *SeriesCache) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	return s.resolve(ctx, "", metric, tags, func() {})
}

// resolve is Resolve. It caches the series under the client's spelling, if that is not empty
// and suitable, else under its names. It calls beforeWait before it waits for a
// name that is being changed: the change in turn waits for the batches opened before
// it, so a caller that has such a batch open must send it.
func (s *SeriesCache) resolve(ctx context.Context, spelling, metric string, tags []Tag,
	beforeWait func()) (*SeriesKey, error) {
	key := canonical(metric, tags)
	if k := new(SeriesKey); s.findInto(k, key) {
		if spelling != "" {
			s.cacheSpelling(spelling, metric, tags, k)
		}
		return k, nil
	}

	for {
		// The generation is read before the names: after a change in between the series is known to be
		// outdated, and is not taken for one of the new names.
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

		k.generation, k.names = generation, namesOf{text: key}
		// A series that is outdated already is not cached: the batch that it goes to has it resolved again.
		if generation != s.cfg.Names.Generation() {
			return k, nil
		}
		if spelling == "" || !s.cacheSpelling(spelling, metric, tags, k) {
			s.table.put(key, metric, tags, k)
		}
		return k, nil
	}
}

// resolveAgain resolves the names of an outdated series.
func (s *SeriesCache) resolveAgain(ctx context.Context, old *SeriesKey, beforeWait func()) (*SeriesKey, error) {
	metric, tags := old.names.parse()
	return s.resolve(ctx, "", metric, tags, beforeWait)
}

// canonical spells a series the same way for any order of its tags:
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

// lookUp looks all names up in the dictionary, which may assign UIDs. It fails if a tag key occurs twice, if a
// name is refused, or with a storageError. The series has no names and generation yet.
func (s *SeriesCache) lookUp(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	// No UID is assigned for a series that is refused.
	for i, t := range tags {
		if slices.ContainsFunc(tags[:i], func(o Tag) bool { return o.K == t.K }) {
			return nil, fmt.Errorf("duplicate tag: %s", t.K)
		}
	}

	metricUID, err := s.uid(ctx, encoding.UIDMetric, metric, s.cfg.Auto.Metrics)
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

	tagUIDs := s.cfg.Schema.AppendTags(nil, pairs) // sorts pairs, too: equal keys are neighbours now
	for i := 1; i < len(pairs); i++ {
		// Two names of one UID: one is cached from before a rename, one is the new.
		if slices.Equal(pairs[i-1].K, pairs[i].K) {
			return nil, fmt.Errorf("two tag keys of %s have the UID %s", metric, pairs[i].K)
		}
	}
	return newSeriesKey(metricUID, tagUIDs), nil
}

// uid returns the UID of a name, and has one assigned if assign is set and the name has none. After a
// storageError the same point may be sent again; any other error is the fault of the name.
func (s *SeriesCache) uid(ctx context.Context, kind encoding.UIDKind, name string,
	assign bool) (u encoding.UID, err error) {
	var buf [128]byte // only the length of row counts, so a usual name is not allocated
	row, err := encoding.AppendName(buf[:0], name)
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
