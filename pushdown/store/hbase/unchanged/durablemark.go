package unchanged

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"
)

// markTime is how many times Config.Timeout Mark may take: it is for jobs, which
// read all rows afterwards.
const markTime = 10

// durableMark is what Mark returns, as JSON. It names the state of a range by facts that outlive
// our process: each region's opening and read point, and for proofs by timestamps the time and the
// store's files. Version and stampedVersion explain why these are proofs. The connection, which
// their states have in addition, is useless between processes: an opening names the process of the
// server, by its start code.
type durableMark struct {
	Table  string `json:"table"`
	Family string `json:"family"`
	Start  []byte `json:"start"`
	Stop   []byte `json:"stop"`
	// At is when the mark was begun, by its maker's clock; ms since 1970.
	At      int64           `json:"at"`
	Regions []durableRegion `json:"regions"`
}

// durableRegion is a region of a durableMark.
type durableRegion struct {
	Name      []byte `json:"name"`
	Opening   string `json:"opening"` // SHA-256 of the cells that name it, see encodeOpening
	ReadPoint uint64 `json:"readPoint"`
	// Files are the names of the store's files, listed after At. Without any only the read point is
	// a proof: the rows were written to shortly before, or the clocks proved nothing.
	Files []string `json:"files,omitempty"`
}

// Mark implements store.Marker.
func (p *Prover) Mark(ctx context.Context, table, family string, r store.KeyRange) (store.Mark, error) {
	if err := p.life.Begin(); err != nil {
		return store.Mark{}, err
	}
	defer p.life.Done()
	ctx, cancel := context.WithTimeout(ctx, markTime*p.cfg.Timeout)
	defer cancel()

	var m *durableMark
	err := retryReopened(func() (err error) {
		m, err = p.mark(ctx, table, family, r)
		return err
	})
	if err != nil {
		return store.Mark{}, fmt.Errorf("cannot mark rows of table %q from key %x: %w", table, r.Start,
			calls.WithoutStack(err))
	}
	text, err := json.Marshal(m)
	resting := slices.ContainsFunc(m.Regions, func(d durableRegion) bool { return len(d.Files) == 0 })
	return store.Mark{Text: string(text), Resting: resting}, err
}

func (p *Prover) mark(ctx context.Context, table, family string, r store.KeyRange) (*durableMark, error) {
	s, err := p.stateOfRange(ctx, table, family, r)
	if err != nil {
		return nil, err
	}
	m := &durableMark{Table: table, Family: family, Start: r.Start, Stop: r.Stop, At: s.began}
	for i, loc := range s.locs {
		region := durableRegion{Name: loc.Name, Opening: openingID(s.before[i]), ReadPoint: s.states[i].readPoint}
		if p.cfg.Proof == ProofTimestamps {
			region.Files = p.filesOfMark(ctx, loc, s.span(i, family, r), s.began)
		}
		m.Regions = append(m.Regions, region)
	}

	// An altered table opens its regions again, so its description holds as long as the mark.
	if err := p.checkNoExpiry(ctx, table, family); err != nil {
		return nil, err
	}
	return m, p.sameAfter(ctx, table, s)
}

// filesOfMark returns the names of the files of a region's store, nil if timestamps cannot
// prove anything from now on: a change of the last minutes would always be found, and
// could not be distinguished from a later one.
func (p *Prover) filesOfMark(ctx context.Context, loc *regions.Location, part spanKey, began int64) []string {
	if p.health.check(ctx, p, loc.Addr) != nil {
		return nil
	}
	if stamp, err := p.changeSince(ctx, loc, part, began-maxStampAge); err != nil || stamp > 0 {
		return nil
	}
	files, err := p.storeFiles(ctx, loc, part.family)
	if err != nil {
		return nil
	}
	return fileNames(files)
}

// fileNames returns the last elements of paths: names of store files are unique.
func fileNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = path.Base(p)
	}
	return names
}

// openingID names an opening to other processes.
func openingID(o opening) string {
	sum := sha256.Sum256([]byte(o.cells))
	return hex.EncodeToString(sum[:])
}

// Unchanged implements store.Marker.
func (p *Prover) Unchanged(ctx context.Context, table, family string, r store.KeyRange, mark string) error {
	if err := p.life.Begin(); err != nil {
		return err
	}
	defer p.life.Done()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()

	var m durableMark
	err := json.Unmarshal([]byte(mark), &m)
	if err == nil {
		err = m.covers(table, family, r)
	}
	if err == nil {
		err = retryReopened(func() error { return p.unchanged(ctx, &m, r) })
	}
	if err != nil {
		return fmt.Errorf("cannot prove that rows of table %q from key %x are as they were: %w", table, r.Start,
			calls.WithoutStack(err))
	}
	return nil
}

// covers returns an error unless the mark is one of these rows.
func (m *durableMark) covers(table, family string, r store.KeyRange) error {
	endsAfter := len(m.Stop) > 0 && (len(r.Stop) == 0 || bytes.Compare(r.Stop, m.Stop) > 0)
	if m.Table != table || m.Family != family || bytes.Compare(r.Start, m.Start) < 0 || endsAfter {
		return fmt.Errorf("the mark is of table %q, family %q, keys %x to %x", m.Table, m.Family, m.Start, m.Stop)
	}
	return nil
}

// unchanged is Unchanged of a mark that covers r.
func (p *Prover) unchanged(ctx context.Context, m *durableMark, r store.KeyRange) error {
	s, err := p.stateOfRange(ctx, m.Table, m.Family, r)
	if err != nil {
		return err
	}
	for i := range s.locs {
		if err := p.regionUnchanged(ctx, m, s, i, r); err != nil {
			// If the mark names an opening that this process does not know, its own stays out of
			// date unless hbase:meta is read.
			if ctx.Err() != nil {
				return err
			}
			if after := p.sameAfter(ctx, m.Table, s); errors.Is(after, errReopened) {
				return after
			}
			return err
		}
	}
	return p.sameAfter(ctx, m.Table, s)
}

// regionUnchanged returns an error unless nothing of a range's region i has changed since
// the mark, if its opening stays the one that s has.
func (p *Prover) regionUnchanged(ctx context.Context, m *durableMark, s *rangeState, i int, r store.KeyRange) error {
	loc := s.locs[i]
	at := slices.IndexFunc(m.Regions, func(d durableRegion) bool { return bytes.Equal(d.Name, loc.Name) })
	if at < 0 {
		return fmt.Errorf("region %q was made since, by a split or a merge", loc.Name)
	}
	marked := &m.Regions[at]
	switch {
	case marked.Opening != openingID(s.before[i]):
		return fmt.Errorf("region %q was opened again", loc.Name)
	case marked.ReadPoint == s.states[i].readPoint:
		return nil
	case p.cfg.Proof != ProofTimestamps:
		return fmt.Errorf("region %q was written to, and its read point is the only proof", loc.Name)
	case len(marked.Files) == 0:
		return fmt.Errorf(
			"region %q was written to, also shortly before the mark or while the servers' clocks proved nothing",
			loc.Name)
	case m.At > s.began:
		return fmt.Errorf("the mark is %d ms later than this process's clock", m.At-s.began)
	}

	return p.unchangedByTimestamps(ctx, m, marked, loc, s.span(i, m.Family, r))
}

// unchangedByTimestamps returns an error unless no cell of a span in a region was written since the mark,
// while other rows of the region were.
func (p *Prover) unchangedByTimestamps(ctx context.Context, m *durableMark, marked *durableRegion,
	loc *regions.Location, span spanKey) error {
	if err := p.health.check(ctx, p, loc.Addr); err != nil {
		return err
	}
	if p.slowMarks.paused(span, p.clock()) {
		return fmt.Errorf("cannot look for changes of region %q: %w", loc.Name, errSlowProof)
	}
	stamp, err := p.changeSince(ctx, loc, span, m.At-maxStampAge)
	// A server continues a scan that is no longer awaited: each query would leave one.
	if errors.Is(err, errSlowProof) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.slowMarks.pause(span, p.clock()+slowPause)
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot look for changes of region %q: %w", loc.Name, err)
	case stamp > 0:
		return fmt.Errorf("%w: in region %q, at %d", store.ErrRowsChanged, loc.Name, stamp)
	}
	files, err := p.storeFiles(ctx, loc, m.Family)
	if err == nil && !sameStore(marked.Files, fileNames(files)) {
		err = fmt.Errorf("region %q: all files were compacted, or one was loaded in bulk", loc.Name)
	}
	return err
}

// slowSpans are spans of durable marks whose last scan for changes took too long.
type slowSpans struct {
	mu    sync.Mutex
	until map[spanKey]int64 // ms since 1970
}

func (d *slowSpans) paused(key spanKey, now int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return now < d.until[key]
}

func (d *slowSpans) pause(key spanKey, until int64) {
	d.mu.Lock()
	defer d.mu.Unlock()

	// A dropped entry costs another scan.
	if d.until == nil || len(d.until) > maxHistory {
		d.until = map[spanKey]int64{}
	}
	d.until[key] = until
}
