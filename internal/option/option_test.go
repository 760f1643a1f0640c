package option

import (
	"testing"
	"time"
)

type inner struct {
	A int
	P *int
}

type options struct {
	Limit int64
	Bound *bool
	Value any
	Sort  []string
	Inner inner
	When  time.Time
}

// Of each field, the last value that is set counts. What is given is not written to.
func TestMerge(t *testing.T) {
	one, two, no := 1, 2, false
	first := options{Limit: 1, Bound: &no, Sort: []string{"a"}, Inner: inner{A: 1, P: &one}, When: time.Unix(1, 0)}
	opts := []options{
		first,
		{Limit: 2, Value: "x", Inner: inner{P: &two}},
		{},
		{Sort: []string{}, When: time.Unix(2, 0)},
	}
	got := Merge(opts)
	if got.Limit != 2 || got.Bound != &no || got.Value != "x" || got.Sort == nil || len(got.Sort) != 0 || got.Inner != (inner{1, &two}) || !got.When.Equal(time.Unix(2, 0)) {
		t.Errorf("merged: %+v", got)
	}
	if opts[0].Limit != 1 || opts[0].Inner.P != &one {
		t.Errorf("the first was changed: %+v", opts[0])
	}
	if got := Merge(opts[:1]); got.Limit != 1 || got.Inner != first.Inner {
		t.Errorf("one alone: %+v", got)
	}
	if got := Merge[options](nil); got.Limit != 0 || got.Sort != nil {
		t.Errorf("none: %+v", got)
	}
}
