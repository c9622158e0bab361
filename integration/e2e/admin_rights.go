package e2e

import (
	"context"
	"encoding/hex"
	"strconv"
)

// Grant gives a user exactly the rights named by letters of RWXCA, as HBase's shell does, none if
// there is no letter. where is a table, or a namespace with @ in front.
func (a *Admin) Grant(ctx context.Context, user, where, letters string) error {
	return a.do(ctx, "grant", user, where, letters)
}

// GrantColumn gives a user the right to read one column of family t of a table.
func (a *Admin) GrantColumn(ctx context.Context, user, table string, qualifier []byte) error {
	return a.do(ctx, "grant column", user, table, hex.EncodeToString(qualifier))
}

// Throttle allows so many requests to a table a second, at each region server; 0 ends that. The cluster needs
// hbase.quota.enabled.
func (a *Admin) Throttle(ctx context.Context, table string, requests int) error {
	return a.do(ctx, "throttle", table, strconv.Itoa(requests))
}
