package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
)

// Retention is how long rows are kept, and where they are.
type Retention struct {
	Rules  *rules.Rules // nil to keep all
	Tables []retention.Table
}

// RetentionJob returns the job that deletes rows that are past.
func (s *Settings) RetentionJob(st Store, names *uid.Dictionary, now func() time.Time) *retention.Job {
	return retention.NewJob(st, s.Schema, s.Retention.Tables, s.Retention.Rules, names, now)
}

// retentionTurns are the turns of those who delete rows that are past.
func (s *Settings) retentionTurns(st Store) retention.Turns {
	return retention.NewTurns(st, s.Embedded, s.Tables)
}

func retentionFlags(f *flag.FlagSet, o *options) {
	f.Int64Var(&o.retention.YesDelete, "yes-delete", 0,
		"for run: the most rows that may go. Without it nothing goes if it would be more than half of a table")
	f.BoolVar(&o.retention.Meta, "meta", false, "also the TSMeta and counters of series of which no row is left")
	f.IntVar(&o.retention.Rate, "rate", retention.DefaultRate,
		"for run on HBase: rows deleted a second, 0 for no bound")
}

// retentionRequest says what to do. It is the body of POST retention.
type retentionRequest struct {
	Run       bool  `json:"run"`
	YesDelete int64 `json:"yesDelete,omitempty"`
	Meta      bool  `json:"meta,omitempty"`
	Rate      int   `json:"rate"`
	DryRun    bool  `json:"dryRun,omitempty"` // delete nothing, and report all as if it were
}

// check returns an error for a request that is none.
func (r *retentionRequest) check(s *Settings) error {
	switch {
	case s.Retention.Rules == nil:
		return errors.New("DOWNPOUR_RETENTION is off, want an age such as 400d or a file of rules; nothing is " +
			"deleted without it")
	case r.YesDelete < 0:
		return fmt.Errorf("yes-delete: got %d, want a number of rows", r.YesDelete)
	case r.YesDelete > 0 && !r.Run:
		return errors.New("yes-delete is for run: plan deletes nothing")
	case r.Rate < 0:
		return fmt.Errorf("rate: got %d, want rows a second, or 0 for no bound", r.Rate)
	}
	return nil
}

// retentionDone is what the work ends with.
type retentionDone struct {
	Report *retention.Report `json:"report"`
	// Refused says why a run would delete nothing, empty if it would.
	Refused string `json:"refused,omitempty"`
	// Meta is what was done with meta data, nil for nothing.
	Meta *retention.MetaReport `json:"meta,omitempty"`
}

// runRetention counts or deletes the rows that are past.
func runRetention(ctx context.Context, c *call) error {
	req := &c.retention
	if len(c.args) != 1 || c.args[0] != "plan" && c.args[0] != "run" {
		return c.usage("got %q, want plan or run", c.args)
	}
	req.Run = c.args[0] == "run"
	req.DryRun = req.Run && c.dryRun
	// Only the gateway that is asked knows its own rules.
	if c.gateway == "" {
		if err := req.check(&c.Settings); err != nil {
			return err
		}
	}

	var done retentionDone
	err := c.at(ctx, existing, func(r *remote) error {
		return r.stream(ctx, retentionPath, req, receiver{out: c.Out, progress: c.tell, counts: &done})
	})
	if done.Report == nil {
		return err
	}

	if req.Run {
		fmt.Fprintln(c.Out, done.Report)
		done.printMeta(c.Out)
		return err
	}
	done.Report.Print(c.Out)
	c.adviseTTL(done.Report)
	if done.Refused != "" {
		fmt.Fprintln(c.Out, "run: "+done.Refused)
	}
	done.printMeta(c.Out)
	return err
}

// printMeta writes what was done with meta data, if anything was requested.
func (d *retentionDone) printMeta(out io.Writer) {
	if d.Meta != nil {
		fmt.Fprintln(out, d.Meta)
	}
}

// do does what a request asks for: rows, and then meta data of series that have none any more.
func (r *retentionRequest) do(
	ctx context.Context, w *retention.Worker, m *retention.Meta, progress func(string), done *retentionDone,
) (err error) {
	w.Job.Rate, w.Job.Progress = r.Rate, progress
	if r.Run {
		done.Report, err = w.RunNow(ctx, r.YesDelete, progress)
	} else {
		var refused *retention.RefusedError
		done.Report, refused, err = w.Job.Plan(ctx)
		if refused != nil {
			done.Refused = refused.Error()
		}
	}
	if err != nil || !r.Meta {
		return err
	}
	m.DryRun = !r.Run || r.DryRun
	done.Meta, err = m.Run(ctx)
	return err
}

// adviseTTL says where HBase could do the same by itself, and what that costs.
func (c *call) adviseTTL(r *retention.Report) {
	if c.Embedded {
		return
	}
	for _, t := range r.Tables {
		if t.OneAge == 0 {
			continue
		}
		fmt.Fprintf(c.Out, "table %s has one age: HBase would do without these runs with alter '%s', {NAME => '%s', "+
			"TTL => %d}. It counts from the time of writing, so points that are put late stay as much longer; it also "+
			"drops annotations of no series and rows of metrics without a name, which these runs keep; and no answer "+
			"over the table "+
			"comes from the result cache any more\n",
			t.Name, t.Name, encoding.FamilyData, t.OneAge)
	}
}

// retentionPath is the route of the work in a gateway.
const retentionPath = "/api/tools/retention"

// retention answers with the lines of the work.
func (h *served) retention(w http.ResponseWriter, r *http.Request) error {
	var in retentionRequest
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := in.check(&h.Settings); err != nil {
		return err
	}
	if err := memory.Reserve(r.Context(), servedBytes); err != nil {
		return err
	}

	// The store is closed soon after the gateway begins to end.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-h.Ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return writeLines(w, r, func(_ io.Writer, progress func(string)) (any, error) {
		done, x := new(retentionDone), &h.work
		if in.DryRun {
			x, in.Rate = x.dry(), 0
		}
		worker := &retention.Worker{Job: x.RetentionJob(x.Store, x.Names, x.now), Turns: x.Turns}
		return done, in.do(ctx, worker, &retention.Meta{
			Job:   worker.Job,
			Table: h.Tables.Meta,
			Bytes: h.bound(servedBytes, 0),
		}, seldom(h.now, progress), done)
	})
}
