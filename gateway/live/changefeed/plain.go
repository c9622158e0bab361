package changefeed

import (
	"context"
	"encoding/json"

	"downpour/gateway/live"
	"downpour/gateway/query"
)

// plainQuestion is a live query of /api/query: its answer is that of its sub-queries.
type plainQuestion struct{ body json.RawMessage }

func (p plainQuestion) read(_ context.Context, parser query.Parser) (*query.Query, error) {
	return parser.JSON(p.body)
}

func (p plainQuestion) bytes() int64 { return 0 }

// answer returns the news of all sub-queries unchanged. Whether an answer is whole depends only on
// them: a sub-query without an earlier answer has all its groups among its news.
func (p plainQuestion) answer(_ context.Context, subs []*subQuery, all []news, _ bool) (live.Answer, error) {
	a := live.Answer{Kept: map[int]bool{}}
	for i := range all {
		n := &all[i]
		if n.all {
			a.Results = append(a.Results, LiveResults(n.groups)...)
			continue
		}

		a.Kept[subs[i].prepared.Index()] = true
		a.Changes = append(a.Changes, n.changes...)
		for k := range n.groups {
			r := liveResult(&n.groups[k])
			a.Changes = append(a.Changes, live.Change{QueryIndex: r.QueryIndex, Key: r.Key, Full: &r})
		}
	}
	return a, nil
}
