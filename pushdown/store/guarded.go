package store

import (
	"context"
	"errors"
	"fmt"
)

// Families are column families of a table.
type Families struct {
	Table string
	Names []string
}

// Guarded is a store whose servers may leave out what a user may not read, and say nothing, where others
// refuse. The one on HBase is.
type Guarded interface {
	// CheckReadable returns an ErrDenied unless we may read everything of families, now. Another
	// error says that this could not be found out.
	CheckReadable(ctx context.Context, of []Families) error
}

// CheckReadable asks a store that is Guarded. If that could not be found out, unknown is called with the reason,
// and there is no error.
func CheckReadable(ctx context.Context, st Cells, of []Families, unknown func(error)) error {
	g, ok := st.(Guarded)
	if !ok {
		return nil
	}
	err := g.CheckReadable(ctx, of)
	if err != nil && !errors.Is(err, ErrDenied) {
		unknown(fmt.Errorf("with rights on some columns only, answers would be short: %w", err))
		return nil
	}
	return err
}
