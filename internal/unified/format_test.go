package unified

import (
	"path/filepath"
	"testing"

	"allium/internal/spectest"
)

// The format's own tests: files that are not of its form are refused, and those of valid-fail fail.
// Those of valid-pass are a suite.

func TestInvalidFiles(t *testing.T) {
	for _, path := range spectest.Files(t, "unified-test-format/tests/invalid/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := Load(path); err == nil {
				t.Error("the file is accepted")
			} else {
				t.Log(err)
			}
		})
	}
}

func TestValidFail(t *testing.T) {
	for _, path := range spectest.Files(t, "unified-test-format/tests/valid-fail/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			failed, skipped := 0, 0
			RunFile(t, Where{}, "valid-fail", path, func(o Outcome) {
				switch {
				case o.Skip != "":
					skipped++
					t.Logf("%s: skipped: %s", o.Test, o.Skip)
				case o.Err == nil:
					t.Errorf("%v: %s: passes", o.Target, o.Test)
				default:
					failed++
					t.Logf("%v: %s: %v", o.Target, o.Test, o.Err)
				}
			})
			if failed == 0 && skipped == 0 {
				t.Error("no test ran")
			}
		})
	}
}
