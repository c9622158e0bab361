package e2e

import "context"

// Grant gives a user exactly the rights named by letters of RWXCA, as HBase's shell does, none if
// there is no letter. where is a table, or a namespace with @ in front.
func (a *Admin) Grant(ctx context.Context, user, where, letters string) error {
	return a.do(ctx, "grant", user, where, letters)
}
