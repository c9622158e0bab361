package treeroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// While series of this gateway wait to be put into their trees, branches and lists are not read:
// they would lack those series.
func TestHandlers_seriesWait(t *testing.T) {
	waiting := fmt.Errorf("trees, of which 7 series wait: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		err     error
		timeout time.Duration
		status  int
	}{
		{waiting, time.Minute, http.StatusServiceUnavailable},
		{fmt.Errorf("trees: %w", forest.ErrConflict), time.Minute, http.StatusServiceUnavailable},
		{fmt.Errorf("trees: %w", store.ErrUnavailable), time.Minute, http.StatusFailedDependency},
		{waiting, -1, http.StatusRequestTimeout}, // the request has timed out
	} {
		h := &Handlers{FlushMeta: func(context.Context) error { return c.err }, Timeout: c.timeout}
		for path, endpoint := range h.Endpoints() {
			switch path {
			case "api/tree/branch", "api/tree/collisions", "api/tree/notmatched":
			default:
				continue
			}
			err := endpoint.Serve(httptest.NewRecorder(),
				httptest.NewRequest(http.MethodGet, "/"+path+"?treeid=1", nil))
			if got := httpio.Classify(err); got.Code != c.status {
				t.Errorf("%s, %v: got %d %v, want %d", path, c.err, got.Code, err, c.status)
			}
		}
	}
}

// A trial of rules reads the TSMeta of its series, not the tree. Only if a TSMeta is missing does
// an earlier failure to store it fail the trial.
func TestHandlers_trialWaits(t *testing.T) {
	st := opentest.Embedded(t, tablestest.Specs(encoding.DefaultSchema())...)
	tables := tablestest.Names
	names := uid.New(uid.Config{Store: st, Table: tables.UID, Schema: encoding.DefaultSchema()})
	h := &Handlers{Timeout: time.Minute, FlushMeta: func(context.Context) error { return store.ErrUnavailable },
		Forest: forest.New(forest.Config{
			Store:     st,
			TreeTable: tables.Tree,
			UIDTable:  tables.UID,
			MetaTable: tables.Meta,
			Schema:    encoding.DefaultSchema(),
			Names:     names,
		})}
	if _, err := h.Forest.Create(t.Context(), tree.Change{Name: "t"}); err != nil {
		t.Fatal(err)
	}
	var tsuid encoding.UID
	for kind, name := range []string{"m", "host", "h"} {
		u, err := names.Assign(t.Context(), encoding.UIDKind(kind), name)
		if err != nil {
			t.Fatal(err)
		}
		tsuid = append(tsuid, u...)
	}
	ask := func() (string, error) {
		w := httptest.NewRecorder()
		err := h.Endpoints()["api/tree/test"].Serve(w,
			httptest.NewRequest(http.MethodGet, "/api/tree/test?treeid=1&tsuids="+tsuid.String(), nil))
		return w.Body.String(), err
	}

	if body, err := ask(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a TSMeta: got %v %s", err, body)
	}
	catalog := meta.New(meta.Config{
		Store:     st,
		UIDTable:  tables.UID,
		MetaTable: tables.Meta,
		Schema:    encoding.DefaultSchema(),
		Names:     names,
	})
	if _, err := catalog.CreateTSMeta(t.Context(), tsuid, meta.TSChange{}); err != nil {
		t.Fatal(err)
	}
	if body, err := ask(); err != nil || !strings.Contains(body, `"messages"`) {
		t.Errorf("with a TSMeta: got %v %s", err, body)
	}
}
