package fle

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"allium/bson"
)

func stringValue(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

func int32Value(n int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, n)}
}

// samples are one value of each kind, and some more.
func samples(t testing.TB) map[string][]byte {
	k := testKey(t, id1)
	out := make(map[string][]byte)
	marking := Marking{Value: stringValue("x"), Algorithm: Random, KeyAltName: "name"}
	out["marking by name"] = marking.Append(nil)
	for name, a := range map[string]Algorithm{"deterministic": Deterministic, "random": Random} {
		m := Marking{Value: stringValue("x"), Algorithm: a, KeyID: id1}
		out["marking "+name] = m.Append(nil)
		out[name] = must(m.Seal(id1, k, rand.Reader))
	}
	rangeInsert := RangeInsert{Value: int32Value(3), Min: int32Value(0), Max: int32Value(7), TrimFactor: new(int32(1))}
	rangeFind := RangeFind{Edges: &RangeEdges{Lower: int32Value(3), Upper: Open(false), Min: int32Value(0), Max: int32Value(7)}, PayloadID: 4, First: Greater}
	half := RangeFind{PayloadID: 4, First: Greater, Second: LessOrEqual}
	affix := Text{Value: "Café", FoldCase: true, FoldDiacritics: true, Prefix: &Affix{5, 2}, Suffix: &Affix{4, 1}}
	substring := Text{Value: "Café", Substring: &Substring{9, 5, 2}}
	query := Text{Value: "caf", FoldCase: true, Prefix: &Affix{5, 2}}
	for name, p := range map[string]Placeholder{
		"unindexed":      {Purpose: ForInsert, Index: IndexNone, Value: stringValue("x")},
		"equality":       {Purpose: ForInsert, Index: IndexEquality, Value: stringValue("x"), Contention: 8},
		"range":          {Purpose: ForInsert, Index: IndexRange, Value: rangeInsert.RawValue(), Sparsity: 1},
		"affixes":        {Purpose: ForInsert, Index: IndexText, Value: affix.RawValue()},
		"substring":      {Purpose: ForInsert, Index: IndexText, Value: substring.RawValue()},
		"find equality":  {Purpose: ForFind, Index: IndexEquality, Value: stringValue("x"), Contention: 8},
		"find range":     {Purpose: ForFind, Index: IndexRange, Value: rangeFind.RawValue(), Sparsity: 2},
		"find range end": {Purpose: ForFind, Index: IndexRange, Value: half.RawValue(), Sparsity: 2},
		"find text":      {Purpose: ForFind, Index: IndexText, Value: query.RawValue()},
	} {
		p.IndexKey, p.UserKey = id1, id1
		out["placeholder "+name] = p.Append(nil)
		out[name] = must(p.Seal(k, k, rand.Reader))
	}
	for _, name := range []string{"equality", "range", "affixes", "substring"} {
		p := must(ParseInsert(out[name]))
		counts := make([]uint64, len(p.Sets()))
		for i := range counts {
			counts[i] = uint64(i + 1)
		}
		data, _, err := p.Store(counts, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		out["stored "+name] = data
	}
	return out
}

// reencode parses data and appends it again; it returns nil if it cannot be parsed or has no such
// form.
func reencode(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	var p interface{ Append([]byte) []byte }
	var err error
	switch Kind(data[0]) {
	case KindMarking:
		p, err = ParseMarking(data)
	case KindPlaceholder:
		p, err = ParsePlaceholder(data)
	case KindInsert:
		p, err = ParseInsert(data)
	case KindFindEquality:
		p, err = ParseFindEquality(data)
	case KindFindRange:
		p, err = ParseFindRange(data)
	case KindFindText:
		p, err = ParseFindText(data)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return p.Append(nil)
}

func TestReencode(t *testing.T) {
	n := 0
	for name, data := range samples(t) {
		switch Kind(data[0]) {
		case KindMarking, KindPlaceholder, KindInsert, KindFindEquality, KindFindRange, KindFindText:
			n++
			if got := reencode(data); !bytes.Equal(got, data) {
				t.Errorf("%s: got %x, want %x", name, got, data)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d samples", n)
	}
}

// TestStored stores what a client inserts and reads it as client and as server.
func TestStored(t *testing.T) {
	k := testKey(t, id1)
	all := samples(t)
	for _, name := range []string{"equality", "range", "affixes", "substring"} {
		p := must(ParseInsert(all[name]))
		s, ok, err := ParseSealed(all["stored "+name])
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		sets := p.Sets()
		if len(s.Tags()) != len(sets) {
			t.Fatalf("%s: %d tags, want %d", name, len(s.Tags()), len(sets))
		}
		for i, set := range sets {
			b, err := s.openBlock(i, set.Server)
			if err != nil || b.Count != uint64(i+1) || b.Contention != uint64(p.Contention) || b.Tag != Tag(set.EDC, uint64(i+1)) {
				t.Errorf("%s: block %d is %+v, %v", name, i, b, err)
			}
			if _, err := s.openBlock(i, set.EDC); err == nil {
				t.Errorf("%s: a block opens with another token", name)
			}
			state, err := OpenState(k.Tokens().ECOC, set.State)
			if err != nil || state.ESC != set.ESC {
				t.Errorf("%s: state %d is %+v, %v", name, i, state, err)
			}
			if want := p.Text != nil && i == 0; (state.Size == len(sets)) != want && len(sets) > 1 {
				t.Errorf("%s: state %d has size %d of %d", name, i, state.Size, len(sets))
			}
			if p.Edges == nil && state.Leaf {
				t.Errorf("%s: a leaf", name)
			}
		}
		inner, err := s.Inner(k)
		if err != nil {
			t.Fatal(err)
		}
		v, err := inner.Open(k)
		want := map[string]bson.RawValue{"equality": stringValue("x"), "range": int32Value(3)}[name]
		if p.Text != nil {
			want = stringValue("Café")
		}
		if err != nil || !v.Equal(want) {
			t.Errorf("%s: %s, %v", name, v, err)
		}
		if _, err := s.Open(k); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: opened with its outer layer: %v", name, err)
		}
	}
}

// TestFindMatchesInsert is the reason for all of it: the tokens of a query lead to those of the
// value.
func TestFindMatchesInsert(t *testing.T) {
	all := samples(t)
	insert, find := must(ParseInsert(all["equality"])), must(ParseFindEquality(all["find equality"]))
	matches := 0
	for u := range uint64(find.Contention) + 1 {
		if s := find.With(u); s.EDC == insert.EDC && s.ESC == insert.ESC && s.Server == insert.Server {
			matches++
			if int64(u) != insert.Contention {
				t.Errorf("matches with contention %d, inserted with %d", u, insert.Contention)
			}
		}
	}
	if matches != 1 {
		t.Errorf("%d matches", matches)
	}
	text, query := must(ParseInsert(all["affixes"])), must(ParseFindText(all["find text"]))
	found := false
	for _, s := range text.Text.Prefixes {
		w := query.With(0)
		found = found || s.EDC == w.EDC && s.ESC == w.ESC && s.Server == w.Server
	}
	if !found {
		t.Error("the prefix is not found")
	}
}

// TestTampered changes and cuts every value that can be decrypted. None may give a value.
func TestTampered(t *testing.T) {
	k, other := testKey(t, id1), testKey(t, id2)
	for name, data := range samples(t) {
		s, ok, err := ParseSealed(data)
		if err != nil {
			t.Fatal(name, err)
		}
		if !ok {
			continue
		}
		if _, err := decrypt(data, k); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := decrypt(data, other); err == nil {
			t.Errorf("%s: opens with another key", name)
		} else if !errors.Is(err, ErrTag) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: with another key: %v", name, err)
		}
		for i := range data {
			if _, err := decrypt(data[:i], k); err == nil {
				t.Errorf("%s: opens with %d of %d bytes", name, i, len(data))
			}
		}
		if s.Indexed() || s.Kind == KindInsert {
			continue // their metadata and tokens are not authenticated
		}
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 0x40
			if _, err := decrypt(bad, k); err == nil {
				t.Errorf("%s: opens with byte %d changed", name, i)
			}
		}
	}
}

// decrypt opens data whose keys are all k.
func decrypt(data []byte, k *Key) (bson.RawValue, error) {
	s, ok, err := ParseSealed(data)
	if err != nil {
		return bson.RawValue{}, err
	}
	if !ok {
		return bson.RawValue{}, errors.New("not a value")
	}
	if s.Indexed() {
		if s, err = s.Inner(k); err != nil {
			return bson.RawValue{}, err
		}
	}
	return s.Open(k)
}

// TestNotBSON decrypts what is authentic and yet no value.
func TestNotBSON(t *testing.T) {
	k := testKey(t, id1)
	for _, c := range []struct {
		kind  bson.Type
		plain string
	}{
		{bson.TypeString, "\x05\x00\x00\x00abc\x00"}, {bson.TypeString, "\x02\x00\x00\x00\xff\x00"}, {bson.TypeInt32, "abc"}, {bson.TypeInt32, "abcde"},
		{bson.TypeEmbeddedDocument, "\x06\x00\x00\x00\x00"}, {bson.TypeInt32, "abcd\x10b\x00abcd"}, {bson.TypeNull, "x"}, {bson.TypeBoolean, "\x07"},
	} {
		head := header(nil, KindRandom, id1, c.kind)
		data := must(k.SealRandom(head, head, []byte(c.plain), rand.Reader))
		if v, err := decrypt(data, k); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s %q: %s, %v", c.kind, c.plain, v, err)
		}
	}
}

func TestObsolete(t *testing.T) {
	for kind := byte(4); kind <= 10; kind++ {
		if Kind(kind) == KindUnindexedV1 {
			continue
		}
		if _, _, err := ParseSealed(append([]byte{kind}, make([]byte, 200)...)); !errors.Is(err, ErrObsolete) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	if _, _, err := ParseSealed(append([]byte{19}, make([]byte, 200)...)); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

func TestMalformedPlaceholders(t *testing.T) {
	doc := func(kind Kind, d bson.D) []byte { return append([]byte{byte(kind)}, must(bson.Marshal(d))...) }
	good := bson.D{{Key: "t", Value: int32(1)}, {Key: "a", Value: int32(2)}, {Key: "ki", Value: id1}, {Key: "ku", Value: id1}, {Key: "v", Value: "x"}, {Key: "cm", Value: int64(0)}}
	with := func(key string, v any) bson.D {
		out := bson.D{}
		for _, e := range good {
			if e.Key == key && v == nil {
				continue
			}
			if e.Key == key {
				e.Value = v
			}
			out = append(out, e)
		}
		return out
	}
	if _, err := ParsePlaceholder(doc(KindPlaceholder, good)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []bson.D{
		with("t", int32(3)), with("t", "x"), with("a", int32(5)), with("a", int32(3)), with("ki", nil), with("ku", "x"), with("v", nil), with("cm", int32(0)),
		with("cm", int64(-1)), append(with("", nil), bson.E{Key: "x", Value: 1}), append(with("", nil), bson.E{Key: "cm", Value: int64(1)}),
		append(with("a", int32(3)), bson.E{Key: "s", Value: int64(0)}), append(with("t", int32(2)), bson.E{Key: "s", Value: "x"}),
	} {
		if _, err := ParsePlaceholder(doc(KindPlaceholder, d)); err == nil {
			t.Errorf("%s: no error", d)
		}
	}
	for _, d := range []bson.D{
		{{Key: "v", Value: 1}, {Key: "a", Value: int32(3)}, {Key: "ki", Value: id1}}, {{Key: "v", Value: 1}, {Key: "a", Value: int32(1)}}, {{Key: "v", Value: 1}, {Key: "a", Value: int32(1)}, {Key: "ki", Value: id1}, {Key: "ka", Value: "x"}},
		{{Key: "v", Value: 1}, {Key: "a", Value: int32(1)}, {Key: "ka", Value: 1}}, {{Key: "a", Value: int32(1)}, {Key: "ki", Value: id1}},
	} {
		if _, err := ParseMarking(doc(KindMarking, d)); err == nil {
			t.Errorf("%s: no error", d)
		}
	}
	// Fields in any order: what others record varies.
	if _, err := ParsePlaceholder(doc(KindPlaceholder, bson.D{good[5], good[3], good[4], good[0], good[2], good[1]})); err != nil {
		t.Error(err)
	}
}

func TestFactor(t *testing.T) {
	// The first byte of the vector: 00 01 .. 07 with 8 gives 7.
	if n, err := factor(8, &counter{}); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := factor(0, nil); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := factor(-1, rand.Reader); err == nil {
		t.Error("no error")
	}
	// 2^64 mod 9 is 7: numbers below it are drawn again.
	if n, err := factor(8, bytes.NewReader(append([]byte{6, 0, 0, 0, 0, 0, 0, 0}, 7, 0, 0, 0, 0, 0, 0, 0))); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	seen := make(map[uint64]int)
	for range 1000 {
		seen[must(factor(3, rand.Reader))]++
	}
	if len(seen) != 4 || seen[0]+seen[1]+seen[2]+seen[3] != 1000 {
		t.Errorf("drawn: %v", seen)
	}
}

func TestReplace(t *testing.T) {
	all := samples(t)
	secret := bson.Binary{Subtype: bson.BinaryEncrypted, Data: all["marking random"]}
	doc := bson.Raw(must(bson.Marshal(bson.D{
		{Key: "a", Value: 1}, {Key: "b", Value: secret}, {Key: "c", Value: bson.D{{Key: "d", Value: bson.A{"x", secret, bson.D{{Key: "e", Value: secret}}}}}}, {Key: "f", Value: bson.D{{Key: "g", Value: bson.A{}}}}, {Key: "h", Value: bson.Regex{Pattern: "x", Options: "i"}},
	})))
	if !Contains(doc) {
		t.Fatal("contains nothing")
	}
	var paths []string
	out := bson.Raw(must(Replace(nil, doc, func(data []byte) (bson.RawValue, bool, error) {
		if !bytes.Equal(data, all["marking random"]) {
			t.Errorf("data %x", data)
		}
		return stringValue("plain"), true, nil
	})))
	if err := out.Validate(); err != nil {
		t.Fatal(err)
	}
	want := must(bson.Marshal(bson.D{
		{Key: "a", Value: 1}, {Key: "b", Value: "plain"}, {Key: "c", Value: bson.D{{Key: "d", Value: bson.A{"x", "plain", bson.D{{Key: "e", Value: "plain"}}}}}}, {Key: "f", Value: bson.D{{Key: "g", Value: bson.A{}}}}, {Key: "h", Value: bson.Regex{Pattern: "x", Options: "i"}},
	}))
	if !bytes.Equal(out, want) {
		t.Errorf("got %s, want %s", out, bson.Raw(want))
	}
	if Contains(out) {
		t.Error("still contains some")
	}
	broken := errors.New("broken")
	n := 0
	for _, at := range []int{1, 2, 3} {
		n = 0
		_, err := Replace(nil, doc, func([]byte) (bson.RawValue, bool, error) {
			if n++; n == at {
				return bson.RawValue{}, false, broken
			}
			return bson.RawValue{}, false, nil
		})
		var p *PathError
		if !errors.Is(err, broken) || !errors.As(err, &p) {
			t.Fatal(err)
		}
		paths = append(paths, p.Path)
	}
	if got := strings.Join(paths, " "); got != "b c.d.1 c.d.2.e" {
		t.Errorf("paths %s", got)
	}
	n = 0
	if err := Each(doc, func([]byte) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestContainsAllocatesNothing(t *testing.T) {
	doc := bson.Raw(must(bson.Marshal(bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: "c"}}, 1, int64(2), 3.5, bson.NewObjectID()}}, {Key: "d", Value: bson.Regex{Pattern: "x"}}})))
	if n := testing.AllocsPerRun(100, func() {
		if Contains(doc) {
			t.Fatal("contains some")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzContains(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(must(bson.Marshal(bson.D{{Key: "x", Value: bson.A{1, bson.Binary{Subtype: 6, Data: data}}}})))
		f.Add(must(bson.Marshal(bson.D{{Key: "x", Value: bson.A{1, bson.Binary{Subtype: 5, Data: data}, bson.CodeWithScope{Code: "c"}}}})))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Contains(data)
		if bson.Raw(data).Validate() != nil {
			return
		}
		want := false
		if err := Each(data, func([]byte) error { want = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if want && !got {
			t.Error("not found")
		}
		out, err := Replace(nil, data, func([]byte) (bson.RawValue, bool, error) { return bson.RawValue{}, false, nil })
		if err != nil || !bytes.Equal(out, data) {
			t.Errorf("copied: %x, %v", out, err)
		}
	})
}

// FuzzParse holds for all bytes that claim to be of subtype 6: no panic, and what can be parsed can
// be written.
func FuzzParse(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if again := reencode(data); again != nil {
			if third := reencode(again); !bytes.Equal(again, third) {
				t.Errorf("%x becomes %x", again, third)
			}
		}
		if p, err := ParsePlaceholder(data); err == nil {
			ParseRangeInsert(p.Value)
			ParseRangeFind(p.Value)
			ParseText(p.Value)
		}
	})
}

// FuzzOpen decrypts bytes from outside.
func FuzzOpen(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	k := testKey(f, id1)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decrypt(data, k)
		if err == nil && v.IsZero() {
			t.Error("no value")
		}
		if s, ok, err := ParseSealed(data); ok && err == nil {
			for i := range s.Tags() {
				s.openBlock(i, k.Tokens().EDC)
			}
		}
		OpenState(k.Tokens().ECOC, data)
		OpenAnchor(k.Tokens().ESC, data)
	})
}

// FuzzSeal encrypts what a placeholder from outside says.
func FuzzSeal(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	k := testKey(f, id1)
	f.Fuzz(func(t *testing.T, data []byte) {
		var sealed []byte
		if m, err := ParseMarking(data); err == nil {
			if sealed, err = m.Seal(id1, k, rand.Reader); err != nil {
				return
			}
		} else if p, err := ParsePlaceholder(data); err == nil {
			if sealed, err = p.Seal(k, k, rand.Reader); err != nil {
				return
			}
		} else {
			return
		}
		if s, ok, err := ParseSealed(sealed); err != nil {
			t.Error(err)
		} else if ok {
			if _, err := s.Open(k); err != nil && !errors.Is(err, ErrTag) { // the user key's id may be another
				t.Error(err)
			}
		} else if reencode(sealed) == nil {
			t.Errorf("%x is none", sealed)
		}
	})
}

// TestFindWholeText: a query without prefix, suffix and substring looks for the exact tokens of an
// insert, folded as it is.
func TestFindWholeText(t *testing.T) {
	k := testKey(t, id1)
	stored := Text{Value: "Café", FoldCase: true, FoldDiacritics: true, Prefix: &Affix{5, 2}}
	query := Text{Value: "CAFE", FoldCase: true, FoldDiacritics: true}
	insert := Placeholder{Purpose: ForInsert, Index: IndexText, IndexKey: id1, UserKey: id1, Value: stored.RawValue()}
	find := Placeholder{Purpose: ForFind, Index: IndexText, IndexKey: id1, UserKey: id1, Value: query.RawValue()}
	in := must(ParseInsert(must(insert.Seal(k, k, rand.Reader))))
	out := must(ParseFindText(must(find.Seal(k, k, rand.Reader))))
	if out.Kind != TextExact || out.Prefix != nil {
		t.Errorf("kind %d, prefix %v", out.Kind, out.Prefix)
	}
	if w := out.With(0); w.EDC != in.Text.Exact.EDC || w.ESC != in.Text.Exact.ESC || w.Server != in.Text.Exact.Server {
		t.Error("the query has another token than the value")
	}
}
