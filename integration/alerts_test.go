//go:build integration

package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// The real promtool takes the alert rules, and finds that each fires when it should: see
// testdata/alerts_test.yml.
func TestAlertRules(t *testing.T) {
	t.Parallel() // it uses none of the shared servers
	ctx := within(t, 5*time.Minute)
	if err := e2e.SetUp(ctx, "promtool"); err != nil {
		t.Fatal(err)
	}
	root := must[string](t)(e2e.Root())
	program := filepath.Join(root, "build/setup/promtool/usr/bin/promtool")
	for _, args := range [][]string{{"check", "rules", "gateway/packaging/prometheus/alerts.yml"}, {"test", "rules", "integration/testdata/alerts_test.yml"}} {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
