package gateway_test

import (
	"os"
	"strings"
	"testing"

	"downpour/pushdown/process/settings"
)

// The settings page of the docs names every variable that a program knows.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range settings.Known() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
}
