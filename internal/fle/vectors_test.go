package fle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"allium/bson"
)

// load reads a JSON file of test vectors.
func load(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counter is a source of bytes that count: 0, 1, ..., 255, 0, ...
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
		c.n++
	}
	return len(p), nil
}

// fixed is a source of given bytes.
func fixed(b []byte) *bytes.Reader { return bytes.NewReader(b) }

var (
	id1 = bson.UUID(must(hex.DecodeString("12345678123498761234123456789012")))
	id2 = bson.UUID(must(hex.DecodeString("ABCDEFAB123498761234123456789012")))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// testKey returns a key with material from testdata.
func testKey(t testing.TB, id bson.UUID) *Key {
	t.Helper()
	name := strings.ToUpper(hex.EncodeToString(id[:]))
	data, err := os.ReadFile("testdata/keys/" + name + "-key-material.txt")
	if err != nil {
		t.Fatal(err)
	}
	material, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestRoundTripVectors(t *testing.T) {
	n := 0
	for _, file := range []string{"aes-ctr", "fle2-fixed", "fle2-generated", "fle2v2-aead-fixed", "fle2v2-aead-generated", "mcgrew", "nist"} {
		var cases []struct {
			Name, Algo, Key, IV, AAD, Plaintext, Ciphertext string
			EncryptError                                    string `json:"encrypt_error"`
		}
		load(t, "roundtrip/"+file+".json", &cases)
		for _, c := range cases {
			t.Run(file+"/"+c.Name, func(t *testing.T) {
				n++
				material, iv, aad := unhex(t, c.Key), unhex(t, c.IV), unhex(t, c.AAD)
				plain, want := unhex(t, c.Plaintext), unhex(t, c.Ciphertext)
				var got, back []byte
				var err error
				switch c.Algo {
				case "AES-256-CTR/NONE":
					got, err = sealCTR(nil, Token(material), plain, fixed(iv))
					if err == nil {
						back, err = openCTR(Token(material), want)
					}
				case "AES-256-CBC/SHA-256", "AES-256-CBC/SHA-512-256":
					k, err2 := NewKey(material)
					if err2 != nil {
						t.Fatal(err2)
					}
					seal, open := k.SealRandom, k.Open
					if c.Algo == "AES-256-CBC/SHA-256" {
						seal, open = k.SealQE, k.OpenQE
					}
					got, err = seal(nil, aad, plain, fixed(iv))
					if err == nil {
						back, err = open(nil, aad, want)
						for i := range want { // every changed byte is found
							bad := bytes.Clone(want)
							bad[i] ^= 1
							if _, err := open(nil, aad, bad); !errors.Is(err, ErrTag) {
								t.Fatalf("with byte %d changed: %v", i, err)
							}
						}
					}
				default:
					t.Fatalf("algorithm %q", c.Algo)
				}
				if c.EncryptError != "" {
					if err == nil || !strings.Contains(err.Error(), c.EncryptError) {
						t.Fatalf("error %v, want %q", err, c.EncryptError)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) || !bytes.Equal(back, plain) {
					t.Errorf("got %x and back %x, want %x and %x", got, back, want, plain)
				}
			})
		}
	}
	if n < 20 {
		t.Errorf("%d vectors", n)
	}
}

func TestTokenVectors(t *testing.T) {
	for _, file := range []string{"mc", "server"} {
		var want map[string]any
		load(t, "tokens/"+file+".json", &want)
		value := unhex(t, want["value"].(string))
		u := uint64(want["contentionFactor"].(float64))
		root := Token(unhex(t, want["root"].(string)))
		k := NewTokens(root)
		find := k.Find(value)
		with := find.With(u)
		got := map[string]Token{
			"collectionsLevel1Token": root.number(1), "ServerTokenDerivationLevel1Token": k.ServerDerivation,
			"serverDataEncryptionLevel1Token": k.ServerDataEncryption,
			"EDCToken":                        k.EDC, "ESCToken": k.ESC, "ECOCToken": k.ECOC,
			"EDCDerivedFromDataToken": find.EDC, "ESCDerivedFromDataToken": find.ESC, "serverDerivedFromDataToken": find.Server,
			"EDCDerivedFromDataTokenAndContentionFactor": with.EDC, "ESCDerivedFromDataTokenAndContentionFactor": with.ESC,
			"EDCTwiceDerivedToken": with.EDC.number(1), "ESCTwiceDerivedTagToken": CountTag(with.ESC),
			"ESCTwiceDerivedValueToken":                     CountValue(with.ESC),
			"serverCountAndContentionFactorEncryptionToken": CountAndContention(find.Server),
			"serverZerosEncryptionToken":                    Zeros(find.Server),
			"AnchorPaddingTokenRoot":                        k.AnchorPadding(), "AnchorPaddingKeyToken": AnchorPaddingKey(k.AnchorPadding()),
			"AnchorPaddingValueToken": AnchorPaddingValue(k.AnchorPadding()),
		}
		for kind, name := range map[TextKind]string{TextExact: "Exact", TextSubstring: "Substring", TextSuffix: "Suffix", TextPrefix: "Prefix"} {
			text := k.Text(kind)
			find := text.Find(value)
			with := find.With(u)
			got["EDCText"+name+"Token"], got["ESCText"+name+"Token"], got["ServerText"+name+"Token"] = text.EDC, text.ESC, text.ServerDerivation
			got["EDCText"+name+"DerivedFromDataToken"], got["ESCText"+name+"DerivedFromDataToken"] = find.EDC, find.ESC
			got["ServerText"+name+"DerivedFromDataToken"] = find.Server
			got["EDCText"+name+"DerivedFromDataTokenAndContentionFactorToken"] = with.EDC
			got["ESCText"+name+"DerivedFromDataTokenAndContentionFactorToken"] = with.ESC
		}
		for name, token := range got {
			hex, ok := want[name].(string)
			if !ok {
				t.Errorf("%s: no token %s", file, name)
			} else if w := Token(unhex(t, hex)); w != token {
				t.Errorf("%s: %s is %x, want %x", file, name, token, w)
			}
			delete(want, name)
		}
		for name := range want {
			// ECC belongs to the first version.
			if !strings.HasPrefix(name, "ECC") && name != "root" && name != "value" && name != "contentionFactor" {
				t.Errorf("%s: %s is not derived", file, name)
			}
		}
	}
}

// TestStoredVectors decrypts values that a server stored.
func TestStoredVectors(t *testing.T) {
	for _, file := range []string{"insertOneV2", "insertOneRangeV2", "insertOneText", "insertOneTextLarge"} {
		t.Run(file, func(t *testing.T) {
			var c struct {
				Payload  string
				SKeyID   string   `json:"S_KeyId"`
				SKey     string   `json:"S_Key"`
				KKeyID   string   `json:"K_KeyId"`
				KKey     string   `json:"K_Key"`
				Type     byte     `json:"bson_value_type"`
				Value    string   `json:"bson_value"`
				Metadata metadata `json:"metadata"`
			}
			load(t, "iev-v2/FLECrudTest-"+file+".json", &c)
			data := unhex(t, c.Payload)
			outer, err := NewKey(unhex(t, c.SKey))
			if err != nil {
				t.Fatal(err)
			}
			inner, err := NewKey(unhex(t, c.KKey))
			if err != nil {
				t.Fatal(err)
			}
			s, ok, err := ParseSealed(data)
			if err != nil || !ok || !s.Indexed() {
				t.Fatal(s, ok, err)
			}
			if !bytes.Equal(s.KeyID[:], unhex(t, c.SKeyID)) {
				t.Errorf("key %s, want %s", s.KeyID, c.SKeyID)
			}
			if len(s.Tags()) != len(c.Metadata) {
				t.Fatalf("%d tags, want %d", len(s.Tags()), len(c.Metadata))
			}
			for i, tag := range s.Tags() {
				if block := unhex(t, c.Metadata[i]); !bytes.Equal(tag, block[32:64]) {
					t.Errorf("tag %d is %x, want %x", i, tag, block[32:64])
				}
			}
			in, err := s.Inner(outer)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(in.KeyID[:], unhex(t, c.KKeyID)) {
				t.Errorf("inner key %s, want %s", in.KeyID, c.KKeyID)
			}
			v, err := in.Open(inner)
			if err != nil {
				t.Fatal(err)
			}
			if v.Type != bson.Type(c.Type) || !bytes.Equal(v.Value, unhex(t, c.Value)) {
				t.Errorf("value %s %x, want type %d %s", v.Type, v.Value, c.Type, c.Value)
			}
		})
	}
}

// metadata is one block or several in a vector.
type metadata []string

func (m *metadata) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(m))
	}
	*m = make([]string, 1)
	return json.Unmarshal(b, &(*m)[0])
}

// question is what libmongocrypt was asked.
type question struct {
	Question struct {
		Op    string
		Value json.RawMessage
		Opts  struct {
			Algorithm        string
			QueryType        string
			KeyID            json.RawMessage
			IndexKeyID       json.RawMessage
			ContentionFactor json.RawMessage
			RangeOpts        json.RawMessage
			TextOpts         json.RawMessage
		}
	}
	Answer struct {
		Result json.RawMessage
		Error  string
	}
}

func extJSON(t *testing.T, text []byte) bson.RawValue {
	t.Helper()
	v, err := bson.ParseExtJSONValue(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func uuidOf(t *testing.T, text json.RawMessage) bson.UUID {
	b, ok := extJSON(t, text).Binary()
	if !ok {
		t.Fatalf("%s is no UUID", text)
	}
	return must(b.UUID())
}

// options returns the options of a question.
func (q *question) options(t *testing.T) (e Explicit, user, index bson.UUID) {
	o := q.Question.Opts
	e = Explicit{Algorithm: o.Algorithm, QueryType: o.QueryType}
	if o.ContentionFactor != nil {
		n, _ := extJSON(t, o.ContentionFactor).Int64()
		e.Contention = &n
	}
	user = uuidOf(t, o.KeyID)
	index = user
	if o.IndexKeyID != nil {
		index = uuidOf(t, o.IndexKeyID)
	}
	if o.RangeOpts != nil {
		doc, _ := extJSON(t, o.RangeOpts).Document()
		e.Range = &RangeOptions{Min: doc.Lookup("min"), Max: doc.Lookup("max")}
		if n, ok := doc.Lookup("sparsity").Int64(); ok {
			e.Range.Sparsity = &n
		}
		if n, ok := doc.Lookup("trimFactor").Int32(); ok {
			e.Range.TrimFactor = &n
		}
		if n, ok := doc.Lookup("precision").Int32(); ok {
			e.Range.Precision = &n
		}
	}
	if o.TextOpts != nil {
		doc, _ := extJSON(t, o.TextOpts).Document()
		e.Text = new(TextOptions)
		e.Text.CaseSensitive, _ = doc.Lookup("caseSensitive").Boolean()
		e.Text.DiacriticSensitive, _ = doc.Lookup("diacriticSensitive").Boolean()
		number := func(path ...string) int32 { n, _ := doc.Lookup(path...).Int32(); return n }
		affix := func(name string) *Affix {
			if doc.Lookup(name).IsZero() {
				return nil
			}
			return &Affix{Upper: number(name, "strMaxQueryLength"), Lower: number(name, "strMinQueryLength")}
		}
		e.Text.Prefix, e.Text.Suffix = affix("prefix"), affix("suffix")
		if a := affix("substring"); a != nil {
			e.Text.Substring = &Substring{MaxLength: number("substring", "strMaxLength"), Upper: a.Upper, Lower: a.Lower}
		}
	}
	return e, user, index
}

// answer encrypts what a question asks for.
func (q *question) answer(t *testing.T, keys map[bson.UUID]*Key) (bson.RawValue, error) {
	e, user, index := q.options(t)
	v := extJSON(t, q.Question.Value)
	random := &counter{}
	var doc bson.Raw
	if q.Question.Op == "explicitExpression" {
		expr, _ := v.Document()
		out, err := e.Expression(expr, user, index, 0)
		if err != nil {
			return v, err
		}
		doc = bson.AppendDocument(nil, "v", out)
	} else {
		data, err := placeholder(&e, v, user, index)
		if err != nil {
			return v, err
		}
		doc = bson.AppendRawValue(nil, "v", Value(data))
	}
	start, out := bson.BeginDocument(nil)
	doc = bson.EndDocument(append(out, doc...), start)
	sealed, err := Replace(nil, doc, func(data []byte) (bson.RawValue, bool, error) {
		var out []byte
		switch Kind(data[0]) {
		case KindMarking:
			m, err := ParseMarking(data)
			if err != nil {
				return v, false, err
			}
			out, err = m.Seal(m.KeyID, keys[m.KeyID], random)
			if err != nil {
				return v, false, err
			}
		case KindPlaceholder:
			p, err := ParsePlaceholder(data)
			if err != nil {
				return v, false, err
			}
			out, err = p.Seal(keys[p.IndexKey], keys[p.UserKey], random)
			if err != nil {
				return v, false, err
			}
		default:
			t.Fatalf("%s is no placeholder", Kind(data[0]))
		}
		return Value(out), true, nil
	})
	if err != nil {
		return v, err
	}
	return bson.Raw(sealed).Lookup("v"), nil
}

// sameError compares an error with libmongocrypt's text. Ours differ on purpose: they do not tell
// values that are to be encrypted, nor repeat the expression, and types have the names that they
// have in Go.
func sameError(got error, want string) bool {
	if path := (*PathError)(nil); errors.As(got, &path) {
		got = path.Err
	}
	if got == nil {
		return false
	}
	want, _, _ = strings.Cut(want, ", value: ")
	want, _, _ = strings.Cut(want, ": { ")
	want = strings.TrimPrefix(want, "Error parsing RangeOpts: ")
	if rest, ok := strings.CutPrefix(want, "Error appending "); ok {
		_, want, _ = strings.Cut(rest, ": ")
	}
	for _, bound := range []string{"Lower bound", "Upper bound"} {
		if rest, ok := strings.CutPrefix(want, bound+" ("); ok {
			_, rest, _ = strings.Cut(rest, ")")
			want = bound + rest
		}
	}
	want = strings.NewReplacer("INT32", "32-bit integer", "INT64", "64-bit integer", "UTF8", "string").Replace(want)
	return got.Error() == want || strings.HasPrefix(got.Error(), want+": ")
}

// TestGenerated compares with libmongocrypt's answers, byte for byte, and decrypts what can be.
func TestGenerated(t *testing.T) {
	keys := map[bson.UUID]*Key{id1: testKey(t, id1), id2: testKey(t, id2)}
	for file, want := range map[string]int{"csfle": 44, "unindexed": 22, "indexed": 27, "range": 62, "string": 71} {
		questions := make(map[string]*question)
		load(t, "generated/"+file+".json", &questions)
		if len(questions) != want {
			t.Errorf("%s: %d questions, want %d", file, len(questions), want)
		}
		for name, q := range questions {
			t.Run(name, func(t *testing.T) {
				got, err := q.answer(t, keys)
				if q.Answer.Error != "" {
					if !sameError(err, q.Answer.Error) {
						t.Fatalf("error %v, want %s", err, q.Answer.Error)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				result, _ := extJSON(t, q.Answer.Result).Document()
				if want := result.Lookup("v"); !got.Equal(want) {
					t.Fatalf("got  %s\nwant %s", describe(got), describe(want))
				}
				data, ok := Data(got)
				if !ok {
					return
				}
				s, ok, err := ParseSealed(data)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					return
				}
				back, err := s.Open(keys[s.KeyID])
				if err != nil {
					t.Fatal(err)
				}
				if want := extJSON(t, q.Question.Value); !back.Equal(want) {
					t.Errorf("decrypted %s, want %s", back, want)
				}
			})
		}
	}
}

// describe returns a payload's document, which is easier to compare than its bytes.
func describe(v bson.RawValue) string {
	if data, ok := Data(v); ok && Kind(data[0]) >= KindInsert && Kind(data[0]) <= KindFindRange || ok && Kind(data[0]) == KindFindText {
		return Kind(data[0]).String() + " " + bson.Raw(data[1:]).String()
	}
	return v.String()
}

func TestCompactionTokens(t *testing.T) {
	keys := map[string]*Key{"e": testKey(t, id1), "u": testKey(t, id2), "r": testKey(t, id2)}
	for _, file := range []string{"compact", "cleanup"} {
		questions := make(map[string]*question)
		load(t, "generated/"+file+".json", &questions)
		result, _ := extJSON(t, questions[file].Answer.Result).Document()
		tokens, ok := result.Lookup(map[string]string{"compact": "compactionTokens", "cleanup": "cleanupTokens"}[file]).Document()
		if !ok {
			t.Fatalf("%s: no tokens in %s", file, result)
		}
		n := 0
		for path, v := range tokens.All() {
			n++
			if path == "r" {
				anchor, _ := v.Value, 0
				b, _ := bson.Raw(anchor).Lookup("anchorPaddingToken").Binary()
				if want := keys[path].Tokens().AnchorPadding(); !bytes.Equal(b.Data, want[:]) {
					t.Errorf("%s: anchor padding token %x, want %x", file, b.Data, want)
				}
				v = bson.Raw(anchor).Lookup("ecoc")
			}
			b, _ := v.Binary()
			if want := keys[path].Tokens().ECOC; !bytes.Equal(b.Data, want[:]) {
				t.Errorf("%s: token of %s is %x, want %x", file, path, b.Data, want)
			}
		}
		if n != 3 {
			t.Errorf("%s: %d tokens", file, n)
		}
	}
}

// TestVersion1 opens values of the first version of Queryable Encryption, which are still in
// collections.
func TestVersion1(t *testing.T) {
	n := 0
	for _, file := range []string{"fle2aead-decrypt", "fle2aead-fixed", "fle2aead-generated"} {
		var cases []struct {
			Name, Key, AAD, Plaintext, Ciphertext string
			DecryptError                          string `json:"decrypt_error"`
		}
		load(t, "roundtrip/"+file+".json", &cases)
		for _, c := range cases {
			if c.Ciphertext == "" {
				continue // an error of encryption
			}
			n++
			k := must(NewKey(unhex(t, c.Key)))
			got, err := k.openV1(nil, unhex(t, c.AAD), unhex(t, c.Ciphertext))
			if c.DecryptError != "" {
				if err == nil || !strings.Contains(err.Error(), c.DecryptError) {
					t.Errorf("%s: error %v, want %q", c.Name, err, c.DecryptError)
				}
			} else if err != nil || !bytes.Equal(got, unhex(t, c.Plaintext)) {
				t.Errorf("%s: %x, %v", c.Name, got, err)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d vectors", n)
	}
}

// placeholder returns the bytes of a KindMarking or KindPlaceholder for v: user is the key that it
// is encrypted with, index the one of its tokens.
func placeholder(e *Explicit, v bson.RawValue, user, index bson.UUID) ([]byte, error) {
	o, err := e.Order(v)
	if err != nil {
		return nil, err
	}
	if o.marking != nil {
		o.marking.KeyID = user
		return o.marking.Append(nil), nil
	}
	o.placeholder.UserKey, o.placeholder.IndexKey = user, index
	return o.placeholder.Append(nil), nil
}
