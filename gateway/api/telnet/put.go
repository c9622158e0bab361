package telnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"downpour/gateway/admin/putlog"
	"downpour/gateway/uid"
	"downpour/gateway/write"
)

// put handles "put metric time value tagk=tagv …"; args is the text after "put ".
func (c *conn) put(args []byte) {
	if c.prepared > 0 {
		c.prepared--
	}
	if !c.mayWrite("put") {
		return
	}
	if err := c.tryPut(args); err != nil {
		c.refusePut(err)
	}
}

// putWithoutArguments handles a put without any argument.
func (c *conn) putWithoutArguments() {
	if c.mayWrite("put") {
		c.refusePut(fewArguments(0))
	}
}

// mayWrite reports whether the connection may put, and refuses the line of a command if
// not.
func (c *conn) mayWrite(command string) bool {
	if c.rights.Write && !c.cfg.ReadOnly {
		return true
	}
	c.refuseLine(command, "unauthorized", errUnauthorized, "unauthorized: "+errUnauthorized.Error())
	return false
}

var errUnauthorized = errors.New("this needs a write token or a gateway that takes puts")

func (c *conn) refusePut(err error) {
	c.counted.bad++
	c.refuseLine("put", reasonOf(err), err, putErrorText(err))
}

// refuseLine refuses the line of a command, and logs it.
func (c *conn) refuseLine(command, reason string, err error, answer string) {
	c.refuse(command + ": " + answer)
	c.logRefused(command, reason, err, 1, func() string { return latin1(c.line) })
}

// logRefused logs lines of a command that are refused, with one of them if that is known.
func (c *conn) logRefused(command, reason string, err error, lines int, example func() string) {
	if c.cfg.PutLog != nil {
		c.cfg.PutLog.Refused(putlog.Refusal{
			Client:  c.nc.RemoteAddr().String(),
			Via:     "telnet " + command,
			Reason:  reason,
			Points:  lines,
			Err:     err,
			Example: example,
		})
	}
}

// reasonOf is write.Reason for the errors of lines.
func reasonOf(err error) string {
	var number numberError
	if errors.As(err, &number) {
		return "value"
	}
	return write.Reason(err)
}

func fewArguments(n int) error {
	return fmt.Errorf("not enough arguments (need least 4, got %d)", n)
}

// tryPut parses a put and adds its point to a batch.
func (c *conn) tryPut(args []byte) error {
	p, s, err := c.parsePut(args)
	if err != nil {
		return err
	}
	batch, err := c.cfg.Writer.AddTo(c.ctx, s, p)
	if err != nil {
		return err
	}
	c.addPending("put", batch)
	c.counted.ok++ // storageFailed takes it back if the batch is lost
	return nil
}

// maxOpenBatches is how many of the last batches addPending searches: at least as many as are open
// at a time, which is one for each shard of the writer. There may be more with rollups, because
// each of their tables has a writer.
const maxOpenBatches = 8

// addPending counts a line of a command in its batch. The batch is most often one of the
// last, because only these are still open; a line whose batch is not found is counted
// separately.
func (c *conn) addPending(command string, batch *write.Batch) {
	for i := len(c.pending) - 1; i >= max(0, len(c.pending)-maxOpenBatches); i-- {
		if c.pending[i].batch == batch && c.pending[i].command == command {
			c.pending[i].lines++
			return
		}
	}
	c.pending = append(c.pending, pendingPuts{command, batch, 1})
}

// parsePut parses the arguments of a put. Single blanks separate them: two blanks in
// a row enclose an empty argument. The point has names only if its series is
// spelled so for the first time. Source: Tags.splitString.
func (c *conn) parsePut(args []byte) (*write.Point, *write.SeriesKey, error) {
	p := &c.point
	metric, tags, err := parseNumbers(p, args)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.findSeries(metric, tags)
	return p, s, err
}

// parseNumbers parses the time and the value of a put into p, which it empties, and
// returns the texts of metric and tags.
func parseNumbers(p *write.Point, args []byte) (metric, tags []byte, err error) {
	metric, rest, _ := cutWord(args)
	at, rest, _ := cutWord(rest)
	value, tags, ok := cutWord(rest)
	if !ok {
		return nil, nil, fewArguments(1 + bytes.Count(args, blank))
	}
	if len(metric) == 0 {
		return nil, nil, errors.New("empty metric name")
	}

	// Narrow: as in OpenTSDB, a put of telnet stores a float in 4 bytes if that loses nothing.
	*p = write.Point{Narrow: true, Tags: p.Tags[:0]}
	if p.Time, err = write.ParseTime(text(at)); err != nil {
		return nil, nil, timeError(latin1(at))
	}
	if len(value) == 0 {
		return nil, nil, errors.New("empty value")
	}
	if p.Value, err = write.ParseValue(text(value)); err != nil {
		return nil, nil, valueError(latin1(value))
	}
	return metric, tags, nil
}

var blank = []byte(" ")

// cutWord is bytes.Cut at the first blank. Words of a put are so short that a loop finds their end sooner.
func cutWord(b []byte) (word, rest []byte, found bool) {
	for i, c := range b {
		if c == ' ' {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}

// text returns bytes as a string, without a copy. It is valid as long as nobody
// writes into b.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// findSeries returns the series of a put. The names of a spelling that was seen
// before are not parsed again.
func (c *conn) findSeries(metric, tags []byte) (*write.SeriesKey, error) {
	if s, ok := c.resolver.Find(metric, blank, tags); ok {
		return s, nil
	}

	p := &c.point
	if err := c.parseNames(p, metric, tags); err != nil {
		return nil, err
	}
	c.prepareNames(p)
	return c.resolver.Resolve(c.ctx, p.Metric, p.Tags)
}

// parseNames parses and checks the names of a put.
func (c *conn) parseNames(p *write.Point, metric, tags []byte) (err error) {
	p.Metric = latin1(metric)
	c.words = splitWords(c.words[:0], tags)
	if p.Tags, err = parseTags(p.Tags, c.words); err != nil {
		return err
	}
	return c.cfg.Writer.Validate(p)
}

// parseTags parses words of the form "k=v" and skips empty words.
// Source: Tags.parse.
func parseTags(dst []write.Tag, words [][]byte) ([]write.Tag, error) {
	for _, w := range words {
		if len(w) == 0 {
			continue
		}
		k, v, ok := bytes.Cut(w, []byte("="))
		if !ok || len(k) == 0 || len(v) == 0 || bytes.IndexByte(v, '=') >= 0 {
			return dst, fmt.Errorf("invalid tag: %s", latin1(w))
		}

		t := write.Tag{K: latin1(k), V: latin1(v)}
		if i := slices.IndexFunc(dst, func(o write.Tag) bool { return o.K == t.K }); i >= 0 {
			// As in OpenTSDB, a tag may come twice with the same value.
			if dst[i].V != t.V {
				return dst, fmt.Errorf("duplicate tag: %s, tags=%s", latin1(w), write.TagText(dst))
			}
			continue
		}
		dst = append(dst, t)
	}
	return dst, nil
}

// putErrorText words the error of a put as OpenTSDB does.
func putErrorText(err error) string {
	var number numberError
	var unknown *uid.NoSuchNameError
	switch {
	case errors.As(err, &number):
		return "invalid value: " + err.Error()
	case errors.As(err, &unknown):
		return "unknown metric: " + err.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, write.ErrClosing):
		return "HBase error: the gateway is stopping, the point was not stored"
	case write.IsStorage(err):
		return "HBase error: " + err.Error()
	}
	return "illegal argument: " + err.Error()
}

// storageFailed writes the error lines of lines that were accepted but are not
// durable.
func (c *conn) storageFailed(command string, lines int, err error) {
	c.cfg.CountPuts(-lines, lines) // they were counted as accepted
	for range lines {
		c.refuse(command + ": HBase error: " + err.Error())
	}
	c.logRefused(command, reasonOf(err), err, lines, nil)
}
