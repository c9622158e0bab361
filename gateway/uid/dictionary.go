// Package uid is the dictionary of names and UIDs: it resolves names, assigns UIDs,
// suggests names and caches what it has read. Names are ISO-8859-1 in the UID
// table, whose rows package encoding describes.
//
// A UID is assigned as OpenTSDB does it, so that both may run on one table; many new
// names take each step together (see Staged.Prepare):
//
//  1. count:   Increment of row 00, family id, column kind
//  2. reverse: row UID, family name, column kind, if it does not exist: the name
//  3. forward: row name, family id, column kind, if it does not exist: the UID
//
// A writer that loses step 3 to another takes the winner's UID; the number of step
// 1 is then lost, which is harmless. The reverse mapping is written before the
// forward one, so every UID that anybody can see has a name, even if a writer dies
// in between. Source: UniqueId.UniqueIdAllocator.
//
// The embedded store does not wait for the disk after each step, because its log keeps
// their order. Assign waits once, and with Staged only the rows that are written with
// the UID wait.
//
// Names can be deleted and renamed while rows are written. Three mechanisms keep rows from getting
// deleted UIDs: cached mappings belong to a generation (see Dictionary.Generation), a name that
// this process is changing is withdrawn (see Withdrawal), and Watch finds the changes of other
// processes.
package uid

import (
	"log/slog"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Config is where the dictionary is stored.
type Config struct {
	Store  store.Store
	Table  string // the UID table
	Schema encoding.Schema
	// Bytes bounds the memory of the cache. Default DefaultBytes.
	Bytes int64
	// MaxName bounds the bytes of a name that is assigned a UID. Names that have one
	// may be longer. MostName is the default and the maximum.
	MaxName int
	// Shared is set if other processes may change the table: Tell announces changes to them, and
	// Watch finds theirs.
	Shared bool
	// Assigned, if set, is called for every UID that this process assigns. It must
	// not block.
	Assigned func(kind encoding.UIDKind, name string, u encoding.UID)
	// OnChange, if set, is called when a process has announced a change and the cache is right again.
	// It must not block.
	OnChange func()
	// MappingTimes says that the time of a mapping is that of its UID's creation (see meta.Config). Rename, which
	// writes the mapping again, keeps that time in a UIDMeta.
	MappingTimes bool
	// Log gets conflicts and a warning when few UIDs are left; nil logs nothing.
	Log *slog.Logger
}

// DefaultBytes is the memory for some 500,000 names and as many UIDs.
const DefaultBytes = 128 << 20

// MostName is the length of the longest possible name in bytes: a name is a row key,
// and HBase takes no longer ones. Source: HConstants.MAX_ROW_LENGTH.
const MostName = 1<<15 - 1

// Dictionary gives UIDs to names and names to UIDs. All methods may be called
// from many goroutines.
type Dictionary struct {
	cfg     Config
	forward *otter.Cache[nameKey, encoding.UID] // name to UID
	reverse *otter.Cache[nameKey, string]       // UID to name
	flight  singleflight.Group

	generations generations
	changing    chan struct{} // holds a token while names are being changed
	preparing   claims        // the names that Prepare is giving UIDs
	// Two reasons why mappings have left the cache that the series of puts and live queries may still
	// hold, while Check compares only what is cached. watcher.renewChecked clears both.
	evicted  atomic.Bool // the cache had no room for them
	replaced atomic.Bool // another name was cached for their UID, or another UID for their name

	assigned, leaked, conflicts atomic.Int64
	warned                      [3]atomic.Bool // by kind: the warning that few UIDs are left is logged
}

// New returns an empty dictionary.
func New(cfg Config) *Dictionary {
	if cfg.Bytes <= 0 {
		cfg.Bytes = DefaultBytes
	}
	if cfg.MaxName <= 0 || cfg.MaxName > MostName {
		cfg.MaxName = MostName
	}
	d := &Dictionary{cfg: cfg, changing: make(chan struct{}, 1)}
	d.generations.withdrawn, d.generations.held = map[nameKey]chan struct{}{}, map[uint64]int{}
	half := uint64(cfg.Bytes+1) / 2
	d.forward = otter.Must(&otter.Options[nameKey, encoding.UID]{
		MaximumWeight:    half,
		OnAtomicDeletion: noteEvicted[encoding.UID](d),
		Weigher:          func(k nameKey, _ encoding.UID) uint32 { return entryBytes + uint32(len(k.name)) },
	})
	d.reverse = otter.Must(&otter.Options[nameKey, string]{
		MaximumWeight:    half,
		OnAtomicDeletion: noteEvicted[string](d),
		Weigher:          func(_ nameKey, name string) uint32 { return entryBytes + uint32(len(name)) },
	})
	return d
}

// noteEvicted returns a function that records that a mapping had no room in the cache.
func noteEvicted[V any](d *Dictionary) func(otter.DeletionEvent[nameKey, V]) {
	return func(e otter.DeletionEvent[nameKey, V]) {
		if e.WasEvicted() {
			d.evicted.Store(true)
		}
	}
}

// entryBytes is about the size of a cached mapping without its name.
const entryBytes = 160

// Stats counts what the dictionary has done since it was made.
type Stats struct {
	Assigned  int64 // UIDs assigned by this process
	Leaked    int64 // numbers counted that became no UID, by lost races and faults
	Conflicts int64 // how often two names were found for one UID
}

// Stats returns the counts so far.
func (d *Dictionary) Stats() Stats {
	return Stats{d.assigned.Load(), d.leaked.Load(), d.conflicts.Load()}
}

func (d *Dictionary) log() *slog.Logger {
	if d.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.cfg.Log
}
