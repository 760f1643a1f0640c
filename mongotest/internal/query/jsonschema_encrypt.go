package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// encrypted is the keyword encrypt: a value that a client has encrypted, of one of some types
// before that.
type encrypted struct{ types *typeSet } // nil: any type

func (e *encrypted) valid(v bson.RawValue) bool {
	b, ok := v.Binary()
	if !ok || b.Subtype != bson.BinaryEncrypted {
		return false
	}
	if e.types == nil {
		return true
	}
	value, err := b.Encrypted()
	return err == nil && e.types.has(value.OriginalType)
}

var encryptAlgorithms = []string{"AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic", "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}

func parseSchemaEncrypt(_ *schemaParser, s *schema, key string, v bson.RawValue, all map[string]bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mismatch("'%s' must be an object ", key)
	}
	if key == "encryptMetadata" && bson.Raw(v.Value).IsEmpty() {
		return malformed("'%s' cannot be an empty object ", key)
	}
	if key == "encrypt" {
		for _, other := range []string{"type", "bsonType"} {
			if _, ok := all[other]; ok {
				return malformed("'encrypt' cannot be used in conjunction with '%s'", other)
			}
		}
		s.encrypt = &encrypted{}
	}
	for field, arg := range bson.Raw(v.Value).All() {
		switch {
		case field == "algorithm":
			name, ok := arg.StringValue()
			if !ok {
				return wrongSchemaType(key, field, arg, "string")
			}
			if !slices.Contains(encryptAlgorithms, name) {
				return badValue("Enumeration value '%s' for field '%s.algorithm' is not a valid value.", name, key)
			}
		case field == "keyId":
			if arg.Type != bson.TypeArray && arg.Type != bson.TypeString {
				return srverr.New(51085, "Expected either string or array of UUIDs")
			}
		case field == "bsonType" && key == "encrypt":
			set, err := parseTypeSet("bsonType", arg)
			if err != nil {
				return err
			}
			s.encrypt.types = &set
		default:
			return srverr.New(40415, "BSON field '%s.%s' is an unknown field.", key, field)
		}
	}
	return nil
}

func wrongSchemaType(key, field string, v bson.RawValue, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", key, field,
		bsontext.TypeName(v.Type), want)
}
