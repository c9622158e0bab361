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

// Names gives UIDs to names. gateway/uid has it.
type Names interface {
	// Resolve returns the UID of a name that exists.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Assign returns the UID of a name and gives it one if it has none. It is
	// durable before any row that is written later.
	Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Generation is counted when names change: what was resolved before is not
	// to be used any more.
	Generation() uint64
	// Hold keeps what was resolved in the generation that it returns, or later,
	// from being deleted until release is called, whose error is told to who
	// waits for the rows.
	Hold() (generation uint64, release func() error)
}

// SeriesKey is a series as row keys name it.
type SeriesKey struct {
	Metric encoding.UID
	Tags   []byte // tag pairs, ascending by tagk

	// generation is that in which the names were resolved.
	generation uint64
	names      string // as canonical spells them
	hash       uint64
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

// bytes is what a series takes, about, beside the text of its names.
func (k *SeriesKey) bytes() int { return seriesBytes + len(k.Metric) + len(k.Tags) }

// shard spreads rows: the hours of one series, too.
func (k *SeriesKey) shard(base uint32) uint64 { return k.hash + uint64(base)/encoding.RowSeconds }

// Series finds series by name. It remembers some of them, by their names and by
// the spellings in which clients give them.
type Series struct {
	cfg   SeriesConfig
	cache *otter.Cache[string, *SeriesKey]
}

// SeriesConfig says how names become series.
type SeriesConfig struct {
	Schema encoding.Schema
	Names  Names
	// Auto lets unknown names be assigned.
	Auto Auto
	// Bytes bounds the memory of the series remembered. Default SeriesBytes.
	Bytes int64
}

// Auto tells for which kinds unknown names are assigned a UID on put.
// Source: tsd.core.auto_create_metrics, _tagks, _tagvs.
type Auto struct{ Metrics, TagKs, TagVs bool }

// SeriesBytes is the memory for some 90,000 series with three tags, each under its
// names and one spelling.
const SeriesBytes = 64 << 20

// What a series takes beside the text of its names, and what an entry of the
// cache takes beside its key, about.
const (
	seriesBytes = 144
	entryBytes  = 96
)

// NewSeries returns an empty cache over names.
func NewSeries(cfg SeriesConfig) *Series {
	if cfg.Bytes <= 0 {
		cfg.Bytes = SeriesBytes
	}
	return &Series{cfg: cfg, cache: otter.Must(&otter.Options[string, *SeriesKey]{MaximumWeight: uint64(cfg.Bytes), Weigher: weigh})}
}

// weigh counts a series with each of its spellings: any may be the last that
// keeps it.
func weigh(key string, k *SeriesKey) uint32 {
	n := entryBytes + len(key) + k.bytes()
	if key != k.names {
		n += len(k.names)
	}
	return uint32(n)
}

// Drop forgets all series.
func (s *Series) Drop() { s.cache.InvalidateAll() }

// Cached returns the series that Resolve or Remember has seen under key, if no
// name has changed since.
func (s *Series) Cached(key string) (*SeriesKey, bool) {
	k, ok := s.cache.GetIfPresent(key)
	if !ok || k.generation != s.cfg.Names.Generation() {
		return nil, false
	}
	return k, true
}

// Remember lets Cached find a series under a spelling of its own. One that is
// much longer than the names, with blanks or the like, is not worth the memory.
func (s *Series) Remember(key string, k *SeriesKey) {
	if len(key) <= 2*len(k.names)+spellingRoom {
		s.cache.Set(key, k)
	}
}

// spellingRoom is for quotes, braces, and blanks here and there.
const spellingRoom = 64

// MaxSpelling is the length of the longest spelling that is worth a look at what
// is remembered.
const MaxSpelling = 4 << 10

// Resolve returns the series of validated names, assigning those that may be
// assigned. It waits for names that are just being deleted or renamed.
func (s *Series) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	return s.find(ctx, metric, tags, func() {})
}

// find is Resolve. Before it waits it calls letGo: who changes a name waits for
// what was begun before.
func (s *Series) find(ctx context.Context, metric string, tags []Tag, letGo func()) (*SeriesKey, error) {
	key := canonical(metric, tags)
	if k, ok := s.Cached(key); ok {
		return k, nil
	}
	for {
		// Read before the names are: what changes meanwhile makes it old.
		generation := s.cfg.Names.Generation()
		k, err := s.resolve(ctx, metric, tags)
		var busy *uid.BusyError
		if errors.As(err, &busy) {
			letGo()
			if err := busy.Wait(ctx); err != nil {
				return nil, &storageError{err}
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		k.generation, k.names = generation, key
		if generation == s.cfg.Names.Generation() {
			s.cache.Set(key, k)
		}
		return k, nil
	}
}

// again resolves the names of a series anew.
func (s *Series) again(ctx context.Context, old *SeriesKey, letGo func()) (*SeriesKey, error) {
	metric, tags := parseCanonical(old.names)
	return s.find(ctx, metric, tags, letGo)
}

// canonical spells a series the same way whatever the order of its tags. The
// separators cannot stand in names.
func canonical(metric string, tags []Tag) string {
	if !slices.IsSortedFunc(tags, compareTags) {
		tags = slices.Clone(tags)
		slices.SortFunc(tags, compareTags)
	}
	n := len(metric)
	for _, t := range tags {
		n += 2 + len(t.K) + len(t.V)
	}
	var b strings.Builder
	b.Grow(n) // the text is kept, and nothing beside it
	b.WriteString(metric)
	for _, t := range tags {
		b.WriteByte(0)
		b.WriteString(t.K)
		b.WriteByte(1)
		b.WriteString(t.V)
	}
	return b.String()
}

// parseCanonical reads what canonical has spelled.
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

func (s *Series) resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
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
		if slices.Equal(pairs[i-1].K, pairs[i].K) { // a name remembered from before its rename, and the new one
			return nil, fmt.Errorf("two tag keys of %s have the UID %s", metric, pairs[i].K)
		}
	}
	return key, nil
}

// uid tells the faults of a name, which the client must mend, from those of the
// dictionary's store, after which the same point may be sent again.
func (s *Series) uid(ctx context.Context, kind encoding.UIDKind, name string, assign bool) (u encoding.UID, err error) {
	row, err := encoding.AppendName(nil, name)
	if err != nil {
		return nil, err
	}
	if len(row) > uid.MostName { // it cannot have one
		return nil, &uid.NameTooLongError{Kind: kind, Got: len(row), Limit: uid.MostName}
	}
	if assign {
		u, err = s.cfg.Names.Assign(ctx, kind, name)
	} else {
		u, err = s.cfg.Names.Resolve(ctx, kind, name)
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
	var long *uid.NameTooLongError
	return errors.As(err, &unknown) || errors.As(err, &full) || errors.As(err, &conflict) || errors.As(err, &long)
}
