package stage_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/field"
	"allium/field/stage"
)

var renamed = field.Of(func(r *struct{ Line Line }) *Line { return &r.Line })

// TestWrongPlaces: what the types of paths do not say is said when the pipeline is made. What
// stages do is tested in package field.
func TestWrongPlaces(t *testing.T) {
	for _, c := range []struct {
		name, want string
		call       func()
	}{
		{"group", "goes to the field _id, not to sum", func() { stage.Group[Order](citySum, total.Ref()) }},
		{"unwind", "the field lines, not line", func() { stage.Unwind(lines, renamed, stage.UnwindOptions{}) }},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("%s: panic %q, want %q", c.name, got, c.want)
				}
			}()
			c.call()
		}()
	}
}

// TestThenDoesNotShare: a pipeline that is used twice is not written into.
func TestThenDoesNotShare(t *testing.T) {
	first := append(make(stage.Pipeline[Order, Order], 0, 8), stage.Match(total.Gt(1))...)
	a := stage.Then(first, stage.Limit[Order](1))
	b := stage.Then(first, stage.Limit[Order](2))
	if fmt.Sprint(a) == fmt.Sprint(b) {
		t.Errorf("%v is what the other has become", a)
	}
}
