package putroutes

import (
	"context"
	"testing"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// Points that the store did not take in time were refused by the store, not by what they are.
func TestAddLost_writeTime(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&httpio.WriteTimeError{Limit: time.Second})
	var res putResult
	res.addUnstored(ctx, &dataPoint{}, ctx.Err())
	if len(res.reasons) != 1 || res.reasons[0].reason != "storage" {
		t.Errorf("got %+v, want the reason storage", res.reasons)
	}
}
