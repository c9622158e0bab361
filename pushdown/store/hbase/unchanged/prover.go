package unchanged

import (
	"context"
	"time"

	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"
)

// Proof is the evidence by which Version may know that rows have not changed.
type Proof uint8

const (
	// ProofExact relies on read points alone: while anybody writes to a region, no
	// row of it is proven.
	ProofExact Proof = iota
	// ProofTimestamps also proves ranges of a region that is written to elsewhere, see
	// stampedVersion. It relies on the operator's promise that nobody writes cells or
	// deletions with explicit old timestamps, or deletes single versions.
	ProofTimestamps
)

// Config is the configuration of a Prover.
type Config struct {
	// Timeout bounds a version token, each of its calls to hbase:meta, and a proof of a mark.
	Timeout time.Duration
	// Proof is what counts as one.
	Proof Proof
	// Now is a test's clock, in ms since 1970, in place of the prover's own; else nil.
	Now func() int64
}

// Prover proves that rows have not changed: by version tokens within this process, and by marks
// that are valid for others, too.
type Prover struct {
	cfg    Config
	router *regions.Router
	life   *calls.Life

	history      regionHistory
	openings     openingCache
	catalogReads catalogReads

	// For proofs by timestamps.
	marks     markTable
	slowMarks slowSpans
	health    clusterHealth
	opened    time.Time
}

// New makes a prover without knowledge.
func New(cfg Config, router *regions.Router, life *calls.Life) *Prover {
	return &Prover{cfg: cfg, router: router, life: life, health: newClusterHealth(), opened: time.Now()}
}

// TryTokens makes one attempt at the calls of a version token for a table's first region. Its error
// is an errNoReadPoint or an errNoState if the servers lack these.
func (p *Prover) TryTokens(ctx context.Context, table, family string) error {
	loc, err := p.router.Locate(ctx, table, nil)
	if err != nil {
		return err
	}
	if _, _, err := p.fetchReadPoint(ctx, loc, family); err != nil {
		return err
	}
	_, err = p.readOpenings(ctx, table, []*regions.Location{loc})
	return err
}
