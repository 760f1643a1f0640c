// Package codecs has codecs for types of the standard library that BSON has a better form for than
// that of their fields or texts, and a type for dates without a time:
//
//	set, err := bson.NewCodecs(codecs.Null(), codecs.BigInt())
//	client, err := allium.Open(uri, allium.ClientOptions{BSON: &bson.Options{Codecs: set}})
//
// Addresses of net/netip need none: they are strings, by their texts. UUIDs of other packages need
// bson.Options.UUID alone.
package codecs

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"allium/bson"
)

// Null returns the codec of the types of database/sql that may be null, sql.Null[T], sql.NullString
// and the others: the value itself, or null. Null, undefined and a field that is not there make it
// invalid. The value is encoded and decoded with the options, of which there may be one; without
// them, as bson.Marshal does.
func Null(o ...bson.Options) bson.Codec {
	var opts bson.Options
	if len(o) > 0 {
		opts = o[0]
	}
	return bson.CodecWhere(isNull, func(dst []byte, v any) (bson.Type, []byte, error) {
		value, valid := nullParts(v)
		if !valid.Bool() {
			return bson.TypeNull, dst, nil
		}
		raw, err := opts.MarshalValue(value.Interface())
		return raw.Type, append(dst, raw.Value...), err
	}, func(v bson.RawValue, into any) error {
		value, valid := nullParts(into)
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			value.SetZero()
			valid.SetBool(false)
			return nil
		}
		// Nothing changes if it does not decode.
		decoded := reflect.New(value.Type())
		if err := opts.UnmarshalValue(v, decoded.Interface()); err != nil {
			return err
		}
		value.Set(decoded.Elem())
		valid.SetBool(true)
		return nil
	})
}

// isNull reports whether a type is one of database/sql's that may be null: a value, and whether it
// is valid.
func isNull(t reflect.Type) bool {
	return t.PkgPath() == "database/sql" && strings.HasPrefix(t.Name(), "Null") && t.Kind() == reflect.Struct &&
		t.NumField() == 2 && t.Field(1).Name == "Valid" && t.Field(1).Type.Kind() == reflect.Bool
}

// nullParts returns the fields of what a pointer leads to.
func nullParts(p any) (value, valid reflect.Value) {
	v := reflect.ValueOf(p).Elem()
	return v.Field(0), v.Field(1)
}

// BigInt returns the codec of big.Int: an int64, or a Decimal128 for what has up to 34 digits
// beyond that, so that servers sort and compute with them. More is an error. It decodes whole
// numbers of any type, and texts of them, which they are without this codec. A nil pointer is null.
func BigInt() bson.Codec {
	match := func(t reflect.Type) bool { return t == reflect.TypeFor[big.Int]() }
	return bson.CodecWhere(match, func(dst []byte, v any) (bson.Type, []byte, error) {
		n := v.(*big.Int)
		if n.IsInt64() {
			return bson.TypeInt64, bson.AppendInt64Value(dst, n.Int64()), nil
		}
		if d := strings.TrimPrefix(n.String(), "-"); len(d) > 34 {
			return 0, dst, fmt.Errorf("a number of %d digits: a Decimal128 has 34", len(d))
		}
		d, err := bson.NewDecimal128FromBigInt(n, 0)
		return bson.TypeDecimal128, bson.AppendDecimal128Value(dst, d), err
	}, func(v bson.RawValue, into any) error {
		n, err := whole(v)
		if err == nil {
			into.(*big.Int).Set(n)
		}
		return err
	})
}

var errNotWhole = errors.New("want a whole number")

// whole returns a whole number.
func whole(v bson.RawValue) (*big.Int, error) {
	if n, ok := v.Int32(); ok {
		return big.NewInt(int64(n)), nil
	}
	if n, ok := v.Int64(); ok {
		return big.NewInt(n), nil
	}
	if f, ok := v.Double(); ok {
		if f != math.Trunc(f) || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("%w, and not %v", errNotWhole, f)
		}
		n, _ := big.NewFloat(f).Int(nil)
		return n, nil
	}
	if d, ok := v.Decimal128(); ok {
		n, exponent, err := d.BigInt()
		if err != nil {
			return nil, fmt.Errorf("%w, and not %v", errNotWhole, d)
		}
		if exponent > 0 {
			return n.Mul(n, power(exponent)), nil
		}
		n, rest := n.QuoRem(n, power(-exponent), new(big.Int))
		if rest.Sign() != 0 {
			return nil, fmt.Errorf("%w, and not %v", errNotWhole, d)
		}
		return n, nil
	}
	text, ok := v.StringValue()
	if !ok {
		return nil, fmt.Errorf("%w, and not %v", errNotWhole, v.Type)
	}
	if n, ok := new(big.Int).SetString(text, 10); ok && len(text) <= 10_000 {
		return n, nil
	}
	return nil, fmt.Errorf("%w, and not a text of %d bytes", errNotWhole, len(text))
}

func power(exponent int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
}

// Date is a day of the calendar without a time or a place, such as a birthday. It is stored as the
// date of its midnight in UTC, by which servers sort it, and needs no codec. The zero Date is null.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of a time, where the time is.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// In returns the first instant of the day in a place, which is not midnight where clocks are set
// forward at midnight.
func (d Date) In(place *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, place)
}

// IsZero reports whether it is the zero Date. Fields with omitempty are left out then.
func (d Date) IsZero() bool { return d == Date{} }

// valid reports whether there is such a day.
func (d Date) valid() bool { return DateOf(d.In(time.UTC)) == d }

// String returns it as in 2026-11-27.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalText returns String, and nothing for the zero Date. A day that there is not is an error.
func (d Date) MarshalText() ([]byte, error) {
	switch {
	case d.IsZero():
		return nil, nil
	case !d.valid() || d.Year < 0 || d.Year > 9999:
		return nil, fmt.Errorf("there is no day %v", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	t, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("want a day as in 2026-11-27: %w", err)
	}
	*d = DateOf(t)
	return nil
}

// MarshalBSONValue returns the date of the day's midnight in UTC, and null for the zero Date. A day
// that there is not is an error.
func (d Date) MarshalBSONValue() (typ byte, data []byte, err error) {
	switch {
	case d.IsZero():
		return byte(bson.TypeNull), nil, nil
	case !d.valid():
		return 0, nil, fmt.Errorf("there is no day %v", d)
	}
	return byte(bson.TypeDateTime), bson.AppendInt64Value(nil, int64(bson.NewDateTime(d.In(time.UTC)))), nil
}

// UnmarshalBSONValue reads dates of a midnight in UTC, texts as in 2026-11-27, and null. Another
// time of the day is an error: it would be lost.
func (d *Date) UnmarshalBSONValue(typ byte, data []byte) error {
	v := bson.RawValue{Type: bson.Type(typ), Value: data}
	if at, ok := v.DateTime(); ok {
		t := at.Time().UTC()
		day := DateOf(t)
		if !day.In(time.UTC).Equal(t) {
			return fmt.Errorf("want a day, and not a time of it: %v", t.Format(time.RFC3339Nano))
		}
		*d = day
		return nil
	}
	if text, ok := v.StringValue(); ok {
		return d.UnmarshalText([]byte(text))
	}
	if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
		*d = Date{}
		return nil
	}
	return fmt.Errorf("want a date, and not %v", v.Type)
}
