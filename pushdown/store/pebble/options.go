package pebble

import (
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
	// Logger gets pebble's errors, and the one line before the process ends
	// because a log write failed. Default: slog.Default().
	Logger *slog.Logger
	// CacheBytes bounds the cache of uncompressed blocks. Default 128 MiB.
	CacheBytes int64
	// MemTableBytes bounds one memtable. A scan joins what lies in it append
	// by append, so it is kept small. Default 4 MiB.
	MemTableBytes uint64
	// IdleFlush is the pause in writing after which a memtable that holds many
	// appends is flushed, which joins them, and one that holds many bytes,
	// which takes them out of the log. Default 300 ms; negative: never.
	IdleFlush time.Duration
	// Head is the length of what the keys of one hour of one metric begin
	// with: salt, metric, base time. It decides how fine marks tell changes
	// apart, and nothing else. Default 7; at least 4.
	Head int
	// Salvage opens a store that has lost something with what is whole, and logs
	// what is lost. No file is deleted then: those that were changed are kept
	// under names that begin with damaged-, those that nothing names any more
	// under names that begin with unused-.
	Salvage bool
	// FS is the file system, for tests. Default: the operating system's.
	FS vfs.FS
	// Now is the clock of write times. Default time.Now.
	Now func() time.Time
	// Exit ends the process after a failed log write. Default os.Exit; it
	// must not return.
	Exit func(code int)
}

// withDefaults fills what is unset.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 4 << 20
	}
	if o.IdleFlush == 0 {
		o.IdleFlush = 300 * time.Millisecond
	}
	if o.Head < 4 {
		o.Head = headUsual
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

// keySchema tells pebble's columnar blocks how keys fall into columns. Its
// name, DefaultKeySchema(downpour.cells.v1,16), is on disk as well.
var keySchema = colblk.DefaultKeySchema(cells, 16)

// formatVersion is on disk, in a marker's name: 021.
const formatVersion = pebble.FormatTableFormatV6

// Pebble lets writes wait when memtables are that many times the bytes of one, or
// that many tables lie above one another before a compaction.
const (
	memTablesMost = 8
	sublevelsMost = 32
)

// engine translates o into pebble's options.
func (o Options) engine(log fatalLogger) *pebble.Options {
	p := &pebble.Options{
		Comparer:                    cells,
		Merger:                      appends,
		FS:                          o.FS,
		Logger:                      log,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTablesMost,
		FormatMajorVersion:          formatVersion,
		KeySchema:                   keySchema.Name,
		KeySchemas:                  sstable.MakeKeySchemas(&keySchema),
		// Appends of one row that lie in several tables are joined by each
		// scan until a compaction joins them: start it early, and let writers
		// run on meanwhile.
		L0CompactionThreshold:      2,
		L0StopWritesThreshold:      sublevelsMost,
		Cleaner:                    deleter{},
		CompactionConcurrencyRange: func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)-1) },
	}
	for i := range p.Levels {
		p.Levels[i] = level()
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return compression(i, len(p.Levels)) }
	}
	return p
}

// deleter deletes files that are not needed any more, used logs too. Pebble
// would keep nine of them to write over, some 30 MiB beside however little a
// store holds; but not for a cleaner that wants to see files whole, as
// ArchiveCleaner says of itself.
type deleter struct {
	pebble.DeleteCleaner
	wholeFiles
}

// wholeFiles lies a level deeper than DeleteCleaner, whose methods count.
type wholeFiles struct{ pebble.ArchiveCleaner }

// level sets blocks of about ten series-hours, which scan fast and keep a
// single read cheap, and filters on rows for reads of missing ones.
func level() pebble.LevelOptions {
	return pebble.LevelOptions{
		BlockSize:      32 << 10,
		IndexBlockSize: 256 << 10,
		FilterPolicy:   bloom.FilterPolicy(10),
	}
}

// compression chooses how tables of a level are written. What is written last,
// and lies longest, is made dense: zstd takes a sixth of integers and a quarter of
// mixed values away, for a twentieth of the rate of puts at most, and a scan that
// does not find its blocks in the cache takes some 2.5 ns a point longer. Above,
// tables live for seconds, and only blocks that shrink by an eighth are compressed.
// Pebble moves a table to the last level as it is where nothing overlaps.
func compression(level, levels int) *sstable.CompressionProfile {
	if level == levels-1 {
		return dense
	}
	return sstable.FastestCompression
}

// dense is zstd at its fastest wherever it gains something. Pebble's own profile
// leaves blocks as they are that shrink by less than a fifth, as rows of integers
// do; the name is that of the profile, which pebble writes down with every table.
var dense = func() *sstable.CompressionProfile {
	p := *sstable.BalancedCompression
	p.AdaptiveReductionCutoffPercent = 0
	return &p
}()
