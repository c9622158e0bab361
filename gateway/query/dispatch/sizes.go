package dispatch

import (
	"sync"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
)

// How many bytes a part should read where it is known how many there are.
const (
	// leastPart is what is not worth cutting: a part costs about a
	// millisecond beside its rows, for a scan to open, a ticket, and the names
	// of its series once more; so many bytes take some five.
	leastPart = 1 << 20
	// goodPart is where that cost is small. Parts are smaller only where there
	// would not be one for each slot.
	goodPart = 2 << 20
	// mostPart is read within about a second, so that a part whose server dies
	// costs no more than that again, what an attempt holds back until its end
	// stays small, and no place is left with a long part when all others are
	// done.
	mostPart = 64 << 20
	// mostParts bounds the parts that a run keeps account of; beyond it parts
	// grow.
	mostParts = 1024
)

// Bounds of what is remembered: some 2 MB. What is forgotten is cut by hours.
const (
	mostDays    = 1 << 14
	mostMetrics = 1 << 12
)

const dayHours = 24

// mostHours is how long a plan may be whose hours are looked at one by one: 15
// years. Longer ones mostly reach back to before there was anything, and are cut
// into equal stretches of time.
const mostHours = 1 << 17

func tooLong(plan *scanplan.Plan) bool { return (plan.To-plan.From)/encoding.RowSeconds > mostHours }

// sizes remembers how many bytes the rows of each hour of a metric take, of what
// parts have reported. It costs no question to anybody and counts what parts
// spend their time on: bytes as they come from the store, cells in memory and
// rows that are not compacted yet included. A wrong or old size makes parts of
// uneven length, never another answer: parts are disjoint intervals of keys
// wherever they are cut. It is for many goroutines.
type sizes struct {
	mu      sync.Mutex
	days    map[dayKey]*day
	typical map[metricKey]float64 // bytes of an hour, of the last run
}

type metricKey struct{ table, metric string }

type dayKey struct {
	metricKey
	day int64
}

// day holds the bytes of a day's hours, all salt buckets together.
type day struct {
	known uint32 // bits of hours
	bytes [dayHours]float32
}

func newSizes() *sizes {
	return &sizes{days: map[dayKey]*day{}, typical: map[metricKey]float64{}}
}

// of estimates the bytes of the hours of a plan whose rows are selected so: those
// that are known, the mean of the known ones for the others. It returns nil where
// nothing is known, or where few rows are looked at and their hours' sizes say
// nothing.
func (s *sizes) of(plan *scanplan.Plan, rows operator.Access) weights {
	if rows.Nothing || rows.Few || tooLong(plan) {
		return nil
	}
	hours := make([]float64, (plan.To-plan.From)/encoding.RowSeconds)
	s.mu.Lock()
	mean, ok := s.typical[keyOf(plan)]
	known := s.look(plan, hours)
	s.mu.Unlock()
	if known > 0 {
		mean, ok = sum(hours)/float64(known), true
	}
	if !ok {
		return nil
	}
	for i := range hours {
		if hours[i] < 0 {
			hours[i] = mean
		}
	}
	return weigh(hours)
}

// seeks tells whether the parts of a plan may leave rows of their hours out.
func seeks(a operator.Access) bool { return a.Nothing || len(a.Filter.Ranges) > 0 || a.Parts > 0 }

func keyOf(plan *scanplan.Plan) metricKey { return metricKey{plan.Table, string(plan.Metric)} }

// look fills in the bytes of the hours that are known, -1 of the others, and
// returns the number of the known ones.
func (s *sizes) look(plan *scanplan.Plan, hours []float64) (known int) {
	for i := 0; i < len(hours); {
		key, first := placeOf(plan, i)
		d := s.days[key]
		for hour := first; hour < dayHours && i < len(hours); hour++ {
			if hours[i] = -1; d != nil && d.known&(1<<hour) != 0 {
				hours[i] = float64(d.bytes[hour])
				known++
			}
			i++
		}
	}
	return known
}

// placeOf is where a plan's i-th hour is remembered.
func placeOf(plan *scanplan.Plan, i int) (key dayKey, hour int) {
	n := plan.From/encoding.RowSeconds + int64(i)
	return dayKey{keyOf(plan), n / dayHours}, int(n % dayHours)
}

// sum leaves out what is not known.
func sum(hours []float64) (bytes float64) {
	for _, b := range hours {
		bytes += max(b, 0)
	}
	return bytes
}

// read is what an accepted part has read.
type read struct {
	Range scanplan.KeyRange
	operator.Stats
}

// learn takes over what all parts of a run have read, of a plan that does not
// seek: the bytes of a part count for its hours alike. Rows that a filter kept back
// at the store count as much as those that came.
func (s *sizes) learn(plan *scanplan.Plan, parts []read) {
	if tooLong(plan) {
		return
	}
	var all operator.Stats
	for i := range parts {
		all.Add(parts[i].Stats)
	}
	if all.Rows == 0 && all.RowsScanned > 0 {
		return
	}
	perRow := float64(all.Bytes) / float64(max(all.Rows, 1))
	hours := make([]float64, (plan.To-plan.From)/encoding.RowSeconds)
	for i := range parts {
		p := &parts[i]
		bytes := float64(p.Bytes) + perRow*float64(max(0, p.RowsScanned-p.Rows))
		from, to := hoursOf(plan, p.Range)
		for h := from; h < to; h++ {
			hours[h] += bytes / float64(to-from)
		}
	}
	s.keep(plan, hours)
}

func (s *sizes) keep(plan *scanplan.Plan, hours []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(hours); {
		key, first := placeOf(plan, i)
		d := s.days[key]
		if d == nil {
			d = new(day)
			forgetOne(s.days, mostDays)
			s.days[key] = d
		}
		for hour := first; hour < dayHours && i < len(hours); hour++ {
			d.known |= 1 << hour
			d.bytes[hour] = float32(hours[i])
			i++
		}
	}
	forgetOne(s.typical, mostMetrics)
	s.typical[keyOf(plan)] = sum(hours) / float64(len(hours))
}

// forgetOne makes room for an entry: any other goes.
func forgetOne[K comparable, V any](m map[K]V, most int) {
	if len(m) < most {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}
