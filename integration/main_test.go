//go:build integration

package integration

import (
	"os"
	"testing"

	"downpour/integration/e2e/e2etest"
)

func TestMain(m *testing.M) { os.Exit(e2etest.Run(m)) }

// What almost every test of this package uses, under short names.
var (
	soak = e2etest.Soak

	hbase        = e2etest.HBase
	createTables = e2etest.CreateTables
	within       = e2etest.Within
	closeAtEnd   = e2etest.CloseAtEnd
)

func must[T any](t *testing.T) func(T, error) T { return e2etest.Must[T](t) }
