package uidcheck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uiduse"
	"downpour/pushdown/store"
)

// finish looks again at what a pass has found, reports what is still wrong, and repairs it.
func (c *check) finish(ctx context.Context, p *pass) error {
	c.changed = map[key]bool{} // by it lookAtStray separates what this pass has changed from what others change
	// Unknown columns and UIDs of another width: no assignment, rename or deletion makes these,
	// not even for a while.
	for _, f := range p.findings {
		line, err := c.handle(ctx, f)
		c.Say(line)
		if err != nil {
			return err
		}
	}
	if len(p.claims)+len(p.strays) == 0 {
		return nil
	}

	// Only a repair has to know whether rows have a stray UID: finding out may read all
	// keys.
	var used map[uiduse.Key]uiduse.Row
	if c.Fix {
		if err := c.awaitOthers(ctx); err != nil {
			return err
		}
		var err error
		if used, err = c.findUsed(ctx, leftovers(p.strays)); err != nil {
			return err
		}
	}

	// Claims go first: a name that loses its UID there may have a stray one.
	for _, k := range sorted(p.claims) {
		was := p.claims[k]
		judge := func(ctx context.Context) ([]Finding, error) { return c.lookAtClaim(ctx, was) }
		if err := c.settle(ctx, k.kind, was.names, []string{was.uid}, judge); err != nil {
			return err
		}
	}
	for _, k := range sorted(p.strays) {
		was := p.strays[k]
		judge := func(ctx context.Context) ([]Finding, error) { return c.lookAtStray(ctx, was, used) }
		if err := c.settle(ctx, k.kind, []string{was.name}, was.uids, judge); err != nil {
			return err
		}
	}
	return nil
}

// leftovers returns the strays that may be deleted if no row has them.
func leftovers(strays map[key]*stray) map[uiduse.Key]bool {
	wanted := map[uiduse.Key]bool{}
	for _, s := range strays {
		if s.own == nil && usable(s.name) && len(s.uids) == 1 {
			continue // its name gets it back
		}
		for _, u := range s.uids {
			wanted[uiduse.Key{Kind: s.kind, UID: u}] = true
		}
	}
	return wanted
}

// findUsed returns a row of points for each UID that rows have.
func (c *check) findUsed(ctx context.Context, wanted map[uiduse.Key]bool) (map[uiduse.Key]uiduse.Row, error) {
	if len(wanted) > 0 {
		c.Progress(fmt.Sprintf("before repairs: whether rows have %d UIDs that are no name's", len(wanted)))
	}
	look := uiduse.Tables{Store: c.Store, Schema: c.Schema, Names: c.Points, Progress: c.Progress}
	return look.Find(ctx, wanted)
}

// sorted returns keys in the order of kinds and bytes, so that every run reports the same.
func sorted[V any](all map[key]V) []key {
	return slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text))
	})
}

// awaitOthers waits until what other processes had begun before the call is done.
func (c *check) awaitOthers(ctx context.Context) error {
	if c.Settle <= 0 {
		return nil
	}
	c.Progress("before repairs: a wait of " + c.Settle.String() +
		", after which no name is half assigned, renamed or deleted by others")
	select {
	case <-time.After(c.Settle):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle reports what judge finds now, and repairs it if asked to. Names and UIDs are those
// that repairs may change.
func (c *check) settle(
	ctx context.Context, kind encoding.UIDKind, names, uids []string, judge func(context.Context) ([]Finding, error),
) error {
	// The reader of the lines may be slow: they are said after end, which is deferred later, so
	// that no name stays withdrawn for it.
	var lines []string
	defer func() {
		for _, line := range lines {
			c.Say(line)
		}
	}()

	if c.Fix {
		end, err := c.withdraw(ctx, kind, names, uids)
		if err != nil {
			return err
		}
		defer end()
	}
	found, err := judge(ctx)
	for _, f := range found {
		if err != nil {
			break
		}
		var line string
		line, err = c.handle(ctx, f)
		lines = append(lines, line)
	}
	return err
}

// withdraw keeps this process from using names until end is called, which also makes it forget
// what it knows of the UIDs.
func (c *check) withdraw(ctx context.Context, kind encoding.UIDKind, names, uids []string) (end func(), err error) {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = encoding.ParseName([]byte(name))
	}
	changed := make([]encoding.UID, len(uids))
	for i, u := range uids {
		changed[i] = encoding.UID(u)
	}
	over, err := c.Withdraw(ctx, kind, texts...)
	return func() { over(changed...) }, err
}

// lookAtClaim reads a claim again and judges it. It returns nothing if the cells have
// changed since the claim was found.
func (c *check) lookAtClaim(ctx context.Context, was *claim) ([]Finding, error) {
	back, err := c.cells(ctx, encoding.FamilyName, []string{was.uid})
	if err != nil {
		return nil, err
	}
	now := claim{kind: was.kind, uid: was.uid, back: back.Value(was.uid, was.kind.String())}
	// A name whose own mappings agree is not among the names that the pass has kept, and may
	// share the UID with them.
	owner, wanted := string(now.back), was.names
	if usable(owner) {
		wanted = append(slices.Clone(was.names), owner)
	}
	uids, err := c.cells(ctx, encoding.FamilyID, wanted)
	if err != nil {
		return nil, err
	}

	for _, name := range wanted {
		switch u := uids.Value(name, was.kind.String()); {
		case u != nil && string(u) == was.uid:
			now.names = append(now.names, name)
		case name == owner: // the UID leads back to a name that leads to another one, or to none
			now.other = u
		}
	}
	// The owner may be among was.names, too, and then was looked at twice.
	slices.Sort(now.names)
	now.names = slices.Compact(now.names)
	// Somebody is at work on a name that has left the claim.
	gone := slices.ContainsFunc(was.names, func(name string) bool { return !slices.Contains(now.names, name) })
	if gone || !same(was.back, now.back) {
		c.report.Moving++
		return nil, nil
	}

	if f, ok := judgeClaim(now, c.Collisions); ok {
		return []Finding{f}, nil
	}
	return nil, nil
}

// lookAtStray is lookAtClaim for a stray.
func (c *check) lookAtStray(ctx context.Context, was *stray, used map[uiduse.Key]uiduse.Row) ([]Finding, error) {
	now := stray{kind: was.kind, name: was.name}
	q := was.kind.String()
	// What cannot be a name has no row that could be read.
	if usable(was.name) {
		uids, err := c.cells(ctx, encoding.FamilyID, []string{was.name})
		if err != nil {
			return nil, err
		}
		now.own = uids.Value(was.name, q)
	}
	wanted := was.uids
	if len(now.own) > 0 {
		wanted = append(slices.Clone(wanted), string(now.own))
	}
	names, err := c.cells(ctx, encoding.FamilyName, wanted)
	if err != nil {
		return nil, err
	}

	now.back = names.Value(string(now.own), q)
	for _, u := range was.uids {
		if name := names.Value(u, q); name != nil && string(name) == was.name {
			now.uids = append(now.uids, u)
		}
	}
	// What this run has changed is known; whatever else has changed is in motion.
	if !same(was.own, now.own) && !c.changed[key{was.kind, was.name}] || len(now.uids) < len(was.uids) {
		c.report.Moving++
		return nil, nil
	}

	rows := map[string][]byte{}
	for _, u := range now.uids {
		rows[u] = used[uiduse.Key{Kind: was.kind, UID: u}].Key
	}
	return judgeStray(now, rows, c.Schema.UIDWidth(was.kind)), nil
}

// same compares values; nil is none.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// handle counts a finding and repairs it if requested. It returns what is to be reported.
func (c *check) handle(ctx context.Context, f Finding) (string, error) {
	line, count := "error", &c.report.Errors
	if f.Warning {
		line, count = "warning", &c.report.Warnings
	}
	*count++
	if f.collision {
		c.report.Collisions++
	}
	line += ": " + f.Of + ": " + f.Text

	repaired := false
	var err error
	switch {
	case f.Repair == "": // nothing repairs it
	case !c.Fix:
		line += "; fix: " + f.Repair
	default:
		if repaired, err = c.repair(ctx, f); err != nil {
			line += "; not repaired: " + err.Error()
		} else if repaired {
			line += "; repaired: " + f.Repair
			c.report.Repaired++
		} else {
			line += "; not repaired: it has just been changed"
			c.report.Moving++
		}
	}

	// What a warning is about does no harm where it stays.
	if !repaired && !f.Warning {
		c.report.Left++
	}
	return line, err
}

// repair makes the steps of a finding. It returns false, and has made only those before, if
// a cell is not as it was read.
func (c *check) repair(ctx context.Context, f Finding) (bool, error) {
	for _, s := range f.steps {
		ok, err := c.step(ctx, s)
		if err != nil || !ok {
			return false, err
		}
		// lookAtStray has to separate changes of this run from those of others.
		if kind, meta, known := encoding.ParseUIDKind([]byte(s.qualifier)); known && !meta &&
			s.family == encoding.FamilyID && !same(s.old, s.value) {
			c.changed[key{kind, s.row}] = true
		}
	}
	return true, nil
}

// step changes one cell, or checks it. It returns false if the cell is not as it was read.
func (c *check) step(ctx context.Context, s step) (bool, error) {
	at := store.CellKey{Row: []byte(s.row), Family: s.family, Qualifier: []byte(s.qualifier)}
	// An increment compares nothing: it is right whatever others add.
	if s.add != 0 {
		_, err := c.Store.Increment(ctx, c.Table, at, s.add)
		return err == nil, err
	}
	// To the store an empty expected value means no cell, so a cell that is empty cannot be
	// compared: it is read and deleted below, before its new value is put.
	if s.value != nil && !same(s.old, s.value) && (s.old == nil || len(s.old) > 0) {
		return c.Store.CompareAndPut(ctx, c.Table, at, s.old, s.value)
	}

	rows, err := c.Store.Get(ctx, c.Table, s.family, [][]byte{at.Row})
	if err != nil {
		return false, err
	}
	var now *store.Cell
	for _, r := range rows {
		for _, x := range r.Cells {
			if bytes.Equal(x.Qualifier, at.Qualifier) {
				now = &x
			}
		}
	}
	switch {
	case now == nil:
		return s.whatever || s.old == nil && s.value == nil, nil // it is gone, or was not to be there
	case !s.whatever && (s.old == nil || !bytes.Equal(now.Value, s.old)):
		return false, nil
	case same(s.old, s.value) && !s.whatever:
		return true, nil // it only had to be as it was
	}

	// With the time of the version that was read, a later one survives on HBase.
	gone := store.Mutation{
		Kind:      store.DeleteCell,
		Row:       at.Row,
		Family:    at.Family,
		Qualifier: at.Qualifier,
		Timestamp: now.Timestamp,
	}
	if err := c.Store.Apply(ctx, c.Table, []store.Mutation{gone}); err != nil || s.value == nil {
		return err == nil, err
	}
	return c.Store.CompareAndPut(ctx, c.Table, at, nil, s.value)
}
