package operations

import (
	"bytes"
	"testing"

	"allium"
	"allium/bson"
)

// FuzzChangeEvent decodes any document as an event of a change stream, twice: with its documents as
// they are, and as maps. The event holds what the document says, its token and nothing that is not
// there, and both ways agree.
func FuzzChangeEvent(f *testing.F) {
	for _, seed := range []bson.D{
		{{Key: "_id", Value: bson.D{{Key: "_data", Value: "8265"}}}, {Key: "operationType", Value: "update"}, {Key: "ns", Value: bson.D{{Key: "db", Value: "d"}, {Key: "coll", Value: "c"}}},
			{Key: "documentKey", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "clusterTime", Value: bson.Timestamp{T: 1, I: 2}}, {Key: "wallTime", Value: bson.DateTime(1)},
			{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "removedFields", Value: bson.A{"b", 1}},
				{Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "c"}, {Key: "newSize", Value: 1e300}}, 3}}, {Key: "disambiguatedPaths", Value: bson.D{}}}},
			{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "fullDocumentBeforeChange", Value: nil}, {Key: "txnNumber", Value: int64(1)}, {Key: "lsid", Value: bson.D{}}},
		{{Key: "_id", Value: "x"}, {Key: "operationType", Value: 1}, {Key: "to", Value: bson.D{{Key: "db", Value: "d"}}}, {Key: "collectionUUID", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
			{Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: 1}, {Key: "of", Value: 2}}}, {Key: "nsType", Value: "view"}, {Key: "operationDescription", Value: bson.D{}}},
		{{Key: "wallTime", Value: bson.DateTime(1 << 62)}, {Key: "fullDocument", Value: bson.A{1}}, {Key: "collectionUUID", Value: bson.Binary{Subtype: 4, Data: []byte{1}}}},
	} {
		doc, err := bson.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(doc))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var raw allium.ChangeEvent[bson.Raw]
		var tree allium.ChangeEvent[bson.M]
		rawErr := raw.UnmarshalBSON(data)
		treeErr := tree.UnmarshalBSON(data)
		if rawErr != nil {
			if treeErr == nil {
				t.Fatalf("as maps it decodes, as it is not: %v", rawErr)
			}
			return
		}
		if !bytes.Equal(raw.Raw, data) {
			t.Fatal("the raw event is another one")
		}
		doc := bson.Raw(data)
		if id := doc.Lookup("_id"); (id.Type == bson.TypeEmbeddedDocument) != (raw.ID != nil) {
			t.Fatalf("the token is %v of %v", raw.ID, id)
		}
		if (doc.Lookup("fullDocument").Type == bson.TypeEmbeddedDocument) != (raw.FullDocument != nil) {
			t.Fatalf("the document is %v of %v", raw.FullDocument, doc.Lookup("fullDocument"))
		}
		if u := raw.UpdateDescription; u != nil && len(u.RemovedFields)+len(u.TruncatedArrays) > len(data) {
			t.Fatalf("%d fields in %d bytes", len(u.RemovedFields)+len(u.TruncatedArrays), len(data))
		}
		_ = raw.Namespace.String()
		if treeErr != nil {
			return // a broken document within
		}
		if raw.OperationType != tree.OperationType || raw.Namespace != tree.Namespace || raw.ClusterTime != tree.ClusterTime || !raw.WallTime.Equal(tree.WallTime) ||
			(raw.FullDocument == nil) != (tree.FullDocument == nil) || (raw.UpdateDescription == nil) != (tree.UpdateDescription == nil) {
			t.Fatalf("%+v and %+v", raw, tree)
		}
	})
}
