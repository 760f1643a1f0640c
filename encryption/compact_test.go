package encryption_test

import (
	"fmt"
	"slices"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/mongotest"
)

// queryableField returns an encrypted field with a new key.
func queryableField(path, bsonType string, query bson.D) bson.D {
	f := bson.D{{Key: "path", Value: path}, {Key: "bsonType", Value: bsonType}, {Key: "keyId", Value: nil}}
	if query != nil {
		f = append(f, bson.E{Key: "queries", Value: append(query, bson.E{Key: "contention", Value: int64(0)})})
	}
	return f
}

// queryableFields are encryptedFields with queries of all kinds.
func queryableFields() bson.D {
	return bson.D{{Key: "fields", Value: bson.A{
		queryableField("name", "string", bson.D{{Key: "queryType", Value: "equality"}}),
		queryableField("age", "int", bson.D{{Key: "queryType", Value: "range"}, {Key: "min", Value: int32(0)}, {Key: "max", Value: int32(127)},
			{Key: "sparsity", Value: int64(1)}, {Key: "trimFactor", Value: int32(0)}}),
		queryableField("at.city", "string", bson.D{{Key: "queryType", Value: "prefix"}, {Key: "strMinQueryLength", Value: int32(2)}, {Key: "strMaxQueryLength", Value: int32(4)},
			{Key: "caseSensitive", Value: false}, {Key: "diacriticSensitive", Value: true}}),
		queryableField("note", "string", nil),
	}}}
}

// stateCounts returns how many documents the state collections of db.coll have.
func stateCounts(t *testing.T, p *prose) (esc, ecoc int64) {
	t.Helper()
	db := p.plain.Database("db")
	return must(db.Collection("enxcol_.coll.esc").CountDocuments(t.Context(), bson.D{})), must(db.Collection("enxcol_.coll.ecoc").CountDocuments(t.Context(), bson.D{}))
}

// TestCompact compacts and cleans up through the driver, which adds the tokens: state collections
// shrink, and what is found stays the same. Compaction leaves an anchor for each different token,
// and in a range or text field as many more as if no two values had shared any.
func TestCompact(t *testing.T) {
	ctx := t.Context()
	p := startProse(t, nil, mongotest.Version("9.0"))
	must(p.keys.CreateEncryptedCollection(ctx, p.plain.Database("db"), "coll", encryption.CollectionOptions{
		Provider: "local", Create: allium.CreateCollectionOptions{EncryptedFields: queryableFields()}}))
	client, sent := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
	coll := client.Database("db").Collection("coll")
	insert := func(id int) {
		t.Helper()
		must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "name", Value: []string{"ann", "bob"}[id%2]}, {Key: "age", Value: int32(id % 4 * 30)},
			{Key: "at", Value: bson.D{{Key: "city", Value: []string{"Rome", "Romilly", "Oslo"}[id%3]}}}, {Key: "note", Value: "n"}}))
	}
	check := func(what string, n int) {
		t.Helper()
		for _, q := range []struct {
			filter bson.D
			want   func(id int) bool
		}{
			{bson.D{{Key: "name", Value: "bob"}}, func(id int) bool { return id%2 == 1 }},
			{bson.D{{Key: "age", Value: bson.D{{Key: "$gt", Value: int32(20)}, {Key: "$lte", Value: int32(60)}}}}, func(id int) bool { return id%4 == 1 || id%4 == 2 }},
			{bson.D{{Key: "$expr", Value: bson.D{{Key: "$encStrStartsWith", Value: bson.D{{Key: "input", Value: "$at.city"}, {Key: "prefix", Value: "rom"}}}}}},
				func(id int) bool { return id%3 != 2 }},
		} {
			got := idsOf(t, coll, q.filter)
			var want []int
			for id := range n {
				if q.want(id) {
					want = append(want, id)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s finds %v, want %v", what, q.filter, got, want)
			}
		}
	}
	run := func(c *allium.Client, name string) bson.Raw {
		t.Helper()
		return must(c.Database("db").RunCommand(ctx, bson.D{{Key: name, Value: "coll"}}))
	}
	for id := range 24 {
		insert(id)
	}
	// A name has one token, an age eight edges, and a city itself and prefixes of two to four
	// characters.
	const perDocument = 1 + 8 + 1 + 3
	esc, ecoc := stateCounts(t, p)
	if esc != 24*perDocument || ecoc != esc {
		t.Errorf("%d in ESC, %d in ECOC, want %d in both", esc, ecoc, 24*perDocument)
	}
	check("before", 24)
	reply := run(client, "compactStructuredEncryptionData")
	if n, _ := reply.Lookup("stats", "ecoc", "deleted").AsInt64(); n != ecoc {
		t.Errorf("%s: want %d deleted of ECOC", reply, ecoc)
	}
	// Two names. Four ages share edges, and three cities prefixes: padding hides how many.
	anchors := int64(2 + 4*8 + 3*4)
	if esc, ecoc := stateCounts(t, p); esc != anchors || ecoc != 0 {
		t.Errorf("after compaction %d in ESC, %d in ECOC; want %d and 0", esc, ecoc, anchors)
	}
	check("compacted", 24)
	var command bson.Raw
	for _, c := range sent.commands {
		if !c.Lookup("compactStructuredEncryptionData").IsZero() {
			command = c
		}
	}
	tokens, _ := command.Lookup("compactionTokens").Document()
	for path, padded := range map[string]bool{"name": false, "age": true, "at.city": true, "note": false} {
		v := tokens.Lookup(path)
		if _, isDocument := v.Document(); v.IsZero() || isDocument != padded {
			t.Errorf("token of %s is %s", path, v)
		}
	}
	if command.Lookup("encryptionInformation").IsZero() {
		t.Error("no encryptionInformation, although fields are padded")
	}
	// What is inserted next has the next tags.
	for id := 24; id < 36; id++ {
		insert(id)
	}
	check("inserted after compaction", 36)
	run(client, "cleanupStructuredEncryptionData")
	check("cleaned up", 36)
	// The anchors of each token have become one, and so have those that pad a field.
	esc, ecoc = stateCounts(t, p)
	if unique := int64(2 + uniqueEdges(0, 30, 60, 90) + 1 + uniquePrefixes("rome", "romilly", "oslo") + 1); esc != unique || ecoc != 0 {
		t.Errorf("after cleanup %d in ESC, %d in ECOC; want %d and 0", esc, ecoc, unique)
	}
	for id := 36; id < 40; id++ {
		insert(id)
	}
	check("inserted after cleanup", 40)
	run(client, "compactStructuredEncryptionData")
	check("compacted again", 40)
	// Fields stay what they are for a client that analyzes no queries, and there is nothing to add
	// for one that does not encrypt.
	bypass, _ := p.auto(encryption.AutoOptions{BypassQueryAnalysis: true}, allium.ClientOptions{})
	run(bypass, "cleanupStructuredEncryptionData")
	check("cleaned up by hand", 40)
	for _, c := range []*allium.Client{p.plain, first(p.auto(encryption.AutoOptions{BypassEncryption: true}, allium.ClientOptions{}))} {
		if _, err := c.Database("db").RunCommand(ctx, bson.D{{Key: "compactStructuredEncryptionData", Value: "coll"}}); err == nil {
			t.Error("no tokens, and no error")
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// uniqueEdges returns how many prefixes the seven-bit numbers have, the empty one among them.
func uniqueEdges(numbers ...int) int {
	edges := map[string]bool{}
	for _, n := range numbers {
		bits := fmt.Sprintf("%07b", n)
		for i := range len(bits) + 1 {
			edges[bits[:i]] = true
		}
	}
	return len(edges)
}

// uniquePrefixes returns how many tokens texts have: their own, and their prefixes of two to four
// characters.
func uniquePrefixes(texts ...string) int {
	tokens := map[string]bool{}
	for _, s := range texts {
		tokens["="+s] = true
		for n := 2; n <= 4; n++ {
			tokens[s[:n]] = true
		}
	}
	return len(tokens)
}

// idsOf returns the _ids of the documents that a filter finds, in order.
func idsOf(t *testing.T, coll *allium.UntypedCollection, filter any) []int {
	t.Helper()
	docs, err := must(coll.Find(t.Context(), filter, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})).All(t.Context())
	if err != nil {
		t.Errorf("%v: %v", filter, err)
	}
	var ids []int
	for _, d := range docs {
		n, _ := bson.Raw(must(bson.Marshal(d))).Lookup("_id").AsInt64()
		ids = append(ids, int(n))
	}
	return ids
}
