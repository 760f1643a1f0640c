package crypt

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/fle"
)

// anyKey is a key vault that has every key: those of libmongocrypt's tests with their material, and
// others with a new one.
type anyKey struct {
	material map[bson.UUID][]byte
	local    *local
}

func (v *anyKey) Keys(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
	var out []bson.Raw
	add := func(id bson.UUID, names ...string) error {
		material := v.material[id]
		if material == nil {
			material = make([]byte, fle.KeySize)
			copy(material, id[:])
		}
		wrapped, err := fle.WrapKey(v.local.master, material, v.local.random)
		d := Document{ID: id, AltNames: names, Material: wrapped, MasterKey: localKey}
		out = append(out, d.Append(nil))
		return err
	}
	ids, _ := filter.Lookup("$or", "0", "_id", "$in").Array()
	for id := range ids.Values() {
		b, _ := id.Binary()
		if err := add(bson.UUID(b.Data)); err != nil {
			return nil, err
		}
	}
	names, _ := filter.Lookup("$or", "1", "keyAltNames", "$in").Array()
	for name := range names.Values() {
		s, _ := name.StringValue()
		if err := add(bson.UUID{1, 1, 1}, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// otherwise are the answers that libmongocrypt does not make the command beside them of, and why.
var otherwise = map[string]string{
	"fle1-create/with-cmd-schema":                  "the answer, written by hand, has lost the validator, and the command goes out as it came",
	"fle2-bad-str-encode-version":                  "the command is that of another question",
	"fle2-text-search-create-encrypted-collection": "what is added to encryptedFields is not the answer's: see TestCompleteFields",
}

// TestRecordedAnswers gives the client's half all answers of query analysis that libmongocrypt's
// tests have recorded. All are accepted, and become the commands that libmongocrypt makes of them:
// the same bytes where nothing is random, and else the same values and tokens.
func TestRecordedAnswers(t *testing.T) {
	v := &anyKey{material: map[bson.UUID][]byte{}, local: newLocal()}
	files := must(filepath.Glob("testdata/*-key-material.txt"))
	for _, file := range files {
		id := must(hex.DecodeString(strings.TrimSuffix(filepath.Base(file), "-key-material.txt")))
		v.material[bson.UUID(id)] = must(hex.DecodeString(strings.TrimSpace(string(must(os.ReadFile(file))))))
	}
	k := NewKeys(v, v.local, 0)
	defer k.Close()
	all := must(bson.ParseExtJSON(must(os.ReadFile("testdata/replies.json"))))
	compared, placeholders := 0, 0
	for name, c := range all.All() {
		doc, _ := c.Document()
		reply, _ := doc.Lookup("reply").Document()
		// Of these random bytes a contention factor of 0 to 8 comes to 6, as in the one recording
		// that has drawn one.
		got, err := k.Encrypt(t.Context(), reply, repeated(3))
		if (err != nil) != (name == "mongocryptd-reply-invalid") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if err := fle.Each(got, func(data []byte) error {
			placeholders++
			if kind := fle.Kind(data[0]); kind == fle.KindMarking || kind == fle.KindPlaceholder {
				return fmt.Errorf("a placeholder is left: %x", data)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sent, ok := doc.Lookup("sent").Document()
		if !ok {
			continue
		}
		compared++
		a, b := k.opened(t, got, v), k.opened(t, sent, v)
		if (a != b) != (otherwise[name] != "") {
			t.Errorf("%s:\n%s\nlibmongocrypt\n%s\n(known as otherwise: %q)", name, a, b, otherwise[name])
		}
	}
	t.Logf("%d commands compared, %d values", compared, placeholders)
	if compared < 50 || placeholders < 50 {
		t.Errorf("only %d commands, %d values", compared, placeholders)
	}
}

// repeated is a source of one byte.
type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// opened writes doc as text, with what is random in its payloads decrypted.
func (k *Keys) opened(t *testing.T, doc bson.Raw, v *anyKey) string {
	t.Helper()
	start, dst := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if key != "$db" { // which the driver adds to all commands
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	out, err := fle.Replace(nil, bson.EndDocument(dst, start), func(data []byte) (bson.RawValue, bool, error) {
		text := ""
		switch fle.Kind(data[0]) {
		case fle.KindInsert:
			p, err := fle.ParseInsert(data)
			if err != nil {
				return bson.RawValue{}, false, err
			}
			if v.material[p.IndexKey] == nil {
				return stringValue(fmt.Sprintf("insert of %s under an unknown key", p.Type)), true, nil
			}
			plain, err := k.DecryptValue(t.Context(), fle.Value(bytes.Clone(data)))
			if err != nil {
				return bson.RawValue{}, false, err
			}
			key := must(fle.NewKey(bytes.Clone(v.material[p.IndexKey])))
			text = fmt.Sprintf("insert %s %s %x, contention %d, %d %v %v %s %s", p.Type, plain, p.ServerToken, p.Contention, p.Sparsity, deref(p.Precision), deref(p.TrimFactor), p.Min, p.Max)
			for _, set := range p.Sets() {
				state, err := fle.OpenState(key.Tokens().ECOC, set.State)
				if err != nil {
					return bson.RawValue{}, false, err
				}
				text += fmt.Sprintf("\n  %x %x %x %v", set.EDC, set.ESC, set.Server, state)
			}
		case fle.KindRandom, fle.KindUnindexed, fle.KindDeterministic:
			if v.material[bson.UUID(data[1:17])] == nil {
				return stringValue(fmt.Sprintf("kind %d of %s under an unknown key", data[0], bson.Type(data[17]))), true, nil
			}
			plain, err := k.DecryptValue(t.Context(), fle.Value(bytes.Clone(data)))
			if err != nil {
				return bson.RawValue{}, false, err
			}
			text = fmt.Sprintf("kind %d: %s", data[0], plain)
		default:
			text = hex.EncodeToString(data)
		}
		return stringValue(text), true, nil
	})
	if err != nil {
		t.Error(err)
	}
	return bson.Raw(out).String()
}

func deref(n *int32) any {
	if n == nil {
		return "none"
	}
	return *n
}
