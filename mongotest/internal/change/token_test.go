package change

import (
	"encoding/hex"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// TestCutTokens: a token may lack its last byte, and no more.
func TestCutTokens(t *testing.T) {
	for _, id := range []any{1, "x", bson.ObjectID{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233}, bson.D{{Key: "a", Value: bson.A{1, "b"}}}, true} {
		key, err := bson.Marshal(bson.D{{Key: "k", Value: "shard"}, {Key: "_id", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		tok := Token{Ts: bson.Timestamp{T: 5, I: 1}, Event: true, Uuid: [16]byte{1}, Key: key}
		text, _ := tok.Document().Lookup("_data").StringValue()
		whole, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		// What is left may end with the byte that ends tokens only if the key does so here and
		// there.
		for n := len(whole) - 1; n > len(whole)-len(key)/2; n-- {
			cut := hex.EncodeToString(whole[:n])
			doc, err := bson.Marshal(bson.D{{Key: "_data", Value: cut}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseToken(doc)
			if wantErr := n < len(whole)-1; (err != nil) != wantErr || wantErr && srverr.From(err).Code != srverr.Overflow {
				t.Errorf("%v: %d of %d bytes: %v", id, n, len(whole), err)
			}
		}
	}
}
