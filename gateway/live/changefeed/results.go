package changefeed

import (
	"downpour/gateway/live"
	"downpour/gateway/query/engine"
)

// LiveResults returns the results of a query as groups of a live answer.
func LiveResults(results []engine.Result) []live.Result {
	out := make([]live.Result, len(results))
	for i := range results {
		out[i] = liveResult(&results[i])
	}
	return out
}

// liveResult returns one result as a group of a live answer. It shares the points.
func liveResult(r *engine.Result) live.Result {
	tags := make(map[string]string, len(r.Tags))
	for _, t := range r.Tags {
		tags[t.K] = t.V
	}
	return live.Result{QueryIndex: r.Query, Metric: r.Metric, Tags: tags, AggregateTags: r.AggregateTags,
		Key: groupKey([]byte(r.Key)), Points: r.Points, NaNIsNull: r.NaNIsNull}
}

// groupKey returns the live.Result.Key of a group. It is never empty: the hub would
// know a group without a key by its tags, which may change.
func groupKey(key []byte) string { return "\x00" + string(key) }
