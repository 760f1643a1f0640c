package expr

// Conversions of texts since server 8.3: numbers in a base, and JSON to arrays and documents.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// numberBase reads the argument 'base'; 0 stands for none.
func (c *convert) numberBase(st *State) (int, error) {
	if c.base == nil {
		return 0, nil
	}
	v, err := c.base.eval(st)
	if err != nil || nullish(v) {
		return 0, err
	}
	if v.IsNumber() && integral(v) {
		switch n := toLong(v); n {
		case 2, 8, 10, 16:
			return int(n), nil
		}
	}
	return 0, srverr.New(srverr.BadValue, "In $convert, 'base' must be one of 2, 8, 10 and 16, but is %s",
		bsontext.Value(v))
}

// parseInBase reads an integer that has digits of the base only, and perhaps a sign.
func parseInBase(s string, to bson.Type, base int, version Version) (bson.RawValue, error) {
	fail := func(reason string) (bson.RawValue, error) {
		return missing, conversionFailure("Failed to parse number '%s'"+noOnError+": %s", s, reason)
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-")
	n, ok := new(big.Int).SetString(s, base)
	switch {
	case digits == "" || len(s)-len(digits) > 1:
		return fail("No digits")
	case !ok || strings.Contains(s, "_"):
		return fail("Did not consume whole string.")
	}
	switch to {
	case bson.TypeInt32, bson.TypeInt64:
		if !n.IsInt64() || to == bson.TypeInt32 && n.Int64() != int64(int32(n.Int64())) {
			return fail("Overflow")
		}
		return convertNumber(bsondoc.Int64Value(n.Int64()), to)
	}
	return parseNumber(n.String(), to, version)
}

// formatInBase writes an integer, of whatever type of number.
func formatInBase(v bson.RawValue, base int) (bson.RawValue, error) {
	if !integral64(v) {
		return missing, conversionFailure("Base conversion is not supported for non-integers"+noOnError+": %s",
			bsontext.Value(v))
	}
	return bsondoc.StringValue(strings.ToUpper(strconv.FormatInt(toLong(v), base))), nil
}

// parseJSON reads plain JSON: wrappers of Extended JSON are documents like others.
func parseJSON(s string, to bson.Type) (bson.RawValue, error) {
	fail := func(reason string) (bson.RawValue, error) {
		return missing, conversionFailure("Failed to parse %s"+noOnError+": Input doesn't represent valid JSON: %s",
			bsontext.TypeName(to), reason)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.UseNumber()
	v, err := plainValue(d, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			return fail("Unexpected additional input")
		}
	}
	switch {
	case errors.Is(err, errNullByte):
		return fail("Illegal embedded null byte")
	case err != nil:
		return fail(err.Error())
	case v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument:
		return fail("Unexpected standalone value")
	case v.Type != to:
		return missing, conversionFailure("Failed to parse %s"+noOnError+": Input doesn't match expected type '%s'",
			bsontext.TypeName(to), bsontext.TypeName(to))
	}
	return v, nil
}
