package qe

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/spectest"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

var keyID = bson.UUID{1, 2, 3}

// server is an encrypted collection with its state collections, in maps.
type server struct {
	t      *testing.T
	fields *Fields
	key    *fle.Key
	esc    map[fle.Token]bson.Raw
	ecoc   []bson.Raw
	docs   []bson.Raw
}

func newServer(t *testing.T, fields string) *server {
	t.Helper()
	return &server{t: t, fields: parseFields(t, fields), key: testKey(t), esc: map[fle.Token]bson.Raw{}}
}

func testKey(t testing.TB) *fle.Key {
	t.Helper()
	key, err := fle.NewKey(bytes.Repeat([]byte{7}, fle.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func parse(t testing.TB, text string) bson.Raw {
	t.Helper()
	doc, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

const keyJSON = `{"$binary": {"base64": "AQIDAAAAAAAAAAAAAAAAAA==", "subType": "04"}}`

var newest = release.At(9, 0, 0)

func parseFields(t testing.TB, text string) *Fields {
	t.Helper()
	doc, err := Complete("c", parse(t, strings.ReplaceAll(text, "KEY", keyJSON)), newest)
	if err != nil {
		t.Fatal(err)
	}
	return Of(bsondoc.Single("encryptedFields", bsondoc.DocumentValue(doc)))
}

func (s *server) state(id fle.Token) (bson.Raw, bool) { doc, ok := s.esc[id]; return doc, ok }

// seal returns what a client sends in place of a placeholder.
func (s *server) seal(purpose fle.Purpose, index fle.Index, contention int64, v bson.RawValue) bson.RawValue {
	s.t.Helper()
	p := fle.Placeholder{Purpose: purpose, Index: index, IndexKey: keyID, UserKey: keyID, Value: v, Contention: contention}
	if index == fle.IndexRange {
		p.Sparsity = 1
	}
	data, err := p.Seal(s.key, s.key, rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return fle.Value(data)
}

// write stores next in place of old, nil for an insert.
func (s *server) write(old, next bson.Raw) bson.Raw {
	s.t.Helper()
	stored, err := s.fields.Store(s.state, old, next)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, doc := range stored.ESC {
		b, _ := doc.Lookup("_id").Binary()
		if _, ok := s.esc[fle.Token(b.Data)]; ok {
			s.t.Fatal("an entry is there twice")
		}
		s.esc[fle.Token(b.Data)] = doc
	}
	s.ecoc = append(s.ecoc, stored.ECOC...)
	if err := s.fields.Check(stored.Doc); err != nil {
		s.t.Fatal(err)
	}
	for i, doc := range s.docs {
		if old != nil && bson.Equal(doc, old) {
			s.docs[i] = stored.Doc
			return stored.Doc
		}
	}
	s.docs = append(s.docs, stored.Doc)
	return stored.Doc
}

// find returns the _ids of the documents that have a tag of a query for v in the field e.
func (s *server) find(query bson.RawValue) []int64 {
	s.t.Helper()
	r := &Rewriter{Sources: []Source{{s.fields, s.state}}}
	filter, err := r.Filter(bsondoc.Single("e", bsondoc.DocumentValue(bsondoc.Single("$eq", query))))
	if err != nil {
		s.t.Fatal(err)
	}
	in, ok := filter.Lookup(SafeContent, "$in").Array()
	if !ok {
		s.t.Fatalf("filter %s", filter)
	}
	var ids []int64
	for _, doc := range s.docs {
		have, _ := doc.Lookup(SafeContent).Array()
		for tag := range have.Values() {
			if slices.ContainsFunc(slices.Collect(in.Values()), tag.Equal) {
				id, _ := doc.Lookup("_id").AsInt64()
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// compact does what the commands do.
func (s *server) compact(cleanup bool) {
	s.t.Helper()
	changes, err := s.changes(cleanup, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.apply(changes)
}

// changes returns what a compaction or a cleanup does.
func (s *server) changes(cleanup bool, m *work.Meter) (_ Changes, err error) {
	defer work.Catch(&err)
	tokens := s.key.Tokens()
	start, b := bson.BeginDocument(nil)
	for _, f := range s.fields.List {
		ecoc, pad := tokens.ECOC, tokens.AnchorPadding()
		if !f.Ranged && !f.Text {
			b = bson.AppendBinary(b, f.Path, 0, ecoc[:])
			continue
		}
		at, inner := bson.BeginDocumentElement(b, f.Path)
		inner = bson.AppendBinary(inner, "ecoc", 0, ecoc[:])
		b = bson.EndDocument(bson.AppendBinary(inner, "anchorPaddingToken", 0, pad[:]), at)
	}
	return s.fields.Compact(s.state, s.ecoc, bson.EndDocument(b, start), cleanup, m)
}

func (s *server) apply(changes Changes) {
	s.t.Helper()
	for _, id := range changes.Delete {
		if _, ok := s.esc[id]; !ok {
			s.t.Error("what is to be deleted is not there")
		}
		delete(s.esc, id)
	}
	for _, doc := range changes.Insert {
		b, _ := doc.Lookup("_id").Binary()
		if _, ok := s.esc[fle.Token(b.Data)]; ok {
			s.t.Error("what is to be inserted is there")
		}
		s.esc[fle.Token(b.Data)] = doc
	}
	for _, doc := range changes.Replace {
		b, _ := doc.Lookup("_id").Binary()
		if _, ok := s.esc[fle.Token(b.Data)]; !ok {
			s.t.Error("what is to be replaced is not there")
		}
		s.esc[fle.Token(b.Data)] = doc
	}
	s.ecoc = nil
}

func text(v string) bson.RawValue { return bsondoc.StringValue(v) }

func (s *server) doc(id int64, v bson.RawValue) bson.Raw {
	start, b := bson.BeginDocument(nil)
	b = bson.AppendInt64(b, "_id", id)
	return bson.EndDocument(bson.AppendRawValue(b, "e", v), start)
}

const equalityFields = `{"fields": [{"path": "e", "bsonType": "string", "keyId": KEY, "queries": {"queryType": "equality"}}]}`

// TestModel inserts, changes, removes, compacts and cleans up in random order. Every query finds
// exactly the documents that have the value.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := mrand.New(mrand.NewPCG(seed, 1))
		s := newServer(t, equalityFields)
		values := map[int64]string{}
		for step := range 120 {
			v := string(rune('a' + rng.IntN(4)))
			switch n := rng.IntN(12); {
			case n < 6:
				id := int64(step)
				s.write(nil, s.doc(id, s.seal(fle.ForInsert, fle.IndexEquality, 2, text(v))))
				values[id] = v
			case n < 9 && len(s.docs) > 0:
				old := s.docs[rng.IntN(len(s.docs))]
				id, _ := old.Lookup("_id").AsInt64()
				next := s.doc(id, s.seal(fle.ForInsert, fle.IndexEquality, 2, text(v)))
				if rng.IntN(2) == 0 { // $set keeps the tags, a replacement does not
					start, b := bson.BeginDocument(nil)
					b = append(b, next.Elements()...)
					next = bson.EndDocument(bson.AppendRawValue(b, SafeContent, old.Lookup(SafeContent)), start)
				}
				s.write(old, next)
				values[id] = v
			case n == 9 && len(s.docs) > 0:
				i := rng.IntN(len(s.docs))
				id, _ := s.docs[i].Lookup("_id").AsInt64()
				s.docs = slices.Delete(s.docs, i, i+1)
				delete(values, id)
			case n == 10:
				s.compact(false)
			case n == 11:
				s.compact(true)
			}
			for _, v := range []string{"a", "b", "c", "d", "e"} {
				got := s.find(s.seal(fle.ForFind, fle.IndexEquality, 2, text(v)))
				var want []int64
				for _, doc := range s.docs {
					if id, _ := doc.Lookup("_id").AsInt64(); values[id] == v {
						want = append(want, id)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %q is found in %v, not in %v", seed, step, v, got, want)
				}
			}
			for _, doc := range s.docs {
				if content, _ := doc.Lookup(SafeContent).Array(); len(slices.Collect(content.Values())) != 1 {
					t.Fatalf("seed %d, step %d: tags %s", seed, step, content)
				}
			}
		}
	}
}

// TestTags compares with what fle2v2-InsertFind-Indexed of the specification expects: contention 0
// makes the tag a function of key and value. The key is the one of that file.
func TestTags(t *testing.T) {
	file := parse(t, string(spectest.Read(t, spectest.Files(t, "client-side-encryption/tests/unified/fle2v2-InsertFind-Indexed.json")[0])))
	var wrapped bson.Binary
	list, _ := file.Lookup("initialData").Array()
	for data := range list.Values() {
		doc, _ := data.Document()
		keys, _ := doc.Lookup("documents").Array()
		for v := range keys.Values() {
			doc, _ := v.Document()
			if id, _ := doc.Lookup("_id").Binary(); len(id.Data) == 16 && id.Data[0] == 0x12 {
				wrapped, _ = doc.Lookup("keyMaterial").Binary()
			}
		}
	}
	master, err := base64.StdEncoding.DecodeString(
		"Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRCZGJkTXVyZG9uSjFk")
	if err != nil {
		t.Fatal(err)
	}
	material, err := fle.UnwrapKey(master, wrapped.Data)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, equalityFields)
	if s.key, err = fle.NewKey(material); err != nil {
		t.Fatal(err)
	}
	doc := s.write(nil, s.doc(1, s.seal(fle.ForInsert, fle.IndexEquality, 0, text("123"))))
	b, _ := doc.Lookup(SafeContent, "0").Binary()
	if got := base64.StdEncoding.EncodeToString(b.Data); got != "31eCYlbQoVboc5zwC8IoyJVSkag9PxREka8dkmbXJeY=" {
		t.Errorf("tag %s", got)
	}
}

func TestRange(t *testing.T) {
	s := newServer(t, `{"fields": [{"path": "e", "bsonType": "int", "keyId": KEY,
		"queries": {"queryType": "range", "min": 0, "max": 200, "sparsity": 1, "trimFactor": 1}}]}`)
	number := func(n int32) bson.RawValue {
		return bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, n)}
	}
	trim := int32(1)
	for n := range int32(30) {
		v := fle.RangeInsert{Value: number(n * 7 % 201), Min: number(0), Max: number(200), TrimFactor: &trim}
		s.write(nil, s.doc(int64(n*7%201), s.seal(fle.ForInsert, fle.IndexRange, 0, v.RawValue())))
		if n%10 == 9 {
			s.compact(n == 19)
		}
	}
	for low := int32(0); low < 200; low += 13 {
		q := fle.RangeFind{Edges: &fle.RangeEdges{Lower: number(low), LowerIn: true, Upper: number(low + 20), Min: number(0), Max: number(300), TrimFactor: &trim}, First: fle.GreaterOrEqual, Second: fle.Less}
		q.Edges.Max = number(200)
		if low+20 > 200 {
			q.Edges.Upper, q.Edges.UpperIn = number(200), true
		}
		got := s.find(s.seal(fle.ForFind, fle.IndexRange, 0, q.RawValue()))
		slices.Sort(got)
		var want []int64
		for n := range int64(201) {
			if n >= int64(low) && n < int64(low)+20 && slices.ContainsFunc(s.docs, func(d bson.Raw) bool { id, _ := d.Lookup("_id").AsInt64(); return id == n }) {
				want = append(want, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %d: %v, want %v", low, got, want)
		}
	}
}

func TestText(t *testing.T) {
	s := newServer(t, `{"fields": [{"path": "e", "bsonType": "string", "keyId": KEY, "queries": {"queryType": "prefix",
		"strMinQueryLength": 2, "strMaxQueryLength": 5, "caseSensitive": false, "diacriticSensitive": true}}]}`)
	affix := &fle.Affix{Lower: 2, Upper: 5}
	for i, v := range []string{"Foobar", "food", "bar", "barfoo"} {
		v := fle.Text{Value: v, FoldCase: true, Prefix: affix}
		s.write(nil, s.doc(int64(i), s.seal(fle.ForInsert, fle.IndexText, 0, v.RawValue())))
		if i == 1 {
			s.compact(false)
		}
	}
	for query, want := range map[string][]int64{"foo": {0, 1}, "FOOD": {1}, "bar": {2, 3}, "oba": nil} {
		v := fle.Text{Value: query, FoldCase: true, Prefix: affix}
		if got := s.find(s.seal(fle.ForFind, fle.IndexText, 0, v.RawValue())); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	whole := fle.Text{Value: "FOOBAR", FoldCase: true}
	if got := s.find(s.seal(fle.ForFind, fle.IndexText, 0, whole.RawValue())); !slices.Equal(got, []int64{0}) {
		t.Errorf("whole text: %v", got)
	}
}

// What servers since 8.1 say of fields that are not of the right shape, and what 8.0 says.
func TestShapeOfFields(t *testing.T) {
	field := func(rest string) string { return `{"fields": [{"path": "a", "keyId": KEY, ` + rest + `}]}` }
	text := func(rest string) string {
		return field(`"bsonType": "string", "queries": {"queryType": "prefixPreview"` + rest + `}`)
	}
	for _, tt := range []struct {
		fields    string
		want, old int32
	}{
		{`{"fields": null}`, 40414, 40414},
		{`{"fields": "a"}`, srverr.TypeMismatch, 40414},
		{`{"fields": {"path": "a"}}`, srverr.TypeMismatch, 40414},
		{`{"fields": [1]}`, srverr.TypeMismatch, srverr.BadValue},
		{`{"fields": [{"path": "a\u0000b", "keyId": KEY}]}`, 9867600, 0},
		{`{"fields": [{"path": "a", "keyId": {"$binary": {"base64": "AQID", "subType": "04"}}}]}`, srverr.InvalidUUID, srverr.BadValue},
		{`{"fields": [{"path": "a", "keyId": {"$binary": {"base64": "AQID", "subType": "00"}}}]}`, srverr.TypeMismatch, srverr.BadValue},
		{field(`"bsonType": "null"`), 6338406, 6338406},
		{field(`"bsonType": "nosuch"`), srverr.BadValue, 6338406},
		{field(`"queries": null`), srverr.TypeMismatch, 0},
		{field(`"queries": []`), 9783412, 0},
		{field(`"bsonType": "int", "queries": [{"queryType": "equality"}, {"queryType": "range"}]`), 9783414, 6338404},
		{field(`"bsonType": "int", "queries": [{"queryType": "range"}, {"queryType": "range"}, {"queryType": "range"}]`), 9783413, 6338404},
		{field(`"bsonType": "int", "queries": {"queryType": "range", "contention": -1}`), srverr.BadValue, 0},
		{field(`"bsonType": "int", "queries": {"queryType": "range", "contention": 0.5}`), srverr.FailedToParse, 0},
		{field(`"bsonType": "int", "queries": {"queryType": "range", "sparsity": 0}`), srverr.BadValue, 6775214},
		{field(`"bsonType": "int", "queries": {"queryType": "range", "sparsity": "1"}`), srverr.TypeMismatch, 0},
		{text(``), 9783402, srverr.BadValue},
		{text(`, "strMinQueryLength": 1`), 9783403, srverr.BadValue},
		{text(`, "strMinQueryLength": 1, "strMaxQueryLength": 2`), 9783404, srverr.BadValue},
		{text(`, "strMinQueryLength": 1, "strMaxQueryLength": 2, "caseSensitive": true`), 9783405, srverr.BadValue},
		{text(`, "strMinQueryLength": 3, "strMaxQueryLength": 2, "caseSensitive": true, "diacriticSensitive": true`), 9783406, srverr.BadValue},
		{text(`, "strMinQueryLength": 0`), srverr.BadValue, srverr.BadValue},
		{text(`, "caseSensitive": "yes"`), srverr.TypeMismatch, srverr.BadValue},
		{text(`, ` + lengths), 0, srverr.BadValue},
		{field(`"bsonType": "int", "queries": {"queryType": "prefixPreview"}`), 9783400, srverr.BadValue},
	} {
		for version, want := range map[release.Version]int32{release.At(8, 2, 4): tt.want, release.At(8, 0, 0): tt.old} {
			_, err := Complete("c", parse(t, strings.ReplaceAll(tt.fields, "KEY", keyJSON)), version)
			if got := srverr.CodeOf(err); err != nil && got != want || err == nil && want != 0 {
				t.Errorf("%s on %s: %v, want %d", tt.fields, version, err, want)
			}
		}
	}
}

// lengths are the parameters that queries for parts of texts need since 8.1.
const lengths = `"strMinQueryLength": 2, "strMaxQueryLength": 9, "caseSensitive": true, "diacriticSensitive": false`

func TestComplete(t *testing.T) {
	field := func(rest string) string { return `{"fields": [{"path": "a", "keyId": KEY` + rest + `}]}` }
	query := func(bsonType, rest string) string {
		return field(`, "bsonType": "` + bsonType + `", "queries": {"queryType": ` + rest + `}`)
	}
	for fields, want := range map[string]string{
		`{"escCollection": "x", "fields": []}`:                                       "Encrypted State Collection name should follow enxcol_.<collection>.esc naming pattern",
		`{"ecocCollection": "x", "fields": []}`:                                      "Encrypted Compaction Collection name should follow enxcol_.<collection>.ecoc naming pattern",
		`{}`:                                                                         "is missing",
		`{"fields": [{"path": "a"}]}`:                                                "keyId' is missing",
		`{"fields": [{"path": "_id", "keyId": KEY}]}`:                                "Cannot encrypt _id or its subfields",
		`{"fields": [{"path": "_id.a", "keyId": KEY}]}`:                              "Cannot encrypt _id or its subfields",
		`{"fields": [{"path": "", "keyId": KEY}]}`:                                   "non-empty path",
		`{"fields": [{"path": "__safeContent__", "keyId": KEY}]}`:                    "Cannot encrypt __safeContent__",
		`{"fields": [{"path": "a", "keyId": KEY}, {"path": "b", "keyId": KEY}]}`:     "Duplicate key ids are not allowed",
		`{"fields": [{"path": "a", "keyId": KEY}, {"path": "a", "keyId": OTHER}]}`:   "Duplicate paths are not allowed",
		`{"fields": [{"path": "a.b", "keyId": KEY}, {"path": "a", "keyId": OTHER}]}`: "Conflicting index paths found as one is a prefix of another 'a' and 'a.b'",
		field(`, "queries": {"queryType": "equality"}`):                              "Bson type needs to be specified",
		query("double", `"equality"`):                                                "Type 'double' is not a supported equality indexed type",
		query("string", `"equality", "trimFactor": 1`):                               "The field 'trimFactor' is not allowed for equality index but is present",
		query("string", `"range"`):                                                   "Type 'string' is not a supported range indexed type",
		query("int", `"prefix"`):                                                     "must be string for prefix queries",
		query("string", `"fuzzy"`):                                                   "not a valid value",
		query("int", `"range", "sparsity": 5`):                                       "must be between 1 and 4",
		query("int", `"range", "min": 3, "max": 3`):                                  "Min must be less than max.",
		query("int", `"range", "min": {"$numberLong": "3"}`):                         "Min should have the same type as the field.",
		query("int", `"range", "max": {"$numberLong": "3"}`):                         "Max should have the same type as the field.",
		query("int", `"range", "min": 0, "max": 7, "trimFactor": 3`):                 "domain (3)",
		query("double", `"range", "precision": 2`):                                   "must all be specified together",
		field(`, "bsonType": "null"`):                                                "Type 'null' is not a supported unindexed type",
		field(`, "bsonType": "string", "queries": [{"queryType": "prefix"}, {"queryType": "substring"}]`): "Only prefix and suffix",
		field(`, "bsonType": "string", "queries": [{"queryType": "prefix"}, {"queryType": "prefix"}]`):    "Only prefix and suffix",
	} {
		fields = strings.NewReplacer("KEY", keyJSON, "OTHER", strings.Replace(keyJSON, "AQID", "AQIE", 1)).Replace(fields)
		if _, err := Complete("c", parse(t, fields), newest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
	}
	for _, fields := range []string{query("int", `"range"`), query("int", `"range", "max": 5`), query("double", `"range"`), query("decimal", `"range"`), query("date", `"range"`),
		field(`, "bsonType": "string", "queries": [{"queryType": "suffix", LENGTHS}, {"queryType": "prefix", LENGTHS}]`)} {
		fields = strings.NewReplacer("KEY", keyJSON, "LENGTHS", lengths).Replace(fields)
		if _, err := Complete("c", parse(t, fields), newest); err != nil {
			t.Errorf("%s: %v", fields, err)
		}
	}
	doc, err := Complete("c", parse(t, `{"fields": []}`), newest)
	if esc, _ := doc.Lookup("escCollection").StringValue(); err != nil || esc != "enxcol_.c.esc" {
		t.Errorf("%s: %v", doc, err)
	}
}

// TestAnchors looks at what compactions and cleanups leave: anchors go on counting where the null
// anchor says that the last one was.
func TestAnchors(t *testing.T) {
	s := newServer(t, equalityFields)
	id := int64(0)
	insert := func() {
		id++
		s.write(nil, s.doc(id, s.seal(fle.ForInsert, fle.IndexEquality, 0, text("x"))))
	}
	esc := s.key.Tokens().Find(text("x").Value).With(0).ESC
	expect := func(n uint64, anchor, entry uint64) {
		t.Helper()
		doc, ok := s.esc[fle.Anchor(fle.CountTag(esc), n)]
		b, _ := doc.Lookup("value").Binary()
		a, e, err := fle.OpenAnchor(fle.CountValue(esc), b.Data)
		if !ok || err != nil || a != anchor || e != entry {
			t.Errorf("anchor %d has %d and %d (%v), want %d and %d", n, a, e, err, anchor, entry)
		}
	}
	for range 2 {
		insert()
		s.compact(false)
	}
	expect(1, 0, 1)
	expect(2, 0, 2)
	if len(s.esc) != 2 {
		t.Errorf("%d entries", len(s.esc))
	}
	insert()
	s.compact(true)
	expect(0, 2, 3)
	if len(s.esc) != 1 {
		t.Errorf("%d entries after a cleanup", len(s.esc))
	}
	insert()
	s.compact(false)
	expect(0, 2, 3)
	expect(3, 0, 4)
	insert()
	s.compact(true)
	expect(0, 3, 5)
	if len(s.esc) != 1 {
		t.Errorf("%d entries after another cleanup", len(s.esc))
	}
}

func TestCheck(t *testing.T) {
	f := parseFields(t, `{"fields": [{"path": "o.e", "bsonType": "string", "keyId": KEY, "queries": {"queryType": "equality"}}]}`)
	any := parseFields(t, `{"fields": [{"path": "o.e", "keyId": KEY}]}`)
	value := func(kind fle.Kind, typ bson.Type) bson.RawValue {
		return fle.Value(append(append([]byte{byte(kind)}, make([]byte, 16)...), byte(typ), 1))
	}
	for _, c := range []struct {
		v          bson.RawValue
		typed, any bool // is stored in a field with a type, and without
	}{
		{value(fle.KindIndexedEquality, bson.TypeString), true, true},
		{value(fle.KindUnindexed, bson.TypeString), true, true},
		{value(fle.KindIndexedEquality, bson.TypeInt32), false, true},
		{value(fle.KindInsert, bson.TypeString), false, false},
		{value(fle.KindDeterministic, bson.TypeString), false, false},
		{text("plain"), false, false},
		{fle.Value([]byte{byte(fle.KindIndexedEquality)}), false, true},
	} {
		doc := bsondoc.Single("o", bsondoc.DocumentValue(bsondoc.Single("e", c.v)))
		if err := f.Check(doc); (err == nil) != c.typed {
			t.Errorf("typed: %s: %v", c.v, err)
		}
		if err := any.Check(doc); (err == nil) != c.any {
			t.Errorf("any type: %s: %v", c.v, err)
		}
	}
	if err := f.Check(bsondoc.Single("o", text("no document"))); err != nil {
		t.Error(err)
	}
}

// TestQueryTypesOfServers is about the names that query types have had.
func TestQueryTypesOfServers(t *testing.T) {
	for _, c := range []struct {
		bsonType string
		kinds    []string
		since    int // of versions
		until    int
	}{
		{"string", []string{"equality"}, 0, 4},
		{"int", []string{"range"}, 1, 4},
		{"string", []string{"prefixPreview", "suffixPreview", "substringPreview"}, 3, 3},
		{"string", []string{"prefix", "suffix", "substring"}, 4, 4},
	} {
		for i, version := range []release.Version{release.At(7, 0, 0), release.At(8, 0, 0), release.At(8, 1, 2), release.At(8, 2, 0), newest} {
			for _, kind := range c.kinds {
				more := ""
				if c.since >= 3 {
					more = ", " + lengths
				}
				fields := fmt.Sprintf(`{"fields": [{"path": "a", "keyId": %s, "bsonType": %q, "queries": {"queryType": %q%s}}]}`, keyJSON, c.bsonType, kind, more)
				_, err := Complete("c", parse(t, fields), version)
				if want := i >= c.since && i <= c.until; want != (err == nil) {
					t.Errorf("%s on %s: %v", kind, version, err)
				}
			}
		}
	}
}

func TestRewrite(t *testing.T) {
	s := newServer(t, equalityFields)
	s.write(nil, s.doc(1, s.seal(fle.ForInsert, fle.IndexEquality, 0, text("x"))))
	r := &Rewriter{Sources: []Source{{s.fields, s.state}}}
	payload := s.seal(fle.ForFind, fle.IndexEquality, 0, text("x"))
	half := fle.RangeFind{First: fle.Greater, Second: fle.Less}
	stub := s.seal(fle.ForFind, fle.IndexRange, 0, half.RawValue())
	put := func(text string) bson.Raw {
		out, err := fle.Replace(nil, parse(t, text), func(data []byte) (bson.RawValue, bool, error) {
			if data[0] == 99 {
				return payload, true, nil
			}
			return stub, true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const p, half2 = `{"$binary": {"base64": "YwA=", "subType": "06"}}`, `{"$binary": {"base64": "ZAA=", "subType": "06"}}`
	tags := `[{"$binary":{"base64":"TAG","subType":"00"}}]`
	b, _ := s.docs[0].Lookup(SafeContent, "0").Binary()
	tags = strings.ReplaceAll(tags, "TAG", base64.StdEncoding.EncodeToString(b.Data))
	for in, want := range map[string]string{
		`{"e": ` + p + `}`:                               `{"__safeContent__":{"$in":` + tags + `}}`,
		`{"a": 1, "e": {"$ne": ` + p + `}}`:              `{"$and":[{"a":1},{"$nor":[{"__safeContent__":{"$in":` + tags + `}}]}]}`,
		`{"e": {"$in": [` + p + `]}}`:                    `{"__safeContent__":{"$in":` + tags + `}}`,
		`{"e": {"$nin": [` + p + `]}}`:                   `{"$nor":[{"__safeContent__":{"$in":` + tags + `}}]}`,
		`{"e": {"$not": {"$eq": ` + p + `}}}`:            `{"$nor":[{"__safeContent__":{"$in":` + tags + `}}]}`,
		`{"m.e": ` + p + `}`:                             `{"m.__safeContent__":{"$in":` + tags + `}}`,
		`{"e": {"$exists": true, "$gt": ` + half2 + `}}`: `{"$and":[{"e":{"$exists":true}},{}]}`,
		`{"$or": [{"e": ` + p + `}, {"a": 1}]}`:          `{"$or":[{"__safeContent__":{"$in":` + tags + `}},{"a":1}]}`,
		`{"$expr": {"$eq": ["$e", ` + p + `]}}`:          `{"__safeContent__":{"$in":` + tags + `}}`,
		`{"$expr": {"$eq": ["$m.e", ` + p + `]}}`:        `{"$expr":{"$gt":[{"$size":{"$setIntersection":[{"$ifNull":["$m.__safeContent__",[]]},` + tags + `]}},0]}}`,
		`{"$expr": {"$and": [{"$eq": ["$e", ` + p + `]}, {"$lt": ["$e", ` + half2 + `]}]}}`: `{"$and":[{"__safeContent__":{"$in":` + tags + `}},{}]}`,
		`{"$expr": {"$and": [{"$eq": ["$e", ` + p + `]}, {"$lt": ["$x", 1]}]}}`:             `{"$expr":{"$and":[{"$gt":[{"$size":{"$setIntersection":[{"$ifNull":["$__safeContent__",[]]},` + tags + `]}},0]},{"$lt":["$x",1]}]}}`,
		`{"$expr": {"$not": [{"$in": ["$e", [` + p + `]]}]}}`:                               `{"$expr":{"$not":[{"$gt":[{"$size":{"$setIntersection":[{"$ifNull":["$__safeContent__",[]]},` + tags + `]}},0]}]}}`,
		`{"$expr": {"$ne": ["$$ROOT.e", ` + p + `]}}`:                                       `{"$expr":{"$eq":[{"$size":{"$setIntersection":[{"$ifNull":["$$ROOT.__safeContent__",[]]},` + tags + `]}},0]}}`,
		`{"$expr": {"$lt": ["$e", ` + half2 + `]}}`:                                         `{}`,
		`{"a": {"b": 1}}`: `{"a":{"b":1}}`,
	} {
		got, err := r.Filter(put(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if text, _ := bson.MarshalExtJSON(got, false); string(text) != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, text, want)
		}
	}
	for _, in := range []string{`{"other": ` + p + `}`, `{"e": {"$mod": ` + p + `}}`, `{"e": {"$in": [1, ` + p + `]}}`} {
		if got, err := r.Filter(put(in)); err == nil {
			t.Errorf("%s became %s", in, got)
		}
	}
	stages, err := r.Pipeline([]bson.Raw{put(`{"$lookup": {"from": "c", "pipeline": [{"$match": {"e": ` + p + `}}], "as": "m"}}`), put(`{"$limit": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if fle.Contains(stages[0]) {
		t.Errorf("payload left in %s", stages[0])
	}
}

// TestCompactEnds leaves a compaction at the first look at the command.
func TestCompactEnds(t *testing.T) {
	s := newServer(t, equalityFields)
	for id := range int64(600) {
		s.write(nil, s.doc(id, s.seal(fle.ForInsert, fle.IndexEquality, 0, text("x"))))
	}
	ended := errors.New("ended")
	for _, cleanup := range []bool{false, true} {
		looks := 0
		_, err := s.changes(cleanup, work.New(func() error { looks++; return ended }))
		if err != ended || looks != 1 {
			t.Errorf("cleanup %t: %v after %d looks", cleanup, err, looks)
		}
	}
}
