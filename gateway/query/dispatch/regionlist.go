package dispatch

import (
	"bytes"
	"sort"
	"sync"
	"time"

	"downpour/pushdown/store"
)

// Listing the regions of a table is a scan of HBase's meta table, which costs more than the rest of a small query, and
// more with each region. So queries go by a list of the last minute, and where it is older than a few seconds, a new
// one is made next to them. A region that has moved since is only read from farther away: parts are key intervals,
// independent of regions; and a part that fails has the list forgotten.
const (
	regionsFor    = 5 * time.Second  // from when on a new list is made
	regionsAtMost = time.Minute      // for how long an old one will do
	listWithin    = 10 * time.Second // how long making one next to queries takes at most
)

// maxRegionTables bounds the tables whose regions are kept: raw data and rollups.
const maxRegionTables = 64

// regionLists are the regions of tables as they were listed lately, shared by all runs. The
// zero value is ready.
type regionLists struct {
	mu     sync.Mutex
	tables map[string]regionList
}

// regionList are all regions of a table at a time.
type regionList struct {
	regions []store.Region // never written to
	at      time.Time
	renewed bool // somebody makes a new one
}

// get returns all regions of a table, false if they are not known at the time now. renew is set if the caller is to
// make a new list, and to call set or failed.
func (l *regionLists) get(table string, now time.Time) (regions []store.Region, renew, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	e := l.tables[table]
	age := now.Sub(e.at) // of a table that is not known, longer than any
	if age >= regionsAtMost {
		return nil, false, false
	}
	if age >= regionsFor && !e.renewed {
		e.renewed, renew = true, true
		l.tables[table] = e
	}
	return e.regions, renew, true
}

// failed says that a new list could not be made: the next query tries that again.
func (l *regionLists) failed(table string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if e, ok := l.tables[table]; ok {
		e.renewed = false
		l.tables[table] = e
	}
}

// set keeps all regions of a table, which were requested at the time at.
func (l *regionLists) set(table string, regions []store.Region, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.tables == nil {
		l.tables = map[string]regionList{}
	}
	makeRoom(l.tables, maxRegionTables)
	l.tables[table] = regionList{regions: regions, at: at}
}

// forget has the regions of a table listed again: a part of it has failed.
func (l *regionLists) forget(table string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.tables, table)
}

// overlapping returns the regions that overlap [start, stop), of those of a table in the order of their keys.
func overlapping(regions []store.Region, start, stop []byte) []store.Region {
	if len(stop) > 0 {
		behind := func(i int) bool { return bytes.Compare(regions[i].Start, stop) >= 0 }
		regions = regions[:sort.Search(len(regions), behind)]
	}
	reaches := func(i int) bool { return len(regions[i].Stop) == 0 || bytes.Compare(regions[i].Stop, start) > 0 }
	return regions[sort.Search(len(regions), reaches):]
}
