package dispatch

import (
	"sync"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
)

// How many bytes a part should read, where the bytes of the plan's hours are known.
const (
	// minPartBytes is too little to be worth a cut. A part costs about a millisecond
	// even next to its rows: a scan is opened, a ticket sent, and the names of its
	// series are shipped once more. Reading this many bytes takes about five.
	minPartBytes = 1 << 20
	// goodPartBytes is where that cost becomes small. Parts are smaller only if there
	// would not be one for each slot otherwise.
	goodPartBytes = 2 << 20
	// maxPartBytes is read within about a second. So a part whose server dies costs at most one
	// more second, the records that an attempt holds back until its end stay few, and no place
	// works on a long part when all others are done.
	maxPartBytes = 64 << 20
	// maxParts bounds the parts of a run. Beyond it parts become larger.
	maxParts = 1024
)

// Bounds of what sizes keeps, some 2 MB in all. A plan whose hours were evicted is
// cut by hours.
const (
	maxDays    = 1 << 14
	maxMetrics = 1 << 12
)

const hoursPerDay = 24

// maxPlanHours is the longest plan whose hours are considered one by one: 15 years. Longer ones
// usually begin before there was any data, and are cut into ranges of equally many hours.
const maxPlanHours = 1 << 17

func tooLong(plan *scanplan.Plan) bool {
	return (plan.To-plan.From)/encoding.RowSeconds > maxPlanHours
}

// sizes knows how many bytes the rows of each hour of a metric take, from the reports of executed
// parts. So it needs no extra request, and it counts the real work of parts: bytes as they come
// from the store, including cells in memstores and rows that are not yet compacted. A wrong or old
// size makes parts of uneven length, never another answer, because parts are disjoint key intervals
// wherever they are cut. Its methods may be called from many goroutines.
type sizes struct {
	mu       sync.Mutex
	days     map[dayKey]*day
	meanHour map[metricKey]float64 // bytes of an hour, averaged over the last run
}

type metricKey struct{ table, metric string }

type dayKey struct {
	metricKey
	day int64 // since 1970
}

// day holds the bytes of a day's hours, all salt buckets together.
type day struct {
	known uint32 // bit i: hour i is known
	bytes [hoursPerDay]float32
}

func newSizes() *sizes {
	return &sizes{days: map[dayKey]*day{}, meanHour: map[metricKey]float64{}}
}

// estimate returns the bytes of a plan's hours. An hour that is not known counts as the
// mean of the plan's known hours, or else of the metric's last run. It returns nil if
// nothing is known, or if the access path may read so few rows that the size of whole
// hours is meaningless.
func (s *sizes) estimate(plan *scanplan.Plan, path operator.Access) cumulativeBytes {
	if path.Nothing || path.Few || path.ProbedRanges > 0 || tooLong(plan) {
		return nil
	}

	hours := make([]float64, (plan.To-plan.From)/encoding.RowSeconds)
	s.mu.Lock()
	mean, ok := s.meanHour[metricKeyOf(plan)]
	known := s.fillKnownLocked(plan, hours)
	s.mu.Unlock()

	if known > 0 {
		mean, ok = sumKnown(hours)/float64(known), true
	}
	if !ok {
		return nil
	}
	for i := range hours {
		if hours[i] < 0 { // not known
			hours[i] = mean
		}
	}
	return accumulate(hours)
}

// skipsRows reports whether parts with this access path may leave out rows of their
// hours.
func skipsRows(path operator.Access) bool {
	return path.Nothing || len(path.Filter.Ranges) > 0 || path.ProbedRanges > 0
}

func metricKeyOf(plan *scanplan.Plan) metricKey { return metricKey{plan.Table, string(plan.Metric)} }

// fillKnownLocked sets the bytes of the plan's hours, -1 for those that are not
// known, and returns the number of the known ones.
func (s *sizes) fillKnownLocked(plan *scanplan.Plan, hours []float64) (known int) {
	for i := 0; i < len(hours); {
		key, first := dayAndHour(plan, i)
		d := s.days[key]
		for hour := first; hour < hoursPerDay && i < len(hours); hour++ {
			if hours[i] = -1; d != nil && d.known&(1<<hour) != 0 {
				hours[i] = float64(d.bytes[hour])
				known++
			}
			i++
		}
	}
	return known
}

// dayAndHour returns under which day, and as which hour of it, a plan's i-th hour is
// kept.
func dayAndHour(plan *scanplan.Plan, i int) (key dayKey, hour int) {
	n := plan.From/encoding.RowSeconds + int64(i)
	return dayKey{metricKeyOf(plan), n / hoursPerDay}, int(n % hoursPerDay)
}

// sumKnown adds up the hours that are not negative.
func sumKnown(hours []float64) (bytes float64) {
	for _, b := range hours {
		bytes += max(b, 0)
	}
	return bytes
}

// partRead is what an accepted part has read.
type partRead struct {
	Range scanplan.KeyRange
	operator.Stats
}

// learn updates the sizes of a plan's hours from what all parts of a run have read,
// of an access path that skips no rows. The bytes of a part are divided equally
// among its hours.
func (s *sizes) learn(plan *scanplan.Plan, parts []partRead) {
	if tooLong(plan) {
		return
	}

	var all operator.Stats
	for i := range parts {
		all.Add(parts[i].Stats)
	}
	// If the row filter rejected every row, the size of rows is unknown.
	if all.Rows == 0 && all.RowsScanned > 0 {
		return
	}

	bytesPerRow := float64(all.Bytes) / float64(max(all.Rows, 1))
	hours := make([]float64, (plan.To-plan.From)/encoding.RowSeconds)
	for i := range parts {
		p := &parts[i]
		// Rows that the store's filter rejected were read there too, and a query with
		// another filter may get them.
		rejected := float64(max(0, p.RowsScanned-p.Rows))
		bytes := float64(p.Bytes) + bytesPerRow*rejected
		from, to := hourRange(plan, p.Range)
		for h := from; h < to; h++ {
			hours[h] += bytes / float64(to-from)
		}
	}
	s.set(plan, hours)
}

// set stores the bytes of all of a plan's hours.
func (s *sizes) set(plan *scanplan.Plan, hours []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := 0; i < len(hours); {
		key, first := dayAndHour(plan, i)
		d := s.days[key]
		if d == nil {
			d = new(day)
			makeRoom(s.days, maxDays)
			s.days[key] = d
		}
		for hour := first; hour < hoursPerDay && i < len(hours); hour++ {
			d.known |= 1 << hour
			d.bytes[hour] = float32(hours[i])
			i++
		}
	}

	makeRoom(s.meanHour, maxMetrics)
	s.meanHour[metricKeyOf(plan)] = sumKnown(hours) / float64(len(hours))
}

// makeRoom evicts any entry from a map that is full.
func makeRoom[K comparable, V any](m map[K]V, limit int) {
	if len(m) < limit {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}
