package lease

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// rowPrefix is what the keys of leases begin with, and column their qualifier.
const (
	rowPrefix = "lease/"
	column    = "lease"
)

// Default times of a Keeper. A dead holder is replaced after DeadAfter and a quarter of a heartbeat by a
// waiter, or within 60 s by a process that checks every ten.
const (
	defaultBeat      = 10 * time.Second
	defaultDeadAfter = 45 * time.Second
)

// releaseWithin bounds a release, and the check after a call whose context has ended.
const releaseWithin = 5 * time.Second

// takeAttempts is how often Take tries again after an error of the store.
const takeAttempts = 3

// Cells is what a Keeper needs of a store.
type Cells interface {
	Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error)
	CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error)
}

// Keeper takes leases in one table. A process has one: it remembers for how long it has seen
// the leases of others unchanged. The fields are set before it is used.
type Keeper struct {
	Store Cells
	Table string
	// Holder names the holder of a lease to people, see Holder.
	Holder string
	// Heartbeat is the time between two renewals, and DeadAfter the time after which a lease that was not
	// renewed may be taken. Default 10 s and 45 s; DeadAfter is at least four heartbeats.
	Heartbeat, DeadAfter time.Duration
	// Gone, if set, reports whether a holder is known to be dead by another lease that it had: then
	// this one need not have been watched for that long. It is called while Keeper is locked.
	Gone func(holder string) bool
	// Waits, if set, is called with each holder for whom Take waits, once.
	Waits func(name, holder string)

	mu   sync.Mutex
	seen map[string]sighting // by the name of a lease that another holds
}

// sighting is a value of a lease, and since when it was seen.
type sighting struct {
	value string
	since time.Time
	last  time.Time
}

// Holder returns a name for this process: HOST:PID:RANDOM.
func Holder() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d:%s", cmp.Or(host, "unknown"), os.Getpid(), random(4))
}

// random returns so many random bytes in hex.
func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (k *Keeper) heartbeat() time.Duration {
	if k.Heartbeat > 0 {
		return k.Heartbeat
	}
	return defaultBeat
}

func (k *Keeper) deadAfter() time.Duration {
	if k.DeadAfter > 0 {
		return k.DeadAfter
	}
	return defaultDeadAfter
}

// check returns the first field that is wrong.
func (k *Keeper) check() error {
	if k.Holder == "" {
		return errors.New("lease: the holder has no name")
	}
	if k.deadAfter() < 4*k.heartbeat() {
		return fmt.Errorf("lease: dead after %v with a beat of %v, want at least four beats",
			k.deadAfter(), k.heartbeat())
	}
	return nil
}

// Take takes the lease called name, waiting while another living holder has it. ctx bounds
// the wait, not the lease, which must be released.
func (k *Keeper) Take(ctx context.Context, name string) (*Lease, error) {
	turns, told := []string{random(16)}, ""
	for failed := 0; ; {
		l, holder, err := k.attempt(ctx, name, turns)
		if l != nil {
			return l, nil
		}
		pause := k.heartbeat() / 4
		switch {
		case ctx.Err() != nil:
			return nil, errors.Join(context.Cause(ctx), err)
		case err != nil:
			if failed++; failed == takeAttempts || errors.Is(err, store.ErrNoTable) || errors.Is(err, store.ErrDenied) {
				return nil, err
			}
			turns = append(turns, random(16)) // the one before may have been written, or may be later
		default:
			failed = 0
			if holder != told && holder != "" && k.Waits != nil {
				k.Waits(name, holder)
			}
			told = holder
		}
		if wait.For(ctx, pause) != nil {
			return nil, fmt.Errorf("lease %s is held by %s: %w", name, told, context.Cause(ctx))
		}
	}
}

// Try takes the lease if it is free. ok is false if it has a holder that is not yet known to be
// dead; a later Try of the same Keeper finds that out. After an error of the store the lease may be
// blocked for as long as that of a dead holder.
func (k *Keeper) Try(ctx context.Context, name string) (l *Lease, ok bool, err error) {
	l, _, err = k.attempt(ctx, name, []string{random(16)})
	return l, l != nil, err
}

// Do takes the lease as Take does, calls work and releases the lease. The context of work ends with
// ctx, and when the lease is lost; then the error has ErrLost.
func (k *Keeper) Do(ctx context.Context, name string, work func(ctx context.Context, l *Lease) error) error {
	l, err := k.Take(ctx, name)
	if err != nil {
		return err
	}
	return l.Do(ctx, func(ctx context.Context) error { return work(ctx, l) })
}

// attempt takes the lease with the last of some turns if it is free, has a dead holder, or has an
// earlier one of the turns, whose write came late. Otherwise it returns the holder, "" if that is
// such an earlier turn.
func (k *Keeper) attempt(ctx context.Context, name string, turns []string) (l *Lease, holder string, err error) {
	if err := k.check(); err != nil {
		return nil, "", err
	}
	old, err := k.read(ctx, name)
	if err != nil {
		return nil, "", err
	}
	isOfOther := !old.free() && !slices.Contains(turns, old.Turn)
	if isOfOther && !k.isExpired(name, old) {
		return nil, old.Holder, nil
	}

	began, turn := time.Now(), turns[len(turns)-1]
	next, err := record{Holder: k.Holder, Turn: turn, state: old.state}.encoded()
	if err != nil {
		return nil, "", err
	}
	now, err := k.swap(ctx, name, old, next)
	if err != nil && ctx.Err() != nil {
		// The call was cut off. A lease that it may have taken must be released.
		settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer cancel()
		if now, _ := k.read(settle, name); slices.Contains(turns, now.Turn) { // an error has a record of no turn
			l := newLease(ctx, k, name, now, began)
			close(l.ended)
			_ = l.Release(settle)
		}
	}
	if err != nil {
		return nil, "", err
	}
	switch {
	case now.Turn == turn:
	case slices.Contains(turns, now.Turn):
		return nil, "", nil
	default:
		return nil, now.Holder, nil // another was faster
	}

	l = newLease(ctx, k, name, next, began)
	go l.renew()
	return l, "", nil
}

// isExpired notes the value of another's lease, and reports whether it has not changed for so long
// that its holder is dead.
func (k *Keeper) isExpired(name string, r record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	// After the read, so that the value is at least as old as is counted.
	now := time.Now()
	s := k.seen[name]
	if s.value != string(r.value) {
		s = sighting{value: string(r.value), since: now}
	}
	s.last = now
	if k.seen == nil {
		k.seen = map[string]sighting{}
	}
	k.seen[name] = s

	// Leases that were not read for long are dropped: there may be many names.
	if len(k.seen) > 1000 {
		for other, o := range k.seen {
			if now.Sub(o.last) > 2*k.deadAfter() {
				delete(k.seen, other)
			}
		}
	}
	return now.Sub(s.since) >= k.deadAfter() || k.Gone != nil && k.Gone(r.Holder)
}

// cell is the cell of a lease.
func cell(name string) store.CellKey {
	return store.CellKey{Row: []byte(rowPrefix + name), Family: Family, Qualifier: []byte(column)}
}

// read returns the record of a lease; the zero record if there is none.
func (k *Keeper) read(ctx context.Context, name string) (record, error) {
	rows, err := k.Store.Get(ctx, k.Table, Family, [][]byte{cell(name).Row})
	if err != nil {
		return record{}, fmt.Errorf("cannot read lease %s in table %s: %w", name, k.Table, err)
	}
	if len(rows) == 0 {
		return record{}, nil
	}
	r, err := recordOf(rows[0])
	if err != nil {
		return record{}, fmt.Errorf("cannot read lease %s in row %q of table %s: %w", name, rows[0].Key, k.Table, err)
	}
	return r, nil
}

// recordOf returns the record in the row of a lease; the zero record if it has no such cell.
func recordOf(row store.Row) (record, error) {
	for _, c := range row.Cells {
		if string(c.Qualifier) == column {
			return parseRecord(c.Value)
		}
	}
	return record{}, nil
}

// swap replaces one record by another, and returns the one that is there then: next, or what
// another has written. After an error next may have been written, or may be later.
func (k *Keeper) swap(ctx context.Context, name string, old, next record) (record, error) {
	wrote, err := k.Store.CompareAndPut(ctx, k.Table, cell(name), old.value, next.value)
	if err == nil && wrote {
		return next, nil
	}

	now, readErr := k.read(ctx, name)
	if readErr != nil {
		return record{}, errors.Join(err, readErr)
	}
	if err != nil && bytes.Equal(now.value, old.value) {
		return record{}, fmt.Errorf("cannot write lease %s in table %s: %w", name, k.Table, err)
	}
	return now, nil
}
