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
	// FlushBytes is about how many bytes of series data a batch holds: what
	// is collected is handed on when it exceeds this. Default 4 MiB.
	FlushBytes int
	// BlockBytes is about how many bytes the store hands over at once, 0 for
	// the store's default.
	BlockBytes int
	// Seek remembers what parts can skip; nil remembers nothing. It is one
	// for all operators on a store.
	Seek *access.Memory
}

// DefaultFlushBytes is a batch that no message limit refuses and that is large
// enough to make the cost per batch vanish.
const DefaultFlushBytes = 4 << 20

func (o Options) withDefaults() Options {
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if o.FlushBytes <= 0 {
		o.FlushBytes = DefaultFlushBytes
	}
	return o
}

// New returns the operator of one part. Nothing is read before the first Next.
// An error is an ErrBadPlan and says which field is wrong.
func New(from store.Reader, part *scanplan.Part, opts Options) (Operator, error) {
	if err := validate(part); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	opts = opts.withDefaults()
	fold, err := newDownsampler(part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	groups, err := newGrouping(part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	o := newPartOperator(from, part, fold, opts)
	o.groups = groups
	return o, nil
}

// validate checks the part as what executes it needs it: keys of the part are
// made from the beginning of its own.
func validate(part *scanplan.Part) error {
	if err := part.Validate(); err != nil {
		return err
	}
	if least := part.Plan.Schema.BaseTimeAt(); len(part.Range.Start) < least {
		return fmt.Errorf("part starts at %s, want at least salt and metric, %d bytes", part.Range.Start, least)
	}
	return nil
}

// bucketer makes the plan's bucketer.
func bucketer(p *scanplan.Plan) (*downsample.Bucketer, error) {
	return downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
}
