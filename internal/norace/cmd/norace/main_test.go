package main

import (
	"reflect"
	"regexp"
	"testing"
)

func TestChoose(t *testing.T) {
	found := map[string][]string{".": {"TestAlloc", "TestDear"}, "a": {"TestDear", "TestOther"}, "a/b": {"TestDeep"}, "ab": {"TestLast"}}
	for _, tc := range []struct {
		elsewhere   []string
		but         string
		pkgs, names []string
	}{
		{nil, "$.", []string{"./.", "./a", "./a/b", "./ab"}, []string{"TestAlloc", "TestDear", "TestDeep", "TestLast", "TestOther"}},
		{[]string{"."}, "$.", []string{"./a", "./a/b", "./ab"}, []string{"TestDear", "TestDeep", "TestLast", "TestOther"}},
		{[]string{".", "./a"}, "Alloc", []string{"./.", "./a/b", "./ab"}, []string{"TestAlloc", "TestDeep", "TestLast"}},
		{[]string{"./a/..."}, "$.", []string{"./.", "./ab"}, []string{"TestAlloc", "TestDear", "TestLast"}},
		{[]string{"./..."}, "$.", nil, nil},
		{[]string{""}, "$.", []string{"./.", "./a", "./a/b", "./ab"}, []string{"TestAlloc", "TestDear", "TestDeep", "TestLast", "TestOther"}},
	} {
		pkgs, names := choose(found, tc.elsewhere, regexp.MustCompile(tc.but))
		if !reflect.DeepEqual(pkgs, tc.pkgs) || !reflect.DeepEqual(names, tc.names) {
			t.Errorf("elsewhere %v but %s: %v, %v", tc.elsewhere, tc.but, pkgs, names)
		}
	}
}
