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

// Bytes of a scan's first block, about, and of its largest ones unless the scan says. Each
// block has twice as many as the one before, so that a scan of few rows takes little memory.
const (
	firstBlock   = 4 << 10
	defaultBlock = 512 << 10
)

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

	bounds := &pebble.IterOptions{LowerBound: appendPrefix(nil, scan.Table, scan.Start)}
	if len(scan.Stop) > 0 {
		bounds.UpperBound = appendPrefix(nil, scan.Table, scan.Stop)
	} else {
		bounds.UpperBound = appendTableEnd(nil, scan.Table)
	}
	// A stop before the start makes an empty range.
	if bytes.Compare(bounds.LowerBound, bounds.UpperBound) > 0 {
		bounds.UpperBound = bounds.LowerBound
	}

	if f := newElementFilter(layoutOf(s.opts.Grouping), scan.Filter.Pattern); f != nil {
		// Pebble adds a filter of its own, for which there is room.
		bounds.PointKeyFilters = append(make([]pebble.BlockPropertyFilter, 0, 2), f)
	}

	it, err := s.db.NewIter(bounds)
	if err != nil {
		return nil, fmt.Errorf("scan of table %q: %w", scan.Table, unreadable(err))
	}
	return s.scanners.add(newScanner(ctx, it, scan)), nil
}

// scanner reads rows through one iterator. Its lock lets Close come at any time
// and from any goroutine, the store's own Close included.
type scanner struct {
	mu       sync.Mutex
	ctx      context.Context
	it       *pebble.Iterator // nil once closed
	ended    error            // what Next returns from now on; nil while the scan goes on
	scan     store.Scan
	columns  columns
	rowsLeft int              // rows still wanted; negative: all
	ranges   []store.KeyRange // of the filter, from the one that the iterator is in or before
	block    *block
	size     int    // bytes of the next block, about
	held     int    // size when block was got
	seek     []byte // buffer for the key to seek to
	placed   bool   // the iterator stands at a key, or at its end
	stats    store.ScanStats
	owner    *scanners
}

// newScanner prepares a scan; the iterator moves with the first Next.
func newScanner(ctx context.Context, it *pebble.Iterator, scan store.Scan) *scanner {
	c := &scanner{ctx: ctx, it: it, scan: scan, rowsLeft: -1, ranges: scan.Filter.Ranges}
	c.columns = columns{
		family:   scan.Family,
		ranges:   scan.Columns,
		since:    scan.Since,
		keysOnly: scan.KeysOnly,
		sealed:   scan.Sealed,
	}
	if scan.MaxRows > 0 {
		c.rowsLeft = scan.MaxRows
	}
	if c.scan.BlockBytes <= 0 {
		c.scan.BlockBytes = defaultBlock
	}
	c.size = min(firstBlock, c.scan.BlockBytes)
	c.held, c.block = c.size, blocksOf(c.size).Get().(*block)
	return c
}

// Next returns the next rows; see store.Scanner.
func (c *scanner) Next() ([]store.Row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}

	// The rows of the last block are not valid any more.
	if blocksOf(c.size) != blocksOf(c.held) {
		c.block.release(c.held)
		c.held, c.block = c.size, blocksOf(c.size).Get().(*block)
	}
	c.block.reset()
	if err := c.fillBlock(); err != nil {
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
	// A block stands for the call that it would be at a server.
	c.stats.RPCs++
	c.size = min(2*c.size, c.scan.BlockBytes)
	return c.block.rows, nil
}

// NextBytes implements store.Scanner. Arrays that grow are a quarter too large.
func (c *scanner) NextBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.size+viewsOf(c.size)) * 5 / 4
}

// fillBlock copies rows until the block is full or the scan is at its end.
func (c *scanner) fillBlock() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.placed {
		c.placed = true
		c.seekFirst()
	}

	// rowsLeft is 0 after the last wanted row or range, and negative without a limit.
	for seen := 1; c.rowsLeft != 0 && c.it.Valid() && !c.block.full(c.size); seen++ {
		if err := c.readRow(); err != nil {
			return err
		}
		// Rows that the filter rejects do not fill the block: a scan that finds
		// nothing must end with its context, too.
		if seen%checkEvery == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
	}
	// An iterator that has failed is not valid: the loop has ended as at the end.
	return unreadable(c.it.Error())
}

// seekFirst moves the iterator to the first key that can be wanted.
func (c *scanner) seekFirst() {
	if len(c.ranges) > 0 {
		c.seekTo(c.ranges[0].Start) // not before the iterator's lower bound
		return
	}
	c.it.First()
}

// seekTo moves the iterator forward to the first row that is not before row.
func (c *scanner) seekTo(row []byte) {
	c.seek = appendPrefix(c.seek[:0], c.scan.Table, row)
	c.it.SeekGE(c.seek)
}

// readRow copies the row under the iterator, if it is wanted, and leaves the
// iterator at the next row that may be.
func (c *scanner) readRow() error {
	key := c.it.Key()
	at := split(key)
	row := key[len(c.scan.Table)+1 : at-1] // between the 00 of the table and its own
	if !c.inRanges(row) {
		return nil
	}

	c.stats.RowsScanned++
	if p := c.scan.Filter.Pattern; p != nil && !p.Matches(row) {
		c.it.NextPrefix()
		return nil
	}
	return c.readCells(row, at)
}

// inRanges reports whether row is in a wanted range. If it is not, the iterator has
// moved to the next range, or the scan has ended.
func (c *scanner) inRanges(row []byte) bool {
	if len(c.scan.Filter.Ranges) == 0 {
		return true
	}

	// Ranges and rows both ascend: what lies before this row is done with.
	for len(c.ranges) > 0 && len(c.ranges[0].Stop) > 0 && bytes.Compare(c.ranges[0].Stop, row) <= 0 {
		c.ranges = c.ranges[1:]
	}
	if len(c.ranges) == 0 {
		c.rowsLeft = 0
		return false
	}
	if bytes.Compare(row, c.ranges[0].Start) < 0 {
		c.seekTo(c.ranges[0].Start)
		return false
	}
	return true
}

// readCells copies the wanted cells of a row, whose keys have a prefix of at
// bytes, and moves the iterator behind the row.
func (c *scanner) readCells(row []byte, at int) error {
	c.block.openRow(row)
	// row is a view of the iterator's key, which dies with the first move.
	row = c.block.rows[len(c.block.rows)-1].Key
	for {
		added, err := c.columns.appendCell(c.it, at, c.block)
		if err != nil {
			return err
		}
		if added && c.columns.keysOnly {
			c.it.NextPrefix() // one cell says that the row exists
			break
		}
		if !c.it.Next() || !c.inRow(row, at) {
			break
		}
	}

	if c.block.closeRow() {
		c.rowsLeft-- // from below 0, which means that all rows are wanted, it never gets to 0
	}
	return nil
}

// inRow reports whether the iterator still stands in row, whose keys have a prefix
// of at bytes.
func (c *scanner) inRow(row []byte, at int) bool {
	key := c.it.Key()
	return split(key) == at && bytes.Equal(key[len(c.scan.Table)+1:at-1], row)
}

// Stats returns what the scan has cost so far.
func (c *scanner) Stats() store.ScanStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the scan.
func (c *scanner) Close() error {
	c.end(errors.New("scanner is closed"))
	c.owner.remove(c)
	return nil
}

// end releases the iterator. Next returns reason from now on, or again what has
// ended the scan before.
func (c *scanner) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.it == nil {
		return
	}

	_ = c.it.Close() // its error is that of a read: Next has returned it, or nobody has wanted the row
	c.block.release(c.held)
	c.it, c.block = nil, nil
	if c.ended == nil {
		c.ended = reason
	}
}

// scanners are the open scanners of a store: closing the store ends them.
type scanners struct {
	mu   sync.Mutex
	open map[*scanner]struct{}
}

func (s *scanners) add(c *scanner) *scanner {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*scanner]struct{}{}
	}
	s.open[c] = struct{}{}
	c.owner = s
	return c
}

func (s *scanners) remove(c *scanner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// end ends all open scans with store.ErrClosed.
func (s *scanners) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.end(store.ErrClosed)
	}
}
