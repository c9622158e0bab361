package e2e

import (
	"context"
	"strconv"
)

// Snapshot takes a snapshot of a table, under a name that is new in the cluster.
func (a *Admin) Snapshot(ctx context.Context, table, name string) error {
	return a.do(ctx, "snapshot", table, name)
}

// RestoreSnapshot puts a table back to one of its snapshots and waits until it
// is served. Its regions have the names of then.
func (a *Admin) RestoreSnapshot(ctx context.Context, table, snapshot string) error {
	return a.do(ctx, "restore", table, snapshot)
}

// CloneSnapshot makes a table of a snapshot and waits until it is served. Under
// the name of the table that the snapshot was taken of, which must have been
// dropped, its regions have the names of then.
func (a *Admin) CloneSnapshot(ctx context.Context, table, snapshot string) error {
	return a.do(ctx, "clone", table, snapshot)
}

// Truncate empties a table, with or without keeping the borders of its regions,
// and waits until it is served.
func (a *Admin) Truncate(ctx context.Context, table string, preserveSplits bool) error {
	return a.do(ctx, "truncate", table, strconv.FormatBool(preserveSplits))
}
