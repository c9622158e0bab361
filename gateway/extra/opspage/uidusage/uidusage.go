// Package uidusage says how many UIDs are used, and when they run out. A UID that is given is never given again, so
// what counts is not how many names there are.
package uidusage

import (
	"context"
	"time"

	"downpour/gateway/uid"
)

// UIDs are those of one kind.
type UIDs struct {
	Kind   string `json:"kind"`   // metrics, tagk or tagv
	Used   int64  `json:"used"`   // by anybody
	Most   int64  `json:"most"`   // that there can be
	Grown  int64  `json:"grown"`  // given in the last time that Within says
	Within int64  `json:"within"` // that time, a day, in ms
	// RunOut is when all are used if as many are given each day, in ms since 1970; 0 if none was given, or
	// if that is more than a hundred years ahead.
	RunOut int64 `json:"runOut,omitempty"`
}

// Day is the time whose new UIDs are counted.
const Day = 24 * time.Hour

// Names is the dictionary of names, which gateway/uid implements.
type Names interface {
	Usage(ctx context.Context, since time.Time) ([]uid.Usage, error)
}

// Read returns the UIDs of each kind at a time.
func Read(ctx context.Context, names Names, now time.Time) ([]UIDs, error) {
	usage, err := names.Usage(ctx, now.Add(-Day))
	if err != nil {
		return nil, err
	}
	all := make([]UIDs, len(usage))
	for i, u := range usage {
		all[i] = UIDs{
			Kind:   u.Kind.String(),
			Used:   u.Used,
			Most:   u.Most,
			Grown:  u.New,
			Within: Day.Milliseconds(),
			RunOut: runOut(u, now),
		}
	}
	return all, nil
}

// runOut returns UIDs.RunOut.
func runOut(u uid.Usage, now time.Time) int64 {
	if u.New <= 0 {
		return 0
	}
	days := float64(max(0, u.Most-u.Used)) / float64(u.New)
	if days > 100*365 {
		return 0
	}
	return now.Add(time.Duration(days * float64(Day))).UnixMilli()
}

// Short reports whether so many are used that somebody should do something: four of five.
func (u UIDs) Short() bool { return u.Used > u.Most/5*4 }
