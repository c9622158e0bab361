package store

import "context"

// Versioner is a store that can prove that rows have not changed.
type Versioner interface {
	// Version returns a version token, and a proof of it to wait for. The token names the
	// state that the rows of r, with their cells of one family, have while the call runs. If
	// a later call for the same table, family and range returns an equal token, and both
	// proofs return nil, then every scan that was opened after the first call had returned
	// and before the second was made has seen the same cells, and so would a scan that is
	// opened at some moment while the second call runs.
	//
	// A token takes several calls, and the last ones only prove the result of the first.
	// Version may return before those; proof waits for them. If proof returns an error,
	// as it does once ctx has ended, no conclusion from the token may be used. It may be
	// called more than once.
	//
	// Tokens may differ although nothing has changed in the range: after a change of
	// other rows nearby, after a flush, on a new connection. The empty token means that
	// nothing can be proven now; it equals no token, itself included. An error comes
	// with the empty token and does not mean that the rows cannot be read.
	Version(ctx context.Context, table, family string, r KeyRange) (token string, proof func() error, err error)
}

// VersionFunc is a Versioner whose tokens are proven when it returns them.
type VersionFunc func(ctx context.Context, table, family string, r KeyRange) (string, error)

// Version calls the function; its proof waits for nothing.
func (f VersionFunc) Version(ctx context.Context, table, family string,
	r KeyRange) (token string, proof func() error, err error) {
	token, err = f(ctx, table, family, r)
	return token, func() error { return nil }, err
}
