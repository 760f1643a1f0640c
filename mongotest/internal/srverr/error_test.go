package srverr

import (
	"errors"
	"fmt"
	"testing"
)

func TestName(t *testing.T) {
	for code, want := range map[int32]string{
		2: "BadValue", 59: "CommandNotFound", 10107: "NotWritablePrimary", 40415: "Location40415",
	} {
		if got := Name(code); got != want {
			t.Errorf("Name(%d) = %q, want %q", code, got, want)
		}
	}
	if got := NameBefore50(10107); got != "NotMaster" {
		t.Errorf("NameBefore50(10107) = %q", got)
	}
}

func TestFrom(t *testing.T) {
	e := New(BadValue, "no %s", "x")
	if got := From(fmt.Errorf("while: %w", e)); got != e {
		t.Errorf("From does not find the wrapped error: %v", got)
	}
	if got := From(errors.New("odd")); got.Code != InternalError || got.Msg != "odd" {
		t.Errorf("From(plain) = %v", got)
	}
	if From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
}
