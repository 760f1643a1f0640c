package errcode

import (
	"maps"
	"slices"
	"testing"
)

// The lists as the specifications have them, each by itself: the table must not mix them up.
func TestClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		class Class
		codes []int32
	}{
		"retryable writes":        {RetryableWrite, []int32{6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}},
		"retryable reads":         {RetryableRead, []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}},
		"change streams":          {Resumable, []int32{6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}},
		"state change":            {StateChange, []int32{91, 189, 10058, 10107, 11600, 11602, 13435, 13436}},
		"shutting down":           {ShuttingDown, []int32{91, 11600}},
		"duplicate key":           {Duplicate, []int32{11000, 11001, 12582}},
		"out of time":             {OutOfTime, []int32{50, 64, 262}},
		"never satisfied":         {NeverSatisfied, []int32{79, 100}},
		"several classes at once": {StateChange | ShuttingDown | RetryableRead, []int32{91, 11600}},
	} {
		var got []int32
		for _, code := range slices.Sorted(maps.Keys(classes)) {
			if Is(code, tc.class) {
				got = append(got, code)
			}
		}
		if !slices.Equal(got, tc.codes) {
			t.Errorf("%s: %v, want %v", name, got, tc.codes)
		}
	}
	if Is(0, RetryableWrite) || Is(1, Resumable) {
		t.Error("a code that is not in the table has a class")
	}
}
