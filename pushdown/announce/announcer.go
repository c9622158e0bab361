package announce

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/store"
)

// Times of announcements.
const (
	every     = time.Second             // between two announcements of a server, and two looks at the table
	within    = 2 * time.Second         // how long a write or a look may take
	goneAfter = 3500 * time.Millisecond // without an announcement
	slowAfter = 10 * time.Second        // how often is retried what needs an administrator
	tidyEvery = 10 * time.Minute        // how often rows of servers that are gone are deleted
)

// Announcer announces a pushdown server. The fields are set before it is used.
type Announcer struct {
	Store store.Store
	// Table is Downpour's own table.
	Table string
	// Of is what is announced; the announcer sets its Instance and Sequence.
	Of Announcement
	// Keys returns the keys that sign announcements, see package proof. There may be none with mutual TLS.
	Keys func() ([]proof.Key, error)
	Log  *slog.Logger

	old map[string]string // rows as they were at the last tidying
}

// Run announces the server until ctx ends, and then says that it leaves. It returns then.
func (a *Announcer) Run(ctx context.Context) {
	announced, failed := false, noFailure
	tidied := time.Now()
	a.Of.Instance, a.Of.Sequence = random(), 0
	for ctx.Err() == nil {
		err := a.write(ctx)
		pause := every
		switch {
		case err == nil:
			if !announced || failed != noFailure {
				a.Log.Info("announced to gateways", "address", a.Of.Address, "table", a.Table, "beside", a.Of.Beside)
			}
			announced, failed = true, noFailure
		case ctx.Err() != nil:
		case kindOf(err) != failed:
			failed = kindOf(err)
			a.Log.Warn("cannot announce this server to gateways that find theirs (DOWNPOUR_PUSHDOWN=auto); "+
				"it is tried again", "address", a.Of.Address, "table", a.Table, "err", err)
		}
		// Without the right to make the table somebody else has to.
		noTable := errors.Is(err, store.ErrNoTable) && lease.CreateTable(ctx, a.Store, a.Table) != nil
		if noTable || errors.Is(err, store.ErrDenied) {
			pause = slowAfter
		}
		if time.Since(tidied) >= tidyEvery {
			tidied = time.Now()
			a.tidy(ctx)
		}
		_ = wait.For(ctx, pause)
	}
	if announced {
		a.leave(context.WithoutCancel(ctx))
	}
}

// failure is why the table could not be used: each is logged once.
type failure string

const noFailure failure = ""

func kindOf(err error) failure {
	switch {
	case errors.Is(err, store.ErrNoTable):
		return "no table"
	case errors.Is(err, store.ErrDenied):
		return "no right"
	}
	return "away"
}

// random returns a name that no other process has.
func random() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// write writes the next announcement.
func (a *Announcer) write(ctx context.Context) error {
	keys, err := a.Keys()
	if err != nil {
		return err
	}
	a.Of.Sequence++
	value, err := encode(a.Of, keys)
	if err != nil {
		return fmt.Errorf("cannot write the announcement: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return a.Store.Apply(ctx, a.Table, []store.Mutation{{
		Kind: store.Put, Row: a.Of.rowKey(), Family: lease.Family, Qualifier: []byte(column), Value: value,
		Timestamp: int64(a.Of.Sequence),
	}})
}

// leave deletes the announcement. If it fails, gateways notice a moment later.
func (a *Announcer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := a.delete(ctx, a.Of.rowKey(), 0); err != nil {
		a.Log.Warn("cannot withdraw the announcement; gateways notice in a few seconds that this server has ended",
			"address", a.Of.Address, "table", a.Table, "err", err)
	}
}

// delete deletes a row as it was at a time of its cells, or as it is.
func (a *Announcer) delete(ctx context.Context, key []byte, upTo int64) error {
	return a.Store.Apply(ctx, a.Table, []store.Mutation{{
		Kind: store.DeleteRow, Row: key, Family: lease.Family, Timestamp: upTo,
	}})
}

// tidy deletes rows that have not changed since the last time: their servers are gone, and were killed. One that only
// stood still goes on in its row: HBase hides what is written after a deletion, but not what has a later timestamp.
func (a *Announcer) tidy(ctx context.Context) {
	rows, _, err := read(ctx, a.Store, a.Table)
	now := map[string]string{}
	for _, r := range rows {
		key, value := string(r.Key), string(cellOf(r))
		if before, known := a.old[key]; known && before == value {
			err = errors.Join(err, a.delete(ctx, r.Key, r.Cells[0].Timestamp))
			continue
		}
		now[key] = value
	}
	a.old = now
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("cannot delete announcements of servers that are gone", "table", a.Table, "err", err)
	}
}
