package store

import "context"

// Versioner is a Reader that can prove that rows have not changed. Both stores are
// one; what wraps them need not be.
type Versioner interface {
	// Version names the state that the rows of r, with their cells of one family,
	// have while the call runs. If a later call for the same table, family and
	// range returns an equal mark, then every scan that was opened after the
	// first call had returned and before the second was made has seen the same
	// cells, and so would one that were opened at some moment while the second
	// runs.
	//
	// Marks may differ although nothing has changed: of other rows nearby, of a
	// flush, of a new connection. The empty mark says that nothing can be
	// proven now; it equals no mark, itself included. An error comes with the
	// empty mark and does not mean that the rows cannot be read.
	Version(ctx context.Context, table, family string, r KeyRange) (string, error)
}
