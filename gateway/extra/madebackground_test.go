package extra_test

import (
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/extra/rollups"
)

// A gateway makes rollups by itself of what is there at its start, and queries read them. One in mode
// ro makes none.
func TestMade_background(t *testing.T) {
	cfg := config(0)
	withMade(cfg)
	st := memoryStore(t, cfg)
	b := serve(t, cfg, st)
	twoDays(b)
	for _, mode := range []string{"ro", "rw"} {
		with := *cfg
		with.Extras = everything()
		gateway.SettingsOf[rollups.Settings](&with).RollupRate, with.Mode = "1000000", mode
		other := serve(t, &with, st)
		const query = "start=1356998400&end=1357171199&m=sum:1h-sum:m"
		const whole = "table r1h from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC"
		if mode == "ro" {
			if got := explained(other, query); strings.Contains(got, "table r1h") {
				t.Errorf("mode ro: explain says %q", got)
			}
		} else {
			eventually(t, "rollups are read", func() bool { return strings.Contains(explained(other, query), whole) })
			sameAsRaw(other, query, "sum:1h-sum:m")
		}
		if got := strings.Contains(other.Get("/metrics").Body,
			"downpour_rollup_made_points_total"); got != (mode == "rw") {
			t.Errorf("mode %s: metrics of the work: %v", mode, got)
		}
		if err := other.Gateway.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The rate is off or a number of points a second.
func TestMade_rate(t *testing.T) {
	for rate, want := range map[string]string{
		"": "", "off": "", "1": "", "100000": "", "0": "got \"0\"", "-1": "got \"-1\"", "1.5": "got \"1.5\"",
		"fast": "got \"fast\", want off or raw points a second",
	} {
		cfg := config(0)
		gateway.SettingsOf[rollups.Settings](cfg).RollupRate = rate
		err := cfg.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "DOWNPOUR_ROLLUP_RATE: "+want) {
			t.Errorf("%q: %v, want %q", rate, err, want)
		}
	}
}

// Without a margin the route takes that of the command; a wrong margin is reported.
func TestMade_margin(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { withMade(cfg) })
	twoDays(b)
	for body, want := range map[string]string{
		`{"args":["2013/01/01","2013/01/03","m"]}`:                `"made":`,
		`{"args":["2013/01/01","2013/01/03","m"],"margin":"-1s"}`: `margin: got \"-1s\", want 0 or more`,
		`{"args":["2013/01/01","2013/01/03","m"],"margin":"x"}`:   `margin: got \"x\", want 0 or more`,
	} {
		a := b.Post("/api/tools/rollup", body)
		if (a.Status == http.StatusOK) != strings.Contains(want, "made") || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s, want %s", body, a.Status, a.Body, want)
		}
	}
}
