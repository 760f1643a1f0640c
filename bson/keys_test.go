package bson

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// decodeWith decodes data with a decoder that may have decoded other documents before.
func decodeWith(d *decoder, cfg *config, data []byte) (doc D, err error) {
	d.start(cfg, data)
	defer d.stop()
	if err := d.measure(TypeEmbeddedDocument, data); err != nil {
		return nil, err
	}
	doc, _, err = d.d(data)
	d.finish()
	return doc, err
}

// randomDocument returns a document of keys that share beginnings, in any order, some of them
// missing, some often, with documents and arrays of documents within.
func randomDocument(r *rand.Rand, depth int) D {
	keys := []string{"", "a", "ab", "abc", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "abcdefghijklmnoq", "ä", "日本語のキー",
		strings.Repeat("k", longestKey), strings.Repeat("k", longestKey+1), strings.Repeat("k", longestKey-1) + "l"}
	doc := D{}
	for range r.IntN(8) {
		var v any
		switch r.IntN(6) {
		case 0:
			v = int32(r.IntN(1000))
		case 1:
			v = strings.Repeat("text", r.IntN(6))
		case 2:
			v = nil
		case 3:
			v = r.Float64()
		case 4:
			if depth > 0 {
				v = randomDocument(r, depth-1)
			}
		default:
			if depth > 0 {
				a := A{}
				for range r.IntN(3) {
					a = append(a, randomDocument(r, depth-1), "x")
				}
				v = a
			}
		}
		doc = append(doc, E{keys[r.IntN(len(keys))], v})
	}
	return doc
}

// A decoder that remembers the keys of other documents decodes as one that does not.
func TestRememberedKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d decoder
	for i := range 5000 {
		want := randomDocument(r, 3)
		data, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(2) {
			got, err := decodeWith(&d, defaultConfig, data)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("document %d: got %v, %v; want %v", i, got, err, want)
			}
		}
	}
	if n := len(d.keys.entries); n < 20 {
		t.Errorf("%d keys remembered: the test tests nothing", n)
	}
}

// Keys that do not repeat fill the table; then it is emptied, and they are left alone for a while.
// What was decoded before stays as it is.
func TestTooManyKeys(t *testing.T) {
	var d decoder
	var kept []D
	rested, learnt := 0, 0
	for i := range 2000 {
		want := D{}
		for k := range 100 {
			want = append(want, E{fmt.Sprintf("key %d of %d", k, i), int32(k)})
		}
		data, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeWith(&d, defaultConfig, data)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, got)
		if len(d.keys.entries) > mostKeys {
			t.Fatalf("%d keys remembered", len(d.keys.entries))
		}
		if d.keys.rest > 0 {
			rested++
		} else {
			learnt++
		}
	}
	if rested < learnt || learnt == 0 {
		t.Errorf("keys were learnt for %d documents and not for %d", learnt, rested)
	}
	for i, doc := range kept {
		for k, e := range doc {
			if want := fmt.Sprintf("key %d of %d", k, i); e.Key != want {
				t.Fatalf("document %d: key %q, want %q", i, e.Key, want)
			}
		}
	}
}

// A key that was allowed to be invalid is refused when it is not any more, though it was seen.
func TestInvalidKeyIsNotRemembered(t *testing.T) {
	data := []byte("\x0c\x00\x00\x00\x10\xffa\x00\x01\x00\x00\x00\x00")
	data[0] = byte(len(data))
	var d decoder
	lax := Options{AllowInvalidUTF8: true}.config()
	for range 3 {
		if doc, err := decodeWith(&d, lax, data); err != nil || doc[0].Key != "\xffa" {
			t.Fatalf("got %v, %v", doc, err)
		}
	}
	if doc, err := decodeWith(&d, defaultConfig, data); !errors.Is(err, errUTF8) {
		t.Fatalf("got %v, %v; want %v", doc, err, errUTF8)
	}
}

// Documents of one collection share the memory of their keys, and own what else they hold.
func TestKeysAreShared(t *testing.T) {
	var d decoder
	decode := func(text string) D {
		data, err := Marshal(D{{"a key that is longer than its value", text}})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := decodeWith(&d, defaultConfig, data)
		if err != nil {
			t.Fatal(err)
		}
		clear(data)
		return doc
	}
	one, two := decode("one"), decode("two")
	if one[0].Value != "one" || two[0].Value != "two" {
		t.Errorf("got %v and %v", one, two)
	}
	if viewPointer(one[0].Key) != viewPointer(two[0].Key) {
		t.Error("each document has a copy of the key")
	}
}

func viewPointer(s string) *byte { return &viewBytes(s)[0] }

// FuzzRememberedKeys decodes documents after others with one decoder, which must change nothing.
func FuzzRememberedKeys(f *testing.F) {
	add := func(docs ...any) {
		var all [][]byte
		for _, doc := range docs {
			data, err := Marshal(doc)
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, data)
		}
		f.Add(all[0], all[1])
	}
	add(D{{"a", 1}, {"b", D{{"a", 1}}}}, D{{"ab", 1}, {"b", D{{"c", 1}}}})
	add(sampleEverything(), D{{"a", A{D{{"b", 1}}, D{{"b", 2}, {"c", 3}}}}})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var used decoder
		for _, data := range [][]byte{a, b, a, b, b, a} {
			var fresh decoder
			want, wantErr := decodeWith(&fresh, defaultConfig, data)
			got, err := decodeWith(&used, defaultConfig, data)
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("got error %v, want %v", err, wantErr)
			}
			if err != nil {
				used = decoder{keys: used.keys}
				continue
			}
			x, err := Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if y, err := Marshal(want); err != nil || !bytes.Equal(x, y) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}
