package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// run is a line of the record: one run of a target of soak, or of make test as a whole.
//
//	chaos short 4a353ca0 2026-11-28 1287364 passed 6.1
//	life long 4a353ca0 2026-11-28 99 failed 41.0 --- FAIL: TestLife (2460.11s)
//	simulation long 4a353ca0 2026-11-28 12 passed 70.2 worlds=400 faults=81234
type run struct {
	target, form string
	commit       string // short; a + behind it means a tree with changes that are not committed
	day          time.Time
	seed         uint64
	passed       bool
	minutes      float64
	note         string // the first line of a failure, or what the run counted
}

const day = "2006-01-02"

func (r run) String() string {
	outcome := "failed"
	if r.passed {
		outcome = "passed"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %d %s %.1f %s",
		r.target, r.form, r.commit, r.day.Format(day), r.seed, outcome, r.minutes, r.note))
}

// parseRecord reads the record. Empty lines and those that begin with # are comments; an error names the line.
func parseRecord(text io.Reader) (runs []run, err error) {
	lines := bufio.NewScanner(text)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		r, err := parseRun(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}

func parseRun(line string) (r run, err error) {
	fields := strings.SplitN(line, " ", 8)
	if len(fields) < 7 {
		return run{}, fmt.Errorf("got %d fields, want TARGET FORM COMMIT DAY SEED passed|failed MINUTES and a note",
			len(fields))
	}
	r.target, r.form, r.commit = fields[0], fields[1], fields[2]
	if r.day, err = time.Parse(day, fields[3]); err != nil {
		return run{}, fmt.Errorf("day: got %q, want one like %s", fields[3], day)
	}
	if r.seed, err = strconv.ParseUint(fields[4], 10, 64); err != nil {
		return run{}, fmt.Errorf("seed: got %q, want a number", fields[4])
	}
	if r.passed = fields[5] == "passed"; !r.passed && fields[5] != "failed" {
		return run{}, fmt.Errorf("outcome: got %q, want passed or failed", fields[5])
	}
	if r.minutes, err = strconv.ParseFloat(fields[6], 64); err != nil {
		return run{}, fmt.Errorf("minutes: got %q, want a number", fields[6])
	}
	if len(fields) == 8 {
		r.note = fields[7]
	}
	return r, nil
}

// ages prints for each target how old its last passed run is, in each form, and what has failed since.
func ages(out io.Writer, runs []run, now time.Time) {
	for _, t := range targets {
		var parts []string
		for _, form := range t.forms() {
			parts = append(parts, form+" "+age(runs, t.name, form, now))
		}
		fmt.Fprintf(out, "%-16s %s%s\n", t.name, strings.Join(parts, "; "), counted(runs, t.name))
	}
}

// counted adds up what the passed runs of a target have counted.
func counted(runs []run, target string) (text string) {
	var names []string
	sums := map[string]float64{}
	for _, r := range runs {
		if r.target != target || !r.passed {
			continue
		}
		for _, field := range strings.Fields(r.note) {
			name, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				continue
			}
			if _, known := sums[name]; !known {
				names = append(names, name)
			}
			sums[name] += n
		}
	}
	for _, name := range names {
		text += fmt.Sprintf(" %s=%.0f", name, sums[name])
	}
	if text != "" {
		return "; in all" + text
	}
	return ""
}

// age describes the last passed run of a target, and the last failure after it.
func age(runs []run, target, form string, now time.Time) string {
	text, open := "never passed", ""
	for _, r := range runs {
		if r.target != target || r.form != form {
			continue
		}
		if r.passed {
			text, open = fmt.Sprintf("passed %d days ago at %s", int(now.Sub(r.day).Hours()/24), r.commit), ""
		} else {
			open = fmt.Sprintf(", OPEN: failed at %s with TEST_SEED=%d: %s", r.commit, r.seed, r.note)
		}
	}
	return text + open
}
