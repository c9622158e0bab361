package graphroutes

import (
	"context"
	"errors"
	"testing"
	"time"

	"downpour/gateway/extra/graph"
	"downpour/gateway/query"
)

// Drawing ends with an error when the client has left or the query's time is over.
func TestDraw_ends(t *testing.T) {
	options, err := graph.Parse(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for want, ctx := range map[error]context.Context{context.Canceled: left, context.DeadlineExceeded: late} {
		for _, form := range []form{asPNG, asSVG} {
			g := &request{Query: &query.Query{End: 3600_000}, options: options, form: form}
			body, err := g.draw(ctx, nil)
			if !errors.Is(err, want) || body != nil {
				t.Errorf("%s: %d bytes, %v, want %v", form, len(body), err, want)
			}
		}
	}
	r := &request{Query: &query.Query{End: 3600_000}, options: options, form: asSVG}
	if body, err := r.draw(t.Context(), nil); err != nil || len(body) == 0 {
		t.Errorf("for a client that is there: %d bytes, %v", len(body), err)
	}
}
