package operator

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/store"
)

// Options are an operator's settings. The zero value is a good one.
type Options struct {
	// Mem provides the memory of batches. Default: garbage-collected.
	Mem batch.Allocator
	// FlushBytes is about the number of bytes of series data in a batch: once as many are
	// collected, a batch is made. Default 4 MiB.
	FlushBytes int
	// BlockBytes is about how many bytes of rows the store returns at once; 0 is the
	// store's default.
	BlockBytes int
	// Prefixes holds key prefixes for skip scans, learned by earlier parts; nil for
	// none. All operators on a store share one.
	Prefixes *access.PrefixCache
	// SideBySide makes a part with partial aggregation and few hours read them concurrently, with a
	// scanner for each. That takes the least memory if there are many series, but a scanner may
	// wait for the others: a region server could close it as abandoned. The records are the same.
	SideBySide bool
	// Budget bounds what is read, with all else that spends of it. Default: no bound.
	Budget Budget
	// Proving makes each part check whether its rows were read under a version token that held
	// until their end, even if its answer is not stored in the result cache: the answer of a whole
	// plan may be kept even if those of its parts are too large.
	Proving bool
}

// DefaultFlushBytes is small enough for the message limits of Flight, and large enough
// for the cost of a batch itself not to matter.
const DefaultFlushBytes = 4 << 20

// withDefaults sets unset fields to the defaults in their comments.
func (o Options) withDefaults() Options {
	if o.Budget == nil {
		o.Budget = NewBudget(0, 0)
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if o.FlushBytes <= 0 {
		o.FlushBytes = DefaultFlushBytes
	}
	return o
}

// New returns the operator of one part. Nothing is read before the first Next. It fails
// with an ErrBadPlan that names the field that is wrong.
func New(from store.Reader, part *scanplan.Part, opts Options) (Operator, error) {
	if err := validate(part); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	opts = opts.withDefaults()

	d, err := newDownsampler(part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}

	groups, err := newGrouping(part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	histograms, err := newHistograms(part, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}

	aligned, err := newAligned(part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	side, err := newHoursOperator(from, part, d, groups, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	if side != nil {
		return side, nil
	}

	o := newPartOperator(from, part, d, opts)
	o.groups, o.histograms, o.aligned = groups, histograms, aligned
	return o, nil
}

// validate checks the part, and that its range begins with salt and metric, which all keys of
// ranges share.
func validate(part *scanplan.Part) error {
	if err := part.Validate(); err != nil {
		return err
	}
	if least := part.Plan.Schema.BaseTimeAt(); len(part.Range.Start) < least {
		return fmt.Errorf("part starts at %s, want at least salt and metric, %d bytes", part.Range.Start, least)
	}
	return nil
}

// bucketer returns the bucketer of a plan that downsamples.
func bucketer(p *scanplan.Plan) (*downsample.Bucketer, error) {
	return downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
}
