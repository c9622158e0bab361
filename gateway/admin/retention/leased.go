package retention

import (
	"context"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// leaseName is the name of the lease, which is in the table of our own.
const leaseName = "retention"

// Leased are the turns among all processes that share tables.
type Leased struct {
	admin  store.Admin
	leases *lease.Keeper
}

// NewLeased returns turns whose lease lies in the given table of a store. The first turn makes
// the table if it does not exist.
func NewLeased(st interface {
	store.Cells
	store.Admin
}, table string) *Leased {
	return &Leased{admin: st, leases: &lease.Keeper{Store: st, Table: table, Holder: lease.Holder()}}
}

// Take implements Turns.
func (l *Leased) Take(ctx context.Context) (Turn, error) {
	if err := lease.CreateTable(ctx, l.admin, l.leases.Table); err != nil {
		return nil, err
	}
	t, err := l.leases.Take(ctx, leaseName)
	if err != nil {
		return nil, err // and no interface that holds a nil pointer
	}
	return t, nil
}

// Try implements Turns.
func (l *Leased) Try(ctx context.Context) (Turn, bool, error) {
	if err := lease.CreateTable(ctx, l.admin, l.leases.Table); err != nil {
		return nil, false, err
	}
	t, ok, err := l.leases.Try(ctx, leaseName)
	if err != nil || !ok {
		return nil, false, err
	}
	return t, true, nil
}
