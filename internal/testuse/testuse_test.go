package testuse

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

const head = "package x\n\nimport (\n\t\"testing\"\n\n\t\"allium/internal/norace\"\n)\n\n"

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, all := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(root, all); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOf(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod":             "module x\n",
		"a_test.go":          head + "func TestB(t *testing.T) { norace.Skip(t, \"dear\") }\n\nfunc TestA(t *testing.T) { _ = func() bool { return norace.Detecting } }\n\nfunc TestC(t *testing.T) {}\n",
		"in/b_test.go":       head + "func FuzzB(f *testing.F) { norace.Skip(f, \"dear\") }\n\nfunc BenchmarkB(b *testing.B) { norace.Skip(b, \"dear\") }\n",
		"in/c_test.go":       "package x\n\ntype n struct{ x int }\n\nfunc TestD(t *T) { var norace n; norace.x++ }\n",
		"module/go.mod":      "module y\n",
		"module/a_test.go":   head + "func TestElsewhere(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"testdata/a_test.go": "no Go\n",
	})
	found, err := Of(root, "norace")
	if want := map[string][]string{".": {"TestA", "TestB"}, "in": {"FuzzB"}}; err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
}

func TestOfRefusesOtherUses(t *testing.T) {
	for name, text := range map[string]string{
		"a function":   "func dear(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"a method":     "type x int\n\nfunc (x) TestX(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"a variable":   "var on = norace.Detecting\n",
		"an example":   "func Example() { _ = norace.Detecting }\n",
		"the TestMain": "var f = norace.Skip\n\nfunc TestMain(m *testing.M) {}\n",
	} {
		root := tree(t, map[string]string{"a_test.go": head + text})
		if found, err := Of(root, "norace"); err == nil || !strings.Contains(err.Error(), "outside of a test") {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
