package leaks

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret is found however it is written, and wherever it stands.
func TestFind(t *testing.T) {
	for name, secret := range Planted {
		b := []byte(secret)
		for _, text := range []string{
			"x" + secret + "y", fmt.Sprintf("%x", b), fmt.Sprintf("%X", b), fmt.Sprint(b), fmt.Sprintf("%q", secret), fmt.Sprint([]byte("n=u,r=" + secret + "!")),
			base64.StdEncoding.EncodeToString(b), base64.StdEncoding.EncodeToString([]byte("a" + secret)), base64.StdEncoding.EncodeToString([]byte("ab" + secret + "c")),
		} {
			if Find(text) == "" {
				t.Errorf("%s is not found in %.60s", name, text)
			}
		}
		if Printed(struct{ F []byte }{b}) == "" {
			t.Errorf("%s is not found in a struct", name)
		}
	}
	if found := Find("the password of somebody, and a pencil") + Line("component=connection nothing"); found != "" {
		t.Errorf("found %s where there is nothing", found)
	}
}

func TestLine(t *testing.T) {
	for line, want := range map[string]bool{
		"level=DEBUG msg=x component=command command=" + Document:  false,
		"level=DEBUG msg=x component=topology failure=" + Document: true,
		"level=DEBUG msg=x component=command command=open sesame":  true,
	} {
		if got := Line(line) != ""; got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// Tests still use each secret, so that the search cannot find nothing because there is nothing.
func TestPlanted(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "internal/leaks") {
			return err
		}
		text, err := os.ReadFile(path)
		for name, secret := range Planted {
			if strings.Contains(string(text), `"`+secret+`"`) || strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte(secret))) {
				used[name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range Planted {
		if !used[name] {
			t.Errorf("nothing uses %s", name)
		}
	}
}
