package meta

import (
	"hash/maphash"

	"downpour/encoding"
)

// collected is what waits to be written. A million series may wait. They are found by a table of numbers: a map
// from TSUIDs would double their memory.
type collected struct {
	series []seen
	// slots has the number of each series, from 1 on, in the first free slot from the hash of its TSUID on,
	// and 0 in the others. Its length is a power of two; at most three quarters are in use.
	slots []uint32
	uids  []givenUID
	bytes int // memory of all of it
}

// seen is a series and the points that it got since the last write.
type seen struct {
	tsuid  string
	points int64
	// again is set if an earlier write failed. It may have been done in part.
	again bool
}

// seenBytes is about what a series takes on top of its TSUID, slots and room for growth included; givenBytes
// is what a UID takes.
const seenBytes, givenBytes = 52, 64

// bytes is about the memory that it takes.
func (s seen) bytes() int { return seenBytes + len(s.tsuid) }

type givenUID struct {
	kind    encoding.UIDKind
	uid     encoding.UID
	created int64 // seconds
}

// find returns the series of a TSUID, nil if it does not wait. It is valid until the next add.
func (c *collected) find(tsuid []byte) *seen {
	if len(c.slots) == 0 {
		return nil
	}
	for at := c.firstSlot(maphash.Bytes(seed, tsuid)); c.slots[at] != 0; at = c.nextSlot(at) {
		if s := &c.series[c.slots[at]-1]; s.tsuid == string(tsuid) {
			return s
		}
	}
	return nil
}

// add adds a series that find does not find.
func (c *collected) add(s seen) {
	c.series = append(c.series, s)
	if len(c.series) > len(c.slots)*3/4 {
		c.slots = make([]uint32, max(16, 2*len(c.slots)))
		for i, s := range c.series {
			c.enter(s.tsuid, i)
		}
		return
	}
	c.enter(s.tsuid, len(c.series)-1)
}

// enter puts the index of a series into the slot of its TSUID.
func (c *collected) enter(tsuid string, index int) {
	at := c.firstSlot(maphash.String(seed, tsuid))
	for c.slots[at] != 0 {
		at = c.nextSlot(at)
	}
	c.slots[at] = uint32(index + 1)
}

func (c *collected) firstSlot(hash uint64) int { return int(hash & uint64(len(c.slots)-1)) }
func (c *collected) nextSlot(at int) int       { return (at + 1) & (len(c.slots) - 1) }

// seed is of the hashes of TSUIDs. It is the process's, as they never leave it.
var seed = maphash.MakeSeed()
