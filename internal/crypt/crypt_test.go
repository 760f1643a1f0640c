package crypt

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/fle"
)

func stringValue(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

func TestEncryptAndDecrypt(t *testing.T) {
	k, v, _, docs := rig(t, 3, time.Minute)
	marking := fle.Marking{Value: stringValue("one"), Algorithm: fle.Deterministic, KeyID: docs[0].ID}
	byName := fle.Marking{Value: stringValue("two"), Algorithm: fle.Random, KeyAltName: "key1"}
	unindexed := fle.Placeholder{Purpose: fle.ForInsert, Index: fle.IndexNone, IndexKey: docs[2].ID, UserKey: docs[2].ID, Value: stringValue("three")}
	indexed := fle.Placeholder{Purpose: fle.ForInsert, Index: fle.IndexEquality, IndexKey: docs[2].ID, UserKey: docs[1].ID, Value: stringValue("four"), Contention: 4}
	binary := func(data []byte) bson.Binary { return bson.Binary{Subtype: bson.BinaryEncrypted, Data: data} }
	doc := bson.Raw(must(bson.Marshal(bson.D{
		{Key: "a", Value: binary(marking.Append(nil))}, {Key: "b", Value: bson.A{1, binary(byName.Append(nil))}},
		{Key: "c", Value: bson.D{{Key: "d", Value: binary(unindexed.Append(nil))}}}, {Key: "e", Value: binary(indexed.Append(nil))}, {Key: "f", Value: "plain"},
	})))
	out := must(k.Encrypt(t.Context(), doc, rand.Reader))
	if err := out.Validate(); err != nil {
		t.Fatal(err)
	}
	if v.asked() != 1 {
		t.Errorf("%d queries", v.asked())
	}
	for _, plain := range []string{"one", "two", "three", "four"} {
		if bytes.Contains(out, []byte(plain)) {
			t.Errorf("%q is readable", plain)
		}
	}
	back := must(k.Decrypt(t.Context(), out))
	want := must(bson.Marshal(bson.D{
		{Key: "a", Value: "one"}, {Key: "b", Value: bson.A{1, "two"}}, {Key: "c", Value: bson.D{{Key: "d", Value: "three"}}}, {Key: "e", Value: "four"}, {Key: "f", Value: "plain"},
	}))
	if !bytes.Equal(back, want) {
		t.Errorf("got %s", back)
	}

	// What a server stores has two layers with a key each.
	data, _ := fle.Data(out.Lookup("e"))
	stored, _, err := must(fle.ParseInsert(data)).Store([]uint64{1}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	fresh := NewKeys(v, newLocal(), time.Minute)
	defer fresh.Close()
	reply := bson.Raw(must(bson.Marshal(bson.D{{Key: "e", Value: binary(stored)}, {Key: "x", Value: binary(stored)}})))
	back = must(fresh.Decrypt(t.Context(), reply))
	if got, _ := back.Lookup("x").StringValue(); got != "four" {
		t.Errorf("got %s", back)
	}
	if v.asked() != 3 {
		t.Errorf("%d queries, want one for each layer", v.asked())
	}
	for n, c := range fresh.cached {
		if c.users != 0 {
			t.Errorf("%s is in use by %d", n, c.users)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	k := NewKeys(nil, nil, 0)
	doc := bson.Raw(must(bson.Marshal(bson.D{{Key: "a", Value: bson.A{1, "x"}}})))
	if n := testing.AllocsPerRun(100, func() {
		if out, err := k.Decrypt(t.Context(), doc); err != nil || &out[0] != &doc[0] {
			t.Fatal(out, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecryptErrors(t *testing.T) {
	k, _, _, docs := rig(t, 1, time.Minute)
	key := Key{ID: &docs[0].ID}
	o := &fle.Explicit{Algorithm: "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}
	good := must(k.EncryptValue(t.Context(), stringValue("secret"), o, key, rand.Reader))
	data, _ := fle.Data(good)
	wrap := func(data []byte) bson.Raw {
		return must(bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.Binary{Subtype: 6, Data: data}}}}}))
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"changed":     {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, fle.ErrTag},
		"cut":         {func(b []byte) []byte { return b[:40] }, fle.ErrMalformed},
		"other type":  {func(b []byte) []byte { b[17] = byte(bson.TypeInt32); return b }, fle.ErrTag},
		"unknown key": {func(b []byte) []byte { b[1] ^= 1; return b }, ErrKeyNotFound},
		"obsolete":    {func(b []byte) []byte { b[0] = 7; return b }, fle.ErrObsolete},
		"unknown":     {func(b []byte) []byte { b[0] = 77; return b }, fle.ErrMalformed},
	} {
		_, err := k.Decrypt(t.Context(), wrap(c.change(bytes.Clone(data))))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != ErrKeyNotFound && !strings.Contains(err.Error(), `"a.b"`) {
			t.Errorf("%s: %v does not say where", name, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	if _, err := k.DecryptValue(t.Context(), stringValue("x")); !errors.Is(err, fle.ErrMalformed) {
		t.Error(err)
	}
	marking := fle.Marking{Value: stringValue("x"), Algorithm: fle.Random, KeyID: docs[0].ID}
	if _, err := k.DecryptValue(t.Context(), fle.Value(marking.Append(nil))); !errors.Is(err, fle.ErrMalformed) {
		t.Error(err)
	}
}

func TestEncryptValue(t *testing.T) {
	k, v, _, docs := rig(t, 1, time.Minute)
	det := &fle.Explicit{Algorithm: "aead_aes_256_cbc_hmac_sha_512-DETERMINISTIC"}
	for _, c := range []struct {
		o    *fle.Explicit
		key  Key
		want string
	}{
		{det, Key{}, "either key id or key alt name required"},
		{det, Key{ID: &docs[0].ID, AltName: "key0"}, "cannot have both key id and key alt name"},
		{&fle.Explicit{}, Key{ID: &docs[0].ID}, "algorithm or index type required"},
		{&fle.Explicit{Algorithm: "rot13"}, Key{ID: &docs[0].ID}, "unsupported algorithm"},
		{&fle.Explicit{Algorithm: "rangePreview"}, Key{ID: &docs[0].ID}, "Algorithm 'rangePreview' is deprecated, please use 'range'"},
		{&fle.Explicit{Algorithm: "Indexed"}, Key{ID: &docs[0].ID}, "contention factor is required for indexed algorithm"},
		{&fle.Explicit{Algorithm: "Unindexed", Contention: new(int64(1))}, Key{ID: &docs[0].ID}, "cannot set contention factor with no index type"},
		{&fle.Explicit{Algorithm: "Indexed", QueryType: "range", Contention: new(int64(1))}, Key{ID: &docs[0].ID}, "query_type (range) must match index_type (Indexed)"},
		{&fle.Explicit{Algorithm: "Range", Contention: new(int64(1))}, Key{ID: &docs[0].ID}, "range opts are required"},
		{&fle.Explicit{Algorithm: "Range", QueryType: "range", Contention: new(int64(1)), Range: &fle.RangeOptions{}}, Key{ID: &docs[0].ID}, "Encrypt may not be used for range queries. Use EncryptExpression."},
	} {
		_, err := k.EncryptValue(t.Context(), stringValue("x"), c.o, c.key, rand.Reader)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := k.EncryptExpression(t.Context(), must(bson.Marshal(bson.D{})), det, Key{ID: &docs[0].ID}, 0, rand.Reader); err == nil || !strings.Contains(err.Error(), "EncryptExpression may only be used for range queries.") {
		t.Error(err)
	}
	if v.asked() != 0 {
		t.Error("keys were looked for")
	}
	a := must(k.EncryptValue(t.Context(), stringValue("x"), det, Key{ID: &docs[0].ID}, rand.Reader))
	b := must(k.EncryptValue(t.Context(), stringValue("x"), det, Key{AltName: "key0"}, rand.Reader))
	if !a.Equal(b) {
		t.Error("the key's name makes a difference")
	}
	if back := must(k.DecryptValue(t.Context(), b)); !back.Equal(stringValue("x")) {
		t.Error(back)
	}
}

// counter is a source of bytes that count.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
		c.n++
	}
	return len(p), nil
}

func TestDataKeyVectors(t *testing.T) {
	var questions map[string]struct {
		Question struct {
			Opts struct {
				KeyAltNames []string
				KeyMaterial json.RawMessage
			}
		}
		Answer struct {
			Result json.RawMessage
			Error  string
		}
	}
	if err := json.Unmarshal(must(os.ReadFile("testdata/datakey.json")), &questions); err != nil {
		t.Fatal(err)
	}
	if len(questions) != 3 {
		t.Errorf("%d questions", len(questions))
	}
	for name, q := range questions {
		var material []byte
		if q.Question.Opts.KeyMaterial != nil {
			b, _ := must(bson.ParseExtJSONValue(q.Question.Opts.KeyMaterial)).Binary()
			material = b.Data
		}
		l := newLocal()
		random := &counter{}
		l.random = random
		k := NewKeys(nil, l, 0)
		d, err := k.NewDocument(t.Context(), localKey, q.Question.Opts.KeyAltNames, material, random)
		if q.Answer.Error != "" {
			if err == nil || err.Error() != q.Answer.Error {
				t.Errorf("%s: error %v, want %s", name, err, q.Answer.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := must(bson.ParseExtJSONValue(q.Answer.Result)).Document()
		w := must(ParseDocument(want))
		d.Created, d.Updated = w.Created, w.Updated
		if got := bson.Raw(d.Append(nil)); !bson.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestRewrap(t *testing.T) {
	k, v, l, docs := rig(t, 2, time.Minute)
	out, err := k.Rewrap(t.Context(), v.docs, nil)
	if err != nil || len(out) != 2 {
		t.Fatal(out, err)
	}
	for i, r := range out {
		if r.ID != docs[i].ID || !bson.Equal(r.MasterKey, localKey) || bytes.Equal(r.Material, docs[i].Material) {
			t.Errorf("%d: %+v", i, r)
		}
		if !bytes.Equal(must(fle.UnwrapKey(l.master, r.Material)), must(fle.UnwrapKey(l.master, docs[i].Material))) {
			t.Errorf("%d: other material", i)
		}
	}
	l.err = errors.New("broken")
	if out, err := k.Rewrap(t.Context(), v.docs, localKey); !errors.Is(err, l.err) || out != nil {
		t.Error(out, err)
	}
}

func TestParseDocument(t *testing.T) {
	_, _, _, docs := rig(t, 1, time.Minute)
	good := docs[0].Append(nil)
	if d, err := ParseDocument(good); err != nil || d.ID != docs[0].ID || len(d.AltNames) != 1 || !d.Created.Equal(docs[0].Created) {
		t.Fatal(d, err)
	}
	var d bson.D
	if err := bson.Unmarshal(good, &d); err != nil {
		t.Fatal(err)
	}
	for i := range d {
		bad := append(bson.D{}, d...)
		bad[i].Value = 1.5
		if _, err := ParseDocument(must(bson.Marshal(bad))); err == nil {
			t.Errorf("%s of a wrong type", d[i].Key)
		}
		if d[i].Key == "keyAltNames" {
			continue
		}
		less := append(append(bson.D{}, d[:i]...), d[i+1:]...)
		if _, err := ParseDocument(must(bson.Marshal(less))); err == nil {
			t.Errorf("%s is missing", d[i].Key)
		}
	}
	for _, e := range []bson.E{{Key: "x", Value: 1}, {Key: "version", Value: int64(1)}, {Key: "status", Value: 1}} {
		if _, err := ParseDocument(must(bson.Marshal(append(append(bson.D{}, d...), e)))); err == nil {
			t.Errorf("%s", e.Key)
		}
	}
	if _, err := ParseDocument(must(bson.Marshal(append(append(bson.D{}, d...), bson.E{Key: "version", Value: int64(0)})))); err != nil {
		t.Error(err)
	}
}

func FuzzParseDocument(f *testing.F) {
	k := NewKeys(nil, newLocal(), 0)
	d := must(k.NewDocument(f.Context(), localKey, []string{"a", "b"}, nil, rand.Reader))
	f.Add(d.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseDocument(data)
		if err != nil {
			return
		}
		if _, err := ParseDocument(d.Append(nil)); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecrypt(f *testing.F) {
	k, _, _, docs := rig(f, 1, 0)
	o := &fle.Explicit{Algorithm: "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}
	v := must(k.EncryptValue(f.Context(), stringValue("x"), o, Key{ID: &docs[0].ID}, rand.Reader))
	start, doc := bson.BeginDocument(nil)
	f.Add(bson.EndDocument(bson.AppendRawValue(doc, "v", v), start))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := k.Decrypt(t.Context(), data)
		if err == nil && fle.Contains(data) {
			if err := out.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
