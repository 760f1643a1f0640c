// Package norace is for the tests that do not run under the race detector: it falsifies what they
// measure, or makes them many times as dear and finds nothing, as in the copying of messages of
// 48 MB. A test says so with [Skip] or by [Detecting], and command norace runs those tests without
// the detector, so that each test runs in one step of CI at least.
package norace

import "testing"

// Skip skips a test under the race detector. It is called in the test's own function, where command
// norace finds it.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Detecting {
		t.Skip("not under the race detector: " + why)
	}
}
