//go:build integration

package bench_test

import (
	"os"
	"testing"

	"downpour/integration/e2e/e2etest"
)

// With real servers nothing looks for leaked goroutines: clients of HBase and of
// HTTP keep connections open until the process ends.
func TestMain(m *testing.M) { os.Exit(e2etest.Run(m)) }
