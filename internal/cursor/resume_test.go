package cursor

import (
	"context"
	"errors"
	"io"
	"testing"

	"allium/internal/session"
	"allium/mongoerr"
)

func TestResumes(t *testing.T) {
	coded := func(code int32, labels ...string) error { return &mongoerr.ServerError{Code: code, Labels: labels} }
	listed := []int32{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
	for _, code := range listed {
		if !resumes(coded(code), 8) {
			t.Errorf("code %d is not resumable before 4.4", code)
		}
		if resumes(coded(code), 9) {
			t.Errorf("code %d without the label is resumable since 4.4", code)
		}
	}
	for name, tc := range map[string]struct {
		err  error
		wire int32
		want bool
	}{
		"network":              {&mongoerr.ConnectionError{Wrapped: io.EOF}, 9, true},
		"timeout":              {&mongoerr.TimeoutError{Wrapped: context.DeadlineExceeded}, 9, true},
		"selection":            {&mongoerr.SelectionError{}, 0, true},
		"pool cleared":         {mongoerr.ErrPoolCleared, 0, true},
		"cursor not found":     {coded(43), 9, true},
		"cursor not found 4.2": {coded(43), 8, true},
		"label":                {coded(1, mongoerr.LabelResumableChangeStream), 9, true},
		"label 4.2":            {coded(1, mongoerr.LabelResumableChangeStream), 8, false},
		"cursor killed":        {coded(237), 8, false},
		"interrupted":          {coded(11601), 9, false},
		"unlisted":             {coded(136), 8, false},
		"wrapped":              {errors.Join(coded(43)), 9, true},
		"closed":               {mongoerr.ErrClientClosed, 9, false},
		"session ended":        {session.ErrEnded, 9, false},
		"session in use":       {session.ErrConcurrent, 9, false},
	} {
		if got := resumes(tc.err, tc.wire); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
