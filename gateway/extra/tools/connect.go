package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// purpose says what a command connects for.
type purpose int

const (
	// existing is for commands that work on what is there, even if they change or
	// delete it.
	existing purpose = iota
	// creating is for commands that add names or points: they may make an embedded
	// store, and what they write is recorded in the meta data as by puts.
	creating
	// asItIs is for backups: whatever is in the tables, the files are taken.
	asItIs
)

// connect finds the handler of the tools: that of the gateway that the command names, of the one that has the embedded
// store open, or one of this process's own.
func (c *call) connect(ctx context.Context, p purpose) (*remote, error) {
	if c.dryRun {
		c.announceDryRun()
		p = existing
	}
	// A named gateway is meant, whatever store it serves.
	if c.gateway != "" {
		r := newRemote(c.gateway, c.Tokens, c.TLS)
		_, err := r.check(ctx)
		return r, err
	}

	if err := c.awaitGateway(ctx); err != nil {
		return nil, err
	}
	// Only a command that creates makes an embedded store that is not there yet.
	st, err := c.Open(p == creating)
	if errors.Is(err, store.ErrLocked) {
		return c.connectRemote(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.logIfItChanges()
	if p != asItIs {
		if err := c.checkStore(ctx, st, p); err != nil {
			st.Close()
			return nil, err
		}
	}
	return c.serve(st, p), nil
}

// at connects, and has f ask.
func (c *call) at(ctx context.Context, p purpose, f func(*remote) error) error {
	r, err := c.connect(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(f(r), r.close())
}

// dryLine stands before what a command says in a dry run, in the words of the real one.
const dryLine = "dry run, nothing is changed; this would be done:"

// announceDryRun reports a dry run of what changes something.
func (c *call) announceDryRun() {
	if c.command.changes == nil || !c.command.changes(c) {
		return
	}
	to := c.Out
	if c.command.Name == "scan" { // whose output import reads
		to = c.Err
	}
	fmt.Fprintln(to, dryLine)
}

// awaitGateway waits while a gateway waits for the embedded store, so that the command does not take it away.
func (c *call) awaitGateway(ctx context.Context) error {
	if !c.Embedded || c.Gateway == "" {
		return nil
	}
	r := newRemote(c.Gateway, Tokens{}, c.TLS)
	defer r.close()
	for said := false; r.awaits(ctx) == c.Address; said = true {
		if !said {
			c.tell(fmt.Sprintf("the gateway at %s has not opened %s yet: waiting for it", c.Gateway, c.Store))
		}
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// connectRemote finds the gateway that has the embedded store open.
func (c *call) connectRemote(ctx context.Context) (*remote, error) {
	r := newRemote(c.Gateway, c.Tokens, c.TLS)
	if _, err := r.check(ctx, c.Address, c.Store); err != nil {
		return nil, fmt.Errorf("%s is in use by another process, and its gateway cannot be asked (name it with "+
			"-gateway URL or DOWNPOUR_LISTEN): %w", c.Store, err)
	}
	return r, nil
}

// checkStore checks that the tables exist and have the layout of the settings, as a
// gateway does at its start.
func (c *call) checkStore(ctx context.Context, st Store, p purpose) error {
	// A new embedded store has no tables; only a command that adds something makes them.
	if p == creating && c.Embedded {
		if err := tables.Create(ctx, st, tables.Specs(c.Tables, c.Schema, "NONE")); err != nil {
			return err
		}
	}

	// Rows of impossible keys are what fsck is for.
	layout := tables.CheckLayout
	if c.command.damagedRows {
		layout = tables.CheckMostRows
	}
	err := tables.Check(ctx, st, c.Tables)
	if err == nil {
		read := c.Tables
		read.Rollups = c.rollupTablesRead()
		err = tables.CheckReadable(ctx, st, read,
			func(unknown error) { fmt.Fprintln(c.Err, "whether all tables may be read is not known:", unknown) })
	}
	if err == nil {
		err = layout(ctx, st, c.Tables.Data, c.Schema)
	}

	// The sample of rows that shows the layout is damaged, but others can be read.
	if errors.Is(err, store.ErrDamaged) {
		fmt.Fprintf(c.Err, "the layout of the tables is not checked: %v\n", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("DOWNPOUR_STORE=%s: %w", c.Store, err)
	}
	return nil
}

// rollupTablesRead returns the tables of rollups that the command looks at: a row that is not seen there would make
// a name look unused, or a rollup complete.
func (c *call) rollupTablesRead() []string {
	switch name := c.command.Name; {
	case name == "rollup" && c.Rollups != nil:
		return c.Rollups.SeriesTables()
	case name == "uid" && len(c.args) > 0 && slices.Contains([]string{"delete", "reclaim", "fsck"}, c.args[0]):
		return c.Tables.Rollups
	}
	return nil
}
