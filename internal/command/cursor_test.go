package command

import (
	"errors"
	"testing"

	"allium/bson"
	"allium/mongoerr"
)

// TestParseCursor wants a cursor in a reply to have an id and a batch; what else is there is read,
// and what is not known is left alone.
func TestParseCursor(t *testing.T) {
	at, token := bson.Timestamp{T: 5, I: 6}, bson.D{{Key: "_data", Value: "x"}}
	cursor := func(fields ...bson.E) bson.Raw {
		raw, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D(fields)}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	id, ns, batch := bson.E{Key: "id", Value: int64(7)}, bson.E{Key: "ns", Value: "d.c"}, bson.A{bson.D{{Key: "x", Value: 1}}}
	first, next := bson.E{Key: "firstBatch", Value: batch}, bson.E{Key: "nextBatch", Value: batch}
	none, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	number, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reply bson.Raw
		batch string
		want  string // the error; "": none
	}{
		"first batch":  {cursor(id, ns, first), FirstBatch, ""},
		"next batch":   {cursor(next, ns, id, bson.E{Key: "partialResultsReturned", Value: true}), NextBatch, ""},
		"both":         {cursor(id, ns, bson.E{Key: "firstBatch", Value: bson.A{}}, next), NextBatch, ""},
		"an int32":     {cursor(bson.E{Key: "id", Value: int32(7)}, ns, first), FirstBatch, ""},
		"no cursor":    {none, FirstBatch, "no cursor, want a document"},
		"a number":     {number, FirstBatch, "a cursor that is a 32-bit integer, want a document"},
		"no id":        {cursor(ns, first), FirstBatch, "no cursor.id, want a number"},
		"id is a text": {cursor(bson.E{Key: "id", Value: "7"}, ns, first), FirstBatch, "a cursor.id that is a string, want a number"},
		"no batch":     {cursor(id, ns), FirstBatch, "no cursor.firstBatch, want an array"},
		"batch: a doc": {cursor(id, ns, bson.E{Key: "firstBatch", Value: bson.D{}}), FirstBatch, "a cursor.firstBatch that is an embedded document, want an array"},
		"of a getMore": {cursor(id, ns, first), NextBatch, "no cursor.nextBatch, want an array"},
		"of a find":    {cursor(id, ns, next), FirstBatch, "no cursor.firstBatch, want an array"},
	} {
		c, err := ParseCursor(tc.reply, tc.batch)
		switch {
		case tc.want != "":
			var odd *mongoerr.ReplyError
			if !errors.As(err, &odd) || err.Error() != "server's reply has "+tc.want {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
			if errors.Is(err, mongoerr.ErrNoCursor) != (odd != nil && odd.Field == "cursor") {
				t.Errorf("%s: %v is ErrNoCursor or not", name, err)
			}
		case err != nil || c.ID != 7 || c.NS() != "d.c" || c.Batch.String() != `{"0":{"x":1}}` || c.PostBatchResumeToken != nil || !c.AtClusterTime.IsZero():
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	c, err := ParseCursor(cursor(id, first, bson.E{Key: "postBatchResumeToken", Value: token}, bson.E{Key: "atClusterTime", Value: at}), FirstBatch)
	if err != nil || c.PostBatchResumeToken.String() != `{"_data":"x"}` || c.AtClusterTime != at {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCommentsOfCursorCommands wants the comment of a getMore and a killCursors to be for servers
// from 4.4 on (specification: Find, getMore and killCursors Commands).
func TestCommentsOfCursorCommands(t *testing.T) {
	for name, of := range map[string]func(comment any) Command{
		"getMore":     func(comment any) Command { return &GetMore{ID: 7, Collection: "c", Comment: comment} },
		"killCursors": func(comment any) Command { return &KillCursors{ID: 7, Collection: "c", Comment: comment} },
	} {
		for _, comment := range []any{nil, "why", bson.D{{Key: "a", Value: 1}}} {
			var target Target
			start, dst := bson.BeginDocument(nil)
			dst, err := of(comment).AppendBody(dst, &target)
			if err != nil {
				t.Fatal(err)
			}
			if comment == nil {
				if whole := bson.Raw(bson.EndDocument(dst, start)); target.Since != 0 || !whole.Lookup("comment").IsZero() {
					t.Errorf("%s without a comment: %v, for servers from %d on", name, whole, target.Since)
				}
				continue
			}
			if target.Since != 9 {
				t.Errorf("%s: the comment is for servers from %d on, want 9", name, target.Since)
				continue
			}
			_, last := bson.BeginDocument(nil)
			option := bson.Raw(bson.EndDocument(append(last, dst[target.Optional:]...), 0))
			if got := option.Lookup("comment"); got.IsZero() || bson.Raw(bson.EndDocument(dst[:target.Optional:target.Optional], start)).Validate() != nil {
				t.Errorf("%s: the last element is %v", name, option)
			}
		}
	}
}

// TestCursorCommands: a getMore and a killCursors name the cursor and its collection
// (specification: Find, getMore and killCursors Commands).
func TestCursorCommands(t *testing.T) {
	for want, c := range map[string]Command{
		`{"getMore":7,"collection":"c"}`:                                   &GetMore{ID: 7, Collection: "c"},
		`{"getMore":7,"collection":"c","batchSize":5}`:                     &GetMore{ID: 7, Collection: "c", BatchSize: 5},
		`{"killCursors":"c","cursors":[7]}`:                                &KillCursors{ID: 7, Collection: "c"},
		`{"killCursors":"$cmd.aggregate","cursors":[9223372036854775807]}`: &KillCursors{ID: 1<<63 - 1, Collection: "$cmd.aggregate"},
	} {
		doc, err := body(t, c)
		if err != nil || doc.String() != want {
			t.Errorf("%v, %v, want %s", doc, err, want)
		}
	}
}
