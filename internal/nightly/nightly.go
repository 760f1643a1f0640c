// Package nightly is for the tests that take too long for each change: they compile the programs of
// others, or the driver under another path, and what they look at changes seldom. A test says so
// with [Only], and command nightly, which .ci/nightly runs, runs those tests and no others.
package nightly

import (
	"os"
	"testing"
)

// Variable is what the environment has while the tests of the night run.
const Variable = "ALLIUM_NIGHTLY"

// Only skips a test unless it is night. It is called in the test's own function, where command
// nightly finds it.
func Only(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("runs at night, or with " + Variable + "=1: " + why)
	}
}
