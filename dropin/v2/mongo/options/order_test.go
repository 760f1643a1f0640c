package options

import "testing"

// TestOrder: what is set last counts, and what was not set stays nil.
func TestOrder(t *testing.T) {
	sort := map[string]int{"a": 1}
	var o FindOptions
	for _, set := range Find().SetLimit(5).SetSort("b").SetLimit(7).SetSort(sort).List() {
		if err := set(&o); err != nil {
			t.Fatal(err)
		}
	}
	if o.Limit == nil || *o.Limit != 7 || o.Sort == nil || o.Skip != nil {
		t.Errorf("%+v", o)
	}
	var i CreateIndexesOptions
	for _, set := range CreateIndexes().SetCommitQuorumInt(3).SetCommitQuorumMajority().List() {
		if err := set(&i); err != nil {
			t.Fatal(err)
		}
	}
	if i.CommitQuorum != "majority" {
		t.Errorf("%+v", i)
	}
}
