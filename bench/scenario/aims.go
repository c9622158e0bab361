package scenario

import (
	"fmt"

	"downpour/bench/report"
)

// aim is what is aimed at in a row of the table.
type aim struct {
	row  string
	kind kind
	want float64
	than string // what ours is compared with: a side, a floor, or the name of an earlier figure
	of   string // ours; empty is the last side that is asked
	// what and against replace the texts of the question and of the side.
	what, against string
	more          string // behind what
}

// kind is how ours and theirs are compared.
type kind int

const (
	fasterThan kind = iota // ours is at least want times as fast
	withinOf               // ours takes at most want times as long
	inMS                   // ours takes at most want ms
	rateOf                 // our rate of work is at least want times theirs
	rateAlone              // our rate of work is at least want
)

// faster is the aim that ours is at least want times as fast as a side.
func faster(row string, want float64, than string) aim {
	return aim{row: row, kind: fasterThan, want: want, than: than}
}

// within is the aim that ours takes at most want times as long as a side.
func within(row string, want float64, than string) aim {
	return aim{row: row, kind: withinOf, want: want, than: than}
}

// inTime is the aim that ours takes at most so many ms.
func inTime(row string, want float64) aim { return aim{row: row, kind: inMS, want: want} }

// rate is the aim that our rate of work is at least want times that of a side.
func rate(row string, want float64, than string) aim {
	return aim{row: row, kind: rateOf, want: want, than: than}
}

// rated is the aim that our rate of work is at least want.
func rated(row string, want float64) aim { return aim{row: row, kind: rateAlone, want: want} }

// saying is the aim with another text in reports.
func (a aim) saying(what string) aim { a.what = what; return a }

// adding is the aim with something behind the text of its step.
func (a aim) adding(more string) aim { a.more = more; return a }

// by is the aim of another side than the last one.
func (a aim) by(side string) aim { a.of = side; return a }

// beside is the aim with another name of what it is compared with.
func (a aim) beside(against string) aim { a.against = against; return a }

// judge adds what became of an aim to the report, if its row is wanted.
func (s *stage) judge(a aim, what string, ours, theirs report.Figure) {
	if !s.group.has(a.row) {
		return
	}
	got := report.Aim{
		Row: a.row, Scale: s.group.scale, What: what + a.more, Against: a.against, Want: a.want, Figure: ours.Name,
		AtLeast: a.kind != withinOf && a.kind != inMS,
	}
	if a.what != "" {
		got.What = s.text(a.what)
	}
	if got.Against == "" {
		got.Against = inWords[a.than]
	}

	switch a.kind {
	case inMS:
		got.Unit, got.Got, got.Against = "ms", report.Single(ours.Median().Seconds()*1000), ""
	case rateAlone:
		got.Unit, got.Got, got.Against = ours.Unit+"/s", report.Single(ours.Rate()), ""
	case withinOf:
		got.Got, got.Ours, got.Theirs = ours.Over(theirs), report.MS(ours.Median()), report.MS(theirs.Median())
	case fasterThan:
		got.Got, got.Ours, got.Theirs = theirs.Over(ours), report.MS(ours.Median()), report.MS(theirs.Median())
	case rateOf:
		got.Got, got.Ours, got.Theirs = theirs.Over(ours), perSecond(ours), perSecond(theirs)
	}
	alone := a.kind == inMS || a.kind == rateAlone
	if len(ours.Runs) == 0 || !alone && len(theirs.Runs) == 0 {
		got.Missing = fmt.Sprintf("got the figures %q and %q, want both with runs", ours.Name, theirs.Name)
	}
	s.cfg.add(got)
}

// perSecond is the rate of a figure in words.
func perSecond(f report.Figure) string {
	return report.Thousands(f.Rate()) + " " + f.Unit + "/s"
}

// amounts is the aim that an amount of ours is at most want times theirs, with both in words.
func (s *stage) amounts(row, what, against string, want, ours, theirs float64, words func(float64) string) report.Aim {
	return report.Aim{
		Row: row, Scale: s.group.scale, What: what, Against: against, Want: want,
		Got: report.Single(ours / theirs), Ours: words(ours), Theirs: words(theirs),
	}
}
