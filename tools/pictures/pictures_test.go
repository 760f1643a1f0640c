package main

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures of the documentation are what is drawn of today's driver.
func TestPictures(t *testing.T) {
	all, err := draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../docs/picture-*")
	if err != nil || len(files) != len(all) {
		t.Errorf("there are %q, %v", files, err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Error(err)
		} else if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
			t.Errorf("docs/%s is another picture: go run ./tools/pictures", name)
		}
		for d := xml.NewDecoder(strings.NewReader(want)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

// What happens otherwise than it is shown is not drawn.
func TestRefused(t *testing.T) {
	if _, err := drawOperation([]string{"Server selection started", "Something new"}); err == nil {
		t.Error("a message without an arrow")
	}
	happened := map[change]bool{}
	for _, w := range ways {
		happened[w.change] = true
	}
	if _, err := drawPool(happened); err != nil {
		t.Error(err)
	}
	more := maps.Clone(happened)
	more[change{"in use", "closed", "ConnectionClosed: error"}] = true
	if _, err := drawPool(more); err == nil {
		t.Error("a change that is not shown")
	}
	delete(happened, ways[2].change)
	if _, err := drawPool(happened); err == nil {
		t.Error("a change that does not happen")
	}
	if _, err := drawTopology(make([]frame, 3)); err == nil {
		t.Error("a frame too few")
	}
	if _, err := drawLayers(&layers{Value: "a", Back: "b"}); err == nil {
		t.Error("a value that does not come back")
	}
}
