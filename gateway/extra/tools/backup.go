package tools

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Backups are what can be done with backups of the embedded store, in files of this machine.
type Backups interface {
	// BackUp makes a backup of a checkpoint in a directory, and keeps so many there; 0: all.
	// It calls done with the number of files that are done, of how many.
	BackUp(ctx context.Context, checkpoint, to string, keep int, done func(files, of int)) (store.BackupReport, error)
	// Restore makes the store from a backup, or the newest one in a directory.
	Restore(ctx context.Context, from string, done func(files, of int)) (store.BackupReport, error)
	// PlanBackUp and PlanRestore say what these would do, and change nothing. What a backup would hold is
	// what the store's files are now.
	PlanBackUp(ctx context.Context, to string, keep int) (store.BackupReport, error)
	PlanRestore(ctx context.Context, from string, done func(files, of int)) (store.BackupReport, error)
	// Check reads a backup, or the newest one in a directory, and returns its path.
	Check(ctx context.Context, from string,
		done func(tables, of int)) (path string, report store.CheckReport, err error)
}

func backupFlags(f *flag.FlagSet, o *options) {
	f.IntVar(&o.keep, "keep", 0, "how many backups stay in DIR, this one included; the oldest are removed "+
		"(default: all)")
}

// backUp makes a backup of an embedded store, which a gateway may have open.
//
// A gateway never learns where to write: it makes a checkpoint in its own data directory,
// and this process, with the rights of who runs it, takes the files from there.
func backUp(ctx context.Context, c *call) (err error) {
	if len(c.args) != 1 || c.keep < 0 {
		return c.usage("want one directory for backups, and -keep not below 0")
	}
	if c.dryRun {
		return c.planBackUp(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := c.findStore(ctx); err != nil {
		return err
	}
	name, release, err := c.checkpoint(ctx, cancel)
	if err != nil {
		return err
	}
	report, err := c.Backups(c.Address).BackUp(ctx, name, c.args[0], c.keep,
		c.everySoOften("%d of %d files are in the backup"))
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err = errors.Join(err, release()); err != nil {
		return err
	}

	fmt.Fprintf(c.Out, "%s: %d files, %d bytes; %d files are new, %d bytes\n", report.Path, report.Files, report.Bytes,
		report.New, report.NewBytes)
	if report.Linked > 0 {
		fmt.Fprintf(c.Out, "%d files share their bytes on the disk with the store: copy the backup to another "+
			"disk, too\n", report.Linked)
	}
	for _, path := range report.Removed {
		fmt.Fprintf(c.Out, "%s: removed\n", path)
	}
	return nil
}

// findStore takes the address of the store from the gateway that -gateway names: the own settings may be of another
// one.
func (c *call) findStore(ctx context.Context) error {
	if c.gateway == "" {
		return c.awaitGateway(ctx)
	}
	r := newRemote(c.gateway, c.Tokens, c.TLS)
	defer r.close()
	serves, err := r.check(ctx)
	if serves != "" {
		c.Address = serves //fault:own-store-with-gateway TestBackup_otherSettings
	}
	return err
}

// planBackUp says what backUp would do, by the files of the store as they are.
func (c *call) planBackUp(ctx context.Context) error {
	if err := c.findStore(ctx); err != nil {
		return err
	}
	report, err := c.Backups(c.Address).PlanBackUp(ctx, c.args[0], c.keep)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Out, dryLine)
	fmt.Fprintf(c.Out, "a backup in %s: about %d files, %d bytes; about %d files are new, %d bytes\n", c.args[0],
		report.Files, report.Bytes, report.New, report.NewBytes)
	for _, path := range report.Removed {
		fmt.Fprintf(c.Out, "%s: removed\n", path)
	}
	return nil
}

// everySoOften returns a function that reports now and then how far something is.
func (c *call) everySoOften(format string) func(n, of int) {
	told := c.Now()
	return func(n, of int) {
		if now := c.Now(); now.Sub(told) >= tellEvery {
			told = now
			c.tell(fmt.Sprintf(format, n, of))
		}
	}
}

// checkpoint makes a checkpoint of the store, through the gateway that has it open if there
// is one, and returns its name. The checkpoint stays until release is called. If the gateway
// ends it before, lost is called with the reason.
func (c *call) checkpoint(ctx context.Context, lost func(error)) (name string, release func() error, err error) {
	r, err := c.connect(ctx, asItIs)
	if err != nil {
		return "", nil, err
	}
	name, leave, err := r.checkpoint(ctx, c.tell, lost)
	if err != nil {
		return "", nil, errors.Join(err, r.close())
	}
	return name, func() error { return errors.Join(leave(), r.close()) }, nil
}

// errNoFiles is returned for a backup of a store that has no files of its own.
var errNoFiles = errors.New("only an embedded store is backed up so; of tables on HBase take snapshots there")

// checkpoint asks for a checkpoint. It is kept while the answer is
// being read.
func (r *remote) checkpoint(
	ctx context.Context, tell func(string), lost func(error),
) (name string, release func() error, err error) {
	resp, err := r.send(ctx, http.MethodPost, checkpointPath, strings.NewReader("{}"))
	if err != nil {
		return "", nil, err
	}

	names := make(nameWriter, 1)
	ended := make(chan error, 1)
	go func() {
		err := r.receive(resp, receiver{out: names, counts: new(json.RawMessage), progress: func(line string) {
			if line != heldLine {
				tell(line)
			}
		}})
		if err == nil {
			err = fmt.Errorf("%s: the checkpoint is kept no longer", r.url)
		}
		ended <- err
		lost(err)
	}()
	select {
	case name = <-names:
	case err := <-ended:
		return "", nil, err
	}
	return name, func() error {
		resp.Body.Close() // by which the other side knows; there is nothing else to lose
		<-ended
		return nil
	}, nil
}

// nameWriter takes the first line that is written, which is the name of a checkpoint.
type nameWriter chan string

// Write takes a line.
func (n nameWriter) Write(p []byte) (int, error) {
	select {
	case n <- strings.TrimSuffix(string(p), "\n"):
	default: // there was one already
	}
	return len(p), nil
}

const (
	checkpointPath = "/api/tools/checkpoint"
	// heldLine is the progress of a checkpoint that is kept. Sent every heldEvery, it also
	// shows the gateway that the client is still there.
	heldLine  = "the checkpoint is kept"
	heldEvery = 5 * time.Second
	// leaveWithin is how long a checkpoint may stay when its client has left.
	leaveWithin = 2 * time.Second
	// checkpointBytes is what a checkpoint holds in memory while it is made: a log and its
	// copy.
	checkpointBytes = 16 << 20
)

// Reasons why a gateway removes a checkpoint that somebody still has.
var (
	errGatewayEnds = errors.New("the gateway ends")
	errRoomNeeded  = errors.New("the checkpoint is given up, because the store needs its room")
)

// checkpoint makes a checkpoint of the store and answers with its name. It keeps the
// checkpoint until the client leaves, the gateway ends, or the disk is full: what the store
// needs no more takes space while a checkpoint has it.
//
// The request names no path, neither to read nor to write: its sender can make no file
// anywhere else, and gets nothing of the store but a name.
func (h *served) checkpoint(w http.ResponseWriter, r *http.Request) error {
	var none struct{}
	if err := decode(w, r, &none); err != nil {
		return err
	}
	checkpoint := h.Store.Features().Checkpoint
	if checkpoint == nil {
		return errNoFiles
	}
	// The client of the one before may have left just now.
	wait := time.NewTimer(leaveWithin)
	defer wait.Stop()
	select {
	case h.holding <- struct{}{}:
		defer func() { <-h.holding }()
	case <-wait.C:
		return conflict("another backup of this gateway runs, and one at a time may")
	}
	account := memory.Of(r.Context())
	if err := account.Reserve(r.Context(), checkpointBytes); err != nil {
		return err
	}

	// Counts of points that are not written yet are no reason to go without a backup.
	var unwritten error
	if h.Flush != nil {
		unwritten = h.Flush(r.Context())
	}
	name, remove, err := checkpoint(r.Context())
	if err != nil {
		return err
	}
	account.Release(checkpointBytes)
	return writeLines(w, r, func(out io.Writer, progress func(string)) (any, error) {
		fmt.Fprintln(out, name)
		if unwritten != nil {
			progress(fmt.Sprintf("meta data of the last seconds is not in it: %v", unwritten))
		}
		return nil, errors.Join(h.hold(r.Context(), progress), remove())
	})
}

// hold returns why a checkpoint is to be removed, as soon as it is.
func (h *served) hold(ctx context.Context, progress func(string)) error {
	tick := time.NewTicker(heldEvery)
	defer tick.Stop()
	for {
		progress(heldLine)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.Ending:
			return errGatewayEnds
		case <-tick.C:
		}
		if writable := h.Store.Features().Writable; writable != nil && errors.Is(writable(), store.ErrFull) {
			return errRoomNeeded
		}
	}
}

// restore makes an embedded store from a backup.
func restore(ctx context.Context, c *call) error {
	if len(c.args) != 1 || c.gateway != "" {
		return c.usage("want one backup, or a directory of backups, and no gateway: the store must not be in use")
	}
	if err := c.awaitGateway(ctx); err != nil {
		return err
	}
	do := c.Backups(c.Address).Restore
	if c.dryRun {
		do = c.Backups(c.Address).PlanRestore
	}
	c.logIfItChanges()
	report, err := do(ctx, c.args[0], c.everySoOften("%d of %d files are read"))
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w; end its gateway first", err)
	}
	if err != nil {
		return err
	}
	if c.dryRun {
		fmt.Fprintln(c.Out, dryLine)
	}
	fmt.Fprintf(c.Out, "%s is in place in %s: %d files, %d bytes, every block of which is checked\n", report.Path,
		c.Store, report.Files, report.Bytes)
	return nil
}
