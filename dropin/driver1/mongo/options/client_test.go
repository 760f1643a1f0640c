package options_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/mongo/options"
)

// TestApplyURI reads what only this version knows, and what both do.
func TestApplyURI(t *testing.T) {
	o := options.Client().SetMaxPoolSize(3).ApplyURI("mongodb://u:p@localhost:1/d?wtimeoutMS=5&socketTimeoutMS=7&w=2&readConcernLevel=local&maxPoolSize=9&authMechanism=PLAIN")
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if *o.SocketTimeout != 7*time.Millisecond || o.WriteConcern.WTimeout != 5*time.Millisecond || o.WriteConcern.W != 2 || o.ReadConcern.Level != "local" ||
		*o.MaxPoolSize != 9 || o.Auth.Username != "u" || o.Auth.AuthSource != "d" || o.Auth.AuthMechanism != "PLAIN" {
		t.Errorf("%+v", o)
	}
	bad := options.Client().ApplyURI("http://x").SetAppName("a")
	if bad.Validate() == nil {
		t.Error("a wrong string is no error")
	}
	if merged := options.MergeClientOptions(o, nil, bad); merged.Validate() == nil || *merged.AppName != "a" || *merged.MaxPoolSize != 9 {
		t.Errorf("%+v", merged)
	}
}

// TestMerge takes of each setting the last value that is set.
func TestMerge(t *testing.T) {
	m := options.MergeFindOptions(options.Find().SetLimit(1).SetSort("a"), nil, options.Find().SetLimit(2).SetSkip(3))
	if *m.Limit != 2 || *m.Skip != 3 || m.Sort != "a" || m.BatchSize != nil {
		t.Errorf("%+v", m)
	}
}
