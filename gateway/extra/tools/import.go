package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func importFlags(f *flag.FlagSet, o *options) {
	f.BoolVar(&o.skipErrors, "skip-errors", false, "tell of lines that are refused and go on; otherwise the first one ends the import")
	f.BoolVar(&o.autoMetric, "auto-metric", false, "give new metrics UIDs, whatever DOWNPOUR_AUTO_METRICS says")
	f.BoolVar(&o.outOfOrder, "allow-out-of-order", false, "on HBase, take times that do not ascend in a series; two values of one time make queries fail there")
	f.BoolVar(&o.noState, "no-state", false, "keep no FILE.import to go on from after an interruption")
}

// importFiles imports files one after another. It skips what an earlier run of the
// same command has imported.
func importFiles(ctx context.Context, c *call) (err error) {
	if len(c.args) == 0 {
		return c.usage("no file is given")
	}

	conn, err := c.connect(ctx, creating)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()

	to := c.sink(conn)
	defer to.close()
	for _, name := range c.args {
		if err := c.importFile(ctx, to, name); err != nil {
			return err
		}
	}
	// Not after each file: the same command run again skips those that were finished.
	return c.removeStates()
}

// sink returns where points go: into the store, or to the gateway that has it open.
func (c *call) sink(conn *connection) sink {
	if conn.store == nil {
		return &gatewaySink{&c.Settings, conn.remote}
	}
	return newStoreSink(c, conn)
}

// removeStates removes the state files once all files are imported. They stay until
// then, so that the same command skips the files that were finished.
func (c *call) removeStates() error {
	for _, name := range c.args {
		if c.noState || name == "-" {
			continue
		}
		if err := os.Remove(stateName(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// importFile imports one file, "-" for standard input, and prints what it has imported.
// A file that was interrupted goes on where its state says.
func (c *call) importFile(ctx context.Context, to sink, name string) (err error) {
	f, err := openInput(name, c.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()

	run := &fileImport{call: c, to: to, from: f, state: new(state)}
	run.keep = name != "-" && !c.noState // standard input does not come again
	if run.keep {
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
	fmt.Fprintf(c.Out, "%s: %d lines: %d points imported, %d refused, %d blank", name, s.Lines, s.Points, s.Refused, s.Blank)
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
	to       sink
	from     *input
	state    *state
	keep     bool // keep the state in a file
	progress *progress
	parts    [][]byte // scratch
}

// all imports the file from the position of its state to the end.
func (i *fileImport) all(ctx context.Context) error {
	var before *chunk
	for {
		ch, readErr := i.readChunk()

		// UIDs are assigned in the order of the file's list of names, so before the
		// points that use them.
		if err := i.to.assign(ctx, ch.names); err != nil {
			// The chunk before was sent: what of it is durable counts as imported.
			return errors.Join(fmt.Errorf("%s: %w", i.from.name, err), i.awaitCommit(ctx, before))
		}

		ch.sent = i.to.send(ctx, ch.lines)
		// The chunk before becomes durable while this one is read and sent.
		if err := i.awaitCommit(ctx, before); err != nil {
			_, _ = ch.sent.wait(ctx) // of the two errors the first one is reported
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
		if err := i.awaitCommit(ctx, before); err != nil {
			return err
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		return fmt.Errorf("%w (run again to go on behind line %d)", readErr, i.state.Lines)
	}
}

// readChunk reads and parses lines. It returns an error with the last chunk: io.EOF,
// errStop if that ends with a refused line, or the error of reading.
func (i *fileImport) readChunk() (*chunk, error) {
	ch := &chunk{end: i.from.at}
	for len(ch.lines) < chunkLines && len(ch.text)+ch.metaBytes < chunkBytes {
		before := i.from.at
		line, err := i.from.next()
		// A long line is refused like any other; only an error of the file ends it.
		if err != nil && !errors.Is(err, errLong) {
			return ch, err
		}

		if err == nil {
			err = i.importLine(ch, line, before)
		}
		if err != nil {
			ch.bad = append(ch.bad, refusal{i.from.at.Lines, err})
			if !i.skipErrors {
				return ch, errStop // the chunk ends in front of the line, with which another run begins
			}
		}
		ch.end = i.from.at
	}

	return ch, nil
}

// importLine parses a line into the chunk. before is the position in front of it.
func (i *fileImport) importLine(ch *chunk, line []byte, before position) (err error) {
	w := words(i.parts[:0], line)
	if len(w) == 0 || w[0][0] == '#' {
		return i.importComment(ch, line, w, before)
	}

	var p linePoint
	if p, ch.text, err = parseLine(ch.text, line, &i.parts); err != nil {
		return err
	}

	p.number, p.at = i.from.at.Lines, ch.placeNext(before)
	ch.lines = append(ch.lines, p)
	return nil
}

// importComment parses a line without a point: a blank line, a comment, a name of the
// list of names, or a meta line. w are its words.
func (i *fileImport) importComment(ch *chunk, line []byte, w [][]byte, before position) error {
	r, ok, err := parseMetaLine(line)
	switch {
	case err != nil:
		return err
	case ok:
		r.line, r.at = i.from.at.Lines, ch.placeNext(before)
		ch.meta = append(ch.meta, r)
		ch.metaBytes += len(line)
		return nil
	}

	if n, ok := parseNameLine(w); ok {
		ch.names = append(ch.names, n)
	}
	ch.blank++ // counts names as comments
	return nil
}

// awaitCommit waits until the points of a chunk are durable, writes its meta lines,
// and counts its lines in the state. Meta lines come after the points, so that they
// replace the meta data that points create.
func (i *fileImport) awaitCommit(ctx context.Context, ch *chunk) error {
	if ch == nil {
		return nil
	}

	refused, err := ch.sent.wait(ctx)
	all := sorted(append(ch.bad, refused...))

	var refusedMeta []refusal
	if err == nil {
		meta := ch.meta
		// The next run begins with the refused line, so it writes what comes after it.
		if len(all) > 0 && !i.skipErrors {
			meta = meta[:ch.placeOf(all[0].line).meta]
		}
		refusedMeta, err = i.to.writeMeta(ctx, meta)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (everything up to line %d is imported; run again to go on there)", i.from.name, err, i.state.Lines)
	}

	all = sorted(append(all, refusedMeta...))
	if len(all) > 0 && !i.skipErrors {
		return i.stopAt(ch, all[0])
	}
	for _, r := range all {
		i.progress.say(fmt.Sprintf("%s:%d: %v", i.from.name, r.line, r.err))
	}

	i.state.position = ch.end
	i.state.Points += int64(len(ch.lines) - len(refused))
	i.state.Meta += int64(len(ch.meta) - len(refusedMeta))
	i.state.Refused += int64(len(all))
	i.state.Blank += ch.blank
	i.progress.at(i.from.raw.n, i.state.Lines, i.state.Points)

	return i.save()
}

// stopAt ends the import in front of a refused line, so that another run begins
// with it.
func (i *fileImport) stopAt(ch *chunk, r refusal) error {
	at := ch.placeOf(r.line)
	i.state.position = at.before
	i.state.Blank += at.blank
	i.state.Points += at.points
	i.state.Meta += at.meta

	return errors.Join(fmt.Errorf("%s:%d: %w (the lines before it are imported; correct it, or give -skip-errors, and run again)", i.from.name, r.line, r.err), i.save())
}

func (i *fileImport) save() error {
	if !i.keep {
		return nil
	}
	return i.state.save(i.from.name)
}
