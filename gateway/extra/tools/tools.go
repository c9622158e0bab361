// Package tools are the gateway's sub-commands for administrators: names, bulk
// import and export, and queries at the command line, as tsdb's are.
//
//	mkmetric NAME…                    give metrics their UIDs
//	import FILE…                      write the points of text files
//	export START [END] [AGG] METRIC…  write points as the lines that import reads, or as Parquet
//	query START [END] AGG … METRIC …  print an answer, of expressions too, in several forms
//	uid grep|assign|rename|delete …   look at and change names
//	uid reclaim                       delete the names that no row uses
//	uid treesync|treepurge …          put series into trees, and delete what trees hold
//	uid fsck|metasync|metapurge …     check and repair names, make and delete meta data
//	series top                        count series by metric, and values by tag key
//	scan START [END] AGG METRIC …     print rows as they are stored
//	fsck START [END] AGG METRIC …     check rows of the data table, and repair them
//	compact START END METRIC…         make one cell of the points of each row, on HBase
//	retention plan|run                count or delete rows that are past
//	rollup START END METRIC…          make rollups of sealed hours
//	dashboard list|get|put …          list, print and save dashboards
//	check                             look for damage in an embedded store's files
//	backup DIR, restore BACKUP        back an embedded store up, and make it from a backup
//
// A command is a client of the tools' HTTP handler, see Handler. Only one process can have
// an embedded store open: while that is a gateway, its handler is asked. Where no process has
// the store open, the command opens it and asks a handler of its own, without a network.
// Source: net.opentsdb.tools: UidManager, MetaSync, MetaPurge, TreeSync, TextImporter, DumpSeries, CliQuery, Fsck.
package tools

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/audit"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query/plan"
	"downpour/gateway/write"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// Store is what tools need of a store.
type Store = store.Store

// Settings are the part of a gateway's settings that tools need.
type Settings struct {
	// Store is the address, as in DOWNPOUR_STORE, and Address the same with the whole path of an
	// embedded store. Embedded is set if it is one, which one process at a time can open.
	Store    string
	Address  string
	Embedded bool
	Schema   encoding.Schema
	Tables   tables.Names
	Compile  plan.Options
	Auto     write.Auto
	// Rollups are the computed rollups, nil if there are none.
	Rollups *rollup.Config
	// MaxName bounds the bytes of a name that gets a UID, see uid.Config.
	MaxName int
	// KnownWithin is the time after which other processes know that a name is deleted.
	KnownWithin time.Duration
	// Meta says what writing records in the meta data, and Trees whether new series go into
	// trees.
	Meta  meta.Flags
	Trees bool
	// Retention says which rows are past.
	Retention Retention
	// Allowed are characters that names may have in addition to the usual ones.
	Allowed []rune
	// Appends is set if points go to append columns. Otherwise import writes several
	// points to a cell.
	Appends bool
	// Zone is the zone of dates, nil for UTC.
	Zone *time.Location
	// Gateway is the URL of the gateway with these settings. Tokens authorize tools
	// there, and TLS is used if the scheme is https.
	Gateway string
	Tokens  Tokens
	TLS     *tls.Config
}

// Tokens are one token of each scope, empty for none.
type Tokens struct{ Read, Write, Admin string }

// forScope returns the token for reading or writing.
func (t Tokens) forScope(write bool) string {
	switch {
	case t.Admin != "": // admin may do both
		return t.Admin
	case write:
		return t.Write
	}
	return t.Read
}

// Env is where a command runs.
type Env struct {
	Settings
	// Open opens the store. With create it makes an embedded store that does not
	// exist. It returns store.ErrLocked if another process has the store open.
	Open func(create bool) (Store, error)
	// Check reads all files of an embedded store that no process has open. It calls
	// done with the number of tables that are read, of how many.
	Check func(ctx context.Context, done func(tables, of int)) (store.CheckReport, error)
	// Backups returns those of the embedded store at an address.
	Backups  func(address string) Backups
	In       io.Reader
	Out, Err io.Writer
	// Log gets a line at the beginning and the end of a command that changes something without a
	// gateway; nil for none. User is who runs it, for these lines.
	Log  *slog.Logger
	User string
	// Terminal is set if Err is a terminal, where a progress bar may be drawn, and TerminalOut if Out is one, which
	// gets text alone.
	Terminal, TerminalOut bool
	Now                   func() time.Time
}

// Command is one sub-command. Help is what its -h prints besides purpose and flags.
type Command struct {
	Name, Arguments, Purpose, Help string
	run                            func(context.Context, *call) error
	flags                          func(*flag.FlagSet, *options)
	changes                        func(*call) bool // whether it changes something without a dry run; nil for never
	damagedRows                    bool             // it runs although some rows have impossible keys
}

// Commands returns all commands in the order of the help text.
func Commands() []Command {
	// The last value says that the command runs in spite of rows of impossible keys.
	return []Command{
		{"mkmetric", "NAME…", "give metrics their UIDs", helpMake, makeMetrics, nil, always, false},
		{"import", "[-skip-errors] FILE…", "write the points of text files, - for standard input", helpImport,
			importFiles, importFlags, always, false},
		{"export", "START [END] [AGG] METRIC{tag=filter,…}…", "write points as lines that import reads, or as Parquet",
			helpExport, export, exportFlags, nil, false},
		{"query", "[-format FORMAT] START [END] AGG [rate [counter,max,reset]] [downsample N AGG] METRIC tag=value… " +
			"| [START [END]] [m=]EXPRESSION…", "print an answer", helpQuery, runQuery, queryFlags, nil, false},
		{"uid", "[-dry-run] grep [KIND] REGEXP | assign KIND NAME… | rename KIND NAME NEW | delete KIND NAME | " +
			"reclaim | fsck [fix] [delete_unknown] | metasync | metapurge | treesync | treepurge ID [true]",
			"look at, change and check names; KIND is metrics, tagk or tagv", helpUID, runUID, uidFlags,
			changesUID, false},
		{"series", "[-top N] top", "count series: the metrics with most of them, the tag keys with most values",
			helpSeries, runSeries, seriesFlags, nil, false},
		{"scan", "[--import | --delete [-dry-run]] START [END] AGG METRIC tag=value…", "print rows as they are stored",
			helpScan, scanRows, scanFlags, changesScanned, false},
		{"fsck", "[flags] START [END] AGG METRIC tag=value… | --full-scan",
			"check the rows of the data table, and repair them", helpFsck, runFsck, fsckFlags, changesRows, true},
		{"compact", "[-margin 10m] [-dry-run] START END METRIC…", "make one cell of the points of each row, on HBase",
			helpCompact, runCompact, compactFlags, always, false},
		{"retention", "plan | run [-yes-delete N] [-rate N] [-meta] [-dry-run]",
			"count or delete the rows that are older than DOWNPOUR_RETENTION says", helpRetention, runRetention,
			retentionFlags, runsRetention, false},
		{"rollup", "[-margin 10m] [-fewer] [-dry-run] START END METRIC…", "make rollups of the hours that are over",
			helpRollup, runRollup, rollupFlags, always, false},
		{"dashboard", "list | get [-version N] NAME | put [-replace N] [-dry-run] NAME FILE",
			"list, print and save dashboards, JSON documents", helpDashboard, runDashboard, dashboardFlags,
			putsDashboard, true},
		{"check", "[BACKUP]", "read all files of an embedded store, or of a backup of it, and tell what is damaged",
			helpCheck, check, nil, nil, false},
		{"backup", "[-keep N] [-dry-run] DIR", "make a backup of an embedded store, in use or not", helpBackup, backUp,
			backupFlags, always, false},
		{"restore", "[-dry-run] BACKUP", "make an embedded store from a backup, or from the newest in a directory",
			helpRestore, restore, nil, always, false},
	}
}

// options are the flags of all commands.
type options struct {
	gateway                string
	skipErrors, autoMetric bool
	outOfOrder, noState    bool
	output, format         string
	all, plain             bool
	ignoreCase, force      bool
	dryRun, fewer          bool
	margin                 time.Duration
	collisions             string
	noTSDs                 bool
	yesDelete              int64
	fsck                   fsckRequest
	fixAll                 bool
	scan                   struct{ lines, delete bool }
	retention              retentionRequest
	keep                   int
	version                int64
	replace                string
	top                    int
}

// call is one command being run.
type call struct {
	*Env
	command Command
	options
	args  []string
	given []string       // with the flags
	act   *audit.Command // nil as long as it is not logged
}

// Run runs a command with its arguments. Flags may stand anywhere.
func (c Command) Run(ctx context.Context, env *Env, args []string) error {
	call := &call{Env: env, command: c, given: args}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(env.Err)
	flags.Usage = func() {
		fmt.Fprintf(env.Err, "usage: gateway %s %s\n%s\n\n%s\n", c.Name, c.Arguments, c.Purpose, c.Help)
		shown := flag.NewFlagSet(c.Name, flag.ContinueOnError)
		shown.SetOutput(env.Err)
		flags.VisitAll(func(f *flag.Flag) {
			if f.Name != "dry-run" || c.changes != nil { // a command that only reads takes it, and does what it does
				shown.Var(f.Value, f.Name, f.Usage)
			}
		})
		shown.PrintDefaults()
	}

	flags.StringVar(&call.gateway, "gateway", "", "URL of a running gateway to work through, instead of the store")
	flags.BoolVar(&call.dryRun, "dry-run", false, "report what would be done, and change nothing")
	if c.flags != nil {
		c.flags(flags, &call.options)
	}

	// The flag package stops at the first argument, so it is called again after each.
	for rest := args; ; {
		if err := flags.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) { // it is printed, and was requested
				return nil
			}
			return err
		}
		if flags.NArg() == 0 {
			break
		}
		call.args = append(call.args, flags.Arg(0))
		rest = flags.Args()[1:]
	}

	if env.Now == nil {
		env.Now = time.Now
	}
	err := c.run(ctx, call)
	call.end(err)
	return err
}

// usage returns the error for wrong arguments.
func (c *call) usage(format string, args ...any) error {
	return fmt.Errorf("%s\nusage: gateway %s %s", fmt.Sprintf(format, args...), c.command.Name, c.command.Arguments)
}

var everyKind = []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV}

var kinds = map[string]encoding.UIDKind{
	"metrics": encoding.UIDMetric,
	"tagk":    encoding.UIDTagK,
	"tagv":    encoding.UIDTagV,
}

// kind returns the kind of UID by its name.
func (c *call) kind(name string) (encoding.UIDKind, error) {
	// The API says metric where the tools say metrics; both are accepted.
	if kind, ok := kinds[strings.TrimSuffix(name, "s")+
		map[bool]string{true: "s"}[strings.HasPrefix(name, "metric")]]; ok {
		return kind, nil
	}
	return 0, c.usage("kind: got %q, want metrics, tagk or tagv", name)
}
