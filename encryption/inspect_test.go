package encryption_test

import (
	"bytes"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
)

// inspector reads an encrypted collection with its state collections as the server stores them, and
// checks that they agree with the plaintext. It has the formulas of the tokens by itself, apart
// from the code that it tests.
//
// The collection is db.coll. Its field name has equality queries, age range queries, at.city prefix
// queries, and note none.
type inspector struct {
	t        *testing.T
	p        *prose
	material map[string][]byte // of the keys, by path
	id       map[string]bson.UUID
	decrypts *allium.Client
}

// The values that the fields may have, and their contention factors.
var (
	inspectedNames  = []string{"ann", "bob", "cyd"}
	inspectedAges   = []int32{0, 1, 30, 31, 90, 127}
	inspectedCities = []string{"Rome", "Romilly", "Oslo", "Ulm"}
)

const (
	nameContention = 4
	ageContention  = 1
	cityContention = 0
)

// newInspector makes the collection, and a data key whose material is known.
func newInspector(t *testing.T, p *prose) *inspector {
	t.Helper()
	x := &inspector{t: t, p: p, material: map[string][]byte{}, id: map[string]bson.UUID{}}
	field := func(path, bsonType string, contention int64, query bson.D) bson.D {
		material := make([]byte, 96)
		for i := range material {
			material[i] = byte(i*7 + len(path))
		}
		x.material[path] = material
		x.id[path] = must(p.keys.CreateDataKey(t.Context(), "local", encryption.DataKeyOptions{Material: material}))
		f := queryableField(path, bsonType, query)
		f.Set("keyId", x.id[path])
		if query != nil {
			query.Set("contention", contention)
			f.Set("queries", query)
		}
		return f
	}
	fields := bson.D{{Key: "fields", Value: bson.A{
		field("name", "string", nameContention, bson.D{{Key: "queryType", Value: "equality"}}),
		field("age", "int", ageContention, bson.D{{Key: "queryType", Value: "range"}, {Key: "min", Value: int32(0)}, {Key: "max", Value: int32(127)},
			{Key: "sparsity", Value: int64(1)}, {Key: "trimFactor", Value: int32(0)}}),
		field("at.city", "string", cityContention, bson.D{{Key: "queryType", Value: "prefix"}, {Key: "strMinQueryLength", Value: int32(2)}, {Key: "strMaxQueryLength", Value: int32(4)},
			{Key: "caseSensitive", Value: false}, {Key: "diacriticSensitive", Value: true}}),
		field("note", "string", 0, nil),
	}}}
	if err := p.plain.Database("db").CreateCollection(t.Context(), "coll", allium.CreateCollectionOptions{EncryptedFields: fields}); err != nil {
		t.Fatal(err)
	}
	x.decrypts, _ = p.auto(encryption.AutoOptions{BypassEncryption: true}, allium.ClientOptions{})
	return x
}

// mac is HMAC-SHA-256 of what data is made of: bytes, or numbers of eight bytes.
func mac(key []byte, data ...any) []byte {
	h := hmac.New(sha256.New, key)
	for _, d := range data {
		switch d := d.(type) {
		case int:
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(d)))
		case []byte:
			h.Write(d)
		}
	}
	return h.Sum(nil)
}

// counter decrypts AES-256-CTR of 16 bytes behind an initialization vector.
func counter(key, data []byte) (a, b int) {
	block, err := aes.NewCipher(key)
	if err != nil || len(data) != 32 {
		return -1, -1
	}
	out := make([]byte, 16)
	stdcipher.NewCTR(block, data[:16]).XORKeyStream(out, data[16:])
	return int(binary.LittleEndian.Uint64(out)), int(binary.LittleEndian.Uint64(out[8:]))
}

// term is something that is counted: a value, an edge, or a part of a text.
type term struct {
	path string
	text string // for people
	// edc, esc and server are the tokens of the data.
	edc, esc, server []byte
}

func (x *inspector) term(path string, kind int, data []byte) term {
	root := x.material[path][64:]
	collections := mac(root, 1)
	edc, esc, server := mac(collections, 1), mac(collections, 2), mac(root, 2)
	if kind > 0 { // of a text
		edc, esc, server = mac(edc, kind), mac(esc, kind), mac(server, kind)
	}
	return term{path, fmt.Sprintf("%s %d %q", path, kind, data), mac(edc, data), mac(esc, data), mac(server, data)}
}

// terms returns those of a value, in the order of its tags.
func (x *inspector) terms(path string, v any) []term {
	str := func(s string) []byte {
		return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(s)+1)), s...), 0)
	}
	var out []term
	switch v := v.(type) {
	case string:
		if path == "name" {
			return []term{x.term(path, 0, str(v))}
		}
		folded := strings.ToLower(v)
		out = append(out, x.term(path, 1, str(folded)))
		for n := 2; n <= 4; n++ {
			if n <= len(folded) {
				out = append(out, x.term(path, 4, str(folded[:n])))
			} else {
				out = append(out, x.term(path, 4, str(folded+"\xff")))
			}
		}
	case int32:
		bits := fmt.Sprintf("%07b", v)
		out = append(out, x.term(path, 0, []byte("root")), x.term(path, 0, []byte(bits)))
		for n := 1; n < 7; n++ {
			out = append(out, x.term(path, 0, []byte(bits[:n])))
		}
	}
	return out
}

// occurrence is a term that a document has, with the tag for it.
type occurrence struct {
	term
	contention, n int
}

// document checks a stored document with its plaintext, and returns what it counts.
func (x *inspector) document(stored, plain bson.Raw) []occurrence {
	x.t.Helper()
	var out []occurrence
	var want [][]byte
	for _, f := range []struct {
		path   []string
		kind   byte
		header int // bytes before the server's ciphertext
		most   int
	}{{[]string{"name"}, 14, 18, nameContention}, {[]string{"age"}, 15, 19, ageContention}, {[]string{"at", "city"}, 17, 30, cityContention}} {
		path := strings.Join(f.path, ".")
		v := stored.Lookup(f.path...)
		if v.IsZero() {
			continue
		}
		b, ok := v.Binary()
		var value any
		if s, isString := plain.Lookup(f.path...).StringValue(); isString {
			value = s
		} else {
			value, _ = plain.Lookup(f.path...).Int32()
		}
		terms := x.terms(path, value)
		id := x.id[path]
		if !ok || b.Subtype != bson.BinaryEncrypted || b.Data[0] != f.kind || !bytes.Equal(b.Data[1:17], id[:]) || len(b.Data) < f.header+96*len(terms) {
			x.t.Errorf("%s: %s is stored as %s", plain, path, v)
			continue
		}
		blocks := b.Data[len(b.Data)-96*len(terms):]
		for i, term := range terms {
			block := blocks[96*i : 96*(i+1)]
			n, u := counter(mac(term.server, 1), block[:32])
			z1, z2 := counter(mac(term.server, 2), block[64:])
			tag := mac(mac(mac(term.edc, u), 1), n)
			if z1 != 0 || z2 != 0 || n < 1 || u < 0 || u > f.most || !bytes.Equal(tag, block[32:64]) {
				x.t.Errorf("%s: %s has the count %d, contention %d, zeros %d and %d, and the tag %x, not %x", plain, term.text, n, u, z1, z2, block[32:64], tag)
			}
			out = append(out, occurrence{term, u, n})
			want = append(want, tag)
		}
	}
	var got [][]byte
	list, _ := stored.Lookup("__safeContent__").Array()
	for v := range list.Values() {
		b, _ := v.Binary()
		if b.Subtype != bson.BinaryGeneric {
			x.t.Errorf("%s: tag %s", plain, v)
		}
		got = append(got, b.Data)
	}
	slices.SortFunc(got, bytes.Compare)
	slices.SortFunc(want, bytes.Compare)
	if !slices.EqualFunc(got, want, bytes.Equal) {
		x.t.Errorf("%s has %d tags, not the %d of its values", plain, len(got), len(want))
	}
	return out
}

// check checks the collection and its state collections. It returns how often each term was
// counted, by its text.
func (x *inspector) check() map[string]int {
	x.t.Helper()
	ctx := x.t.Context()
	read := func(name string) []bson.Raw {
		return must(must(allium.CollectionOf[bson.Raw](x.p.plain.Database("db"), name).Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})).All(ctx))
	}
	plain := map[string]bson.Raw{}
	for _, d := range must(must(allium.CollectionOf[bson.Raw](x.decrypts.Database("db"), "coll").Find(ctx, bson.D{})).All(ctx)) {
		plain[d.Lookup("_id").String()] = d
	}
	highest := map[string]int{} // by term and contention
	seen := map[string]bool{}
	for _, d := range read("coll") {
		for _, o := range x.document(d, plain[d.Lookup("_id").String()]) {
			key := fmt.Sprint(o.text, " ", o.contention)
			if at := fmt.Sprint(key, " ", o.n); seen[at] {
				x.t.Errorf("%s: two documents have the same tag", at)
			} else {
				seen[at] = true
			}
			highest[key] = max(highest[key], o.n)
		}
	}
	esc := map[string]bson.Raw{} // by _id
	for _, d := range read("enxcol_.coll.esc") {
		b, _ := d.Lookup("_id").Binary()
		esc[string(b.Data)] = d
	}
	take := func(id []byte) (bson.Raw, bool) {
		d, ok := esc[string(id)]
		delete(esc, string(id))
		return d, ok
	}
	// count removes the entries of a term or of padding from esc, and returns how many it has.
	count := func(what string, tag, value []byte) int {
		anchors := func(d bson.Raw) (int, int) {
			b, _ := d.Lookup("value").Binary()
			return counter(value, b.Data)
		}
		anchor, n := 0, 0
		if d, ok := take(mac(tag, 0, 0)); ok {
			anchor, n = anchors(d)
		}
		for {
			d, ok := take(mac(tag, 0, anchor+1))
			if !ok {
				break
			}
			anchor++
			zero, m := anchors(d)
			if zero != 0 || m < n {
				x.t.Errorf("%s: anchor %d has %d and %d, the one before %d", what, anchor, zero, m, n)
			}
			n = m
		}
		for {
			d, ok := take(mac(tag, n+1))
			if !ok {
				return n
			}
			if !d.Lookup("value").IsZero() {
				x.t.Errorf("%s: entry %d has a value", what, n+1)
			}
			n++
		}
	}
	total := map[string]int{}
	done := map[string]bool{}
	universe := func(path string, contention int, v any) {
		for _, term := range x.terms(path, v) {
			for u := range contention + 1 {
				key := fmt.Sprint(term.text, " ", u)
				if done[key] {
					continue
				}
				done[key] = true
				twice := mac(term.esc, u)
				n := count(key, mac(twice, 1), mac(twice, 2))
				total[term.text] += n
				if n < highest[key] {
					x.t.Errorf("%s is counted to %d, and a document has the tag for %d", key, n, highest[key])
				}
				delete(highest, key)
			}
		}
	}
	for _, v := range inspectedNames {
		universe("name", nameContention, v)
	}
	for _, v := range inspectedAges {
		universe("age", ageContention, v)
	}
	for _, v := range inspectedCities {
		universe("at.city", cityContention, v)
	}
	for _, path := range []string{"age", "at.city"} {
		padding := mac(mac(mac(x.material[path][64:], 1), 2), make([]byte, 17))
		count("padding of "+path, mac(padding, 1), mac(padding, 2))
	}
	if len(esc) > 0 || len(highest) > 0 {
		x.t.Errorf("%d documents of the state collection belong to nothing; documents have %d values that nothing counts", len(esc), len(highest))
	}
	for _, d := range read("enxcol_.coll.ecoc") {
		if path, _ := d.Lookup("fieldName").StringValue(); !slices.Contains([]string{"name", "age", "at.city"}, path) {
			x.t.Errorf("what is to be compacted has %s", d)
		}
	}
	return total
}

// counted returns how often a value of a field has been written, given what check returned.
func (x *inspector) counted(total map[string]int, path string, v any) int {
	i := 0
	if path == "age" {
		i = 1 // the edge of all bits
	}
	return total[x.terms(path, v)[i].text]
}
