package retention

import (
	"context"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// Leased are the turns among all processes that share tables.
type Leased struct {
	admin  store.Admin
	leases *lease.Keeper
	name   string // of the lease
}

// NewLeased returns turns whose lease is in the given table of a store. It is that of a data table, because
// several installations may share the table of leases. The first turn makes that table if it does not exist.
func NewLeased(st store.Store, table, data string) *Leased {
	return &Leased{
		admin:  st,
		leases: &lease.Keeper{Store: st, Table: table, Holder: lease.Holder()},
		name:   "retention/" + data,
	}
}

// Take implements Turns.
func (l *Leased) Take(ctx context.Context) (Turn, error) {
	if err := lease.CreateTable(ctx, l.admin, l.leases.Table); err != nil {
		return nil, err
	}
	t, err := l.leases.Take(ctx, l.name)
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
	t, ok, err := l.leases.Try(ctx, l.name)
	if err != nil || !ok {
		return nil, false, err
	}
	return t, true, nil
}
