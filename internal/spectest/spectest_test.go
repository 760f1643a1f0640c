package spectest

import (
	"path/filepath"
	"testing"
)

func TestFiles(t *testing.T) {
	files := Files(t, "bson-corpus/tests/*.json")
	for _, f := range files {
		if filepath.Ext(f) != ".json" || len(Read(t, f)) == 0 {
			t.Errorf("%s is not a JSON file with contents", f)
		}
	}
}
