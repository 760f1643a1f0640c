package expr

// Conversions between binary values and strings (server 8.0 and later).

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// binaryFormats are the ways of writing bytes as text. Each function reports whether it can.
var binaryFormats = map[string]struct {
	encode func(b bson.Binary) (string, bool)
	decode func(s string) ([]byte, bool)
}{
	"base64": {
		func(b bson.Binary) (string, bool) { return base64.StdEncoding.EncodeToString(b.Data), true },
		func(s string) ([]byte, bool) { return decoded(base64.StdEncoding.Strict().DecodeString(s)) },
	},
	"base64url": {
		func(b bson.Binary) (string, bool) { return base64.RawURLEncoding.EncodeToString(b.Data), true },
		func(s string) ([]byte, bool) {
			return decoded(base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(s, "=")))
		},
	},
	"hex": {
		func(b bson.Binary) (string, bool) { return strings.ToUpper(hex.EncodeToString(b.Data)), true },
		func(s string) ([]byte, bool) { return decoded(hex.DecodeString(s)) },
	},
	"utf8": {
		func(b bson.Binary) (string, bool) { return string(b.Data), utf8.Valid(b.Data) },
		func(s string) ([]byte, bool) { return []byte(s), true },
	},
	"uuid": {
		func(b bson.Binary) (string, bool) {
			return uuidText(b.Data), b.Subtype == bson.BinaryUUID && len(b.Data) == 16
		},
		func(s string) ([]byte, bool) {
			b, ok := decoded(hex.DecodeString(strings.ReplaceAll(s, "-", "")))
			return b, ok && len(b) == 16 && s[8] == '-' && uuidText(b) == strings.ToLower(s)
		},
	},
}

func decoded(b []byte, err error) ([]byte, bool) { return b, err == nil }

// uuidText writes 16 bytes as a UUID; others as they come.
func uuidText(b []byte) string {
	h := hex.EncodeToString(b)
	if len(b) != 16 {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// binaryFormat reads the argument 'format'; "" stands for a missing one.
func (c *convert) binaryFormat(st *State) (string, error) {
	if c.format == nil {
		return "", nil
	}
	v, err := c.format.eval(st)
	if err != nil || nullish(v) {
		return "", err
	}
	if !isString(v) {
		return "", srverr.New(4341114, "$convert requires that 'format' be a string, found: %s with value %s",
			typeName(v), bsontext.Value(v))
	}
	name := text(v)
	if _, ok := binaryFormats[name]; !ok && name != "auto" {
		return "", srverr.New(4341125, "Invalid 'format' argument for $convert: %s", name)
	}
	return name, nil
}

// convertBinary converts from or to a binary value.
func convertBinary(v bson.RawValue, to bson.Type, subtype byte, format string) (bson.RawValue, error) {
	if format == "" && (v.Type == bson.TypeString || to == bson.TypeString) {
		return missing, srverr.New(4341115, "Format must be speficied when converting from '%s' to '%s'", typeName(v),
			bsontext.TypeName(to))
	}
	b, isBinary := v.Binary()
	switch {
	case isBinary && to == bson.TypeBinary:
		if b.Subtype != subtype {
			return missing, conversionFailure("Conversions between different BinData subtypes are not supported")
		}
		return v, nil
	case isBinary && to == bson.TypeString:
		if format == "auto" {
			format = "base64"
			if b.Subtype == bson.BinaryUUID {
				format = "uuid"
			}
		}
		s, ok := binaryFormats[format].encode(b)
		if !ok {
			return missing, conversionFailure("BinData does not represent a valid %s value", format)
		}
		return bsondoc.StringValue(s), nil
	case v.Type == bson.TypeString && to == bson.TypeBinary:
		if format == "auto" {
			return missing, srverr.New(4341124, "Unsupported 'format' argument for $convert: auto")
		}
		if (format == "uuid") != (subtype == bson.BinaryUUID) {
			return missing, conversionFailure("Only the UUID subtype (4) is allowed with the UUID format")
		}
		data, ok := binaryFormats[format].decode(text(v))
		if !ok {
			return missing, conversionFailure("Input string '%s' is not a valid %s value", text(v), format)
		}
		return bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, subtype, data)}, nil
	}
	return missing, conversionFailure("Unsupported conversion from %s to %s"+noOnError, typeName(v),
		bsontext.TypeName(to))
}

// splitTarget takes {type, subtype} as the argument 'to' apart (server 8.0 and later).
func splitTarget(to bson.RawValue) (kind bson.RawValue, subtype byte, err error) {
	for key, v := range bson.Raw(to.Value).All() {
		switch key {
		case "type":
			kind = v
		case "subtype":
			n := toLong(v)
			if !v.IsNumber() || !integral(v) || n < 0 || n > 255 || n > 9 && n < 128 {
				return kind, 0, srverr.New(4341107,
					"In $convert, numeric value for 'subtype' does not correspond to a BinData type: %s",
					bsontext.Value(v))
			}
			subtype = byte(n)
		default:
			return kind, 0, srverr.New(srverr.FailedToParse, "$convert found an unknown argument: to.%s", key)
		}
	}
	if kind.Type == 0 {
		return kind, 0, srverr.New(srverr.FailedToParse, "Missing 'type' parameter to $convert.to")
	}
	return kind, subtype, nil
}
