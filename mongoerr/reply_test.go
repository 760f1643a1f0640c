package mongoerr_test

import (
	"errors"
	"testing"

	"allium/bson"
	"allium/mongoerr"
)

// TestReplyError checks the words for what a reply may lack or have too much of, and that a value
// that says nothing has words, too.
func TestReplyError(t *testing.T) {
	for _, tt := range []struct {
		err  mongoerr.ReplyError
		want string
	}{
		{mongoerr.ReplyError{Field: "cursor", Want: "a document"}, "server's reply has no cursor, want a document"},
		{mongoerr.ReplyError{Field: "n", Type: bson.TypeArray, Want: "a number"}, "server's reply has a n that is an array, want a number"},
		{mongoerr.ReplyError{Field: "upserted", Contradiction: "says that statement 3 of 2 upserted"}, "server's reply says that statement 3 of 2 upserted"},
		{mongoerr.ReplyError{Type: bson.TypeString}, "server's reply has a  that is a string, want "},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		if errors.Is(&tt.err, mongoerr.ErrNoCursor) != (tt.err.Field == "cursor") {
			t.Errorf("%v is ErrNoCursor", &tt.err)
		}
	}
}
