package work

import (
	"errors"
	"slices"
	"testing"
)

var errEnd = errors.New("end")

// counted is a check that fails from its first call on, and counts its calls.
func counted(calls *int) func() error {
	return func() error { *calls++; return errEnd }
}

func TestDo(t *testing.T) {
	calls, steps := 0, 0
	loop := func() (err error) {
		defer Catch(&err)
		m := New(counted(&calls))
		for ; steps < 10*Interval; steps++ {
			m.Do(1)
		}
		return nil
	}
	if err := loop(); err != errEnd || calls != 1 || steps != Interval-1 {
		t.Errorf("%v after %d steps and %d calls", err, steps, calls)
	}
}

func TestNil(t *testing.T) {
	m := New(nil)
	m.Do(10 * Interval)
	if m != nil || m.Count() != nil {
		t.Error("a meter that nothing ends counts")
	}
}

func TestCounting(t *testing.T) {
	calls, compared := 0, 0
	sorted := func() (err error) {
		defer Catch(&err)
		list := make([]int, 100_000)
		for i := range list {
			list[i] = -i
		}
		slices.SortStableFunc(list, Counting(New(counted(&calls)), func(a, b int) int { compared++; return a - b }))
		return nil
	}
	if err := sorted(); err != errEnd || calls != 1 || compared >= Interval {
		t.Errorf("%v after %d comparisons", err, compared)
	}
}

// Panics of others are not caught.
func TestOtherPanic(t *testing.T) {
	defer func() {
		if v := recover(); v != "other" || Ended(v) != nil {
			t.Errorf("recovered %v", v)
		}
	}()
	var err error
	func() {
		defer Catch(&err)
		panic("other")
	}()
}
