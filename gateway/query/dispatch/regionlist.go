package dispatch

import (
	"bytes"
	"sort"
	"sync"
	"time"

	"downpour/pushdown/store"
)

// regionsFor is how long the regions of a table count as known. Listing them is a scan of
// HBase's meta table, which costs more than the rest of a small query. A region that has
// moved since is only read from farther away: parts are key intervals, independent of
// regions.
const regionsFor = 5 * time.Second

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
}

// get returns all regions of a table, false if they are not known at the time now.
func (l *regionLists) get(table string, now time.Time) ([]store.Region, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	e, ok := l.tables[table]
	if !ok || now.Sub(e.at) >= regionsFor {
		return nil, false
	}
	return e.regions, true
}

// set keeps all regions of a table, which were requested at the time at.
func (l *regionLists) set(table string, regions []store.Region, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.tables == nil {
		l.tables = map[string]regionList{}
	}
	makeRoom(l.tables, maxRegionTables)
	l.tables[table] = regionList{regions, at}
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
