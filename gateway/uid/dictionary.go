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
//
// What is remembered is of a generation, see Dictionary.Generation; a name that
// this process deletes or renames is withdrawn meanwhile, see Withdrawal; and
// what other processes change is found out by Watch.
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
	// Bytes bounds the memory of what is remembered. Default DefaultBytes.
	Bytes int64
	// MaxName bounds the bytes of a name that is given a UID; names that have
	// one may be longer. Default and most MostName.
	MaxName int
	// Shared tells that other processes may change the table: changes are told
	// to them, and Watch finds out theirs.
	Shared bool
	// Assigned, if set, is told of every UID that this process has given. It
	// must not block.
	Assigned func(kind encoding.UIDKind, name string, u encoding.UID)
	// Log is told of conflicts and of UIDs that run short; nil for nobody.
	Log *slog.Logger
}

// DefaultBytes is the memory for some 500,000 names and as many UIDs.
const DefaultBytes = 128 << 20

// MostName is the length of the longest name in bytes: it is a row key, of which
// HBase takes no longer one. Source: HConstants.MAX_ROW_LENGTH.
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

	assigned, leaked, conflicts atomic.Int64
	warned                      [3]atomic.Bool // by kind: UIDs run short
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
	d.forward = otter.Must(&otter.Options[nameKey, encoding.UID]{MaximumWeight: half,
		Weigher: func(k nameKey, u encoding.UID) uint32 { return entryBytes + uint32(len(k.name)+len(u)) }})
	d.reverse = otter.Must(&otter.Options[nameKey, string]{MaximumWeight: half,
		Weigher: func(k nameKey, name string) uint32 { return entryBytes + uint32(len(k.name)+len(name)) }})
	return d
}

// entryBytes is what a mapping takes beside its name and UID, about.
const entryBytes = 160

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
