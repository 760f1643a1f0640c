package fle

import (
	"bytes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/norace"
)

// What is written out here or keeps its state gives what the packages of the standard library do.

func TestDerivationsAreHMACs(t *testing.T) {
	source := rand.NewChaCha8([32]byte{1})
	mac := func(key Token, data []byte) (out Token) {
		h := hmac.New(sha256.New, key[:])
		h.Write(data)
		return Token(h.Sum(nil))
	}
	var root Token
	for range 200 {
		source.Read(root[:])
		tokens := NewTokens(root)
		finder := tokens.finder()
		for range 3 { // the states are used again
			data := make([]byte, source.Uint64()%200)
			source.Read(data)
			want := FindSet{EDC: mac(tokens.EDC, data), ESC: mac(tokens.ESC, data), Server: mac(tokens.ServerDerivation, data)}
			if got := finder.find(data); got != want {
				t.Fatalf("find %x: got %x, want %x", data, got, want)
			}
		}
		n := source.Uint64() >> (source.Uint64() % 64)
		if got, want := root.number(n), mac(root, binary.LittleEndian.AppendUint64(nil, n)); got != want {
			t.Fatalf("number %d of %x: got %x, want %x", n, root, got, want)
		}
	}
}

func TestCounterMode(t *testing.T) {
	source := rand.NewChaCha8([32]byte{2})
	key := make([]byte, 32)
	source.Read(key)
	c := ctr{block: newBlock(key)}
	for n := range 100 {
		iv, data := make([]byte, ivSize), make([]byte, n)
		source.Read(iv)
		source.Read(data)
		for i := range n % (ivSize + 1) { // counters that carry
			iv[ivSize-1-i] = 0xff
		}
		want := bytes.Clone(data)
		cipher.NewCTR(c.block, iv).XORKeyStream(want, want)
		if c.xor(iv, data); !bytes.Equal(data, want) {
			t.Fatalf("%d bytes from %x: got %x, want %x", n, iv, data, want)
		}
	}
}

// perToken are values with few tokens and with many.
var perToken = []struct {
	name      string
	few, many Placeholder
}{
	{
		"range",
		rangeOfLongs(4), rangeOfLongs(1),
	},
	{
		"prefix",
		prefixes("a text that is longer than its prefixes are", 2), prefixes("a text that is longer than its prefixes are", 30),
	},
}

func rangeOfLongs(sparsity int64) Placeholder {
	r := RangeInsert{Value: bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, 17)}}
	return Placeholder{Purpose: ForInsert, Index: IndexRange, Value: r.RawValue(), Contention: 4, Sparsity: sparsity}
}

func prefixes(text string, longest int32) Placeholder {
	v := Text{Value: text, Prefix: &Affix{Lower: 1, Upper: longest}}
	return Placeholder{Purpose: ForInsert, Index: IndexText, Value: v.RawValue(), Contention: 4}
}

func TestTokensDoNotAllocate(t *testing.T) {
	norace.Skip(t, "it empties pools at random")
	key := must(NewKey(bytes.Repeat([]byte{5}, KeySize)))
	random := endless{}
	count := func(p *Placeholder) (allocs float64, size int) {
		allocs = testing.AllocsPerRun(100, func() {
			data, err := p.Seal(key, key, random)
			if err != nil {
				t.Fatal(err)
			}
			size = len(data)
		})
		return allocs, size
	}
	for _, c := range perToken {
		few, small := count(&c.few)
		many, large := count(&c.many)
		if large < 3*small {
			t.Errorf("%s: %d bytes and %d: not many tokens", c.name, small, large)
		}
		if many > few {
			t.Errorf("%s: %.0f allocations for few tokens, %.0f for many", c.name, few, many)
		}
	}
}

// endless is random bytes that allocate nothing.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i) * 7
	}
	return len(b), nil
}

// What an order makes of a value is what becomes of its placeholder.
func TestOrderSealsAsPlaceholder(t *testing.T) {
	key, id := must(NewKey(bytes.Repeat([]byte{5}, KeySize))), bson.UUID{1, 2, 3}
	str := bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, "a value")}
	long := bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, 40)}
	bounds := &RangeOptions{Min: bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, 0)}, Max: bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, 99)}}
	for _, c := range []struct {
		e Explicit
		v bson.RawValue
	}{
		{Explicit{Algorithm: "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}, str},
		{Explicit{Algorithm: "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}, long},
		{Explicit{Algorithm: "Unindexed"}, str},
		{Explicit{Algorithm: "Indexed", Contention: new(int64(3))}, str},
		{Explicit{Algorithm: "Indexed", QueryType: "equality", Contention: new(int64(3))}, str},
		{Explicit{Algorithm: "Range", Contention: new(int64(3)), Range: bounds}, long},
		{Explicit{Algorithm: "String", Contention: new(int64(3)), Text: &TextOptions{Prefix: &Affix{Lower: 1, Upper: 4}}}, str},
	} {
		order, err := c.e.Order(c.v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := order.Seal(id, key, endless{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := placeholder(&c.e, c.v, id, id)
		if err != nil {
			t.Fatal(err)
		}
		if want := sealBytes(t, data, id, key, endless{}); !bytes.Equal(got, want) {
			t.Errorf("%s %s: got %x, want %x", c.e.Algorithm, c.e.QueryType, got, want)
		}
	}
}

func sealBytes(t *testing.T, data []byte, id bson.UUID, key *Key, random io.Reader) []byte {
	t.Helper()
	if Kind(data[0]) == KindMarking {
		m, err := ParseMarking(data)
		if err != nil {
			t.Fatal(err)
		}
		return must(m.Seal(id, key, random))
	}
	p, err := ParsePlaceholder(data)
	if err != nil {
		t.Fatal(err)
	}
	return must(p.Seal(key, key, random))
}

func TestOrderRefusesMalformedDocuments(t *testing.T) {
	e := Explicit{Algorithm: "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}
	for _, kind := range []bson.Type{bson.TypeEmbeddedDocument, bson.TypeArray} {
		_, err := e.Order(bson.RawValue{Type: kind, Value: []byte{6, 0, 0, 0, 1, 0}})
		if err == nil || !strings.Contains(err.Error(), "bson") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}
