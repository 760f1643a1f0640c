package sigv4

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Amazon's test suite of Signature Version 4: from the canonical requests to the signatures.
func TestSuite(t *testing.T) {
	var files []string
	err := filepath.WalkDir("testdata", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".creq" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 31 {
		t.Fatalf("%d cases", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			read := func(ending string) string {
				data, err := os.ReadFile(strings.TrimSuffix(file, ".creq") + ending)
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(string(data), "\r\n", "\n")
			}
			lines := strings.Split(read(".creq"), "\n")
			r := Request{Method: lines[0], Path: lines[1], Query: lines[2], Time: "20150830T123600Z", Region: "us-east-1", Service: "service"}
			for _, line := range lines[3:] {
				if line == "" {
					break
				}
				name, value, _ := strings.Cut(line, ":")
				r.Headers = append(r.Headers, Header{name, value})
			}
			if _, body, ok := strings.Cut(read(".req"), "\n\n"); ok {
				r.Body = body
			}
			if got, want := Authorization(r, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), read(".authz"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
