package tools

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
)

// check reads all files of an embedded store, or of a backup of one.
func check(ctx context.Context, c *call) error {
	if len(c.args) > 1 || c.gateway != "" {
		return c.usage("want no arguments or one backup, and no gateway: the files are read")
	}

	of, done := c.Store, c.everySoOften("%d of %d tables read")
	var report store.CheckReport
	var err error
	if len(c.args) == 0 {
		if err := c.awaitGateway(ctx); err != nil {
			return err
		}
		report, err = c.Check(ctx, done)
	} else {
		of, report, err = c.Backups(c.Address).Check(ctx, c.args[0], done)
	}
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
		return fmt.Errorf("%s: %d faults", of, n)
	}
	fmt.Fprintln(c.Out, "all is well")
	return nil
}
