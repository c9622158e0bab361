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

// importFiles imports files one after another. What an earlier run of the same
// command has imported is passed over.
func importFiles(ctx context.Context, c *call) (err error) {
	if len(c.args) == 0 {
		return c.usage("no file is given")
	}
	conn, err := c.connect(ctx, true)
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
	return c.forget()
}

func (c *call) sink(conn *connection) sink {
	if conn.store == nil {
		return &through{&c.Settings, conn.remote}
	}
	return newLocal(c, conn)
}

// forget removes the states: the command has come to its end.
func (c *call) forget() error {
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

func (c *call) importFile(ctx context.Context, to sink, name string) (err error) {
	f, err := openInput(name, c.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	run := &fileImport{call: c, to: to, from: f, state: new(state)}
	run.keep = name != "-" && !c.noState
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
	s := run.state
	fmt.Fprintf(c.Out, "%s: %d lines: %d points imported, %d refused, %d blank", name, s.Lines, s.Points, s.Refused, s.Blank)
	if s.Remarks > 0 {
		fmt.Fprintf(c.Out, ", %d annotations and meta data", s.Remarks)
	}
	fmt.Fprintln(c.Out)
	return err
}

// fileImport imports one file: a chunk is read and sent while the one before it
// becomes durable.
type fileImport struct {
	*call
	to       sink
	from     *input
	state    *state
	keep     bool // the state, in its file
	progress *progress
	parts    [][]byte
}

func (i *fileImport) all(ctx context.Context) error {
	var before *chunk
	for {
		ch, readErr := i.readChunk()
		if err := i.to.assign(ctx, ch.names); err != nil {
			return fmt.Errorf("%s: %w", i.from.name, err)
		}
		ch.sent = i.to.send(ctx, ch.lines)
		if err := i.awaitCommit(ctx, before); err != nil {
			_, _ = ch.sent.wait(ctx) // the first error is the one to tell
			return err
		}
		before = ch
		if readErr == nil {
			readErr = ctx.Err()
		}
		if readErr == nil {
			continue
		}
		if err := i.awaitCommit(ctx, before); err != nil {
			return err
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		return fmt.Errorf("%w (run again to go on behind line %d)", readErr, i.state.Lines)
	}
}

// errStop ends the reading at a line that is refused.
var errStop = errors.New("the import stops at a line that is refused")

// readChunk reads and parses lines. An error ends the file: io.EOF, errStop
// behind the line that was refused last, or a fault of reading.
func (i *fileImport) readChunk() (*chunk, error) {
	ch := &chunk{end: i.from.at}
	for len(ch.lines) < chunkLines && len(ch.text)+ch.said < chunkBytes {
		before := i.from.at
		line, err := i.from.next()
		if err != nil && !errors.Is(err, errLong) {
			return ch, err
		}
		if err == nil {
			err = i.importLine(ch, line, before)
		}
		if err != nil {
			ch.bad = append(ch.bad, refusal{i.from.at.Lines, err})
			if !i.skipErrors {
				return ch, errStop
			}
		}
		ch.end = i.from.at
	}
	return ch, nil
}

// importLine parses one line into the chunk.
func (i *fileImport) importLine(ch *chunk, line []byte, before position) (err error) {
	w := words(i.parts[:0], line)
	if len(w) == 0 || w[0][0] == '#' {
		return i.takeComment(ch, line, w, before)
	}
	var p linePoint
	if p, ch.text, err = parseLine(ch.text, line, &i.parts); err != nil {
		return err
	}
	p.number, p.at = i.from.at.Lines, ch.here(before)
	ch.lines = append(ch.lines, p)
	return nil
}

// takeComment takes a blank line, a name of the list of names, or a remark.
func (i *fileImport) takeComment(ch *chunk, line []byte, w [][]byte, before position) error {
	r, ok, err := parseRemark(line)
	switch {
	case err != nil:
		return err
	case ok:
		r.line, r.at = i.from.at.Lines, ch.here(before)
		ch.remarks = append(ch.remarks, r)
		ch.said += len(line)
		return nil
	}
	if n, ok := parseListed(w); ok {
		ch.names = append(ch.names, n)
	}
	ch.blank++
	return nil
}

// awaitCommit waits for a chunk and counts its lines.
func (i *fileImport) awaitCommit(ctx context.Context, ch *chunk) error {
	if ch == nil {
		return nil
	}
	refused, err := ch.sent.wait(ctx)
	all := sorted(append(ch.bad, refused...))
	var unsaid []refusal
	if err == nil {
		said := ch.remarks
		if len(all) > 0 && !i.skipErrors {
			said = said[:ch.placeOf(all[0].line).remarks]
		}
		unsaid, err = i.to.remark(ctx, said)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (everything up to line %d is imported; run again to go on there)", i.from.name, err, i.state.Lines)
	}
	all = sorted(append(all, unsaid...))
	if len(all) > 0 && !i.skipErrors {
		return i.stopAt(ch, all[0])
	}
	for _, r := range all {
		i.progress.say(fmt.Sprintf("%s:%d: %v", i.from.name, r.line, r.err))
	}
	i.state.position = ch.end
	i.state.Points += int64(len(ch.lines) - len(refused))
	i.state.Remarks += int64(len(ch.remarks) - len(unsaid))
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
	i.state.Remarks += at.remarks
	return errors.Join(fmt.Errorf("%s:%d: %w (the lines before it are imported; correct it, or give -skip-errors, and run again)", i.from.name, r.line, r.err), i.save())
}

func (i *fileImport) save() error {
	if !i.keep {
		return nil
	}
	return i.state.save(i.from.name)
}
