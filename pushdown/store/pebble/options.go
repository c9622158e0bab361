package pebble

import (
	"bytes"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the embedded store's settings. The zero value is a good one.
type Options struct {
	// Logger receives pebble's errors, and the one line before the process ends
	// because a log write failed. Default: slog.Default().
	Logger *slog.Logger
	// CacheBytes bounds the cache of uncompressed blocks. Default 128 MiB.
	CacheBytes int64
	// MemTableBytes bounds one memtable; there are MaxMemTables at most. Default 4 MiB.
	MemTableBytes uint64
	// IdleFlush is the pause in writing after which a memtable is flushed if it
	// holds many appends, which the flush joins, or many bytes, which the flush
	// removes from the log. Compactions wait for three such pauses after a flush
	// if another may follow. Default 300 ms; negative: never, and nothing else
	// happens by the clock either, so that months are cheap to simulate.
	IdleFlush time.Duration
	// Grouping decides how finely version tokens distinguish changes, and which
	// times a report of damage names. It has no part in what is stored. Default:
	// all rows of a table are one group, and have no times.
	Grouping Grouping
	// Salvage opens a store that has lost data with what is intact, and logs what
	// is lost. No file is deleted then: files that are changed are kept under
	// names that begin with damaged-, and files that the database does not use
	// any more under names that begin with unused-.
	Salvage bool
	// FS is the file system, which tests replace. Default: the operating system's.
	FS vfs.FS
	// Now is the clock of write times. Default time.Now.
	Now func() time.Time
	// Exit ends the process after a failed log write. It must not return.
	// Default os.Exit.
	Exit func(code int)
}

const defaultMemTable = 4 << 20

// withDefaults returns the options with defaults for the fields that are not set.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTable
	}
	if o.IdleFlush == 0 {
		o.IdleFlush = 300 * time.Millisecond
	}
	if o.Grouping == nil {
		o.Grouping = ungrouped{}
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	return o
}

// keySchema says to pebble's columnar blocks how keys are split into columns. Its
// name, DefaultKeySchema(downpour.cells.v1,16), is on disk as well.
var keySchema = colblk.DefaultKeySchema(cells, 16)

// formatVersion is pebble's format version. It is on disk, in the name of a marker
// file, as 021.
const formatVersion = pebble.FormatTableFormatV6

// Pebble makes writes wait when all memtables together have so many times the bytes
// of one, or when level 0 has so many sublevels: tables that overlap and wait for a
// compaction.
const (
	MaxMemTables = 8
	maxSublevels = 32
)

// pebbleOptions translates o into pebble's options.
func (o Options) pebbleOptions(log fatalLogger) *pebble.Options {
	p := &pebble.Options{
		Comparer:                    cells,
		Merger:                      appends,
		FS:                          o.FS,
		Logger:                      log,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: MaxMemTables,
		FormatMajorVersion:          formatVersion,
		KeySchema:                   keySchema.Name,
		KeySchemas:                  sstable.MakeKeySchemas(&keySchema),
		// Appends of one row that lie in several tables are joined by each
		// scan until a compaction joins them: compact early, and let writers
		// go on until then.
		L0CompactionThreshold:      2,
		L0StopWritesThreshold:      maxSublevels,
		Cleaner:                    deleter{},
		CompactionConcurrencyRange: func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)-1) },
	}

	if l := layoutOf(o.Grouping); l.width > 0 {
		p.BlockPropertyCollectors = []func() pebble.BlockPropertyCollector{
			func() pebble.BlockPropertyCollector { return newElementCollector(l) },
			func() pebble.BlockPropertyCollector { return newHoursCollector(o.Grouping) },
		}
	}
	p.Experimental.SpanPolicyFunc = apart
	for i := range p.Levels {
		p.Levels[i] = levelOptions()
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return compression(i, len(p.Levels)) }
	}
	return p
}

// apart makes pebble end each of its files where a table ends. A file of a flush would otherwise reach
// from the data table to that of the UIDs, and overlap with every other file: each compaction of
// level 0 would write the whole last level again.
func apart(first []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	if name, _, ok := bytes.Cut(first, []byte{0}); ok {
		end = appendTableEnd(nil, string(name))
	}
	return policy, end, nil
}

// deleter deletes files that are not needed any more, logs included. With its own
// DeleteCleaner pebble keeps up to nine old logs to write over, some 30 MiB however
// little a store holds. It does not recycle logs for a cleaner that has the
// unexported method of ArchiveCleaner by which that asks for complete files.
type deleter struct {
	pebble.DeleteCleaner
	completeFiles
}

// completeFiles embeds ArchiveCleaner a level deeper than deleter embeds
// DeleteCleaner, whose Clean and String are the ones that are called.
type completeFiles struct{ pebble.ArchiveCleaner }

// levelOptions sets blocks of about ten series-hours, which scan fast and keep a
// single read cheap, and bloom filters on rows for reads of missing ones.
func levelOptions() pebble.LevelOptions {
	return pebble.LevelOptions{
		BlockSize:      32 << 10,
		IndexBlockSize: 256 << 10,
		FilterPolicy:   bloom.FilterPolicy(10),
	}
}

// compression chooses how tables of a level are compressed. The last level, where
// data stays longest, is compressed densely: zstd saves a sixth of integers and a
// quarter of mixed values, costs a twentieth of the rate of puts at most, and makes
// a scan that does not find its blocks in the cache some 2.5 ns a point slower. In
// the levels above, tables live for seconds, and only blocks that shrink by an
// eighth are compressed. Where nothing overlaps, pebble moves a table to the last
// level as it is.
func compression(level, levels int) *sstable.CompressionProfile {
	if level == levels-1 {
		return dense
	}
	return sstable.FastestCompression
}

// dense is zstd at its fastest level, for every block that it makes smaller.
// Pebble's own profile leaves blocks alone that shrink by less than a fifth, as rows
// of integers do. The profile's name stays, because pebble writes it into every
// table.
var dense = func() *sstable.CompressionProfile {
	p := *sstable.BalancedCompression
	p.AdaptiveReductionCutoffPercent = 0
	return &p
}()
