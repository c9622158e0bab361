package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uiduse"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// reclaim deletes the names whose UIDs no row has. It reads the keys of all rows once and marks their UIDs, then the
// names, and has a deletion look again at those that are not marked and delete them, as many at a time as fit into
// memory. It may be killed at any point and run again: it ends what a deletion has begun.
type reclaim struct {
	*uidWorker
	uidWork
	// used are the UIDs of rows, and named those that a name has, by kind. shared are those that several names have.
	used, named [3]uiduse.Set
	shared      map[uiduse.Key]bool
	// before are the counters before the rows were read, and after those after the names were: a UID that was given in
	// between may be in a row that the reading had passed. largest are the largest UIDs that lead to a name, and drawn
	// the kinds in which no counter has given those.
	before, after uid.Counters
	largest       [3]uint64
	drawn         [3]bool

	looked, removed [3]int64 // names by kind
	fates           [replaced + 1]int64
	shares, listed  int64  // unused UIDs that several names have, and names that were listed or could have been
	refused         string // why nothing is deleted
}

// errTSDs is why reclaim wants to know that no TSD runs.
var errTSDs = conflict("uid reclaim: a TSD remembers names as long as it runs. It would go on writing under the " +
	"number of a name that is gone, while the next put elsewhere gives the name another number. Stop all TSDs, and " +
	"give -no-tsds")

// reclaim runs a reclaim.
func (x *uidWorker) reclaim(ctx context.Context, w uidWork) (*uidDone, error) {
	if !x.Embedded && !w.NoTSDs { //fault:uid-reclaim-next-to-tsds TestReclaim_refused
		return nil, errTSDs
	}
	r := &reclaim{uidWorker: x, uidWork: w, shared: map[uiduse.Key]bool{}}
	if err := r.run(ctx); err != nil {
		return nil, fmt.Errorf("uid reclaim: %w (what was removed stays so; run it again)", err)
	}
	return r.done(), nil
}

// ownReclaimBytes bounds the memory of sets, and that of names, in a process that has no other work.
const ownReclaimBytes = 64 << 20

// most is the bound of memory for sets, and for names.
func (r *reclaim) most() int {
	if r.bytes > 0 {
		return r.bytes
	}
	return ownReclaimBytes
}

func (r *reclaim) run(ctx context.Context) (err error) {
	if r.before, err = r.Names.Counters(ctx); err != nil {
		return err
	}
	err = r.readRows(ctx)
	if err == nil {
		err = r.readNames(ctx)
	}
	if errors.Is(err, wholetable.ErrMuch) {
		return fmt.Errorf("the UIDs in use: %w: %d MiB", err, r.most()>>20)
	}
	if err != nil {
		return err
	}
	if r.after, err = r.Names.Counters(ctx); err != nil || r.refused != "" && !r.dryRun {
		return err
	}
	for kind := range r.largest {
		r.drawn[kind] = r.largest[kind] > uint64(r.after.Given[kind])
	}

	if !r.Embedded && !r.dryRun {
		wait := othersFor * r.KnownWithin
		r.progress("a wait of " + wait.String() +
			", after which no name is half assigned, renamed or deleted by others")
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	for from, more := []byte(nil), true; more; {
		var names []*doomed
		if names, from, err = r.unused(ctx, from); err == nil {
			err = r.remove(ctx, names)
		}
		if more = from != nil; err != nil {
			return err
		}
	}
	return nil
}

// readRows marks the UIDs of all rows.
func (r *reclaim) readRows(ctx context.Context) error {
	budget := &wholetable.Budget{Most: r.most()}
	for kind := range r.used {
		r.used[kind].Budget, r.named[kind].Budget = budget, budget
	}
	tables := r.rowTables(r.progress)
	return tables.Each(ctx, func(kind encoding.UIDKind, u []byte) error {
		if r.used[kind].Has(u) {
			return nil
		}
		return r.used[kind].Add(u)
	})
}

// readNames reads which names have UIDs. It refuses to go on if more than half of them are in no row, unless that is
// allowed: the settings may name another data table than that of these names.
func (r *reclaim) readNames(ctx context.Context) error {
	var all, unused int64
	err := r.cells(ctx, "", nil, func(kind encoding.UIDKind, row []byte, c store.Cell) error {
		if string(c.Family) == encoding.FamilyName {
			r.largest[kind] = max(r.largest[kind], encoding.UIDNumber(row))
			return nil
		}
		if want := r.Schema.UIDWidth(kind); len(c.Value) != want {
			return fmt.Errorf("%s has a UID of %d bytes, want %d: is the UID width right?", kind, len(c.Value), want)
		}
		all++
		r.looked[kind]++
		if r.used[kind].Has(c.Value) {
			return nil
		}
		unused++
		if r.named[kind].Has(c.Value) {
			r.shared[uiduse.Key{Kind: kind, UID: string(c.Value)}] = true
		}
		return r.named[kind].Add(c.Value)
	})
	if err != nil {
		return err
	}
	most := max(all/2, suspicious, r.YesDelete)
	if unused > most { //fault:uid-reclaim-of-all-names TestReclaim_refused
		r.refused = fmt.Sprintf("nothing is deleted: %d of %d names are in no row of table %s and the tables of "+
			"rollups, which is more than half. If that may be, give -yes-delete %d",
			unused, all, r.Tables.Data, unused)
	}
	return nil
}

// suspicious is how many names may go although they are more than half.
const suspicious = int64(10)

// cells calls take with the mappings of a family of the UID table, of both if it is empty, from a row on, until it
// returns an error.
func (r *reclaim) cells(
	ctx context.Context, family string, from []byte, take func(encoding.UIDKind, []byte, store.Cell) error,
) error {
	progress := func(rows int) { r.progress(fmt.Sprintf("%s: %d rows read", r.Tables.UID, rows)) }
	for row, err := range wholetable.Counted(ctx, r.Store, store.Scan{
		Table:  r.Tables.UID,
		Family: family,
		Start:  from,
	}, 1<<14, progress) {
		if err != nil {
			return err
		}
		for _, c := range row.Cells {
			kind, meta, known := encoding.ParseUIDKind(c.Qualifier)
			if !known || meta || bytes.Equal(row.Key, encoding.CounterRow) {
				continue
			}
			if err := take(kind, row.Key, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// doomedBytes is about what a name takes besides its bytes, here and while it is withdrawn.
const doomedBytes = 400

// errFull ends the reading of names for a time.
var errFull = errors.New("as many names as fit into memory")

// unused reads names whose UIDs no row has, from a UID on, as many as fit into memory. It returns the UID with which to
// go on, nil at the end.
func (r *reclaim) unused(ctx context.Context, from []byte) (names []*doomed, next []byte, err error) {
	budget, d := wholetable.Budget{Most: r.most()}, &deletion{work: r.work}
	var read []*doomed // whose mappings are still to be read
	sift := func() error {
		err := d.each(ctx, read, func(read []*doomed, now []mapping) error {
			for i, n := range read {
				if r.mayGo(n, &now[i]) {
					names = append(names, n)
				}
			}
			return nil
		})
		read = read[:0]
		return err
	}
	err = r.cells(ctx, encoding.FamilyName, from, func(kind encoding.UIDKind, u []byte, c store.Cell) error {
		// All cells of a row go together, so that the next reading begins with another row.
		if next != nil && !bytes.Equal(next, u) {
			next = bytes.Clone(u)
			return errFull
		}
		number := int64(encoding.UIDNumber(u))
		young := number > r.before.Given[kind] && (number <= r.after.Given[kind] || !r.drawn[kind])
		if len(u) != r.Schema.UIDWidth(kind) || r.used[kind].Has(u) || young || len(c.Value) == 0 {
			return nil
		}
		read = append(read, &doomed{Key: uiduse.Key{Kind: kind, UID: string(u)}, name: encoding.ParseName(c.Value)})
		if budget.Take(3*len(c.Value)+doomedBytes) != nil {
			next = bytes.Clone(u)
		}
		if len(read) < uidsAtOnce {
			return nil
		}
		return sift()
	})
	if err == nil {
		next = nil
	}
	if err == nil || errors.Is(err, errFull) {
		err = sift()
	}
	return names, next, err
}

// mayGo reports whether a UID that no row has may be removed, by what the table says of it and the name that it leads
// to.
func (r *reclaim) mayGo(n *doomed, now *mapping) bool {
	switch {
	case !now.leadsBack(n): // it has just been changed
		return false
	case r.shared[n.Key]: //fault:uid-reclaim-of-shared-uids TestReclaim_stays
		r.shares++
		return false
	case bytes.Equal(now.forward.Value, n.uid()):
		return true
	case now.forward.Value != nil || r.named[n.Kind].Has(n.uid()): // uid fsck knows what to do
		return false
	}
	// A UID that could be given again leads to its name for ever.
	n.leftover = !r.drawn[n.Kind] && int64(encoding.UIDNumber(n.uid())) <= r.before.Given[n.Kind]
	return n.leftover
}

// remove deletes names, and counts what has become of them.
func (r *reclaim) remove(ctx context.Context, names []*doomed) error {
	if len(names) == 0 {
		return nil
	}
	d := &deletion{work: r.work, names: names, drawn: r.drawn, progress: r.progress}
	if r.dryRun {
		for _, n := range names {
			n.fate = gone
		}
	} else {
		r.progress(fmt.Sprintf("names in no row: %d; puts of them wait until they are gone", len(names)))
		if err := d.run(ctx); err != nil {
			return err
		}
	}

	for _, n := range names {
		r.fates[n.fate]++
		switch {
		case n.fate == replaced:
			r.say("error: " + n.replacedError().Error())
		case n.fate == gone:
			r.removed[n.Kind]++
			if r.listed++; r.listed <= mostListed {
				r.say(fmt.Sprintf("%s %s: deleted, it was %s", n.Kind, visible(n.name), n.uid()))
			}
		}
	}
	return nil
}

// mostListed is how many names are listed.
const mostListed = 100

// done sums up what was done.
func (r *reclaim) done() *uidDone {
	done := &uidDone{Failed: r.refused}
	add := func(format string, n int64, more ...any) {
		if n > 0 {
			done.Lines = append(done.Lines, fmt.Sprintf(format, append([]any{n}, more...)...))
		}
	}
	add("and %d more", r.listed-mostListed)
	done.Lines = append(done.Lines, fmt.Sprintf("names: %s; deleted: %s", byKind(r.looked), byKind(r.removed)))
	add("%d names stay: they came into use in between", r.fates[inUse])
	add("%d names stay: they were changed by another process in between", r.fates[changed])
	add("%d UIDs stay, because several names have them: gateway uid fsck lists these", r.shares)
	if n := r.fates[replaced]; n > 0 {
		done.Failed = fmt.Sprintf("%d names have got another UID", n)
	}
	return done
}

// byKind is a count for each kind, as text.
func byKind(n [3]int64) string { return fmt.Sprintf("%d metrics, %d tagk, %d tagv", n[0], n[1], n[2]) }
