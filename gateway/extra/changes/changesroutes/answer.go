package changesroutes

import (
	"math"

	"downpour/gateway/extra/changes"
)

// answer is what /api/changes answers. Times are in ms since 1970; stretches end before their end.
type answer struct {
	Before stretch `json:"before"`
	After  stretch `json:"after"`
	Step   int64   `json:"step"` // ms of a bucket

	Changed  list `json:"changed"`
	Appeared list `json:"appeared"`
	Vanished list `json:"vanished"`

	Looked looked `json:"looked"`
	// NotLookedAt is there if the answer is not of all metrics.
	NotLookedAt *left `json:"notLookedAt,omitempty"`
}

type stretch struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// list has the first series of a kind, and how many there are.
type list struct {
	All    int      `json:"all"`
	Series []series `json:"series"`
}

type series struct {
	Metric string            `json:"metric"`
	Tags   map[string]string `json:"tags"`
	Before *float64          `json:"before,omitempty"`
	After  *float64          `json:"after,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	Rate   bool              `json:"rate,omitempty"`
}

// looked is what the answer is of.
type looked struct {
	Metrics int `json:"metrics"`
	Series  int `json:"series"`
	Sparse  int `json:"sparse"` // series with too few points to be compared
}

// left are metrics that were not looked at.
type left struct {
	Metrics int      `json:"metrics"`
	Listed  []missed `json:"listed"` // the first of them
	// More says that there are so many metrics that the last are not even tried.
	More int `json:"more,omitempty"`
}

type missed struct {
	Metric string `json:"metric"`
	Why    string `json:"why"`
}

func (l *look) answer() answer {
	a := answer{
		Before:   stretch{l.From, l.Turn},
		After:    stretch{l.Turn, l.End},
		Step:     l.Step,
		Changed:  l.list(changes.Changed),
		Appeared: l.list(changes.Appeared),
		Vanished: l.list(changes.Vanished),
		Looked:   looked{l.looked, l.ranking.Looked, l.ranking.Sparse},
	}
	if l.left.Metrics > 0 {
		a.NotLookedAt = &l.left
	}
	return a
}

func (l *look) list(k changes.Kind) list {
	most, all := l.ranking.List(k)
	out := list{All: all, Series: []series{}}
	for _, s := range most {
		one := series{
			Metric: s.Metric,
			Tags:   map[string]string{},
			Before: known(s.Before),
			After:  known(s.After),
			Rate:   s.Rate,
		}
		for _, t := range s.Tags {
			one.Tags[t[0]] = t[1]
		}
		if k == changes.Changed {
			one.Score = &s.Score
		}
		out.Series = append(out.Series, one)
	}
	return out
}

// known returns nil for what is no number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
