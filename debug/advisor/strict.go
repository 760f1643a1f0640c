package advisor

import (
	"context"

	"allium"
)

// TB is the part of testing.TB that Strict needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Strict opens a client that is closed when the test ends, and fails the test for each finding,
// with the file and the line of the program that sent the operation. Options.Report is told first.
//
//	d := mongotest.Start(t, mongotest.ReplicaSet(1))
//	client := advisor.Strict(t, d.URI(), advisor.Options{
//		Exempt: map[string][]advisor.Rule{"settings": {advisor.RuleIndex}},
//	})
//
// Setting up and looking at data is no less watched: a test does that on a client of its own.
func Strict(t TB, uri string, o Options, opts ...allium.ClientOptions) *allium.Client {
	t.Helper()
	if o.Within == 0 {
		o.Within = -1
	}
	report := o.Report
	o.Report = func(f Finding) {
		if report != nil {
			report(f)
		}
		t.Errorf("%v", f)
	}
	client, a, err := Open(uri, o, opts...)
	if err != nil {
		t.Fatalf("strict: %v", err)
		return nil
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Errorf("strict: close: %v", err)
		}
		a.Close(context.Background())
	})
	return client
}
