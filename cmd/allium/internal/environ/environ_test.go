package environ

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty := file("secret", "s3cret\n"), file("empty", "\n")
	for _, c := range []struct {
		name string
		env  map[string]string
		want Initial
		err  string
	}{
		{"nothing", nil, Initial{}, ""},
		{"all", map[string]string{Username: "root", Password: "x", Database: "app"}, Initial{"root", "x", "app"}, ""},
		{"files", map[string]string{Username + "_FILE": file("user", "root"), Password + "_FILE": secret}, Initial{"root", "s3cret", ""}, ""},
		{"both", map[string]string{Username: "root", Password: "x", Password + "_FILE": secret}, Initial{}, Password + " and " + Password + "_FILE are set: want one"},
		{"no file", map[string]string{Username: "root", Password + "_FILE": filepath.Join(dir, "none")}, Initial{}, Password + "_FILE: want a file that can be read"},
		{"an empty file", map[string]string{Username: "root", Password + "_FILE": empty}, Initial{}, Password + "_FILE: want a value in the file"},
		{"no password", map[string]string{Username: "root"}, Initial{}, Username + " is set: want " + Password},
		{"no user", map[string]string{Password: "x"}, Initial{}, Password + " is set: want " + Username},
		{"no database", map[string]string{Database: "a.b"}, Initial{}, Database + `: want the name of a database, and not "a.b"`},
	} {
		got, err := Read(func(name string) string { return c.env[name] })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v, want %v, %s", c.name, got, err, c.want, c.err)
		}
	}
}
