package resultcache

import (
	"context"
	"io"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// Open returns the operator of a part, as operator.New does. It answers from the cache if it can,
// and stores its answer if that is worthwhile. With a nil cache, or a store that gives no version
// tokens, it is operator.New's own.
func Open(c *Cache, from store.Reader, part *scanplan.Part, opts operator.Options) (operator.Operator, error) {
	// The answer to a plan with SplitOffHour depends on rows outside the part's keys, and an answer without
	// damaged rows is not kept.
	if c == nil || part.Plan.SplitOffHour || part.Plan.Fix&scanplan.FixDamaged != 0 {
		return operator.New(from, part, opts)
	}
	versioner := from.Features().Versioner
	if versioner == nil {
		return operator.New(from, part, opts)
	}
	if opts.Budget == nil {
		opts.Budget = operator.NewBudget(0, 0)
	}
	o := &cachingOperator{cache: c, id: PartKey(part), part: part, versioner: versioner, opts: opts}
	o.reader = &timestampReader{Reader: from, plan: &part.Plan}
	var err error
	o.inner, err = operator.New(o.reader, part, opts)
	return o, err
}

// cachingOperator returns a cached answer, or what another operator returns.
type cachingOperator struct {
	cache     *Cache
	id        ID
	part      *scanplan.Part
	versioner store.Versioner
	opts      operator.Options
	inner     operator.Operator
	reader    *timestampReader // what inner reads from

	looked    bool // lookUp was called, or must no longer be called
	result    lookup
	version   string
	proof     func() error  // that version is the token
	took      time.Duration // to get the version token
	collected *answer       // with lookupStore: the batches so far; nil once it cannot be stored
	proving   bool          // the token is checked at the end
	proven    bool          // all rows were read, and it held
	stored    bool
	replay    *replay // with lookupHit
}

// Next returns the next batch; see operator.Operator.
func (o *cachingOperator) Next(ctx context.Context) (batch.Record, error) {
	// The version token must be taken before the first row is read.
	if !o.looked {
		o.looked = true
		o.lookUp(ctx)
	}

	if o.replay != nil {
		return o.replay.Next(ctx)
	}
	r, err := o.inner.Next(ctx)
	switch {
	case err == nil:
		o.collect(r) //fault:half-answer-kept TestOpen_halfRead
	case err == io.EOF:
		o.end()
	}
	return r, err
}

// lookUp gets the version token and looks for the answer. Without a token the rows are
// read. The token's proof may still be pending: a cached answer is returned, or rows
// are read, in the meantime, but neither ends before it.
func (o *cachingOperator) lookUp(ctx context.Context) {
	began := time.Now()
	p := &o.part.Plan
	reads := p.Reads(o.part.Range)
	version, proof, err := o.versioner.Version(ctx, p.Table, encoding.FamilyData,
		store.KeyRange{Start: reads.Start, Stop: reads.Stop})
	// A request that ends is no reason why answers are not cached.
	if err != nil && ctx.Err() == nil {
		o.cache.logOnce(err.Error())
	}
	o.took, o.version, o.proof = time.Since(began), version, proof

	var a *answer
	o.result, a = o.cache.lookupPart(o.id, version)
	switch o.result {
	case lookupHit:
		o.replay = &replay{answer: a, opts: o.opts, inner: o.inner, proof: o.proveAnswer}
	case lookupStore:
		o.collected = &answer{}
	}
	o.proving = version != "" && (o.collected != nil || o.opts.Proving)
	o.reader.on = o.proving // results of rows with the time of their data must not outlive the query
}

// proveAnswer waits for the proof of the cached answer. If it fails, the answer is dropped: a retry
// must not find it again, even if proofs keep failing.
func (o *cachingOperator) proveAnswer() error {
	err := o.proof()
	if err != nil {
		o.cache.dropAnswer(o.id, o.version)
	}
	return err
}

// collect copies a batch that Next is about to return, while the answer may be stored.
func (o *cachingOperator) collect(r batch.Record) {
	if o.collected == nil {
		return
	}
	// The encoding takes about as many bytes as the columns: too many are not encoded.
	if o.cache.fits(o.collected.Bytes() + operator.RecordBytes(r)) {
		if b, err := batch.Encode(r); err == nil {
			o.collected.batches = append(o.collected.batches, b)
			return
		}
	}
	o.collected = nil
}

// end is called after the last batch. It checks whether the rows were read under a version token
// that held until now, and stores the answer if it was collected.
func (o *cachingOperator) end() {
	proving, collected := o.proving, o.collected
	o.proving, o.collected = false, nil // Next may be called again
	if !proving {
		return
	}
	if o.reader.areDataTime() {
		o.cache.logOnce("cells of table " + o.part.Plan.Table +
			" carry the time of their data (tsd.storage.use_otsdb_timestamp)")
		return
	}
	// A token that is not proven may name rows of another opening of the region.
	if o.proven = o.proof() == nil; o.proven && collected != nil { //fault:proven-without-proof TestOpen_proving
		collected.stats = o.inner.Stats()
		o.stored = o.cache.store(o.id, o.version, collected)
	}
}

// Stats returns the cost of the part. For an answer from memory, the rows, cells, bytes and points
// are those that it was made of.
func (o *cachingOperator) Stats() operator.Stats {
	// Getting the version token is waiting for the store, too.
	if o.replay != nil {
		s := o.replay.stats()
		s.ScanTime, s.CacheHits = o.took, 1
		return s
	}

	s := o.inner.Stats()
	s.ScanTime += o.took
	if o.proven {
		s.CacheProven = 1
	}
	switch {
	case o.stored:
		s.CacheStored = 1
	case o.result == lookupChanged:
		s.CacheChanged = 1
	}
	return s
}

// Close ends the work; see operator.Operator.
func (o *cachingOperator) Close() error {
	o.looked = true
	if o.replay != nil {
		o.replay.end()
	}
	return o.inner.Close()
}
