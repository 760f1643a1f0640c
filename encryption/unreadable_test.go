package encryption_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/mongoerr"
)

// unreadable stores documents of which some cannot be decrypted, and returns their numbers: the key
// of one is deleted, as for somebody who wants to be forgotten, and the next one was changed.
func unreadable(t *testing.T, d *encryptiontest.Deployment, client *allium.Client, n int) (odd []int) {
	t.Helper()
	ctx := t.Context()
	key := func() bson.UUID {
		id, err := d.Keys.CreateDataKey(ctx, encryptiontest.Provider)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	good, gone := key(), key()
	for i := range n {
		id := good
		if i%3 == 1 {
			id = gone
		}
		v, err := d.Keys.Encrypt(ctx, fmt.Sprint("secret ", i), encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			v.Data = slices.Clone(v.Data)
			v.Data[len(v.Data)-1] ^= 1
		}
		if i%3 != 0 {
			odd = append(odd, i)
		}
		if _, err := client.Database("d").Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "secret", Value: v}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Keys.DeleteKey(ctx, gone); err != nil {
		t.Fatal(err)
	}
	return odd
}

// checkUnreadable checks what was read: all documents, and errors in the places of those that
// cannot be decrypted, which have them as they are stored.
func checkUnreadable(t *testing.T, i int, odd []int, secret string, err error) {
	t.Helper()
	if !slices.Contains(odd, i) {
		if err != nil || secret != fmt.Sprint("secret ", i) {
			t.Errorf("document %d: %q, %v", i, secret, err)
		}
		return
	}
	e, ok := errors.AsType[*mongoerr.DecodeError](err)
	if !ok {
		t.Fatalf("document %d: %v, want a DecodeError", i, err)
	}
	class := encryption.ErrKeyNotFound
	if i%3 == 2 {
		class = encryption.ErrAuthentication
	}
	doc := e.Document
	if full, ok := doc.Lookup("fullDocument").Document(); ok {
		doc = full
	}
	id, _ := doc.Lookup("_id").AsInt64()
	if v, ok := doc.Lookup("secret").Binary(); !errors.Is(err, class) || id != int64(i) || !ok || v.Subtype != 6 {
		t.Errorf("document %d: %v, with %v", i, err, e.Document)
	}
}

// TestUnreadableDocuments: a document that cannot be decrypted hides no others, whatever loop reads
// them, and however they fall into batches. Operations of one reply fail with it.
func TestUnreadableDocuments(t *testing.T) {
	d := encryptiontest.Start(t)
	client, err := d.Client(encryption.AutoOptions{BypassQueryAnalysis: true})
	if err != nil {
		t.Fatal(err)
	}
	type document struct {
		ID     int    `bson:"_id"`
		Secret string `bson:"secret"`
	}
	coll := allium.CollectionOf[document](client.Database("d"), "c")
	opened, err := coll.Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	start := opened.ResumeToken()
	opened.Close(t.Context())
	const n = 9
	odd := unreadable(t, d, client, n)
	ctx, sort := t.Context(), bson.D{{Key: "_id", Value: 1}}
	for _, size := range []int32{1, 2, 4, 50} {
		o := allium.FindOptions{Sort: sort, BatchSize: &size}
		i := 0
		for doc, err := range coll.Query(ctx, bson.D{}, o) {
			checkUnreadable(t, i, odd, doc.Secret, err)
			i++
		}
		cur, err := coll.Find(ctx, bson.D{}, o)
		if err != nil {
			t.Fatal(err)
		}
		all, err := cur.All(ctx)
		errs, _ := errors.AsType[mongoerr.DecodeErrors](err)
		if i != n || len(all) != n-len(odd) || len(errs) != len(odd) {
			t.Errorf("batches of %d: %d documents in a loop; All: %v, %v", size, i, all, err)
		}
		raw, err := allium.As[bson.Raw](coll).Find(ctx, bson.D{}, o)
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range raw.Batches(ctx) {
			last = err
		}
		if !errors.Is(last, encryption.ErrKeyNotFound) {
			t.Errorf("batches of %d: %v, want that a key is not found", size, last)
		}
		stream, err := coll.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: start, BatchSize: &size})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			stream.Next(ctx)
			secret := ""
			if doc := stream.Current().FullDocument; doc != nil {
				secret = doc.Secret
			}
			checkUnreadable(t, i, odd, secret, stream.Err())
			if e, ok := errors.AsType[*mongoerr.DecodeError](stream.Err()); ok && e.ResumeToken == nil {
				t.Errorf("event %d has no token", i)
			}
		}
		stream.Close(ctx)
	}
	if _, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: odd[0]}}); !errors.Is(err, encryption.ErrKeyNotFound) {
		t.Errorf("FindOne: %v", err)
	}
	find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{}}}
	if _, err := client.Database("d").RunCommand(ctx, find); !errors.Is(err, encryption.ErrKeyNotFound) && !errors.Is(err, encryption.ErrAuthentication) {
		t.Errorf("RunCommand: %v", err)
	}
}
