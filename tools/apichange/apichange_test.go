package main

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	const old = "# a list\nbson func A()\nbson func B(int)\nbson type C struct\n"
	for name, c := range map[string]struct {
		now         string
		added, gone []string
	}{
		"nothing":       {"bson func A()\r\nbson func B(int)\r\nbson type C struct\r\n", nil, nil},
		"the order":     {"bson type C struct\nbson func B(int)\nbson func A()\n", nil, nil},
		"an addition":   {old + "bson func D()\n", []string{"bson func D()"}, nil},
		"a removal":     {"bson func A()\nbson func B(int)\n", nil, []string{"bson type C struct"}},
		"another one":   {"bson func A()\nbson func B(string)\nbson type C struct\n", []string{"bson func B(string)"}, []string{"bson func B(int)"}},
		"a method":      {old + "x type I interface\nx type I interface, M func()\n", []string{"x type I interface", "x type I interface, M func()"}, nil},
		"to everything": {"", nil, []string{"bson func A()", "bson func B(int)", "bson type C struct"}},
	} {
		added, gone := compare(old, c.now)
		if !slices.Equal(added, c.added) || !slices.Equal(gone, c.gone) {
			t.Errorf("%s: %q, %q", name, added, gone)
		}
	}
}

// A method of an interface that was there is a break, whoever implements it.
func TestCompareInterfaces(t *testing.T) {
	const old = "x type I interface\nx type I interface, M func()\n"
	added, gone := compare(old, old+"x type I interface, N func()\nx type J struct, N func()\n")
	if !slices.Equal(added, []string{"x type J struct, N func()"}) || !slices.Equal(gone, []string{"x type I interface, N func()"}) {
		t.Errorf("%q, %q", added, gone)
	}
}

// The list is where it is looked for, and a commit that is not there is an error.
func TestHead(t *testing.T) {
	t.Chdir("../..")
	if _, err := run("HEAD"); err != nil {
		t.Error(err)
	}
	if _, err := run("no-such-commit"); err == nil {
		t.Error("a commit that is not there")
	}
}
