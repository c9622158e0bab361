package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Bounds of what Seal does at a time.
const (
	// sealRows and sealBytes bound the rows of one batch, and sealKeys the keys that are looked at for it.
	sealRows  = 64
	sealBytes = 1 << 20
	sealKeys  = 4096
	// sealStretch is how many bytes are written before what they replace is removed.
	sealStretch = 32 << 20
)

// Seal writes the append columns of a table's rows once more, in their sealed form, where their hour ended in
// [since, before); see store.Features. Nothing else changes: all who read a row find the entries that were there. So a
// change of this kind counts for no version token, mark or watch, and it need not be durable before anything
// else is.
//
// A row that has changed since it was read stays as it is.
func (s *Store) Seal(ctx context.Context, table string, since, before time.Time,
	pace func(store.SealReport) error) (report store.SealReport, err error) {
	if err := s.tables.check(table, ""); err != nil {
		return report, err
	}
	p := sealing{s: s, table: table, since: hourAt(since), before: hourAt(before), next: appendPrefix(nil, table, nil)}
	for !p.ended && err == nil {
		if err = p.step(ctx); err == nil && p.rows > 0 {
			p.report.Rows += int64(p.rows)
			err = pace(p.report)
		}
		if err == nil && p.written >= sealStretch {
			err = p.settle(ctx)
		}
	}
	// After an error pebble's own compactions remove what was replaced, sooner or later.
	if err == nil {
		err = p.settle(ctx)
	}
	if err != nil {
		err = fmt.Errorf("sealing of table %q: %w", table, err)
	}
	return p.report, err
}

// sealing is one pass over a table.
type sealing struct {
	s      *Store
	table  string
	since  uint64 // the first hour that is looked at
	before uint64 // the first hour that stays as it is
	next   []byte // the key at which the next step begins
	ended  bool
	rows   int // that the last step has looked at
	report store.SealReport

	sealer encoding.Sealer
	cells  []sealedCell

	// What of the table holds values that were replaced, and the bytes of those that replace them.
	replaced pebble.KeyRange
	written  int
}

// sealedCell is a cell with its stored value before and after it is sealed.
type sealedCell struct{ key, old, sealed []byte }

// step seals the next rows.
func (p *sealing) step(ctx context.Context) error {
	if err := p.s.begin(ctx); err != nil {
		return err
	}
	defer p.s.life.RUnlock()

	// What is written to a full disk waits for room.
	if err := p.s.Writable(); err != nil {
		return err
	}
	if err := p.s.roomToSeal(); err != nil {
		return err
	}
	p.rows = 0
	p.cells = p.cells[:0]
	if err := p.find(); err != nil {
		return unreadable(err)
	}
	if len(p.cells) == 0 {
		return nil
	}
	p.rows = len(p.cells)
	if err := p.seal(); err != nil {
		return unreadable(err)
	}
	if len(p.cells) == 0 {
		return nil
	}
	p.extendReplaced()
	if err := p.s.disk.SetColumns(); err != nil { //fault:columns-without-version TestSeal_version
		return err
	}
	return p.write()
}

// roomToSeal returns store.ErrFull where so little is free that the new form of rows, which exists in addition
// to the old one for a while, could be why puts are refused.
func (s *Store) roomToSeal() error {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil
	}
	if need := 2*reserveOf(usage) + sealStretch; usage.AvailBytes < need {
		return fmt.Errorf("%w to seal rows: %d KiB are free, want %d", store.ErrFull, usage.AvailBytes>>10, need>>10)
	}
	return nil
}

// find looks for keys of cells that may have to be sealed, from p.next on.
func (p *sealing) find() error {
	old := sstable.NewBlockIntervalFilter(hoursName, p.since, p.before, nil)
	it, err := p.s.db.NewIter(&pebble.IterOptions{
		LowerBound: p.next,
		UpperBound: appendTableEnd(nil, p.table),
		// Pebble adds a filter of its own, for which there is room.
		PointKeyFilters: append(make([]pebble.BlockPropertyFilter, 0, 2), old),
	})
	if err != nil {
		return err
	}

	seen := 0
	valid := it.First()
	for ; valid && seen < sealKeys && len(p.cells) < sealRows; seen++ {
		// Blocks that the filter leaves out may hold other values of a cell, or its deletion: what it holds is
		// read later, by its key.
		hour, ok := appendHour(p.s.opts.Grouping, it.Key())
		if ok && p.since <= hour && hour < p.before {
			p.cells = append(p.cells, sealedCell{key: bytes.Clone(it.Key())})
		}
		valid = it.Next()
	}
	if p.ended = !valid; valid {
		p.next = append(p.next[:0], it.Key()...)
	}
	return it.Close()
}

// seal reads the cells that were found and seals them. Those that need not be are left out.
func (p *sealing) seal() error {
	found, size := p.cells, 0
	p.cells = p.cells[:0]
	return p.each(found, func(c sealedCell, stored []byte) error {
		v, err := parseValue(stored)
		if err != nil || v.unsealed() < leastUnsealed {
			return nil
		}
		// It is the first one of the next step, which counts it and those behind it.
		if size > sealBytes {
			p.rows = slices.IndexFunc(found, func(f sealedCell) bool { return bytes.Equal(f.key, c.key) })
			p.next, p.ended = append(p.next[:0], c.key...), false
			return errEnough
		}
		sealed, ok := p.sealer.Seal(nil, v.bytes)
		if !ok {
			return nil
		}
		c.sealed = append(appendSealedHeader(nil, len(sealed)), sealed...)
		if len(c.sealed) >= len(stored) { //fault:sealed-for-nothing TestSeal_noGain
			return nil
		}
		c.old = bytes.Clone(stored)
		p.cells = append(p.cells, c)
		size += len(stored)
		return nil
	})
}

// errEnough ends each early.
var errEnough = errors.New("enough cells")

// each calls f with what is stored of cells now, which it must not keep, in the order of their keys.
func (p *sealing) each(cells []sealedCell, f func(c sealedCell, stored []byte) error) error {
	it, err := p.s.db.NewIter(&pebble.IterOptions{LowerBound: cells[0].key, UpperBound: appendTableEnd(nil, p.table)})
	if err != nil {
		return err
	}
	for _, c := range cells {
		if !it.SeekGE(c.key) || !bytes.Equal(it.Key(), c.key) {
			continue // gone, or an error, which Close returns
		}
		stored, err := it.ValueAndErr()
		if err == nil {
			err = f(c, stored)
		}
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

// write replaces the cells that are as they were read. Their blocks are in memory, so that the lock is held for
// some microseconds.
func (p *sealing) write() error {
	p.s.change.Lock()
	defer p.s.change.Unlock() //fault:sealed-while-others-write TestSeal_writes
	if err := p.s.Writable(); err != nil {
		return err
	}

	b := p.s.db.NewBatch()
	err := p.each(p.cells, func(c sealedCell, stored []byte) error {
		if !bytes.Equal(stored, c.old) { //fault:sealed-over-a-later-point TestSeal_concurrent
			return nil
		}
		p.report.Sealed++
		p.report.Before += int64(len(c.old))
		p.report.After += int64(len(c.sealed))
		p.written += len(c.sealed)
		return b.Set(c.key, c.sealed, nil)
	})
	if err != nil {
		return errors.Join(unreadable(err), b.Close())
	}
	// A crash that leaves this out leaves what was there before, which says the same.
	return errors.Join(p.s.db.Apply(b, pebble.NoSync), b.Close())
}

// extendReplaced adds the rows that are about to be written to what settle has to do.
func (p *sealing) extendReplaced() {
	if p.replaced.Start == nil {
		p.replaced.Start = p.cells[0].key
	}
	last := p.cells[len(p.cells)-1].key
	row := last[len(p.table)+1 : split(last)-1] // between the 00 of the table and its own
	p.replaced.End = appendKey(nil, p.table, append(bytes.Clone(row), 0), "", nil)
}

// settle removes what sealed rows have replaced.
func (p *sealing) settle(ctx context.Context) error {
	if p.replaced.Start == nil {
		return nil
	}
	// On a full disk a flush waits for room.
	if err := p.s.Writable(); err != nil {
		return err
	}
	replaced := p.replaced
	p.replaced, p.written = pebble.KeyRange{}, 0
	if err := p.s.Flush(ctx); err != nil {
		return err
	}
	_, err := p.s.reclaimSome(ctx, []pebble.KeyRange{replaced})
	return err
}
