package failure

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"allium/bson"
	"allium/mongoerr"
)

// FuzzReply reads any document as a server's error. The error is one line of bounded length whose
// kind and code can be asked for, and its outline shows nothing of what the server said.
func FuzzReply(f *testing.F) {
	for _, seed := range []bson.D{
		{{Key: "ok", Value: 0.0}, {Key: "code", Value: 11000}, {Key: "codeName", Value: "DuplicateKey"}, {Key: "errmsg", Value: "E11000 dup key: { a: \"planted\" }"},
			{Key: "errorLabels", Value: bson.A{"RetryableWriteError", 1}}},
		{{Key: "$err", Value: "not master\nand more"}, {Key: "code", Value: int64(1) << 40}},
		{{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting"}, {Key: "errInfo", Value: bson.D{{Key: "wtimeout", Value: true}}}, {Key: "errorLabels", Value: bson.A{"a"}}}},
			{Key: "topologyVersion", Value: bson.D{{Key: "counter", Value: 1}}}},
		{{Key: "writeConcernError", Value: "text"}},
		{{Key: "index", Value: 3}, {Key: "code", Value: 121}, {Key: "errmsg", Value: "\x1b[31mDocument failed validation"}, {Key: "errInfo", Value: bson.D{{Key: "x", Value: 1}}}},
	} {
		doc, err := bson.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(doc), 0)
	}
	f.Add([]byte{}, -1)
	f.Fuzz(func(t *testing.T, data []byte, base int) {
		server := NewServerError("find", "a:27017", bson.Raw(data))
		all := []error{server, NewWriteError(bson.Raw(data), base), fmt.Errorf("wrapped: %w", server), &mongoerr.BulkWriteError{WriteErrors: []*mongoerr.WriteError{NewWriteError(bson.Raw(data), base)}}}
		if concern := NewWriteConcernError("a:27017", bson.Raw(data)); concern != nil {
			if bson.Raw(data).Lookup("writeConcernError").IsZero() {
				t.Error("a write concern error out of nothing")
			}
			all = append(all, concern)
		}
		for _, err := range all {
			Name(err, "find", "db.c")
			text := err.Error()
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") {
				t.Errorf("%T prints as %q", err, text)
			}
			if len(text) > 4*len(data)+1000 {
				t.Errorf("%T of %d bytes prints as %d", err, len(data), len(text))
			}
			if s := bson.Raw(data).Lookup("errmsg"); s.Type == bson.TypeString {
				if said, _ := s.StringValue(); len(said) > 12 && !strings.Contains("error of the server canceled timeout", said) && strings.Contains(Outline(err), said) {
					t.Errorf("the outline %q shows %q", Outline(err), said)
				}
			}
			for _, label := range AllLabels(err) {
				if !mongoerr.HasLabel(err, label) {
					t.Errorf("%T has the label %q and does not have it", err, label)
				}
			}
			AddLabel(err, "mine")
		}
		if !mongoerr.HasLabel(server, "mine") || !errors.Is(all[2], server) {
			t.Error("a label is lost")
		}
	})
}
