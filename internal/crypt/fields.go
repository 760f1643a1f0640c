package crypt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

// This file has what the driver does with encryptedFields, the schema of a collection with
// Queryable Encryption, beside query analysis (specification: Client Side Encryption, "Collection
// encryptedFields").

// strEncodeVersion is the version of the tokens of text fields.
const strEncodeVersion = 1

// stateCollection returns the name of a state collection: "esc" or "ecoc".
func stateCollection(collection, kind string) string { return "enxcol_." + collection + "." + kind }

// FieldsError says what is wrong with the encryptedFields of a collection.
type FieldsError struct{ Namespace, Reason string }

func (e *FieldsError) Error() string { return "encryptedFields of " + e.Namespace + ": " + e.Reason }

func badFields(ns, format string, args ...any) error {
	return &FieldsError{ns, fmt.Sprintf(format, args...)}
}

// CompleteFields returns encryptedFields with the defaults that a server is told, and the
// alternative names of keys in it that have no id yet.
func CompleteFields(ns string, fields bson.Raw) (bson.Raw, []string, error) {
	if err := fields.Validate(); err != nil {
		return nil, nil, badFields(ns, "%v", err)
	}
	var names []string
	list, _ := fields.Lookup("fields").Array()
	text := false
	for v := range list.Values() {
		field, ok := v.Document()
		if !ok {
			return nil, nil, badFields(ns, "'fields' must be an array of documents")
		}
		if alt, ok := field.Lookup("keyAltName").StringValue(); ok {
			if !field.Lookup("keyId").IsZero() {
				return nil, nil, badFields(ns, "a field has both keyId and keyAltName")
			}
			names = append(names, alt)
		}
		for kind := range queryTypes(field) {
			text = text || isText(kind)
		}
	}
	if v := fields.Lookup("strEncodeVersion"); !v.IsZero() {
		if n, ok := v.AsInt64(); !ok || n > strEncodeVersion {
			return nil, nil,
				badFields(ns, "strEncodeVersion is %s, the greatest that is known is %d", v, strEncodeVersion)
		}
		text = false
	}
	_, collection, _ := strings.Cut(ns, ".")
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, fields.Elements()...)
	for _, kind := range []string{"esc", "ecoc"} {
		if fields.Lookup(kind + "Collection").IsZero() {
			dst = bson.AppendString(dst, kind+"Collection", stateCollection(collection, kind))
		}
	}
	if text {
		dst = bson.AppendInt32(dst, "strEncodeVersion", strEncodeVersion)
	}
	return bson.EndDocument(dst, start), names, nil
}

// queryTypes iterates over the types of queries of a field: queries is a document or an array of
// documents.
func queryTypes(field bson.Raw) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		queries := field.Lookup("queries")
		if doc, ok := queries.Document(); ok {
			kind, _ := doc.Lookup("queryType").StringValue()
			yield(kind)
			return
		}
		list, _ := queries.Array()
		for v := range list.Values() {
			doc, _ := v.Document()
			kind, _ := doc.Lookup("queryType").StringValue()
			if !yield(kind) {
				return
			}
		}
	}
}

func isText(queryType string) bool {
	for _, kind := range []string{"prefix", "suffix", "substring"} {
		if strings.HasPrefix(queryType, kind) {
			return true
		}
	}
	return false
}

// padded reports whether compaction pads the field.
func padded(field bson.Raw) bool {
	for kind := range queryTypes(field) {
		if isText(kind) || kind == "range" || kind == "rangePreview" {
			return true
		}
	}
	return false
}

// NamedFields returns encryptedFields with the ids of the keys that have names only.
func (k *Keys) NamedFields(ctx context.Context, ns string, fields bson.Raw) (bson.Raw, error) {
	_, names, err := CompleteFields(ns, fields)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	held, err := k.Hold(ctx, nil, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	defer held.Release()
	start, dst := bson.BeginDocument(nil)
	for key, v := range fields.All() {
		list, ok := v.Array()
		if key != "fields" || !ok {
			dst = bson.AppendRawValue(dst, key, v)
			continue
		}
		var at, i int
		at, dst = bson.BeginArrayElement(dst, key)
		for v := range list.Values() {
			field, _ := v.Document()
			var inner int
			dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i)
			inner, dst = bson.BeginDocument(dst)
			for key, v := range field.All() {
				if alt, ok := v.StringValue(); ok && key == "keyAltName" {
					id, _ := held.ByName(alt)
					dst = bson.AppendBinary(dst, "keyId", bson.BinaryUUID, id[:])
					continue
				}
				dst = bson.AppendRawValue(dst, key, v)
			}
			dst = bson.EndDocument(dst, inner)
			i++
		}
		dst = bson.EndDocument(dst, at)
	}
	return bson.EndDocument(dst, start), nil
}

// NeedsInformation reports whether a command on a collection with these encryptedFields carries
// encryptionInformation.
func NeedsInformation(name string, cmd, fields bson.Raw) bool {
	switch name {
	case "cleanupStructuredEncryptionData", "create", "collMod", "createIndexes":
		return false
	case "compactStructuredEncryptionData":
		list, _ := fields.Lookup("fields").Array()
		for v := range list.Values() {
			if field, ok := v.Document(); ok && padded(field) {
				return true
			}
		}
		return false
	case "find", "aggregate", "distinct", "count", "insert":
		found := errors.New("found")
		return fle.Each(cmd, func(data []byte) error {
			switch fle.Kind(data[0]) {
			case fle.KindInsert, fle.KindFindEquality, fle.KindFindRange, fle.KindFindText:
				return found
			case 4, 5, 10: // the payloads of the first version
				return found
			}
			return nil
		}) != nil
	case "explain":
		inner, _ := cmd.Lookup("explain").Document()
		for key := range inner.All() {
			return NeedsInformation(key, inner, fields)
		}
		return false
	}
	return true
}

// Collection is one that a command reads beside its own. Without Fields it is not encrypted.
type Collection struct {
	NS     string
	Fields bson.Raw
}

// information appends encryptionInformation as an element.
func information(dst []byte, ns string, fields bson.Raw, others []Collection) []byte {
	info, dst := bson.BeginDocumentElement(dst, "encryptionInformation")
	dst = bson.AppendInt32(dst, "type", 1)
	schema, dst := bson.BeginDocumentElement(dst, "schema")
	for _, c := range append([]Collection{{ns, fields}}, others...) {
		if c.Fields == nil {
			c.Fields = noFields(c.NS)
		}
		dst = bson.AppendDocument(dst, c.NS, c.Fields)
	}
	dst = bson.EndDocument(dst, schema)
	return bson.EndDocument(dst, info)
}

// noFields returns the encryptedFields of a collection that is not encrypted: a server wants them
// of each collection of a pipeline.
func noFields(ns string) bson.Raw {
	_, collection, _ := strings.Cut(ns, ".")
	start, dst := bson.BeginDocument(nil)
	for _, kind := range []string{"esc", "ecoc"} {
		dst = bson.AppendString(dst, kind+"Collection", stateCollection(collection, kind))
	}
	list, dst := bson.BeginArrayElement(dst, "fields")
	return bson.EndDocument(bson.EndDocument(dst, list), start)
}

// AppendInformation returns cmd with the encryptionInformation of its collection, and of others
// that it reads.
func AppendInformation(cmd bson.Raw, ns string, fields bson.Raw, others ...Collection) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, cmd.Elements()...)
	return bson.EndDocument(information(dst, ns, fields, others), start)
}

// AppendBulkInformation returns a bulkWrite with encryptionInformation in its only nsInfo.
func AppendBulkInformation(cmd bson.Raw, ns string, fields bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	for key, v := range cmd.All() {
		first, ok := bson.Raw(v.Value).Lookup("0").Document()
		if key != "nsInfo" || v.Type != bson.TypeArray || !ok {
			dst = bson.AppendRawValue(dst, key, v)
			continue
		}
		var list int
		list, dst = bson.BeginArrayElement(dst, key)
		dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0)
		dst = append(dst, AppendInformation(first, ns, fields)...)
		dst = bson.EndDocument(dst, list)
	}
	return bson.EndDocument(dst, start)
}

// AppendTokens returns cmd with the tokens that compaction and cleanup need, under name.
func (k *Keys) AppendTokens(ctx context.Context, cmd bson.Raw, name string, fields bson.Raw) (bson.Raw, error) {
	list, _ := fields.Lookup("fields").Array()
	var ids []bson.UUID
	type field struct {
		path   string
		id     bson.UUID
		padded bool
	}
	var all []field
	for v := range list.Values() {
		doc, _ := v.Document()
		path, ok := doc.Lookup("path").StringValue()
		b, isBinary := doc.Lookup("keyId").Binary()
		id, err := b.UUID()
		if !ok || !isBinary || err != nil {
			return nil, errors.New("encryptedFields: a field needs a path and a keyId")
		}
		all = append(all, field{path, id, padded(doc)})
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	held, err := k.Hold(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, cmd.Elements()...)
	at, dst := bson.BeginDocumentElement(dst, name)
	for _, f := range all {
		tokens := held.Key(f.id).Tokens()
		if !f.padded {
			dst = bson.AppendBinary(dst, f.path, bson.BinaryGeneric, tokens.ECOC[:])
			continue
		}
		var inner int
		anchor := tokens.AnchorPadding()
		inner, dst = bson.BeginDocumentElement(dst, f.path)
		dst = bson.AppendBinary(dst, "ecoc", bson.BinaryGeneric, tokens.ECOC[:])
		dst = bson.AppendBinary(dst, "anchorPaddingToken", bson.BinaryGeneric, anchor[:])
		dst = bson.EndDocument(dst, inner)
	}
	dst = bson.EndDocument(dst, at)
	return bson.EndDocument(dst, start), nil
}
