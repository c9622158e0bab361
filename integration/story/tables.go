package story

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// rows prints the cells of a table.
func (r *run) rows(s *Step) (out string, err error) {
	scan, err := r.place.Store().Scan(context.Background(), store.Scan{Table: r.place.Table(s.Args)})
	if err != nil {
		return "", err
	}
	defer scan.Close()
	for {
		rows, err := scan.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for _, row := range rows {
			for _, c := range row.Cells {
				out += fmt.Sprintf("%x %s:%x %x\n", row.Key, c.Family, c.Qualifier, c.Value)
			}
		}
	}
}

// cell is one as stories write it.
var cell = regexp.MustCompile(`^([0-9a-f]+) (\w+):([0-9a-f]*) ([0-9a-f]*)$`)

// cells writes cells.
func (r *run) cells(s *Step) (string, error) {
	var all []store.Mutation
	for _, line := range s.Input {
		m := cell.FindStringSubmatch(line)
		if m == nil {
			return "", fmt.Errorf("got %q, want ROW FAMILY:QUALIFIER VALUE in hex", line)
		}
		row, err := hex.DecodeString(m[1])
		qualifier, err2 := hex.DecodeString(m[3])
		value, err3 := hex.DecodeString(m[4])
		if err := errors.Join(err, err2, err3); err != nil {
			return "", fmt.Errorf("%w in %q", err, line)
		}
		all = append(all, store.Mutation{Row: row, Family: m[2], Qualifier: qualifier, Value: value})
	}
	return "", r.place.Store().Apply(context.Background(), r.place.Table(s.Args), all)
}

func (r *run) fault(s *Step) (string, error) {
	if s.Args == "none" {
		r.place.Fault()
		return "", nil
	}
	var rules []faultstore.Rule
	for _, text := range append([]string{s.Args}, s.Input...) {
		rule, err := faultRule(text)
		if err != nil {
			return "", err
		}
		rules = append(rules, rule)
	}
	r.place.Fault(rules...)
	return "", nil
}

// faultRule reads a rule, "apply tsdb nth=2 unavailable": the call, as package faultstore names it, the table, and then
// which call (nth=2; without it all), how late it is (delay=300ms), and with which error (unavailable; missing, of a
// table that is not there); "after" makes the call first.
func faultRule(text string) (rule faultstore.Rule, err error) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return rule, fmt.Errorf("got %q, want OP TABLE WORD…", text)
	}
	rule.Op, rule.Table = faultstore.Op(words[0]), words[1]
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "nth":
			rule.Nth, err = strconv.Atoi(value)
		case "delay":
			rule.Delay, err = time.ParseDuration(value)
		case "after":
			rule.After = true
		case "unavailable":
			rule.Err = store.ErrUnavailable
		case "missing":
			rule.Err = store.ErrNoTable
		default:
			err = fmt.Errorf("got %q, want nth=, delay=, after, unavailable or missing", word)
		}
		if err != nil {
			return rule, err
		}
	}
	return rule, nil
}
