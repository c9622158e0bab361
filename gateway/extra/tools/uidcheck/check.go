// Package uidcheck finds damage in the UID table and repairs it: the mappings from names to
// UIDs and from UIDs to names, which must agree, and the counters of UIDs.
//
// Judging is pure (judge.go); a check reads both families once, in the order of their keys,
// and looks up the other side of a thousand mappings at a time (pass.go). What agrees is
// forgotten at once, so the memory goes with the damage and not with the table. If that is
// more than Config.Bytes, the table is read several times, each time for a part of the UIDs.
// Whether rows of points have a UID that is no name's, package uiduse says.
//
// The table may be in use. A name that is being assigned, renamed or deleted has mappings
// that do not agree for a while. So what does not agree is read again, before a repair
// after Config.Settle, and reported only if it is as it was (repair.go). A repair writes each
// cell by compare-and-put; a deletion is of the version that was read.
// Source: UidManager.fsck.
package uidcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// Config says what is checked and what becomes of it.
type Config struct {
	Store  store.Cells
	Table  string // the UID table
	Schema encoding.Schema
	// Points are the tables whose row keys have UIDs: the data table, and those of rollups, which need not
	// exist.
	Points []string
	// Fix repairs what is found. Without it nothing is written.
	Fix bool
	// DeleteUnknown deletes columns that neither OpenTSDB nor Downpour writes; with Fix.
	DeleteUnknown bool
	// Collisions says what becomes of names that share a UID; with Fix.
	Collisions Policy
	// Settle is how long what is to be repaired must have been as it is. It is longer than
	// other processes take to assign, rename or delete a name; 0 if there are none.
	Settle time.Duration
	// Withdraw keeps this process from using names while their mappings are repaired, see
	// uid.Dictionary.Withdraw. It must not be nil.
	Withdraw func(ctx context.Context, kind encoding.UIDKind, names ...string) (end func(...encoding.UID), err error)
	// Bytes bounds the memory. Default 64 MiB.
	Bytes int
	// Say gets a line for each finding and repair, Progress what is being done, often.
	// They must not be nil.
	Say, Progress func(line string)
}

const defaultBytes = 64 << 20

// Report counts what a check has found.
type Report struct {
	// Names are the mappings from names to UIDs, by kind.
	Names [3]int64 `json:"names"`
	// Errors and Warnings are the findings, Left those errors that stay.
	Errors   int64 `json:"errors"`
	Warnings int64 `json:"warnings"`
	Left     int64 `json:"left"`
	Repaired int64 `json:"repaired"`
	// Collisions are the errors of names that share a UID.
	Collisions int64 `json:"collisions"`
	// Moving are findings that were gone or different when they were looked at again.
	Moving int64 `json:"moving"`
}

// Run checks the UID table. It can be ended and run again at any time. Errors are the
// store's.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Bytes <= 0 {
		cfg.Bytes = defaultBytes
	}

	c := &check{Config: cfg, report: new(Report)}
	if err := c.table(ctx); err != nil {
		return c.report, err
	}
	for kind := encoding.UIDMetric; kind <= encoding.UIDTagV; kind++ {
		if err := c.counter(ctx, kind); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// check is a check that runs.
type check struct {
	Config
	report *Report
	// ids are the UIDs that were seen, by kind.
	ids [3]seen
	// changed are names whose UID the repairs of a pass have changed.
	changed map[key]bool
}

// seen is what is known of the UIDs of a kind.
type seen struct {
	largest uint64
	names   int64 // mappings from a name, or back to one, whichever are more
}

// table checks all UIDs. If what is found takes too much memory, it checks a part of them at a
// time.
func (c *check) table(ctx context.Context) error {
	err := c.part(ctx, wholetable.Share{})
	if errors.Is(err, wholetable.ErrMuch) {
		err = wholetable.Share{}.Halves(func(half wholetable.Share) error {
			c.Progress(fmt.Sprintf("much is wrong: the table is read again for %s of the UIDs", half))
			return c.part(ctx, half)
		})
	}
	if errors.Is(err, wholetable.ErrMuch) {
		return fmt.Errorf("uidcheck: what is wrong: %w", err)
	}
	return err
}

// part checks a part of the UIDs. The error is wholetable.ErrMuch if what is found in it takes
// too much memory.
func (c *check) part(ctx context.Context, share wholetable.Share) error {
	p := newPass(c, share)
	if err := p.read(ctx); err != nil {
		return err
	}

	for kind := range c.ids {
		s, of := &c.ids[kind], &p.ids[kind]
		s.largest = max(s.largest, of.largest)
		s.names += max(of.forward, of.reverse)
		c.report.Names[kind] += of.forward
	}
	return c.finish(ctx, p)
}

// counter checks the counter of a kind. It is read after the mappings: an assignment
// counts first.
func (c *check) counter(ctx context.Context, kind encoding.UIDKind) error {
	s := c.ids[kind]
	judge := func(ctx context.Context) ([]Finding, error) {
		rows, err := c.cells(ctx, encoding.FamilyID, []string{string(encoding.CounterRow)})
		if err != nil {
			return nil, err
		}
		f, ok := judgeCounter(kind, rows.Value(string(encoding.CounterRow), kind.String()), s.largest, s.names)
		if !ok {
			return nil, nil
		}
		return []Finding{f}, nil
	}
	return c.settle(ctx, kind, nil, nil, judge)
}
