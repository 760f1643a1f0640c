package crypt

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"allium/bson"
)

// Document is a data key as the key vault stores it (specification: Client Side Encryption, "Key
// Vault collection schema for data keys"). Its material is wrapped.
type Document struct {
	ID        bson.UUID
	AltNames  []string
	Material  []byte
	Created   time.Time
	Updated   time.Time
	Status    int32
	MasterKey bson.Raw
	Raw       bson.Raw
}

// errKeyDocument is what errors of ParseDocument begin with.
var errKeyDocument = errors.New("malformed key document")

// ParseDocument parses a key document, strictly: an unknown field is an error. It shares the bytes
// of doc.
func ParseDocument(doc bson.Raw) (*Document, error) {
	if err := doc.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeyDocument, err)
	}
	d := &Document{Raw: doc}
	seen := make(map[string]bool)
	for key, v := range doc.All() {
		if seen[key] {
			return nil, fmt.Errorf("%w: field '%s' is there twice", errKeyDocument, key)
		}
		seen[key] = true
		ok := true
		switch key {
		case "_id":
			var b bson.Binary
			if b, ok = v.Binary(); ok {
				id, err := b.UUID()
				d.ID, ok = id, err == nil
			}
		case "keyAltNames":
			var list bson.Raw
			if list, ok = v.Array(); !ok {
				break
			}
			for name := range list.Values() {
				s, isString := name.StringValue()
				ok = ok && isString
				if slices.Contains(d.AltNames, s) {
					return nil, fmt.Errorf("%w: unexpected duplicate keyAltNames: %q", errKeyDocument, s)
				}
				d.AltNames = append(d.AltNames, s)
			}
		case "keyMaterial":
			var b bson.Binary
			b, ok = v.Binary()
			ok = ok && b.Subtype == bson.BinaryGeneric && len(b.Data) > 0
			d.Material = b.Data
		case "creationDate":
			d.Created, ok = date(v)
		case "updateDate":
			d.Updated, ok = date(v)
		case "status":
			var n int64
			n, ok = v.AsInt64()
			ok = ok && n == int64(int32(n))
			d.Status = int32(n)
		case "masterKey":
			d.MasterKey, ok = v.Document()
		case "version":
			var n int64
			if n, ok = v.AsInt64(); ok && n != 0 {
				return nil, fmt.Errorf("%w: unsupported key document version %d, only 0 is", errKeyDocument, n)
			}
		default:
			return nil, fmt.Errorf("%w: unrecognized field '%s'", errKeyDocument, key)
		}
		if !ok {
			return nil, fmt.Errorf("%w: field '%s' is not what it must be", errKeyDocument, key)
		}
	}
	for _, name := range []string{"_id", "keyMaterial", "creationDate", "updateDate", "status", "masterKey"} {
		if !seen[name] {
			return nil, fmt.Errorf("%w: field '%s' is missing", errKeyDocument, name)
		}
	}
	return d, nil
}

func date(v bson.RawValue) (time.Time, bool) {
	t, ok := v.DateTime()
	return t.Time(), ok
}

// Append appends d as a document, in the order in which keys are made. Raw is left out.
func (d *Document) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(dst)
	dst = bson.AppendBinary(dst, "_id", bson.BinaryUUID, d.ID[:])
	if len(d.AltNames) > 0 {
		var list int
		list, dst = bson.BeginArrayElement(dst, "keyAltNames")
		for i, name := range d.AltNames {
			dst = bson.AppendIndexHeader(dst, bson.TypeString, i)
			dst = bson.AppendStringValue(dst, name)
		}
		dst = bson.EndDocument(dst, list)
	}
	dst = bson.AppendBinary(dst, "keyMaterial", bson.BinaryGeneric, d.Material)
	dst = bson.AppendDateTime(dst, "creationDate", bson.NewDateTime(d.Created))
	dst = bson.AppendDateTime(dst, "updateDate", bson.NewDateTime(d.Updated))
	dst = bson.AppendInt32(dst, "status", d.Status)
	dst = bson.AppendDocument(dst, "masterKey", d.MasterKey)
	return bson.EndDocument(dst, start)
}
