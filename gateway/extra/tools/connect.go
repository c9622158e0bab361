package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// connection is how a call reaches the data: through the store itself, or through a
// gateway that has the store open.
type connection struct {
	store   Store // nil if remote is to be asked
	names   *uid.Dictionary
	tracker *meta.Tracker // nil if puts record no meta data
	remote  *remote
}

// purpose says what a command connects for.
type purpose bool

const (
	// existing is for commands that work on what is there, even if they change or
	// delete it.
	existing purpose = false
	// creating is for commands that add names or points: they may make an embedded
	// store, and what they write is recorded in the meta data as by puts.
	creating purpose = true
)

// connect opens the store, or finds the gateway that has it open.
func (c *call) connect(ctx context.Context, p purpose) (*connection, error) {
	if c.dryRun {
		if err := c.beginDry(); err != nil {
			return nil, err
		}
		p = existing
	}
	// Whoever names a gateway means it, whatever store it serves.
	if c.gateway != "" {
		r := newRemote(c.gateway, c.Tokens, c.TLS)
		_, err := r.check(ctx)
		return &connection{remote: r}, err
	}

	if err := c.awaitGateway(ctx); err != nil {
		return nil, err
	}
	// Only a command that creates makes an embedded store that is not there yet.
	st, err := c.Open(bool(p))
	if errors.Is(err, store.ErrLocked) {
		return c.connectRemote(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.begin()
	if err := c.checkStore(ctx, st, p); err != nil {
		st.Close()
		return nil, err
	}

	if c.dryRun && c.dryModeOf() == storeDry {
		st = newDryStore(st)
	}
	conn := &connection{store: st}
	conn.names = uid.New(uid.Config{Store: st, Table: c.Tables.UID, Schema: c.Schema, MaxName: c.MaxName, Shared: !c.Embedded, Assigned: conn.assigned})
	if p == creating && (c.Meta.Tracking || c.Meta.RealtimeUID) {
		tables := meta.Config{Store: st, UIDTable: c.Tables.UID, MetaTable: c.Tables.Meta, Schema: c.Schema, Names: conn.names}
		tracker := meta.TrackerConfig{Config: tables, Flags: c.Meta}
		if c.Trees {
			tracker.Described = c.forest(conn).Add
		}
		conn.tracker = meta.NewTracker(tracker)
	}

	return conn, nil
}

// assigned tells the tracker of a new UID.
func (c *connection) assigned(kind encoding.UIDKind, name string, u encoding.UID) {
	if c.tracker != nil {
		c.tracker.Assigned(kind, name, u)
	}
}

// observer returns the tracker for a writer. Without a tracker it returns a nil
// interface, not one that holds a nil pointer.
func (c *connection) observer() write.Observer {
	if c.tracker == nil {
		return nil
	}
	return c.tracker
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
func (c *call) connectRemote(ctx context.Context) (*connection, error) {
	r := newRemote(c.Gateway, c.Tokens, c.TLS)
	if _, err := r.check(ctx, c.Address, c.Store); err != nil {
		return nil, fmt.Errorf("%s is in use by another process, and its gateway cannot be asked (name it with -gateway URL or DOWNPOUR_LISTEN): %w", c.Store, err)
	}
	return &connection{remote: r}, nil
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
		err = tables.CheckReadable(ctx, st, read, func(unknown error) { fmt.Fprintln(c.Err, "whether all tables may be read is not known:", unknown) })
	}
	if err == nil {
		err = layout(ctx, st, c.Tables.Data, c.Schema)
	}

	// The sample of rows that tells the layout is damaged, but others can be read.
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
	case name == "uid" && len(c.args) > 0 && (c.args[0] == "delete" || c.args[0] == "fsck"):
		return c.Tables.Rollups
	}
	return nil
}

// close closes the store, or the connections to the gateway.
func (c *connection) close() error {
	if c.store == nil {
		c.remote.close()
		return nil
	}

	var err error
	if c.tracker != nil {
		err = c.tracker.Close()
	}
	return errors.Join(err, c.store.Close())
}
