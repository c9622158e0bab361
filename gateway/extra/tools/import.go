package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
)

func importFlags(f *flag.FlagSet, o *options) {
	f.BoolVar(&o.skipErrors, "skip-errors", false,
		"tell of lines that are refused and go on; otherwise the first one ends the import")
	f.BoolVar(&o.autoMetric, "auto-metric", false, "give new metrics UIDs, whatever DOWNPOUR_AUTO_METRICS says")
	f.BoolVar(&o.outOfOrder, "allow-out-of-order", false,
		"on HBase, take times that do not ascend in a series; two values of one time make queries fail there")
	f.BoolVar(&o.noState, "no-state", false, "keep no FILE.import to go on from after an interruption")
}

// importFiles imports files one after another. It skips what an earlier run of the
// same command has imported.
func importFiles(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		return c.usage("no file is given")
	}
	if c.dryRun && c.gateway != "" {
		return c.usage("-dry-run: a gateway imports nothing without storing it; end it, or leave out -gateway")
	}
	return c.at(ctx, creating, func(r *remote) error {
		if c.dryRun && !r.own {
			return c.usage("-dry-run: a gateway has the store open, and imports nothing without storing it; " +
				"end it first")
		}
		for _, name := range c.args {
			if err := c.importFile(ctx, r, name); err != nil {
				return err
			}
		}
		// Not after each file: the same command run again skips those that were finished.
		return c.removeStates()
	})
}

// removeStates removes the state files once all files are imported. They stay until
// then, so that the same command skips the files that were finished.
func (c *call) removeStates() error {
	for _, name := range c.args {
		if !c.keepsState(name) {
			continue
		}
		if err := os.Remove(stateName(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// keepsState reports whether the state of an import is kept in a file: standard input does not come again.
func (c *call) keepsState(name string) bool { return name != "-" && !c.noState && !c.dryRun }

// importFile imports one file, "-" for standard input, and prints what it has imported.
// A file that was interrupted goes on where its state says.
func (c *call) importFile(ctx context.Context, to *remote, name string) (err error) {
	f, err := openInput(name, c.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()

	run := &fileImport{call: c, to: to, from: f, state: new(state)}
	if c.keepsState(name) {
		if run.state, err = loadState(name, c.Store+" "+c.Tables.Data); err != nil {
			return err
		}
	}

	if lines := run.state.Lines; lines > 0 {
		if err := f.skip(run.state.position); err != nil {
			return err
		}
		fmt.Fprintf(c.Err, "%s: going on behind line %d\n", name, lines)
	}

	run.progress = newProgress(c.Env, f)
	err = run.all(ctx)
	run.progress.end()

	// Also before an error something was imported.
	s := run.state
	fmt.Fprintf(c.Out, "%s: %d lines: %d points imported, %d refused, %d blank", name, s.Lines, s.Points, s.Refused,
		s.Blank)
	if s.Meta > 0 {
		fmt.Fprintf(c.Out, ", %d annotations and meta data", s.Meta)
	}
	fmt.Fprintln(c.Out)

	return err
}

// fileImport imports one file. It reads and sends a chunk while the chunk before it
// becomes durable.
type fileImport struct {
	*call
	to       *remote
	from     *input
	state    *state
	progress *progress
}

// Bounds of a chunk, in lines and bytes. A gateway has other work, and less memory for each request.
const (
	ownChunkLines = 50_000
	chunkLines    = 5_000
	chunkBytes    = 8 << 20
)

// chunk is a run of whole lines that are sent together.
type chunk struct {
	text       []byte
	lines      int64
	begin, end position
	long       []int64 // the lines, from 1, that are too long; an empty one is sent in their place
	stops      bool    // the line behind it is too long, and ends the import
	sent       *sending
}

// sending is a chunk that is sent, and whose points are not durable yet.
type sending struct {
	taken  chan struct{} // has an element once all points are with the writer
	ended  chan struct{}
	answer importDone
	err    error
}

// all imports the file from the position of its state to the end.
func (i *fileImport) all(ctx context.Context) error {
	var before *chunk
	for {
		ch, readErr := i.readChunk()
		if before != nil {
			before.sent.awaitTaken()
		}
		ch.sent = i.send(ctx, ch)
		// The chunk before becomes durable while this one is read and sent.
		if err := i.awaitCommit(before); err != nil {
			<-ch.sent.ended // of the two errors the first one is reported
			return err
		}
		before = ch

		if readErr == nil {
			readErr = ctx.Err()
		}
		if readErr == nil {
			continue
		}

		// The last chunk: at the end of the file, or before a refused line.
		if err := i.awaitCommit(before); err != nil {
			return err
		}
		if readErr == io.EOF {
			return nil
		}
		return fmt.Errorf("%w (run again to go on behind line %d)", readErr, i.state.Lines)
	}
}

// readChunk reads lines. It returns an error with the last chunk: io.EOF, errLong if that line ends the import, or the
// error of reading.
func (i *fileImport) readChunk() (*chunk, error) {
	ch := &chunk{begin: i.from.at, end: i.from.at}
	most := int64(chunkLines)
	if i.to.own {
		most = ownChunkLines
	}
	for ch.lines < most && len(ch.text) < chunkBytes {
		line, err := i.from.next()
		switch {
		case errors.Is(err, errLong) && !i.skipErrors:
			ch.stops = true
			return ch, err
		case errors.Is(err, errLong): // refused like any other; only an error of the file ends it
			line = []byte{'\n'}
			ch.long = append(ch.long, ch.lines+1)
		case err != nil:
			return ch, err
		}
		ch.text = append(ch.text, line...)
		ch.lines++
		ch.end = i.from.at
	}
	return ch, nil
}

// send begins to send a chunk.
func (i *fileImport) send(ctx context.Context, ch *chunk) *sending {
	s := &sending{taken: make(chan struct{}, 1), ended: make(chan struct{})}
	if ch.lines == 0 {
		close(s.ended)
		return s
	}
	path := "/api/tools/import"
	if i.skipErrors {
		path += "?skip=true"
	}
	go func() {
		defer close(s.ended)
		resp, err := i.to.send(ctx, http.MethodPost, path, bytes.NewReader(ch.text), "Content-Type",
			"text/plain; charset=UTF-8")
		if err != nil {
			s.err = err
			return
		}
		s.err = i.to.receive(resp, receiver{
			out:      io.Discard,
			counts:   &s.answer,
			progress: func(string) { s.taken <- struct{}{} },
		})
	}()
	return s
}

// awaitTaken returns once another chunk may follow, whose points are then stored later.
func (s *sending) awaitTaken() {
	select {
	case <-s.taken:
	case <-s.ended:
	}
}

// awaitCommit waits until a chunk is durable, and counts its lines in the state.
func (i *fileImport) awaitCommit(ch *chunk) error {
	if ch == nil {
		return nil
	}
	<-ch.sent.ended
	a := &ch.sent.answer
	if err := ch.sent.err; err != nil {
		return fmt.Errorf("%s: %w (everything up to line %d is imported; run again to go on there)", i.from.name, err,
			i.state.Lines)
	}
	first := ch.begin.Lines
	a.Blank -= int64(len(ch.long))
	for _, line := range ch.long {
		a.Refused = append(a.Refused, refusedLine{line, errLong.Error()})
	}
	slices.SortFunc(a.Refused, func(a, b refusedLine) int { return cmp.Compare(a.Line, b.Line) })

	i.state.Points += a.Points
	i.state.Meta += a.Meta
	i.state.Blank += a.Blank
	switch {
	case len(a.Refused) > 0 && !i.skipErrors:
		return i.stopAt(ch.placeOf(a.Refused[0].Line), a.Refused[0].Error)
	case ch.stops:
		return i.stopAt(ch.end, errLong.Error())
	}
	for _, r := range a.Refused {
		i.progress.say(fmt.Sprintf("%s:%d: %s", i.from.name, first+r.Line, r.Error))
	}
	i.state.Refused += int64(len(a.Refused))
	i.state.position = ch.end
	i.progress.at(i.from.raw.n, i.state.Lines, i.state.Points)
	return i.save()
}

// placeOf returns the position in front of a line of the chunk, from 1.
func (c *chunk) placeOf(line int64) position {
	at, rest := c.begin, c.text
	for range line - 1 {
		end := bytes.IndexByte(rest, '\n') + 1
		at.pass(rest[:end])
		at.Lines++
		rest = rest[end:]
	}
	return at
}

// stopAt ends the import in front of a refused line, so that another run begins
// with it.
func (i *fileImport) stopAt(at position, why string) error {
	i.state.position = at
	return errors.Join(fmt.Errorf("%s:%d: %s (the lines before it are imported; correct it, or give -skip-errors, "+
		"and run again)", i.from.name, at.Lines+1, why), i.save())
}

func (i *fileImport) save() error {
	if !i.keepsState(i.from.name) {
		return nil
	}
	return i.state.save(i.from.name)
}
