// Command vocabulary writes the table of stages and operators that allium-vet checks programs with:
//
//	go run ./mongotest/internal/vocabulary/cmd/vocabulary
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"allium/mongotest/internal/vocabulary"
)

func main() {
	if err := os.WriteFile(filepath.Join("cmd", "allium-vet", "vet", "operators.txt"), []byte(vocabulary.Text()),
		0o644); err != nil {
		fmt.Fprintln(os.Stderr, "vocabulary:", err)
		os.Exit(1)
	}
}
