package regions

import (
	"errors"
	"testing"

	"downpour/pushdown/store"
)

//fault:hole-in-meta-ignored => if i < 0 {
func TestCheckChain(t *testing.T) {
	region := func(start, stop string) *Location {
		return &Location{Start: []byte(start), Stop: []byte(stop), Addr: "s:1"}
	}

	if err := checkChain("t", []*Location{region("b", ""), region("", "b")}); err != nil {
		t.Errorf("a whole chain: %v", err)
	}

	for name, locs := range map[string][]*Location{
		"hole":        {region("", "b"), region("c", "")},
		"overlap":     {region("", "c"), region("b", "")},
		"no end":      {region("", "b")},
		"no begin":    {region("b", "")},
		"two ends":    {region("", ""), region("", "")},
		"no server":   {{Start: nil, Stop: nil}},
		"end, region": {region("", ""), region("b", "")},
	} {
		if err := checkChain("t", locs); !errors.Is(err, ErrMeta) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}

	if err := checkChain("t", nil); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("no region: got %v, want %v", err, store.ErrNoTable)
	}
}

func TestInfo_decode(t *testing.T) {
	for value, want := range map[string]bool{
		"PBUF\x08\x01\x12\x0c\x0a\x07default\x12\x01t\x38\x00": false,
		"PBUF\x08\x01\x12\x0c\x0a\x07default\x12\x01t\x38\x01": true,
	} {
		var info Info
		if err := info.Decode([]byte(value)); err != nil || info.Table != "t" || info.Replica != want {
			t.Errorf("%x: %+v, %v, want a replica: %t", value, info, err, want)
		}
	}
}
