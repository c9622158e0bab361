package tools

import (
	"context"
	"errors"
	"io"

	"downpour/pushdown/store"
)

// eachRow passes the rows of a scan on until each says that it wants no more. A
// row is valid during the call.
func eachRow(ctx context.Context, st store.Reader, s store.Scan, each func(store.Row) (more bool, err error)) error {
	sc, err := st.Scan(ctx, s)
	if err != nil {
		return err
	}
	defer sc.Close()
	for {
		rows, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, row := range rows {
			if more, err := each(row); err != nil || !more {
				return err
			}
		}
	}
}
