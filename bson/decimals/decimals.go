// Package decimals has codecs for two libraries of decimal numbers, github.com/shopspring/decimal
// and github.com/cockroachdb/apd, whose numbers it stores as Decimal128, with which servers compare
// and compute:
//
//	set, err := bson.NewCodecs(decimals.Shopspring())
//	client, err := allium.Open(uri, allium.ClientOptions{BSON: &bson.Options{Codecs: set}})
//
// No digit is lost either way: 1.50 stays 1.50, and a number of more than the 34 digits of a
// Decimal128, or with an exponent beyond its range, is an error.
//
// They decode numbers of all types, doubles as the shortest decimal that means the same double, and
// texts, which these types are encoded as without a codec.
//
// The package is a module of its own, so that only those depend on the libraries who import it.
package decimals

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/cockroachdb/apd/v3"
	"github.com/shopspring/decimal"

	"allium/bson"
)

// Shopspring returns the codec of decimal.Decimal and decimal.NullDecimal of
// github.com/shopspring/decimal. A NullDecimal that is not valid is null, and null makes it so. NaN
// and infinities, which the library does not have, are errors.
func Shopspring() bson.Codec {
	return codec(func(d *decimal.Decimal) (bson.Decimal128, error) {
		return bson.NewDecimal128FromBigInt(d.Coefficient(), int(d.Exponent()))
	}, func(d bson.Decimal128, into *decimal.Decimal) error {
		n, exponent, err := d.BigInt()
		if err != nil {
			return fmt.Errorf("decimal.Decimal has no %v", d)
		}
		*into = decimal.NewFromBigInt(n, int32(exponent))
		return nil
	}, func(n *decimal.NullDecimal) (*decimal.Decimal, *bool) { return &n.Decimal, &n.Valid })
}

// APD returns the codec of apd.Decimal and apd.NullDecimal of github.com/cockroachdb/apd. The sign
// of zero, infinities and NaN are kept; a NaN that signals is an error. A NullDecimal that is not
// valid is null, and null makes it so.
func APD() bson.Codec {
	return codec(func(d *apd.Decimal) (bson.Decimal128, error) {
		if d.Form == apd.NaNSignaling {
			return bson.Decimal128{}, errors.New("a Decimal128 has no signaling NaN")
		}
		return bson.ParseDecimal128(d.Text('E'))
	}, func(d bson.Decimal128, into *apd.Decimal) error {
		_, _, err := into.SetString(d.String())
		return err
	}, func(n *apd.NullDecimal) (*apd.Decimal, *bool) { return &n.Decimal, &n.Valid })
}

// codec returns the codec of D, and of N, which is a D or null and consists of what parts returns.
func codec[D, N any](encode func(*D) (bson.Decimal128, error), decode func(bson.Decimal128, *D) error,
	parts func(*N) (*D, *bool)) bson.Codec {
	match := func(t reflect.Type) bool { return t == reflect.TypeFor[D]() || t == reflect.TypeFor[N]() }
	return bson.CodecWhere(match, func(dst []byte, v any) (bson.Type, []byte, error) {
		number, ok := v.(*D)
		if !ok {
			n, valid := parts(v.(*N))
			if !*valid {
				return bson.TypeNull, dst, nil
			}
			number = n
		}
		d, err := encode(number)
		return bson.TypeDecimal128, bson.AppendDecimal128Value(dst, d), err
	}, func(v bson.RawValue, into any) error {
		number, ok := into.(*D)
		valid := new(bool)
		if !ok {
			number, valid = parts(into.(*N))
			if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
				*number, *valid = *new(D), false
				return nil
			}
		}
		d, err := read(v)
		if err != nil {
			return err
		}
		// Nothing changes if it does not decode.
		var decoded D
		if err := decode(d, &decoded); err != nil {
			return err
		}
		*number, *valid = decoded, true
		return nil
	})
}

// read returns the number of any type or of a text.
func read(v bson.RawValue) (bson.Decimal128, error) {
	if d, ok := v.Decimal128(); ok {
		return d, nil
	}
	if n, ok := v.Int32(); ok {
		return bson.NewDecimal128FromInt64(int64(n)), nil
	}
	if n, ok := v.Int64(); ok {
		return bson.NewDecimal128FromInt64(n), nil
	}
	if f, ok := v.Double(); ok {
		return bson.ParseDecimal128(strconv.FormatFloat(f, 'g', -1, 64))
	}
	text, ok := v.StringValue()
	if !ok {
		return bson.Decimal128{}, fmt.Errorf("want a number, and not %v", v.Type)
	}
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		if len(text) > 64 {
			return bson.Decimal128{}, fmt.Errorf("want a number, and not a text of %d bytes: %w", len(text), err)
		}
		return bson.Decimal128{}, fmt.Errorf("want a number, and not %q: %w", text, err)
	}
	return d, nil
}
