package encryption

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"sync/atomic"

	"allium"
	"allium/bson"
	"allium/internal/crypt"
	"allium/internal/failure"
	"allium/internal/fle"
)

// Algorithm is an encryption algorithm.
type Algorithm string

// The algorithms. The first two are those of Client-Side Field Level Encryption, the others of
// Queryable Encryption.
const (
	// Deterministic encrypts equal values to equal ciphertexts, so that they can be queried by
	// equality. Whoever sees the ciphertexts learns which values are equal. Documents, arrays,
	// booleans, doubles and decimals cannot be encrypted with it.
	Deterministic Algorithm = "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"
	// Random encrypts a value to another ciphertext each time. It cannot be queried.
	Random Algorithm = "AEAD_AES_256_CBC_HMAC_SHA_512-Random"
	// Unindexed values cannot be queried.
	Unindexed Algorithm = "Unindexed"
	// Indexed values can be queried by equality.
	Indexed Algorithm = "Indexed"
	// Range values, numbers and dates, can be queried by range.
	Range Algorithm = "Range"
	// String values can be queried by prefix, suffix or substring.
	String Algorithm = "String"
)

// QueryType is the kind of query that a value is encrypted for. The zero QueryType is for values to
// store.
type QueryType string

// The types of queries. The names that end in Preview are those of servers before 9.0.
const (
	EqualityQuery         QueryType = "equality"
	RangeQuery            QueryType = "range"
	PrefixQuery           QueryType = "prefix"
	SuffixQuery           QueryType = "suffix"
	SubstringQuery        QueryType = "substring"
	PrefixPreviewQuery    QueryType = "prefixPreview"
	SuffixPreviewQuery    QueryType = "suffixPreview"
	SubstringPreviewQuery QueryType = "substringPreview"
)

// EncryptOptions are the options of Encrypt and EncryptExpression. Algorithm and one of KeyID and
// KeyAltName are required.
//
// A value that is Indexed, Range or String is stored and queried by a client with Auto, whose
// BypassQueryAnalysis may be set and whose BypassEncryption must not: it adds what the server needs
// beside the value. Query types whose names end in Preview are for trying out: their format is not
// final, nor is their security.
type EncryptOptions struct {
	Algorithm  Algorithm
	KeyID      *bson.UUID
	KeyAltName string
	// Contention is the maximum contention factor of the field. A larger one lets concurrent
	// inserts of the same value wait less for each other, and makes queries slower. It must be the
	// same for all values and queries of a field. Indexed, Range and String require it.
	Contention *int64
	// Query is the kind of query that the value is for. Empty: the value is stored.
	Query QueryType
	// Range has the options of a Range field, Text those of a String field. They must be those that
	// the collection was created with.
	Range *RangeOptions
	Text  *TextOptions
}

// RangeOptions are the options of a field that is queried by range.
type RangeOptions struct {
	// Min and Max are the least and the greatest value, of the type of the values. They are
	// optional for doubles and decimals.
	Min, Max any
	// Sparsity and TrimFactor trade space for the speed of queries. Nil: 2 and 6.
	Sparsity   *int64
	TrimFactor *int32
	// Precision is the number of significant digits after the decimal point of a double or decimal;
	// it needs Min and Max.
	Precision *int32
}

// TextOptions are the options of a field that is queried by parts of its text: by prefix, suffix or
// both; or by substring.
type TextOptions struct {
	// CaseSensitive and DiacriticSensitive tell letters apart that differ in case or accents only.
	CaseSensitive      bool
	DiacriticSensitive bool
	// Prefix, Suffix and Substring are set for the queries that the field allows.
	Prefix, Suffix *AffixOptions
	Substring      *SubstringOptions
}

// AffixOptions say how long the prefix or suffix of a query can be, in characters.
type AffixOptions struct {
	MinQueryLength, MaxQueryLength int32 // the bounds of a query
}

// SubstringOptions say how long the values and the substring of a query can be, in characters.
type SubstringOptions struct {
	MaxLength, MinQueryLength, MaxQueryLength int32 // MaxLength bounds the values
}

// explicit returns o in the words of package fle.
func (c *Client) explicit(o *EncryptOptions) (*fle.Explicit, error) {
	e := &fle.Explicit{Algorithm: string(o.Algorithm), QueryType: string(o.Query), Contention: o.Contention}
	if r := o.Range; r != nil {
		e.Range = &fle.RangeOptions{Sparsity: r.Sparsity, TrimFactor: r.TrimFactor, Precision: r.Precision}
		var err error
		if e.Range.Min, err = c.bound(r.Min); err != nil {
			return nil, fmt.Errorf("Range.Min: %w", err)
		}
		if e.Range.Max, err = c.bound(r.Max); err != nil {
			return nil, fmt.Errorf("Range.Max: %w", err)
		}
	}
	if t := o.Text; t != nil {
		e.Text = &fle.TextOptions{CaseSensitive: t.CaseSensitive, DiacriticSensitive: t.DiacriticSensitive,
			Prefix: t.Prefix.affix(), Suffix: t.Suffix.affix()}
		if s := t.Substring; s != nil {
			e.Text.Substring = &fle.Substring{MaxLength: s.MaxLength, Upper: s.MaxQueryLength, Lower: s.MinQueryLength}
		}
	}
	return e, nil
}

func (a *AffixOptions) affix() *fle.Affix {
	if a == nil {
		return nil
	}
	return &fle.Affix{Upper: a.MaxQueryLength, Lower: a.MinQueryLength}
}

func (c *Client) bound(v any) (bson.RawValue, error) {
	if v == nil {
		return bson.RawValue{}, nil
	}
	return c.bson.MarshalValue(v)
}

// Encrypt encrypts a value of any type that has a BSON form. The result takes the place of the
// value in a document or, with a Query, in a filter. For queries by range use EncryptExpression.
func (c *Client) Encrypt(ctx context.Context, value any, o EncryptOptions) (bson.Binary, error) {
	out, err := c.encrypt(ctx, value, &o)
	if err != nil {
		return bson.Binary{}, fmt.Errorf("encrypt: %w", err)
	}
	return out, nil
}

func (c *Client) encrypt(ctx context.Context, value any, o *EncryptOptions) (bson.Binary, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return bson.Binary{}, err
	}
	defer end()
	e, err := c.explicit(o)
	if err != nil {
		return bson.Binary{}, failure.Encoding(ctx, err)
	}
	v, err := c.bson.MarshalValue(value)
	if err != nil {
		return bson.Binary{}, failure.Encoding(ctx, err)
	}
	out, err := c.keys.EncryptValue(ctx, v, e, crypt.Key{ID: o.KeyID, AltName: o.KeyAltName}, rand.Reader)
	if err != nil {
		return bson.Binary{}, err
	}
	b, _ := out.Binary()
	return b, nil
}

// payloads counts the range queries of the process, so that the halves of each can be told from
// those of others.
var payloads atomic.Uint32

// EncryptExpression encrypts the bounds of a query by range. The expression is a filter
//
//	{"$and": [{"field": {"$gte": 18}}, {"field": {"$lt": 65}}]}
//
// or a condition of an aggregation with the same operators, {"$and": [{"$gte": ["$field", 18]},
// ...]}, with one or two comparisons of one field by $gt, $gte, $lt and $lte. The result takes its
// place. Algorithm must be Range and Query RangeQuery.
func (c *Client) EncryptExpression(ctx context.Context, expression any, o EncryptOptions) (bson.Raw, error) {
	out, err := c.encryptExpression(ctx, expression, &o)
	if err != nil {
		return nil, fmt.Errorf("encrypt expression: %w", err)
	}
	return out, nil
}

func (c *Client) encryptExpression(ctx context.Context, expression any, o *EncryptOptions) (bson.Raw, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	e, err := c.explicit(o)
	if err != nil {
		return nil, failure.Encoding(ctx, err)
	}
	doc, err := c.bson.Marshal(expression)
	if err != nil {
		return nil, failure.Encoding(ctx, err)
	}
	payload := int32((payloads.Add(1) - 1) & math.MaxInt32)
	return c.keys.EncryptExpression(ctx, doc, e, crypt.Key{ID: o.KeyID, AltName: o.KeyAltName}, payload, rand.Reader)
}

// Decrypt decrypts a value that was encrypted with any of the algorithms. The error is of the class
// ErrAuthentication if the value was changed, ErrKeyNotFound if its data key does not exist, and
// ErrMalformed if it is not an encrypted value.
func (c *Client) Decrypt(ctx context.Context, value bson.Binary) (bson.RawValue, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return bson.RawValue{}, fmt.Errorf("decrypt: %w", err)
	}
	defer end()
	v := bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, value.Subtype, value.Data)}
	out, err := c.keys.DecryptValue(ctx, v)
	if err != nil {
		return bson.RawValue{}, fmt.Errorf("decrypt: %w", err)
	}
	return out, nil
}

// DecryptAs decrypts a value as Decrypt does and decodes it into a T.
func DecryptAs[T any](ctx context.Context, c *Client, value bson.Binary) (T, error) {
	var out T
	v, err := c.Decrypt(ctx, value)
	if err != nil {
		return out, err
	}
	if err := c.bson.UnmarshalValue(v, &out); err != nil {
		return out, fmt.Errorf("decrypt: %w", err)
	}
	return out, nil
}

// Warm fetches data keys, so that the first operations need not wait for the key vault and the key
// services; without ids, all data keys of the key vault. They are kept for the KeyExpiration of the
// KeyOptions. Clients with Auto have caches of their own.
func (c *Client) Warm(ctx context.Context, ids ...bson.UUID) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("warm: %w", err)
	}
	defer end()
	if len(ids) == 0 {
		var err error
		if ids, err = c.ids(ctx); err != nil {
			return fmt.Errorf("warm: %w", err)
		}
	}
	held, err := c.keys.Hold(ctx, ids, nil)
	if err != nil {
		return fmt.Errorf("warm: %w", err)
	}
	held.Release()
	return nil
}

// ids returns those of all data keys.
func (c *Client) ids(ctx context.Context) ([]bson.UUID, error) {
	cursor, err := c.vault.Find(ctx, bson.D{}, allium.FindOptions{Projection: bson.D{{Key: "_id", Value: 1}}})
	if err != nil {
		return nil, err
	}
	docs, err := cursor.All(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]bson.UUID, 0, len(docs))
	for _, doc := range docs {
		b, _ := doc.Lookup("_id").Binary()
		id, err := b.UUID()
		if err != nil {
			return nil, fmt.Errorf("the key vault has a document whose _id is no UUID: %s", doc.Lookup("_id"))
		}
		ids = append(ids, id)
	}
	return ids, nil
}
