package flight

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The ways in which code does not return, and what becomes of them as an error.
var ends = map[string]struct {
	f    func()
	want string
}{
	"panic":  {func() { panic("boom") }, "boom"},
	"error":  {func() { panic(errors.New("an error")) }, "an error"},
	"Goexit": {runtime.Goexit, "Goexit"},
}

func TestApart(t *testing.T) {
	for name, end := range ends {
		err := Apart(func() error { end.f(); return nil })
		if err == nil || !strings.Contains(err.Error(), end.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "Goexit" && !strings.Contains(err.Error(), "own_test.go") {
			t.Errorf("%s: no stack in %v", name, err)
		}
	}
	plain := errors.New("plain")
	if err := Apart(func() error { return plain }); err != plain {
		t.Errorf("got %v", err)
	}
}

func TestGo(t *testing.T) {
	for name, end := range ends {
		var wg sync.WaitGroup
		var got error
		Go(&wg, end.f, func(err error) { got = err; end.f() }) // and what handles it does the same
		wg.Wait()
		if got == nil || !strings.Contains(got.Error(), end.want) {
			t.Errorf("%s: %v", name, got)
		}
		Go(&wg, end.f, nil)
		wg.Wait()
	}
	var wg sync.WaitGroup
	Go(&wg, func() {}, func(err error) { t.Errorf("called with %v", err) })
	wg.Wait()
}
