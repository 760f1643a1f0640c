package fle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"allium/bson"
)

func inf(sign int) float64 { return math.Inf(sign) }

// headerSize is the length of what precedes the ciphertext of a value under one key, and is
// authenticated with it: the kind, the key's id and the value's type.
const headerSize = 1 + 16 + 1

func header(dst []byte, kind Kind, id bson.UUID, t bson.Type) []byte {
	dst = append(dst, byte(kind))
	dst = append(dst, id[:]...)
	return append(dst, byte(t))
}

// What cannot be encrypted.
var (
	ErrType          = errors.New("BSON type invalid for encryption")
	ErrDeterministic = errors.New("BSON type invalid for deterministic encryption")
	ErrEncrypted     = errors.New("BSON binary subtype 6 is invalid for encryption")
)

// CheckValue returns why v cannot be encrypted, nil if it can be.
func CheckValue(v bson.RawValue, deterministic bool) error {
	switch v.Type {
	case bson.TypeNull, bson.TypeMinKey, bson.TypeMaxKey, bson.TypeUndefined, 0:
		return ErrType
	case bson.TypeBinary:
		if len(v.Value) > 4 && v.Value[4] == bson.BinaryEncrypted {
			return ErrEncrypted
		}
	case bson.TypeDouble, bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope, bson.TypeBoolean,
		bson.TypeDecimal128:
		// A few values only, or equal values with different bytes.
		if deterministic {
			return ErrDeterministic
		}
	}
	return nil
}

// Seal encrypts the value of m with key, whose id is id, and returns the bytes of a
// KindDeterministic or KindRandom.
func (m *Marking) Seal(id bson.UUID, key *Key, random io.Reader) ([]byte, error) {
	if err := CheckValue(m.Value, m.Algorithm == Deterministic); err != nil {
		return nil, err
	}
	kind := KindRandom
	if m.Algorithm == Deterministic {
		kind = KindDeterministic
	}
	out := header(make([]byte, 0, headerSize+sealedSize(len(m.Value.Value))), kind, id, m.Value.Type)
	if m.Algorithm == Deterministic {
		return key.SealDeterministic(out, out[:headerSize], m.Value.Value)
	}
	return key.SealRandom(out, out[:headerSize], m.Value.Value, random)
}

// Seal encrypts the value of p, or derives the tokens of a query for it: index and user are the
// keys with the ids IndexKey and UserKey. It returns the bytes of a KindUnindexed, KindInsert,
// KindFindEquality, KindFindRange or KindFindText.
func (p *Placeholder) Seal(index, user *Key, random io.Reader) ([]byte, error) {
	switch {
	case p.Purpose == ForInsert && p.Index == IndexNone:
		return p.unindexed(user, random)
	case p.Purpose == ForInsert:
		insert, err := p.insert(index, user, random)
		if err != nil {
			return nil, err
		}
		return insert.Append(make([]byte, 0, insert.size())), nil
	case p.Purpose == ForFind && p.Index == IndexEquality:
		if err := CheckValue(p.Value, false); err != nil {
			return nil, err
		}
		finder := index.finder()
		defer index.finders.Put(finder)
		find := FindEquality{FindSet: finder.find(p.Value.Value), Contention: p.Contention}
		return find.Append(make([]byte, 0, findSetSize+64)), nil
	case p.Purpose == ForFind && p.Index == IndexRange:
		find, err := p.findRange(index)
		if err != nil {
			return nil, err
		}
		return find.Append(make([]byte, 0, 256+len(find.Edges)*findSetSize)), nil
	case p.Purpose == ForFind && p.Index == IndexText:
		find, err := p.findText(index)
		if err != nil {
			return nil, err
		}
		return find.Append(nil), nil
	}
	return nil, fmt.Errorf("malformed %s: type %d with algorithm %d", KindPlaceholder, p.Purpose, p.Index)
}

func (p *Placeholder) unindexed(user *Key, random io.Reader) ([]byte, error) {
	if err := CheckValue(p.Value, false); err != nil {
		return nil, err
	}
	out := header(make([]byte, 0, headerSize+sealedSize(len(p.Value.Value))), KindUnindexed, p.UserKey, p.Value.Type)
	return user.SealQE(out, out[:headerSize], p.Value.Value, random)
}

// factor draws a contention factor from 0 to most, evenly.
func factor(most int64, random io.Reader) (uint64, error) {
	if most < 0 {
		return 0, fmt.Errorf("contention must be non-negative, but got %d", most)
	}
	if most == 0 {
		return 0, nil
	}
	n := uint64(most) + 1
	least := -n % n // 2^64 mod n: below it, some remainders would be drawn once more than others
	for {
		var b [8]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return 0, err
		}
		if x := binary.LittleEndian.Uint64(b[:]); x >= least {
			return x % n, nil
		}
	}
}

// inserting has what all tokens of one value share.
type inserting struct {
	tokens     *Tokens
	contention uint64
	random     io.Reader
	ecoc       ctr    // encrypts the states
	states     []byte // room for them
}

// set returns the tokens of data, with state after the ESC token in State.
func (in *inserting) set(f *finder, data, state []byte) (TokenSet, error) {
	s := f.find(data).With(in.contention)
	out := TokenSet{EDC: s.EDC, ESC: s.ESC, Server: s.Server}
	var err error
	out.State, err = in.state(out.ESC, state)
	return out, err
}

// stateSize is the length of a state of a text, which is the longest.
const stateSize = ivSize + len(Token{}) + 3

// expect makes room for the states of n sets of tokens.
func (in *inserting) expect(n int) { in.states = make([]byte, 0, n*stateSize) }

func (in *inserting) state(esc Token, state []byte) ([]byte, error) {
	if cap(in.states)-len(in.states) < stateSize {
		in.expect(1)
	}
	start := len(in.states)
	in.states = in.states[:start+ivSize]
	if _, err := io.ReadFull(in.random, in.states[start:]); err != nil {
		return nil, err
	}
	in.states = append(append(in.states, esc[:]...), state...)
	sealed := in.states[start:len(in.states):len(in.states)]
	in.ecoc.xor(sealed[:ivSize], sealed[ivSize:])
	return sealed, nil
}

func (p *Placeholder) insert(index, user *Key, random io.Reader) (*Insert, error) {
	value := p.Value
	var spec *RangeInsert
	var text *Text
	var err error
	switch p.Index {
	case IndexRange:
		if spec, err = ParseRangeInsert(p.Value); err != nil {
			return nil, err
		}
		value = spec.Value
	case IndexText:
		if text, err = ParseText(p.Value); err != nil {
			return nil, err
		}
		value = bson.RawValue{Type: bson.TypeString, Value: stringBytes(text.Value)}
	}
	if err := CheckValue(value, false); err != nil {
		return nil, err
	}
	contention, err := factor(p.Contention, random)
	if err != nil {
		return nil, err
	}
	finder := index.finder()
	defer index.finders.Put(finder)
	in := &inserting{tokens: index.Tokens(), contention: contention, random: random}
	in.ecoc.block = index.ecoc.get(in.tokens.ECOC[:])
	out := &Insert{IndexKey: p.IndexKey, Type: value.Type, ServerToken: in.tokens.ServerDataEncryption,
		Contention: int64(contention)}

	// The order in which random bytes are drawn is part of the test vectors.
	switch p.Index {
	case IndexEquality:
		out.TokenSet, err = in.set(finder, value.Value, nil)
	case IndexRange:
		out.TokenSet, err = in.set(finder, value.Value, []byte{0})
	case IndexText:
		out.State, err = in.state(Token{}, []byte{0, 0, 0})
	}
	if err != nil {
		return nil, err
	}
	out.Value = append(make([]byte, 0, len(p.UserKey)+sealedSize(len(value.Value))), p.UserKey[:]...)
	if out.Value, err = user.SealQE(out.Value, p.UserKey[:], value.Value, random); err != nil {
		return nil, err
	}
	switch p.Index {
	case IndexRange:
		err = out.addEdges(in, finder, p, spec)
	case IndexText:
		out.Text, err = in.text(text)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (out *Insert) addEdges(in *inserting, f *finder, p *Placeholder, spec *RangeInsert) error {
	d, err := NewDomain(spec.Value.Type, spec.Min, spec.Max, spec.Precision)
	if err != nil {
		return err
	}
	trim, err := d.Trim(spec.TrimFactor)
	if err != nil {
		return err
	}
	edges, err := d.Edges(spec.Value, p.Sparsity, trim)
	if err != nil {
		return err
	}
	out.Edges = make([]TokenSet, 0, len(edges))
	in.expect(len(edges))
	leaf := []byte{0}
	for _, edge := range edges {
		leaf[0] = 0
		if len(edge) == d.bits && edge != rootEdge {
			leaf[0] = 1
		}
		set, err := in.set(f, f.edge(edge), leaf)
		if err != nil {
			return err
		}
		out.Edges = append(out.Edges, set)
	}
	out.Sparsity, out.Precision, out.TrimFactor = p.Sparsity, spec.Precision, &trim
	out.Min, out.Max = d.Bounds()
	return nil
}

// text returns the tokens of a text.
func (in *inserting) text(t *Text) (*TextTokens, error) {
	if err := checkText("StrEncode", t.Value); err != nil {
		return nil, err
	}
	folded := Fold(t.Value, t.FoldCase, t.FoldDiacritics)
	cut := cutsOf(folded)
	n := len(t.Value)
	substrings, err := t.Substring.substrings(&cut, n, utf8.RuneCountInString(t.Value))
	if err != nil {
		return nil, err
	}
	suffixes, prefixes := t.Suffix.suffixes(&cut, n), t.Prefix.prefixes(&cut, n)
	total := 1 + substrings.size() + suffixes.size() + prefixes.size()
	if total >= 1<<24 {
		return nil, fmt.Errorf("StrEncode: the string has %d tokens, too many for its field", total)
	}
	out := new(TextTokens)
	in.expect(4 + len(substrings.real) + len(suffixes.real) + len(prefixes.real)) // all padding of a kind is one set
	exact := in.tokens.Text(TextExact)
	if out.Exact, err = in.set(exact.finder(), stringBytes(folded),
		[]byte{byte(total), byte(total >> 8), byte(total >> 16)}); err != nil {
		return nil, err
	}
	if out.Substrings, err = in.affixes(TextSubstring, substrings, folded); err != nil {
		return nil, err
	}
	if out.Suffixes, err = in.affixes(TextSuffix, suffixes, folded); err != nil {
		return nil, err
	}
	out.Prefixes, err = in.affixes(TextPrefix, prefixes, folded)
	return out, err
}

func (in *inserting) affixes(kind TextKind, a affixes, folded string) ([]TokenSet, error) {
	out := make([]TokenSet, 0, a.size())
	if a.size() == 0 {
		return out, nil
	}
	tokens := in.tokens.Text(kind)
	finder := tokens.finder()
	none := []byte{0, 0, 0}
	for _, s := range a.real {
		set, err := in.set(finder, finder.string(s), none)
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	if a.padding > 0 {
		set, err := in.set(finder, stringBytes(padText(folded)), none)
		if err != nil {
			return nil, err
		}
		for range a.padding {
			out = append(out, set)
		}
	}
	return out, nil
}

func (p *Placeholder) findRange(index *Key) (*FindRange, error) {
	spec, err := ParseRangeFind(p.Value)
	if err != nil {
		return nil, err
	}
	out := &FindRange{PayloadID: spec.PayloadID, First: spec.First, Second: spec.Second}
	e := spec.Edges
	if e == nil {
		return out, nil
	}
	// The open side's infinity is a double whatever the type is.
	kind := e.Lower.Type
	if isOpen(e.Lower, -1) {
		kind = e.Upper.Type
	}
	if isOpen(e.Lower, -1) && isOpen(e.Upper, 1) && !e.Min.IsZero() {
		kind = e.Min.Type
	}
	d, err := NewDomain(kind, e.Min, e.Max, e.Precision)
	if err != nil {
		return nil, err
	}
	trim, err := d.Trim(e.TrimFactor)
	if err != nil {
		return nil, err
	}
	edges, err := d.Cover(e, p.Sparsity, trim)
	if err != nil {
		return nil, err
	}
	out.Edges = make([]FindSet, 0, len(edges))
	finder := index.finder()
	defer index.finders.Put(finder)
	for _, edge := range edges {
		out.Edges = append(out.Edges, finder.find(finder.edge(edge)))
	}
	out.Contention, out.Sparsity, out.Precision, out.TrimFactor = p.Contention, p.Sparsity, e.Precision, &trim
	out.Min, out.Max = d.Bounds()
	return out, nil
}

func (p *Placeholder) findText(index *Key) (*FindText, error) {
	t, err := ParseText(p.Value)
	if err != nil {
		return nil, err
	}
	folded, kind, err := t.query()
	if err != nil {
		return nil, err
	}
	tokens := index.Tokens().Text(kind)
	return &FindText{
		FindSet: tokens.Find(stringBytes(folded)), Kind: kind, Contention: p.Contention,
		FoldCase: t.FoldCase, FoldDiacritics: t.FoldDiacritics, Prefix: t.Prefix, Suffix: t.Suffix,
		Substring: t.Substring,
	}, nil
}
