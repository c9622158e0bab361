// Package uid is the dictionary between names and UIDs: it resolves, assigns,
// completes and remembers. Names are bytes of ISO-8859-1 in the UID table, whose
// rows package encoding describes.
//
// A UID is assigned as OpenTSDB does it, so that both may run on one table:
//
//  1. count:   Increment of row 00, family id, column kind
//  2. reverse: row UID, family name, column kind, if it is not there: the name
//  3. forward: row name, family id, column kind, if it is not there: the UID
//
// Whoever loses step 3 to another writer takes the winner's UID; the number of
// step 1 is then lost, which is harmless. As the reverse mapping stands before
// the forward one, a UID that anybody has seen has a name, whenever a writer
// dies. Source: UniqueId.UniqueIdAllocator.
//
// Embedded, the three steps do not wait for the disk one by one: the store's log
// keeps their order. Assign waits once, and Staged leaves the waiting to the
// rows that are written with the UID.
package uid

import (
	"log/slog"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Config says where the dictionary is kept.
type Config struct {
	Store  store.Store
	Table  string // the UID table
	Schema encoding.Schema
	// Cached bounds the names of each kind and direction that are remembered.
	// Default 500,000.
	Cached int
	// Assigned, if set, is told of every UID that this process has given. It
	// must not block.
	Assigned func(kind encoding.UIDKind, name string, u encoding.UID)
	// Log is told of conflicts and of UIDs that run short; nil for nobody.
	Log *slog.Logger
}

// Dictionary gives UIDs to names and names to UIDs. All methods may be called
// from many goroutines.
type Dictionary struct {
	cfg     Config
	forward [3]*otter.Cache[string, encoding.UID] // by kind: name to UID
	reverse [3]*otter.Cache[string, string]       // by kind: UID to name
	flight  singleflight.Group

	assigned, leaked, conflicts atomic.Int64
	warned                      [3]atomic.Bool // by kind: UIDs run short
}

// New returns an empty dictionary.
func New(cfg Config) *Dictionary {
	if cfg.Cached == 0 {
		cfg.Cached = 500_000
	}
	d := &Dictionary{cfg: cfg}
	for k := range d.forward {
		d.forward[k] = otter.Must(&otter.Options[string, encoding.UID]{MaximumSize: cfg.Cached})
		d.reverse[k] = otter.Must(&otter.Options[string, string]{MaximumSize: cfg.Cached})
	}
	return d
}

// Drop forgets everything remembered.
func (d *Dictionary) Drop() {
	for k := range d.forward {
		d.forward[k].InvalidateAll()
		d.reverse[k].InvalidateAll()
	}
}

// Stats counts what the dictionary met since it was made.
type Stats struct {
	Assigned  int64 // names that got a UID from us
	Leaked    int64 // UIDs counted and given to no name, by lost races and faults
	Conflicts int64 // two names found for one UID
}

// Stats are the counts so far.
func (d *Dictionary) Stats() Stats {
	return Stats{d.assigned.Load(), d.leaked.Load(), d.conflicts.Load()}
}

func (d *Dictionary) log() *slog.Logger {
	if d.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.cfg.Log
}
