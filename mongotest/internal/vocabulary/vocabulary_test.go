package vocabulary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVetHasThisTable fails if allium-vet knows other operators than mongotest.
func TestVetHasThisTable(t *testing.T) {
	path := filepath.Join("..", "..", "..", "cmd", "allium-vet", "vet", "operators.txt")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Text()
	if string(got) != want {
		t.Errorf("%s is not what mongotest has: go run ./mongotest/internal/vocabulary/cmd/vocabulary", path)
	}
	for _, line := range []string{
		"filter $and top", "filter $gt field", "filter $sampleRate top since=4.4.2", "update $inc -", "expression $abs -", "accumulator $sum -",
		"window $rank - since=5.0.0", "stage $out last,nofacet", "stage $scoreFusion first,nofacet since=8.2.0", "stage $score - since=8.2.0",
	} {
		if !strings.Contains(want, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if strings.Contains(want, "$_") {
		t.Error("has operators of the server's own")
	}
}
