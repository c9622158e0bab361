package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// defaultBlock is about how many bytes a block holds unless the scan says.
const defaultBlock = 512 << 10

// Scan opens a scanner. It sees the table as it is now, whatever is written
// while it runs, and returns exactly the rows that the filter admits.
func (s *Store) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(scan.Table, scan.Family); err != nil {
		return nil, err
	}
	bounds := &pebble.IterOptions{LowerBound: appendHead(nil, scan.Table, scan.Start)}
	if len(scan.Stop) > 0 {
		bounds.UpperBound = appendHead(nil, scan.Table, scan.Stop)
	} else {
		bounds.UpperBound = appendTableEnd(nil, scan.Table)
	}
	if bytes.Compare(bounds.LowerBound, bounds.UpperBound) > 0 {
		bounds.UpperBound = bounds.LowerBound
	}
	it, err := s.db.NewIter(bounds)
	if err != nil {
		return nil, fmt.Errorf("scan of table %q: %w", scan.Table, unreadable(err))
	}
	return s.scanners.add(newScanner(ctx, it, scan)), nil
}

// scanner walks one iterator. Its lock lets Close come at any time, from
// anywhere, the store's own Close included.
type scanner struct {
	mu     sync.Mutex
	ctx    context.Context
	it     *pebble.Iterator
	ended  error // what Next answers from now on
	scan   store.Scan
	want   columns
	left   int // rows still wanted; negative: all
	ranges []store.KeyRange
	block  *block
	seek   []byte
	placed bool // the iterator stands somewhere
	stats  store.ScanStats
	of     *scanners
}

// newScanner prepares a scan; the iterator moves with the first Next.
func newScanner(ctx context.Context, it *pebble.Iterator, scan store.Scan) *scanner {
	c := &scanner{ctx: ctx, it: it, scan: scan, left: -1, ranges: scan.Filter.Ranges, block: newBlock()}
	c.want = columns{family: scan.Family, ranges: scan.Columns, since: scan.Since, keysOnly: scan.KeysOnly}
	if scan.MaxRows > 0 {
		c.left = scan.MaxRows
	}
	if c.scan.BlockBytes <= 0 {
		c.scan.BlockBytes = defaultBlock
	}
	return c
}

// Next returns the next rows.
func (c *scanner) Next() ([]store.Row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	c.block.reset()
	if err := c.fill(); err != nil {
		c.ended = fmt.Errorf("scan of table %q: %w", c.scan.Table, err)
		return nil, c.ended
	}
	if len(c.block.rows) == 0 {
		c.ended = io.EOF
		return nil, io.EOF
	}
	c.stats.Rows += int64(len(c.block.rows))
	c.stats.Cells += int64(len(c.block.cells))
	c.stats.Bytes += int64(len(c.block.bytes))
	c.stats.RPCs++
	return c.block.rows, nil
}

// fill copies rows until the block is full or the scan at its end.
func (c *scanner) fill() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.placed {
		c.placed = true
		c.first()
	}
	for looked := 1; c.left != 0 && c.it.Valid() && len(c.block.bytes) < c.scan.BlockBytes; looked++ {
		if err := c.row(); err != nil {
			return err
		}
		if looked%checkEvery == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
	}
	return unreadable(c.it.Error())
}

// first moves the iterator to the first key that can be wanted.
func (c *scanner) first() {
	if len(c.ranges) > 0 && bytes.Compare(c.ranges[0].Start, c.scan.Start) > 0 {
		c.seekTo(c.ranges[0].Start)
		return
	}
	c.it.First()
}

// seekTo moves the iterator forward to the first row that is not before row.
func (c *scanner) seekTo(row []byte) {
	c.seek = appendHead(c.seek[:0], c.scan.Table, row)
	c.it.SeekGE(c.seek)
}

// row takes the row under the iterator, or passes it, and leaves the iterator
// at the next one.
func (c *scanner) row() error {
	key := c.it.Key()
	at := split(key)
	row := key[len(c.scan.Table)+1 : at-1]
	if !c.inRange(row) {
		return nil
	}
	c.stats.RowsScanned++
	if p := c.scan.Filter.Pattern; p != nil && !p.Matches(row) {
		c.it.NextPrefix()
		return nil
	}
	return c.cells(row, at)
}

// inRange tells whether row is in a wanted range; if not, it moves the
// iterator to the next range, or ends the scan.
func (c *scanner) inRange(row []byte) bool {
	if len(c.scan.Filter.Ranges) == 0 {
		return true
	}
	for len(c.ranges) > 0 && len(c.ranges[0].Stop) > 0 && bytes.Compare(c.ranges[0].Stop, row) <= 0 {
		c.ranges = c.ranges[1:]
	}
	if len(c.ranges) == 0 {
		c.left = 0
		return false
	}
	if bytes.Compare(row, c.ranges[0].Start) < 0 {
		c.seekTo(c.ranges[0].Start)
		return false
	}
	return true
}

// cells copies the wanted cells of a row.
func (c *scanner) cells(row []byte, at int) error {
	c.block.openRow(row)
	head := c.block.rows[len(c.block.rows)-1].Key
	for {
		took, err := c.want.appendCells(c.it, at, c.block)
		if err != nil {
			return err
		}
		if took && c.want.keysOnly {
			c.it.NextPrefix()
			break
		}
		if !c.it.Next() || !c.sameRow(head, at) {
			break
		}
	}
	if c.block.closeRow() && c.left > 0 {
		c.left--
	}
	return nil
}

// sameRow tells whether the iterator still stands in row, whose heads have
// length at.
func (c *scanner) sameRow(row []byte, at int) bool {
	key := c.it.Key()
	return split(key) == at && bytes.Equal(key[len(c.scan.Table)+1:at-1], row)
}

// Stats tells what the scan has cost.
func (c *scanner) Stats() store.ScanStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the scan.
func (c *scanner) Close() error {
	err := c.end(errors.New("scanner is closed"))
	c.of.remove(c)
	return err
}

// end releases the iterator; Next answers reason from now on, or what it
// answered before.
func (c *scanner) end(reason error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.it == nil {
		return nil
	}
	failed := c.ended != nil && c.ended != io.EOF
	err := c.it.Close()
	c.block.release()
	c.it, c.block = nil, nil
	if c.ended == nil {
		c.ended = reason
	}
	if failed {
		return nil // an iterator repeats its error, which Next has told
	}
	return err
}

// scanners are those that are open: Close of the store ends them.
type scanners struct {
	mu   sync.Mutex
	open map[*scanner]struct{}
}

// add registers a scanner.
func (s *scanners) add(c *scanner) *scanner {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*scanner]struct{}{}
	}
	s.open[c] = struct{}{}
	c.of = s
	return c
}

// remove forgets a scanner.
func (s *scanners) remove(c *scanner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// end closes all.
func (s *scanners) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for c := range s.open {
		errs = append(errs, c.end(store.ErrClosed))
	}
	s.open = nil
	return errors.Join(errs...)
}
