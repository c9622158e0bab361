package meta

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/store"
)

const (
	// counting is how many counters are incremented at a time: they share the
	// store's syncs to disk.
	counting = 16
	// perApply bounds the cells of one write.
	perApply = 1000
)

// known are the series that surely have a TSMeta, within a bound of memory.
type known struct {
	most, bytes int
	set         map[string]struct{}
}

func newKnown(most int) *known { return &known{most: most, set: map[string]struct{}{}} }

func (k *known) has(tsuid string) bool { _, ok := k.set[tsuid]; return ok }

// add remembers a series; when there are too many, all are forgotten, which
// costs each a look at the table.
func (k *known) add(tsuid string) {
	cost := knownBytes + len(tsuid)
	if k.bytes+cost > k.most {
		clear(k.set)
		k.bytes = 0
	}
	k.set[tsuid] = struct{}{}
	k.bytes += cost
}

// knownBytes is what a series takes beside its TSUID, about.
const knownBytes = 64

// write records work and returns what is left to do. It runs once at a time.
func (t *Tracker) write(ctx context.Context, work *collected) (*collected, error) {
	rest := newCollected()
	var errs []error
	if err := t.writeUIDs(ctx, work.uids); err != nil {
		rest.uids = work.uids
		errs = append(errs, fmt.Errorf("UIDMeta of %d UIDs: %w", len(work.uids), err))
	}
	record := t.mark
	if t.cfg.Flags.RealtimeTS {
		record = t.describe
	}
	var err error
	if rest.series, err = record(ctx, work.series); err != nil {
		errs = append(errs, fmt.Errorf("%d of %d series: %w", len(rest.series), len(work.series), err))
	}
	return rest, errors.Join(errs...)
}

// writeUIDs stores new UIDMeta. Source: UIDMeta.storeNew.
func (t *Tracker) writeUIDs(ctx context.Context, uids []givenUID) error {
	mutations := make([]store.Mutation, len(uids))
	for i, u := range uids {
		m := encoding.UIDMeta{Type: typeName(u.kind), Created: u.created}
		mutations[i] = store.Mutation{Row: u.uid, Family: encoding.FamilyName, Qualifier: u.kind.MetaQualifier(), Value: encoding.AppendUIDMeta(nil, m)}
	}
	return t.apply(ctx, t.cfg.UIDTable, mutations)
}

func (t *Tracker) apply(ctx context.Context, table string, mutations []store.Mutation) error {
	for len(mutations) > 0 {
		n := min(len(mutations), perApply)
		if err := t.cfg.Store.Apply(ctx, table, mutations[:n]); err != nil {
			return err
		}
		mutations = mutations[n:]
	}
	return nil
}

// mark puts 1 into the counters of series: they are there, and when their last
// point came is the time of the cell.
func (t *Tracker) mark(ctx context.Context, series []seen) ([]seen, error) {
	one := encoding.AppendCounter(nil, 1)
	mutations := make([]store.Mutation, len(series))
	for i, s := range series {
		mutations[i] = store.Mutation{Row: []byte(s.tsuid), Family: encoding.FamilyName, Qualifier: []byte(encoding.MetaCounterQualifier), Value: one}
	}
	if err := t.apply(ctx, t.cfg.MetaTable, mutations); err != nil {
		return series, err
	}
	return nil, nil
}

// describe counts the points of series, where that is asked for, and makes the
// TSMeta of new ones.
func (t *Tracker) describe(ctx context.Context, series []seen) (rest []seen, err error) {
	var mu sync.Mutex
	var work errgroup.Group
	work.SetLimit(counting)
	var first error
	for _, s := range series {
		work.Go(func() error {
			err := t.describeOne(ctx, &mu, &s)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				rest = append(rest, s)
				if first == nil {
					first = err
				}
			}
			return nil
		})
	}
	_ = work.Wait()
	return rest, first
}

// describeOne records one series and takes off s what is done. mu guards known.
func (t *Tracker) describeOne(ctx context.Context, mu *sync.Mutex, s *seen) error {
	row := []byte(s.tsuid)
	mu.Lock()
	isNew := !t.known.has(s.tsuid)
	mu.Unlock()
	if t.cfg.Flags.Incrementing {
		cell := store.CellKey{Row: row, Family: encoding.FamilyName, Qualifier: []byte(encoding.MetaCounterQualifier)}
		n, err := t.cfg.Store.Increment(ctx, t.cfg.MetaTable, cell, s.points)
		if err != nil {
			return err
		}
		// The counter of a series that others have counted is theirs to
		// describe, unless an attempt of ours may have begun it.
		isNew = n == s.points || s.again
		s.points = 0
	}
	if !isNew {
		return nil
	}
	cell := store.CellKey{Row: row, Family: encoding.FamilyName, Qualifier: []byte(encoding.TSMetaQualifier)}
	value := encoding.AppendTSMeta(nil, newTSMeta(row, t.cfg.Now().Unix()))
	if _, err := t.cfg.Store.CompareAndPut(ctx, t.cfg.MetaTable, cell, nil, value); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	t.known.add(s.tsuid)
	return nil
}
