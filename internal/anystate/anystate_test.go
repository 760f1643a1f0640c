package anystate

import (
	"math/rand/v2"
	"strings"
	"testing"

	"allium"
	"allium/mongotest"
)

// kinds are words of a description that stand for a kind of thing each.
var kinds = []string{`capped":true`, "clusteredIndex", "timeseries", "viewOn", "validator", "expireAfterSeconds", "collation", "hashed", "_fts", "2dsphere", `"2d"`, "$**",
	"unique: true", "sparse: true", "hidden: true", "partialFilterExpression", "customData", "authenticationRestrictions", "SCRAM-SHA-256", "external", "role1"}

// Some states together have every kind of thing, and another state is told from the first.
func TestMake(t *testing.T) {
	seen := map[string]bool{}
	var last map[string]string
	for seed := range uint64(25) {
		d := mongotest.Start(t)
		client, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		if err := Make(t.Context(), client, rand.New(rand.NewPCG(seed, 1)), Options{Major: 8, Accounts: true}); err != nil {
			t.Fatal(err)
		}
		all, err := Describe(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		if lines := Differences(all, last); len(lines) < len(all)/2 {
			t.Errorf("seed %d: only %d differences", seed, len(lines))
		}
		if lines := Differences(all, all); len(lines) > 0 {
			t.Errorf("it differs from itself: %v", lines)
		}
		last = all
		for what, text := range all {
			for _, word := range kinds {
				if strings.Contains(what+text, word) {
					seen[word] = true
				}
			}
		}
		client.Close(t.Context())
		d.Stop()
	}
	for _, word := range kinds {
		if !seen[word] {
			t.Errorf("no state has %s", word)
		}
	}
}
