package write

import (
	"context"
	"unsafe"
)

// Spelling is how clients write a series. Each has separate cache keys, because one text may mean
// different series in two of them.
type Spelling byte

// The spellings. Their values begin the cache keys; no metric's name begins with such a
// byte, so they cannot be confused with names either.
const (
	TelnetSpelling Spelling = iota + 2
	ImportSpelling
	JSONSpelling
	// NamesSpelling is the names themselves, metric 00 tagk 01 tagv 00 tagk 01 tagv …, the tags in any order; or the
	// labels of a message of Prometheus' remote write, which begins with 0a, as no metric does.
	NamesSpelling
)

// maxSpelling is the most bytes of a spelling that is looked up. A longer
// one is not worth copying: resolving its names costs less.
const maxSpelling = 4 << 10

// Resolver finds the series of one client's points by how the client spells them,
// so that the names of a spelling are parsed and looked up only once. It is for
// one goroutine.
type Resolver struct {
	series     *SeriesCache
	key        []byte // of the last Find: the Spelling, then the text; empty if that cannot be cached
	spelling   Spelling
	beforeWait func()    // sends the open batch, which a change of names would wait for; or does nothing
	found      SeriesKey // by the last Find
}

// Resolver returns a resolver of a client's points.
func (w *Writer) Resolver(spelling Spelling) *Resolver {
	return &Resolver{series: w.series, spelling: spelling, beforeWait: func() {}}
}

// Resolver returns a resolver of the request's points. Before it waits for a name
// that is being changed it sends the batch, because the change waits for open batches.
func (b *RequestBatch) Resolver(spelling Spelling) *Resolver {
	return &Resolver{series: b.w.series, spelling: spelling, beforeWait: b.Send}
}

// Find returns the series that Resolve has cached for the same text, given in
// parts; ok is false if there is none or a name may have changed since. The caller
// then parses the names and calls Resolve. The series is valid until the next Find.
func (r *Resolver) Find(parts ...[]byte) (s *SeriesKey, ok bool) {
	size := 1 // the Spelling
	for _, part := range parts {
		size += len(part)
	}
	if size > maxSpelling {
		r.key = r.key[:0] // Resolve then caches the series under its names alone
		return nil, false
	}

	r.key = append(r.key[:0], byte(r.spelling))
	for _, part := range parts {
		r.key = append(r.key, part...)
	}

	// findInto does not keep the string, so it may share the bytes, which the next Find overwrites.
	ok = r.series.findInto(&r.found, unsafe.String(unsafe.SliceData(r.key), len(r.key)))
	return &r.found, ok
}

// Resolve returns the series of validated names, as SeriesCache.Resolve does, and
// caches it for the text of the last Find.
func (r *Resolver) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	return r.series.resolve(ctx, string(r.key), metric, tags, r.beforeWait)
}
