package replay

import (
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// A session from empty tables on is answered step by step as OpenTSDB has answered it: puts right
// and wrong, annotations, names, meta data, renames and deletion.
func TestReplay_session(t *testing.T) {
	t.Parallel()
	var s struct{ Steps []conformance.Query }
	if err := conformance.Decode("api_seed3", &s); err != nil {
		t.Fatal(err)
	}
	at := (&recording{T: t}).bothStores(t, encoding.DefaultSchema(), func(cfg *gateway.Config) {
		cfg.MetaTracking, cfg.MetaIncrementing, cfg.MetaRealtimeTS, cfg.MetaRealtimeUID = "true", "true", "true", "true"
		cfg.AutoMetrics, cfg.AllowDelete = "true", true
	}, func(gateway.Store, *gateway.Config) {})
	for _, f := range at.fronts {
		for i, q := range s.Steps {
			d, got := f.differs(t, q)
			if d != "" &&
				explains(q, compare.Answer{Status: q.Status, Body: q.Response}, got, meantInSession...) == "" {
				t.Errorf("%s, question %d: %s", f.store, i, d)
			}
		}
	}
}

// meantInSession are differences of this session. UIDs count on from one that OpenTSDB gave to the
// metric of a point that it refused, so that where a rule is about names only the statuses are
// compared.
var meantInSession = []meant{
	{
		question: re(`/api/put.*(details|summary)`),
		theirs:   re(`^400 `),
		ours:     re(`^400 `),
		reason:   "other words, and fields that were not sent are shown empty",
	},
	{
		question: re(`/api/put\?sync_timeout`),
		theirs:   re(`^400 .*"timeouts"`),
		reason:   "a refused point counts as failed, and none times out",
	},
	{
		question: re(`/api/put`),
		theirs:   re(`^200 `),
		ours:     re(`^400 .*Invalid timestamp: got`),
		reason:   "times after 2106 are refused",
	},
	{
		question: re(`/api/put.*(日|\\u65e5|\\u0100)`),
		theirs:   re(`^200 `),
		ours:     re(`^400 `),
		reason:   "names outside of ISO-8859-1 are refused",
	},
	{
		question: re(`/api/uid/(assign|rename|uidmeta|tsmeta)`),
		theirs:   re(`^200 `),
		ours:     re(`^200 `),
		reason:   "UIDs, and when a series was last seen",
	},
	{
		question: re(`/api/uid/(assign|rename|uidmeta|tsmeta)`),
		theirs:   re(`^400 `),
		ours:     re(`^400 `),
		reason:   "UIDs in texts",
	},
	{
		question: re(`/api/uid/(assign|rename|uidmeta|tsmeta)`),
		theirs:   re(`^500 `),
		ours:     re(`^(500|400|404) `),
		reason:   "the client's fault",
	},
	{question: re(`/api/uid/assign \{"metric":null\}`), ours: re(`^200 `), reason: "null is nothing"},
	{
		question: re(`/api/uid/tsmeta\?m=`),
		theirs:   re(`^400 .*Deferreds`),
		ours:     re(`^404 `),
		reason:   "a name that is not there",
	},
	{
		question: re(`/api/uid/tsmeta\?tsuid=`),
		theirs:   re(`^200 `),
		ours:     re(`^404 `),
		reason:   "what was deleted is not made again by reading it",
	},
	{
		question: re(`/api/annotation`),
		theirs:   re(`^[45]00 .*(jackson|java\.lang)`),
		ours:     re(`^400 `),
		reason:   "the client's fault",
	},
	{question: re(`"tsuid": "(zz|000001)"`), ours: re(`^400 `), reason: "a TSUID that no series can have"},
	{question: re(`[?&]tsuid=zz`), theirs: re(`^500 `), ours: re(`^400 `), reason: "the client's fault"},
	{
		question: re(`/api/annotation|/api/query`),
		theirs:   re(`^200 .*(:null|"startTime":1396656005,"endTime":0\})`),
		ours:     re(`^200 .*:""`),
		reason:   "null is an empty text",
	},
	{
		question: re(`/annotations?/bulk`),
		theirs:   re(`^200 `),
		ours:     re(`^200 `),
		reason:   "a time from now on, and one note more that had a null",
	},
	{question: re(`/api/annotations\?start_time=1396655990`), theirs: re(`^200 \[\]`), reason: "see above"},
	{
		question: re(`/api/query.*(m=none:m\.b|"metric": "m\.b"|[=:] ?1396655990)`),
		theirs:   re(`^200 `),
		ours:     re(`^200 `),
		reason:   "points of times after 2106, and of a request that timed out",
	},
	{question: re(`/api/suggest`), theirs: re(`^500 `), ours: re(`^200 `), reason: "a name that is no ISO-8859-1"},
	{question: re(`/api/search/lookup`), theirs: re(`^200 `), ours: re(`^200 `), reason: "series of the same"},
	{question: re(`GET /dropcaches`), theirs: re(`^404 `), ours: re(`^200 `), reason: "an alias"},
	{question: re(`/api/config/filters`), reason: "help in our own words"},
}
