package fle

import (
	"fmt"

	"allium/bson"
)

// TokenSet is the tokens that one value, edge or affix is inserted with. State is encrypted for the
// collection that remembers what to compact.
type TokenSet struct {
	EDC    Token  // d, with the contention factor
	ESC    Token  // s, with the contention factor
	Server Token  // l
	State  []byte // p
}

// Insert is what a client sends for a value that it inserts, or sets: KindInsert.
type Insert struct {
	TokenSet              // of the value; but for State zero for text
	IndexKey    bson.UUID // u
	Type        bson.Type // t, that of the value
	Value       []byte    // v: the user key's id and the encrypted value
	ServerToken Token     // e
	Contention  int64     // k, the factor that was drawn

	Edges []TokenSet // g: range

	Sparsity   int64  // sp: range; 0 otherwise
	Precision  *int32 // pn: range, if set
	TrimFactor *int32 // tf: range
	Min, Max   bson.RawValue

	Text *TextTokens // b: text
}

// TextTokens is the tokens of a text and of its affixes.
type TextTokens struct {
	Exact                          TokenSet   // e
	Substrings, Suffixes, Prefixes []TokenSet // s, u, p
}

// Append appends the bytes of p, the Kind first.
func (p *Insert) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindInsert)))
	dst = appendToken(dst, "d", p.EDC)
	dst = appendToken(dst, "s", p.ESC)
	dst = bson.AppendBinary(dst, "p", bson.BinaryGeneric, p.State)
	dst = bson.AppendBinary(dst, "u", bson.BinaryUUID, p.IndexKey[:])
	dst = bson.AppendInt32(dst, "t", int32(p.Type))
	dst = bson.AppendBinary(dst, "v", bson.BinaryGeneric, p.Value)
	dst = appendToken(dst, "e", p.ServerToken)
	dst = appendToken(dst, "l", p.Server)
	dst = bson.AppendInt64(dst, "k", p.Contention)
	if p.Edges != nil {
		dst = appendSets(dst, "g", p.Edges)
		dst = bson.AppendInt64(dst, "sp", p.Sparsity)
		dst = appendOptionalInt32(dst, "pn", p.Precision)
		dst = appendOptionalInt32(dst, "tf", p.TrimFactor)
		dst = appendOptional(dst, "mn", p.Min)
		dst = appendOptional(dst, "mx", p.Max)
	}
	if t := p.Text; t != nil {
		var inner int
		inner, dst = bson.BeginDocumentElement(dst, "b")
		var exact int
		exact, dst = bson.BeginDocumentElement(dst, "e")
		dst = bson.EndDocument(t.Exact.append(dst), exact)
		dst = appendSets(dst, "s", t.Substrings)
		dst = appendSets(dst, "u", t.Suffixes)
		dst = appendSets(dst, "p", t.Prefixes)
		dst = bson.EndDocument(dst, inner)
	}
	return bson.EndDocument(dst, start)
}

// setSize is more than a TokenSet takes, and findSetSize more than a FindSet does: with what an
// array adds.
const (
	findSetSize = 3*(len(Token{})+8) + 16
	setSize     = findSetSize + stateSize + 8
)

// size returns more than the bytes that Append appends, but for the bounds of decimals.
func (p *Insert) size() int {
	n := 1 + len(p.Edges)
	if t := p.Text; t != nil {
		n += 1 + len(t.Substrings) + len(t.Suffixes) + len(t.Prefixes)
	}
	return 256 + len(p.Value) + n*setSize
}

func appendToken(dst []byte, key string, t Token) []byte {
	return bson.AppendBinary(dst, key, bson.BinaryGeneric, t[:])
}

func (s *TokenSet) append(dst []byte) []byte {
	dst = appendToken(dst, "d", s.EDC)
	dst = appendToken(dst, "s", s.ESC)
	dst = appendToken(dst, "l", s.Server)
	return bson.AppendBinary(dst, "p", bson.BinaryGeneric, s.State)
}

func appendSets(dst []byte, key string, sets []TokenSet) []byte {
	start, dst := bson.BeginArrayElement(dst, key)
	for i := range sets {
		var at int
		dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i)
		at, dst = bson.BeginDocument(dst)
		dst = bson.EndDocument(sets[i].append(dst), at)
	}
	return bson.EndDocument(dst, start)
}

// ParseInsert parses what Append appends.
func ParseInsert(data []byte) (*Insert, error) {
	doc, err := document(data, KindInsert)
	if err != nil {
		return nil, err
	}
	r := read(KindInsert.String(), doc)
	p := &Insert{
		TokenSet: r.set(), IndexKey: r.uuid("u"), Value: r.bytes("v"), ServerToken: r.token("e"),
		Contention: r.int64("k"), Precision: r.optionalInt32("pn"), TrimFactor: r.optionalInt32("tf"),
		Min: r.optional("mn"), Max: r.optional("mx"),
	}
	switch t := r.int32("t"); {
	case t < 0 || t > 0xff || !bson.Type(t).IsValid():
		r.fail("type %d is none of BSON", t)
	default:
		p.Type = bson.Type(t)
	}
	if len(p.Value) < len(bson.UUID{})+sealedSize(1) {
		r.fail("a value of %d bytes is too short", len(p.Value))
	}
	if p.Contention < 0 {
		r.fail("contention %d is negative", p.Contention)
	}
	if !r.optional("g").IsZero() {
		p.Edges = r.sets("g")
	}
	if !r.optional("sp").IsZero() {
		p.Sparsity = r.int64("sp")
	}
	if v := r.optional("b"); !v.IsZero() {
		inner, ok := v.Document()
		r.typed("b", ok)
		b := read(r.what, inner)
		e := read(r.what, b.document("e"))
		p.Text = &TextTokens{Exact: e.set(), Substrings: b.sets("s"), Suffixes: b.sets("u"), Prefixes: b.sets("p")}
		r.inner(e)
		r.inner(b)
	}
	if p.Edges != nil && p.Text != nil {
		r.fail("fields %q and %q exclude each other", "g", "b")
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return p, nil
}

// set reads a TokenSet.
func (r *reader) set() TokenSet {
	return TokenSet{EDC: r.token("d"), ESC: r.token("s"), Server: r.token("l"), State: r.bytes("p")}
}

func (r *reader) sets(name string) []TokenSet {
	out := []TokenSet{}
	for v := range r.array(name).Values() {
		e := r.element(name, v)
		out = append(out, e.set())
		r.inner(e)
	}
	return out
}

// element reads a document in the array called name.
func (r *reader) element(name string, v bson.RawValue) *reader {
	doc, ok := v.Document()
	r.typed(name, ok)
	return read(r.what, doc)
}

// findSet reads a FindSet.
func (r *reader) findSet() FindSet {
	return FindSet{EDC: r.token("d"), ESC: r.token("s"), Server: r.token("l")}
}

func (s *FindSet) append(dst []byte) []byte {
	dst = appendToken(dst, "d", s.EDC)
	dst = appendToken(dst, "s", s.ESC)
	return appendToken(dst, "l", s.Server)
}

// FindEquality is what a client sends for a value that it looks for: KindFindEquality.
type FindEquality struct {
	FindSet
	Contention int64 // cm, the greatest factor
}

// Append appends the bytes of p, the Kind first.
func (p *FindEquality) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindFindEquality)))
	dst = p.FindSet.append(dst)
	dst = bson.AppendInt64(dst, "cm", p.Contention)
	return bson.EndDocument(dst, start)
}

// ParseFindEquality parses what Append appends.
func ParseFindEquality(data []byte) (*FindEquality, error) {
	doc, err := document(data, KindFindEquality)
	if err != nil {
		return nil, err
	}
	r := read(KindFindEquality.String(), doc)
	p := &FindEquality{FindSet: r.findSet(), Contention: r.contention("cm")}
	if err := r.done(); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *reader) contention(name string) int64 {
	n := r.int64(name)
	if n < 0 {
		r.fail("contention must be non-negative, but got %d", n)
	}
	return n
}

// FindRange is what a client sends for a range that it looks for: KindFindRange. One without Edges
// is the second half of a range with two bounds, as with a RangeFind without Edges.
type FindRange struct {
	Edges      []FindSet // payload.g; nil for a second half
	Contention int64     // payload.cm, the greatest factor
	PayloadID  int32
	First      RangeOperator
	Second     RangeOperator // 0 if the range has one bound
	Sparsity   int64         // sp; this and what follows with Edges only
	Precision  *int32        // pn
	TrimFactor *int32        // tf
	Min, Max   bson.RawValue // mn, mx
}

// Append appends the bytes of p, the Kind first.
func (p *FindRange) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindFindRange)))
	if p.Edges != nil {
		var inner, list int
		inner, dst = bson.BeginDocumentElement(dst, "payload")
		list, dst = bson.BeginArrayElement(dst, "g")
		for i := range p.Edges {
			var at int
			dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i)
			at, dst = bson.BeginDocument(dst)
			dst = bson.EndDocument(p.Edges[i].append(dst), at)
		}
		dst = bson.EndDocument(dst, list)
		dst = bson.AppendInt64(dst, "cm", p.Contention)
		dst = bson.EndDocument(dst, inner)
	}
	dst = bson.AppendInt32(dst, "payloadId", p.PayloadID)
	dst = bson.AppendInt32(dst, "firstOperator", int32(p.First))
	if p.Second != 0 {
		dst = bson.AppendInt32(dst, "secondOperator", int32(p.Second))
	}
	if p.Edges != nil {
		dst = bson.AppendInt64(dst, "sp", p.Sparsity)
		dst = appendOptionalInt32(dst, "pn", p.Precision)
		dst = appendOptionalInt32(dst, "tf", p.TrimFactor)
		dst = appendOptional(dst, "mn", p.Min)
		dst = appendOptional(dst, "mx", p.Max)
	}
	return bson.EndDocument(dst, start)
}

// ParseFindRange parses what Append appends.
func ParseFindRange(data []byte) (*FindRange, error) {
	doc, err := document(data, KindFindRange)
	if err != nil {
		return nil, err
	}
	r := read(KindFindRange.String(), doc)
	p := &FindRange{
		PayloadID: r.int32("payloadId"), First: r.operator("firstOperator"),
		Second:    r.optionalOperator("secondOperator"),
		Precision: r.optionalInt32("pn"), TrimFactor: r.optionalInt32("tf"), Min: r.optional("mn"),
		Max: r.optional("mx"),
	}
	if !r.optional("sp").IsZero() {
		p.Sparsity = r.int64("sp")
	}
	if v := r.optional("payload"); !v.IsZero() {
		inner, ok := v.Document()
		r.typed("payload", ok)
		e := read(r.what, inner)
		p.Contention, p.Edges = e.contention("cm"), []FindSet{}
		for v := range e.array("g").Values() {
			g := e.element("g", v)
			p.Edges = append(p.Edges, g.findSet())
			e.inner(g)
		}
		r.inner(e)
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return p, nil
}

// FindText is what a client sends for a text that it looks for: KindFindText. One of Prefix, Suffix
// and Substring is set.
type FindText struct {
	FindSet
	Kind           TextKind
	Contention     int64 // cm, the greatest factor
	FoldCase       bool  // cf
	FoldDiacritics bool  // df
	Prefix, Suffix *Affix
	Substring      *Substring
}

var textNames = map[TextKind]string{TextExact: "e", TextSubstring: "s", TextSuffix: "u", TextPrefix: "p"}

// Append appends the bytes of p, the Kind first.
func (p *FindText) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindFindText)))
	ts, dst := bson.BeginDocumentElement(dst, "ts")
	set, dst := bson.BeginDocumentElement(dst, textNames[p.Kind])
	dst = bson.EndDocument(p.FindSet.append(dst), set)
	dst = bson.EndDocument(dst, ts)
	dst = bson.AppendInt64(dst, "cm", p.Contention)
	dst = bson.AppendBool(dst, "cf", p.FoldCase)
	dst = bson.AppendBool(dst, "df", p.FoldDiacritics)
	dst = p.Substring.append(dst, "ss")
	dst = p.Suffix.append(dst, "fs")
	dst = p.Prefix.append(dst, "ps")
	return bson.EndDocument(dst, start)
}

// ParseFindText parses what Append appends.
func ParseFindText(data []byte) (*FindText, error) {
	doc, err := document(data, KindFindText)
	if err != nil {
		return nil, err
	}
	r := read(KindFindText.String(), doc)
	p := &FindText{
		Contention: r.contention("cm"), FoldCase: r.bool("cf"), FoldDiacritics: r.bool("df"),
		Substring: r.substring("ss"), Suffix: r.affix("fs"), Prefix: r.affix("ps"),
	}
	ts := read(r.what, r.document("ts"))
	for kind := TextExact; kind <= TextPrefix; kind++ {
		v := ts.optional(textNames[kind])
		if v.IsZero() {
			continue
		}
		if p.Kind != 0 {
			r.fail("tokens of several kinds")
		}
		e := ts.element(textNames[kind], v)
		p.Kind, p.FindSet = kind, e.findSet()
		ts.inner(e)
	}
	if p.Kind == 0 {
		r.fail("no tokens")
	}
	r.inner(ts)
	if err := r.done(); err != nil {
		return nil, err
	}
	return p, nil
}

// State is what the collection that remembers what to compact holds of a TokenSet.
type State struct {
	ESC  Token
	Leaf bool // range: the edge is the one of all bits
	Size int  // text: how many tokens the exact one stands for; 0 for others
}

// OpenState decrypts State of a TokenSet with the field's ECOC token.
func OpenState(ecoc Token, data []byte) (State, error) {
	plain, err := openCTR(ecoc, data)
	if err != nil {
		return State{}, err
	}
	var s State
	switch extra := len(plain) - len(s.ESC); extra {
	case 0:
	case 1:
		if plain[32] > 1 {
			return State{}, fmt.Errorf("malformed state: byte %d says whether the edge is a leaf", plain[32])
		}
		s.Leaf = plain[32] == 1
	case 3:
		s.Size = int(plain[32]) | int(plain[33])<<8 | int(plain[34])<<16
	default:
		return State{}, fmt.Errorf("malformed state: %d bytes", len(plain))
	}
	s.ESC = Token(plain[:32])
	return s, nil
}
