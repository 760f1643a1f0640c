package command

import (
	"testing"

	"allium/bson"
)

// FuzzReplies reads any document as the reply of each command. What comes out of a reply is all
// inside of it: nothing is invented, and nothing panics.
func FuzzReplies(f *testing.F) {
	for _, seed := range []bson.D{
		{{Key: "n", Value: 2}, {Key: "nModified", Value: int64(1)}, {Key: "ok", Value: 1.0},
			{Key: "upserted", Value: bson.A{bson.D{{Key: "index", Value: 1}, {Key: "_id", Value: "x"}}}},
			{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}}}},
		{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "db.c"}, {Key: "firstBatch", Value: bson.A{bson.D{{Key: "a", Value: 1}}}},
			{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: "82"}}}, {Key: "atClusterTime", Value: bson.Timestamp{T: 1, I: 2}}}}},
		{{Key: "nErrors", Value: 1}, {Key: "nInserted", Value: 2}, {Key: "nUpserted", Value: 3}, {Key: "nMatched", Value: 4}, {Key: "nModified", Value: 5}, {Key: "nDeleted", Value: 6}},
		{{Key: "ok", Value: 1.0}, {Key: "idx", Value: 3}, {Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "upserted", Value: bson.D{{Key: "_id", Value: 1}}}},
		{{Key: "value", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "lastErrorObject", Value: bson.D{{Key: "n", Value: 1}}}},
		{{Key: "value", Value: nil}, {Key: "n", Value: 1e300}},
	} {
		doc, err := bson.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(doc))
	}
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := bson.Raw(data)
		if w, err := ParseWrite(reply); err == nil {
			for _, u := range w.Upserted {
				if u.ID.IsZero() {
					t.Error("something was upserted, without an _id")
				}
			}
			if len(w.Upserted) > len(data) || len(w.WriteErrors) > len(data) {
				t.Errorf("%d upserted and %d bytes of write errors in %d bytes", len(w.Upserted), len(w.WriteErrors), len(data))
			}
		}
		for _, batch := range []string{FirstBatch, NextBatch} {
			c, err := ParseCursor(reply, batch)
			if err != nil {
				continue
			}
			if c.Batch == nil || reply.Lookup("cursor", "id").IsZero() {
				t.Error("a cursor without a batch or an id")
			}
			first, err := c.First()
			if err == nil && (first == nil) != (len(c.Batch.Elements()) == 0) {
				t.Errorf("the first document is %v of a batch of %d bytes", first, len(c.Batch))
			}
		}
		ParseBulkWrite(reply)
		if o, err := ParseBulkOutcome(reply); err == nil && o.Index < 0 {
			t.Errorf("the index of an outcome is %d", o.Index)
		}
		if n, err := ParseN(reply); err == nil && n != 0 && reply.Lookup("n").IsZero() {
			t.Errorf("n is %d, and there is none", n)
		}
		if doc, err := ParseFindAndModify(reply); err == nil && len(doc) > len(data) {
			t.Errorf("a document of %d bytes out of %d", len(doc), len(data))
		}
	})
}
