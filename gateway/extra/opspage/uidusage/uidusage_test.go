package uidusage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/opspage/uidusage"
	"downpour/gateway/uid"
)

// names has these UIDs for who asks for those of the day before noon.
type names []uid.Usage

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func (n names) Usage(_ context.Context, since time.Time) ([]uid.Usage, error) {
	if !since.Equal(noon.Add(-24 * time.Hour)) {
		return nil, errors.New("since " + since.String())
	}
	return n, nil
}

// UIDs run out when as many as on the last day have used them up, unless that is a century ahead.
func TestRead(t *testing.T) {
	got, err := uidusage.Read(t.Context(), names{
		{Kind: encoding.UIDMetric, Used: 9, Most: 99, New: 0},
		{Kind: encoding.UIDTagK, Used: 80, Most: 100, New: 10},
		{Kind: encoding.UIDTagV, Used: 81, Most: 100, New: 38},
		{Kind: encoding.UIDMetric, Used: 0, Most: 36_501, New: 1},
		{Kind: encoding.UIDMetric, Used: 100, Most: 100, New: 1},
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	const day = 86_400_000
	want := []uidusage.UIDs{
		{Kind: "metrics", Used: 9, Most: 99, Within: day},
		{Kind: "tagk", Used: 80, Most: 100, Grown: 10, Within: day, RunOut: noon.UnixMilli() + 2*day},
		{Kind: "tagv", Used: 81, Most: 100, Grown: 38, Within: day, RunOut: noon.UnixMilli() + day/2},
		{Kind: "metrics", Most: 36_501, Grown: 1, Within: day},
		{Kind: "metrics", Used: 100, Most: 100, Grown: 1, Within: day, RunOut: noon.UnixMilli()},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for i, short := range []bool{false, false, true, false, true} {
		if got[i].Short() != short {
			t.Errorf("%+v: short %t", got[i], !short)
		}
	}
	if _, err := uidusage.Read(t.Context(), names{}, noon.Add(1)); err == nil {
		t.Error("an error is lost")
	}
}
