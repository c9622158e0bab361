package tools

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
)

// check reads all files of an embedded store.
func check(ctx context.Context, c *call) error {
	if len(c.args) > 0 || c.gateway != "" {
		return c.usage("want no arguments, and no gateway: the files are read")
	}
	told := c.Now()
	report, err := c.Check(ctx, func(tables, of int) {
		if now := c.Now(); now.Sub(told) >= tellEvery {
			told = now
			fmt.Fprintf(c.Err, "%d of %d tables read\n", tables, of)
		}
	})
	// Before an error, too, something was found.
	for _, f := range report.Faults {
		fmt.Fprintf(c.Out, "%s: %v\n", f.Kind, f)
	}
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w; end its gateway first", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%d tables and %d logs read, %d bytes\n", report.Tables, report.Logs, report.Bytes)
	if n := len(report.Faults); n > 0 {
		return fmt.Errorf("%s: %d faults", c.Store, n)
	}
	fmt.Fprintln(c.Out, "all is well")
	return nil
}
