package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
)

// rowChecker checks the rows of a table, several stretches at a time.
type rowChecker struct {
	*work
	req   *fsckRequest
	young uint32 // rows from this base time on are not repaired

	mu       sync.Mutex
	out      io.Writer
	progress func(line string)
	counts   fsckCounts
	parts    []checkedPart
	told     time.Time // when progress was last reported
	begun    time.Time

	places chan struct{} // has an element for each worker that reads

	// Set in orphansOnce, before the first orphan is deleted: why none is, and why that is not known.
	orphansOnce                      sync.Once
	orphansRefused, orphansUncounted error
}

// checkedPart is a stretch, and how far it is checked and repaired.
type checkedPart struct {
	stretch
	at   []byte // the first key that is not done
	done bool
}

// perCPU bounds the parts of the table that are read at a time, as in OpenTSDB.
const perCPU = 4

// memory is what is held of each part that is read: the names of its series, rows that are to be repaired
// with what replaces them, and a block of rows. While a part waits for orphans to be counted, one
// that is counted has names and a block as well.
func (r *fsckRequest) memory() int64 {
	const reading = namerBytes + wholetable.BlockBytes
	each := int64(reading + 2*repairBytes)
	if r.Options.Fix && r.Options.DeleteOrphans {
		each += reading
	}
	return int64(r.Threads) * each
}

// complete sets the number of threads if none is given. It returns an error for a request
// that is none.
func (r *fsckRequest) complete(threads int) error {
	if r.Full == (len(r.Args) > 0) {
		return fmt.Errorf("got %d arguments, want a query or a full scan", len(r.Args))
	}
	r.Threads = cmp.Or(r.Threads, threads)
	if most := perCPU * runtime.NumCPU(); r.Threads < 1 || r.Threads > most {
		return fmt.Errorf("threads: got %d, want 1 to %d", r.Threads, most)
	}
	if r.YesDeleteOrphans < 0 {
		return fmt.Errorf("yes-delete-orphans: got %d, want a number of rows", r.YesDeleteOrphans)
	}
	if _, err := hex.DecodeString(r.From); err != nil {
		return fmt.Errorf("from: got %q, want a row key in hex", r.From)
	}
	return nil
}

// checkRows checks the rows of a complete request, writes findings and reports progress. It
// returns the counts of what it has done, also with an error, which says where to go on.
func (x *work) checkRows(
	ctx context.Context, req *fsckRequest, out io.Writer, progress func(string),
) (fsckCounts, error) {
	from, err := hex.DecodeString(req.From)
	if err != nil {
		return fsckCounts{}, err
	}
	var all []stretch
	if req.Full {
		all, err = x.everything(ctx)
	} else {
		all, err = x.queried(ctx, req.Args)
	}
	if err != nil {
		return fsckCounts{}, err
	}

	if err := x.checkNames(ctx, req); err != nil {
		return fsckCounts{}, err
	}

	// Queries that resolve duplicates take the newest: a repair must leave them the same one.
	req.Options.LastWriteWins = req.Options.LastWriteWins || x.Compile.FixDuplicates
	now := x.now()
	r := &rowChecker{work: x, req: req, out: out, progress: progress, told: now, begun: now,
		young: encoding.KeyTime(encoding.Hour(now.Unix()) - encoding.RowSeconds)}
	for _, s := range startAt(all, from) {
		r.parts = append(r.parts, checkedPart{stretch: s, at: s.Start})
	}
	return r.run(ctx, req.Threads)
}

// checkNames refuses to delete orphans where nothing has a name: then the settings name
// another UID table than that of the data.
func (x *work) checkNames(ctx context.Context, req *fsckRequest) error {
	if !req.Options.Fix || !req.Options.DeleteOrphans {
		return nil
	}
	metrics, err := namesInOrder(ctx, x.Names, encoding.UIDMetric, anyName)
	if err == nil && len(metrics) == 0 {
		err = fmt.Errorf("table %s names no metric, so that every row would be deleted as an orphan: is it the UID "+
			"table of %s?", x.Tables.UID, x.Tables.Data)
	}
	return err
}

// run checks the parts, so many at a time, in the order of their keys.
func (r *rowChecker) run(ctx context.Context, threads int) (fsckCounts, error) {
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	r.places = make(chan struct{}, threads)
	for i := range r.parts {
		if working.Err() != nil {
			break
		}
		g.Go(func() error {
			err := r.enter(working)
			if err == nil {
				err = newRowWorker(r, &r.parts[i]).run(working)
				r.leave()
			}
			r.reached(&r.parts[i], nil, err == nil)
			return err
		})
	}

	err := g.Wait()
	if err == nil {
		err = ctx.Err() // it may have ended before all parts had begun
	}
	if at := r.position(); err != nil && len(at) > 0 {
		err = fmt.Errorf("%w; go on with --from %x", err, at)
	}
	if err == nil {
		err = r.orphansRefused
	}
	return r.counts, err
}

// enter waits until fewer workers read than may.
func (r *rowChecker) enter(ctx context.Context) error {
	select {
	case r.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives a place to others.
func (r *rowChecker) leave() { <-r.places }

// enterAgain takes a place again, which its worker has left: others leave theirs soon if the run has ended.
func (r *rowChecker) enterAgain() { r.places <- struct{}{} }

// reached notes that a part is done up to a key, or as a whole, and reports from time to time
// how far the table is. With a nil key the part stays where it was.
func (r *rowChecker) reached(p *checkedPart, at []byte, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.done = done
	if at != nil {
		// Not in place: at first p.at is the start of the stretch itself.
		p.at = append(p.at[:0:0], at...)
	}

	now := r.now()
	if now.Sub(r.told) < tellEvery {
		return
	}
	r.told = now
	r.progress(fmt.Sprintf("%d rows, %d points, %d errors, %.0f points/s; all before row %x is done",
		r.counts.Rows, r.counts.Points, r.counts.errors(), float64(r.counts.Points)/now.Sub(r.begun).Seconds(),
		r.position()))
}

// position returns the key before which all is done, empty for the beginning.
func (r *rowChecker) position() (key []byte) {
	// An empty key is the table's beginning, and so cannot say that none was found yet.
	first := true
	for i := range r.parts {
		if p := &r.parts[i]; !p.done && (first || bytes.Compare(p.at, key) < 0) {
			key, first = p.at, false
		}
	}
	return key
}
