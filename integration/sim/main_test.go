package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: worlds make much of it and hold little, so half of their time would go there.
func TestMain(m *testing.M) {
	debug.SetGCPercent(300)
	os.Exit(m.Run())
}
