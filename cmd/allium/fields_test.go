package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"allium/cmd/allium/testdata/fields/shop"
)

// TestFieldsOfShop: the file in testdata is what the tool writes, and its paths are found.
func TestFieldsOfShop(t *testing.T) {
	tool(t, succeeded, "fields", "-check", "./testdata/fields/...")
	paths := reflect.ValueOf(shop.OrderFields)
	want := map[string]string{
		"ID": "_id", "ShipCity": "ship.town", "ShipCity_": "shipcity", "BillAtLat": "bill_to.at.lat", "LinesPartsName": "lines.parts.name", "RefsSKU": "refs.sku",
		"MorePrice": "more.price", "PairSKU": "pair.sku", "Created": "created_at", "By": "by", "PlainNote": "plain.note", "Deep": "deep", "BoxCornerLat": "box.corner.lat",
		"AnonX": "anon.x", "Next": "next", "Money": "money",
	}
	for name, path := range want {
		f := paths.FieldByName(name)
		if !f.IsValid() {
			t.Errorf("there is no path %s", name)
		} else if got := f.MethodByName("String").Call(nil)[0].String(); got != path {
			t.Errorf("%s is %q, want %q", name, got, path)
		}
	}
	for _, name := range []string{"Skip", "private", "Private_", "Dotted", "Extra", "Base_", "BoxHidden", "BoxList", "MoneyCents", "OwnA", "NextShip"} {
		if paths.FieldByName(name).IsValid() {
			t.Errorf("there is a path %s", name)
		}
	}
}

// fieldsCopy copies the package of testdata, without what was written for it.
func fieldsCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Join("testdata", "fields"), "copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source, err := os.ReadFile("testdata/fields/shop/shop.go")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "shop.go"), source, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFieldsAgain: what is out of date is found, by a check too, and a second run changes nothing.
func TestFieldsAgain(t *testing.T) {
	dir := fieldsCopy(t)
	file, pkg := filepath.Join(dir, "allium_fields.go"), "./"+filepath.ToSlash(dir)
	written := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, errs := tool(t, failed, "fields", "-check", pkg); !strings.Contains(errs, "not up to date") {
		t.Errorf("a missing file: %s", errs)
	}
	tool(t, succeeded, "fields", pkg)
	first := written()
	want, err := os.ReadFile("testdata/fields/shop/allium_fields.go")
	if err != nil || first != string(want) {
		t.Errorf("the file is not the one in testdata, %v:\n%s", err, first)
	}
	if out, _ := tool(t, succeeded, "fields", pkg); out != "" || written() != first {
		t.Errorf("the second run changed the file: %s", out)
	}
	tool(t, succeeded, "fields", "-check", pkg)

	// A field goes: the file that was written no longer compiles, and is not needed.
	source := filepath.Join(dir, "shop.go")
	text, err := os.ReadFile(source)
	if err == nil {
		err = os.WriteFile(source, []byte(strings.Replace(string(text), "\tStreet string\n", "", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	tool(t, failed, "fields", "-check", pkg)
	if written() != first {
		t.Error("a check changed the file")
	}
	tool(t, succeeded, "fields", pkg)
	if now := written(); strings.Contains(now, "Street") || !strings.Contains(now, "ShipCity") {
		t.Errorf("after a field went:\n%s", now)
	}

	// Some types alone, by the keys of their json tags.
	tool(t, succeeded, "fields", "-types", "Part,Untagged", "-jsontags", pkg)
	if now := written(); !strings.Contains(now, "UntaggedFields") || !strings.Contains(now, "bson.Options{JSONTags: true}") || strings.Contains(now, "OrderFields") {
		t.Errorf("two types:\n%s", now)
	}

	// No document is left.
	if err := os.WriteFile(source, []byte("package shop\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, succeeded, "fields", pkg)
	if _, err := os.Stat(file); err == nil {
		t.Error("a file without documents is still there")
	}
	tool(t, succeeded, "fields", "-check", pkg)
}

func TestFieldsRefuses(t *testing.T) {
	dir := fieldsCopy(t)
	pkg := "./" + filepath.ToSlash(dir)
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{misused, []string{"-o", "a/b.go", pkg}, "without a folder"},
		{misused, []string{"-o", "x_test.go", pkg}, "without a folder"},
		{failed, []string{"-types", "Nothing", pkg}, "there is no type Nothing"},
		{failed, []string{"-types", "Generic", pkg}, "has type parameters"},
		{failed, []string{"./testdata/nowhere"}, "nowhere"},
	} {
		if _, errs := tool(t, c.status, append([]string{"fields"}, c.args...)...); !strings.Contains(errs, c.want) {
			t.Errorf("%v: %q, want %q", c.args, errs, c.want)
		}
	}
	for name, source := range map[string]string{
		"OrderFields of its own": "package shop\n\ntype Order struct { A int `bson:\"a\"` }\n\nvar OrderFields = 1\n",
		"is not a struct type":   "package shop\n\ntype Order int\n",
		"is not known":           "package shop\n\ntype Order struct { A Gone `bson:\"a\"` }\n",
		`the key "a" twice`:      "package shop\n\ntype Order struct { A int `bson:\"a\"`; B int `bson:\"a\"` }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "shop.go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs := tool(t, failed, "fields", "-types", "Order", pkg); !strings.Contains(errs, name) {
			t.Errorf("%q, want %q", errs, name)
		}
	}
}
