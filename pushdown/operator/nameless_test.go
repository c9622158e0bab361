package operator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// summary executes a part with partial aggregation. It returns the columns and annotations of each group with what
// the listed members have in common, and the number of members that are listed.
func summary(t failer, d drawn, part *scanplan.Part, opts operator.Options) (groups []string, listed int) {
	t.Helper()
	op, err := operator.New(d.store, part, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	err = operatortest.Drain(context.Background(), operatortest.Checked(op, t.Errorf), func(r batch.Record) error {
		reader, err := batch.NewPartialReader(r)
		if err != nil {
			return err
		}
		var p batch.Partial
		for i := range reader.Len() {
			if err := reader.At(i, &p); err != nil {
				return err
			}
			common := encoding.NewCommonTags(d.plan.Schema)
			members := 0
			for k, span := range p.Spans {
				if p.Flags[k] != batch.EdgeAnnotationsOnly {
					common.Add(d.plan.Schema.SpanTags(span))
					members++
				}
			}
			annotated := ""
			for k, n := range p.Notes {
				annotated += fmt.Sprintf(" %x %s", p.Spans[p.NoteSpan[k]], n)
			}
			listed += members
			p.Spans, p.Flags, p.NoteSpan, p.Notes = nil, nil, nil, nil
			text := fmt.Sprint(describeGroup(&p), members > 0, common.Tags(), common.Aggregated(), annotated)
			groups = append(groups, text)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", &d.plan, err)
	}
	return groups, listed
}

// Where an answer names no series the members that are listed have the same tags in common as all, and all else is
// as with their names.
func TestPartialWithoutNames(t *testing.T) {
	all, fewer := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawSparse(t)
		if len(d.plan.Ranges) != 1 {
			return
		}
		part := &scanplan.Part{Plan: d.plan, Range: d.plan.Ranges[0], Mode: scanplan.PartialAggregation}
		opts := operator.Options{SideBySide: rapid.Bool().Draw(t, "side by side")}
		want, listed := summary(t, d, part, opts)
		all += listed
		part.Mode = scanplan.PartialWithoutNames
		got, listed := summary(t, d, part, opts)
		fewer += listed
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: with names -, without +: %s", &d.plan, diff)
		}
	})
	if fewer == 0 || fewer == all {
		t.Errorf("%d of %d members are listed, want some, and not all", fewer, all)
	}
}

// Names are left out of a part only if it is all of its plan: another part would need them.
func TestPartialWithoutNames_whole(t *testing.T) {
	_, part := sparsePart(2)
	part.Mode = scanplan.PartialWithoutNames
	if err := part.Validate(); err != nil {
		t.Error(err)
	}
	part.Range.Stop = part.Plan.HourKey(part.Range, base+3600)
	if err := part.Validate(); err == nil {
		t.Error("a part of an hour of three is valid")
	}
}

// A member without tags says nothing new, and still shows that its group has one.
func TestPartialWithoutNames_noTags(t *testing.T) {
	_, part := sparsePart(1)
	m := &operatortest.Store{}
	m.Load(part.Plan.Schema, metric, series(operatortest.Every(base, base+3600, 1800, identity)))
	part.Mode = scanplan.PartialWithoutNames
	if _, listed := summary(t, drawn{m, part.Plan}, part, operator.Options{}); listed != 1 {
		t.Errorf("%d members are listed, want 1", listed)
	}
}
