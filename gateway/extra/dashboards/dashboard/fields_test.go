package dashboard

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// testdata/panels.json has panels that are sound and some that are not. The page's own test takes the
// same file (gateway/web/test/panels.test.mjs), so that both say the same.
func TestCheck_fieldsAsThePage(t *testing.T) {
	text, err := os.ReadFile("testdata/panels.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Sound bool
		Panel json.RawMessage
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	sound := 0
	for _, c := range cases {
		_, err := Check([]byte(`{"form":1,"panels":[` + string(c.Panel) + `]}`))
		if (err == nil) != c.Sound {
			t.Errorf("%s: error %v, want one: %v", c.Panel, err, !c.Sound)
		}
		if c.Sound {
			sound++
		}
	}
	if sound < 5 || len(cases)-sound < 20 {
		t.Errorf("%d cases, %d of them sound, want more", len(cases), sound)
	}
}

func TestCheck_fieldsAreNamed(t *testing.T) {
	for field, want := range map[string]string{
		`"unit":"miles"`: `unit: got "miles", want one of none, bytes, bits/s, %, s, ms, ops/s`,
		`"thresholds":[{"value":1,"colour":"red"},` +
			`{"value":2,"colour":"pink"}]`: `thresholds[1].colour: got "pink", want one of green, amber, red, blue`,
		`"top":{"n":0,"by":"max"}`: `top.n: got 0, want 1 to 200`,
		`"legend":"none"`:          `legend: got "none", want one of list, table`,
		`"annotations":1`:          `annotations: got 1, want true or false`,
		`"thresholds":[{"value":1,"colour":"red","right":"yes"}]`: `thresholds[0].right: got "yes", want true or false`,
	} {
		_, err := Check(
			[]byte(`{"form":1,"panels":[{"id":"a","type":"lines","place":{"x":0,"y":0,"w":6,"h":4},` + field + `}]}`),
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", field, err, want)
		}
	}
}
