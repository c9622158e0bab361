package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/tools/metapurge"
	"downpour/gateway/extra/tools/metasync"
	"downpour/gateway/extra/tools/uidcheck"
	"downpour/pushdown/process/memory"
)

// uidWork asks for work on the whole UID and meta tables: uid fsck, uid metasync, uid metapurge or
// uid reclaim.
type uidWork struct {
	Command string `json:"command"`
	// Fix, DeleteUnknown and Collisions are for fsck, see uidcheck.Config.
	Fix           bool            `json:"fix,omitempty"`
	DeleteUnknown bool            `json:"deleteUnknown,omitempty"`
	Collisions    uidcheck.Policy `json:"collisions,omitempty"`
	// NoTSDs says for reclaim that no TSD runs, and YesDelete how many names may go where that is more than half.
	NoTSDs    bool  `json:"noTSDs,omitempty"`
	YesDelete int64 `json:"yesDelete,omitempty"`
	// DryRun changes nothing, and reports all as if it were done.
	DryRun bool `json:"dryRun,omitempty"`
}

// uidWorks are the commands.
var uidWorks = []string{"fsck", "metasync", "metapurge", "reclaim"}

// isUIDWork reports whether a command of uid works on whole tables.
func isUIDWork(command string) bool {
	return slices.Contains(uidWorks, command)
}

// check returns an error for a request that is none.
func (w uidWork) check() error {
	switch {
	case !isUIDWork(w.Command):
		return fmt.Errorf("command: got %q, want fsck, metasync, metapurge or reclaim", w.Command)
	case w.Command != "fsck" && (w.Fix || w.DeleteUnknown || w.Collisions != uidcheck.Leave):
		return fmt.Errorf("uid %s repairs nothing: fix, delete_unknown and -collisions are for fsck", w.Command)
	case w.Command != "reclaim" && (w.NoTSDs || w.YesDelete != 0):
		return fmt.Errorf("uid %s deletes no names: -no-tsds and -yes-delete are for reclaim", w.Command)
	case (w.DeleteUnknown || w.Collisions != uidcheck.Leave) && !w.Fix:
		return errors.New("delete_unknown and -collisions need fix")
	case !slices.Contains([]uidcheck.Policy{uidcheck.Leave, uidcheck.Owner, uidcheck.Merge}, w.Collisions):
		return fmt.Errorf("collisions: got %q, want owner or merge", w.Collisions)
	}
	return nil
}

// uidDone is what the work ends with.
type uidDone struct {
	// Lines sum up what was done.
	Lines []string `json:"lines"`
	// Failed says what stays wrong, empty if nothing does.
	Failed string `json:"failed,omitempty"`
}

// uidWorker does the work on the tables themselves.
type uidWorker struct {
	*work
	bytes         int // bound of memory, 0 for the default
	say, progress func(line string)
}

// run does what a request asks for. It returns nil with an error, whatever was done before.
func (x *uidWorker) run(ctx context.Context, w uidWork) (*uidDone, error) {
	switch w.Command {
	case "fsck":
		return x.fsck(ctx, w)
	case "reclaim":
		return x.reclaim(ctx, w)
	}

	// Pending meta data of puts would seem to be missing to metasync, and would come back
	// after metapurge.
	if x.Flush != nil {
		if err := x.Flush(ctx); err != nil {
			return nil, err
		}
	}
	if w.Command == "metasync" {
		return x.metasync(ctx)
	}
	return x.metapurge(ctx)
}

// tellFor bounds the time in which other processes learn of repairs.
const tellFor = 30 * time.Second

// othersFor is how long what fsck repairs must have been as it is, as a multiple of the time
// after which other processes know of a change: twice the longest assignment or rename.
const othersFor = 4

// fsck checks the UID table, and repairs it if it is asked to. Source: UidManager.fsck.
func (x *uidWorker) fsck(ctx context.Context, w uidWork) (*uidDone, error) {
	cfg := uidcheck.Config{
		Store:         x.Store,
		Table:         x.Tables.UID,
		Schema:        x.Schema,
		Points:        slices.Concat([]string{x.Tables.Data}, x.Tables.Rollups),
		Fix:           w.Fix,
		DeleteUnknown: w.DeleteUnknown,
		Collisions:    w.Collisions,
		Bytes:         x.bytes,
		Say:           x.say,
		Progress:      x.progress,
		Withdraw: func(ctx context.Context, kind encoding.UIDKind, names ...string) (func(...encoding.UID), error) {
			w, err := x.Names.Withdraw(ctx, kind, names...)
			if err != nil {
				return nil, err
			}
			return w.End, nil
		},
	}
	// An embedded store is this process's alone, which withdraws what it repairs; and nothing that others do can
	// be disturbed by a dry run.
	if !x.Embedded && !x.dryRun {
		cfg.Settle = othersFor * x.KnownWithin
	}

	r, err := uidcheck.Run(ctx, cfg)
	if r.Repaired > 0 && !x.dryRun {
		// Without a word others would go on with the old names for minutes, so they are
		// sent also after a check that was ended.
		tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellFor)
		defer cancel()
		err = errors.Join(err, x.Names.Tell(tell))
	}
	if err != nil {
		return nil, fmt.Errorf("uid fsck: %w (what was repaired stays so; run it again)", err)
	}
	return x.fsckDone(r, w), nil
}

// fsckDone sums up a check.
func (x *uidWorker) fsckDone(r *uidcheck.Report, w uidWork) *uidDone {
	done := &uidDone{Lines: []string{fmt.Sprintf("%d metrics, %d tagk, %d tagv: %d errors, %d warnings, %d repaired",
		r.Names[encoding.UIDMetric], r.Names[encoding.UIDTagK], r.Names[encoding.UIDTagV], r.Errors, r.Warnings,
		r.Repaired)}}
	add := func(line string) { done.Lines = append(done.Lines, line) }
	if r.Moving > 0 {
		add(fmt.Sprintf("%d findings changed while they were looked at: run it again", r.Moving))
	}
	if r.Collisions > 0 && w.Collisions == uidcheck.Leave {
		add(collisionHelp)
	}
	if r.Repaired > 0 && !x.Embedded {
		add("running TSDs may remember what was: let each drop its caches (/api/dropcaches)")
	}
	if r.Left > 0 {
		done.Failed = fmt.Sprintf("%d errors are left", r.Left)
	} else if x.dryRun && r.Errors > 0 {
		done.Failed = fmt.Sprintf("%d errors would be repaired", r.Errors)
	}
	return done
}

// collisionHelp says what can be done about names that share a UID.
const collisionHelp = "names that share a UID: their points are stored alike, and nothing can tell them apart. " +
	"One may be a\nrename that was cut off: \"gateway uid rename KIND OLD NEW\" completes it, and in general takes " +
	"the UID from OLD and leaves\n" +
	`it to NEW, if the UID leads back to NEW. "gateway uid fsck fix -collisions owner" does that for all of them. With
"-collisions merge" all lose the UID to a new name, fsck.NAME1.NAME2, as in OpenTSDB. A name that has lost its UID gets
a new one with its next point`

// metasync makes the meta data that is missing. Source: UidManager.metaSync.
func (x *uidWorker) metasync(ctx context.Context) (*uidDone, error) {
	t := x.Tables
	r, err := metasync.Run(ctx, metasync.Config{
		Store:    x.Store,
		Data:     t.Data,
		UID:      t.UID,
		Meta:     t.Meta,
		Schema:   x.Schema,
		Bytes:    x.bytes,
		Say:      x.say,
		Progress: x.progress,
	})
	if err != nil {
		return nil, fmt.Errorf("uid metasync: %w (what was made stays; run it again)", err)
	}
	return &uidDone{Lines: []string{
		fmt.Sprintf("%d series in %d rows", r.Series, r.Rows),
		fmt.Sprintf("made: %d TSMeta, %d counters, %d UIDMeta; set to the first row's hour: %d TSMeta, %d UIDMeta",
			r.MadeTSMeta, r.Counters, r.MadeUIDMeta, r.ChangedTSMeta, r.ChangedUIDMeta),
		fmt.Sprintf("left out: %d series with one of %d UIDs without a name, %d objects and keys that cannot be read",
			r.Skipped, r.Nameless, r.Unreadable),
	}}, nil
}

// metapurge deletes all meta data. Source: UidManager.metaPurge.
func (x *uidWorker) metapurge(ctx context.Context) (*uidDone, error) {
	r, err := metapurge.Run(ctx, metapurge.Config{
		Store:    x.Store,
		UID:      x.Tables.UID,
		Meta:     x.Tables.Meta,
		Progress: x.progress,
	})
	// Gateways know of series that they have meta data, and would not make it again.
	if x.Forget != nil {
		x.Forget()
	}
	tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellFor)
	defer cancel()
	if err = errors.Join(err, x.Names.Tell(tell)); err != nil {
		return nil, fmt.Errorf("uid metapurge: %w (what was deleted is gone; run it again)", err)
	}
	return &uidDone{Lines: []string{"deleted: " + r.String()}}, nil
}

// uidWork asks for what the arguments of uid say.
func (c *call) uidWork(ctx context.Context) error {
	w := uidWork{Command: c.args[0], Collisions: uidcheck.Policy(c.collisions), NoTSDs: c.noTSDs,
		YesDelete: c.yesDelete, DryRun: c.dryRun}
	for _, word := range c.args[1:] {
		switch {
		case word == "fix":
			w.Fix = true
		case word == "delete_unknown":
			w.DeleteUnknown = true
		default:
			return c.usage("uid %s: got %q, want fix or delete_unknown, or nothing", w.Command, word)
		}
	}
	if err := w.check(); err != nil {
		return c.usage("%v", err)
	}

	var done uidDone
	err := c.at(ctx, existing, func(r *remote) error {
		return r.stream(ctx, "/api/tools/uid", w, receiver{out: c.Out, progress: c.tell, counts: &done})
	})
	if err != nil {
		return err
	}

	// The lines come first: they say what stays wrong.
	fmt.Fprintln(c.Out, strings.Join(done.Lines, "\n"))
	if done.Failed != "" {
		return errors.New(done.Failed)
	}
	return nil
}

// seldom passes on at once a line that differs from the one before in more than its numbers,
// because it reports a wait or of another reading. Of all others it passes on one every ten
// seconds.
func seldom(now func() time.Time, tell func(line string)) func(line string) {
	told, before := now(), ""
	return func(line string) {
		shape := strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, line)
		if now().Sub(told) < tellEvery && shape == before {
			return
		}
		told, before = now(), shape
		tell(line)
	}
}

// servedBytes bounds the memory of work in a gateway, which also serves others. It is
// taken from the budget before.
const servedBytes = 8 << 20

// uidWork answers with the lines of the work.
func (h *served) uidWork(w http.ResponseWriter, r *http.Request) error {
	var in uidWork
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	// metasync keeps series and UIDs, each within the bound.
	if err := memory.Reserve(r.Context(), 2*servedBytes); err != nil {
		return err
	}

	if !h.working.TryLock() {
		return errWorking
	}
	defer h.working.Unlock()

	return writeLines(w, r, func(out io.Writer, progress func(string)) (any, error) {
		x := &uidWorker{
			work:     &h.work,
			bytes:    h.bound(servedBytes, 0),
			say:      func(line string) { fmt.Fprintln(out, line) },
			progress: seldom(h.now, progress),
		}
		switch {
		case in.DryRun && in.Command == "fsck":
			x.work = h.dry()
		case in.DryRun: // they read each object once, before they write it, and there may be very many
			x.work = h.dry(h.Tables.UID, h.Tables.Meta)
		}
		return x.run(r.Context(), in)
	})
}

// errWorking refuses a second tool on the whole UID and meta tables.
var errWorking = conflict("other work on the UID and meta tables runs, and one at a time may")

// bound returns a bound of memory: of a gateway, which also serves others, or of a process that the work has
// for itself.
func (s *Served) bound(gateway, own int) int {
	if s.Own {
		return own
	}
	return gateway
}
