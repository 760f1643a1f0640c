package allium

import (
	"bytes"
	"context"
	"errors"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/mongoerr"
)

// DistinctOptions are the options of Distinct. The zero value of a field leaves it to the server.
type DistinctOptions struct {
	// Collation says how strings are compared.
	Collation *Collation
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Hint is the index to use, by its name or its keys.
	Hint any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData reads the stored buckets of a time series collection (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Distinct returns the distinct values of a field in the documents that match the filter, decoded
// as V. Array elements are separate values. Values that do not decode as V, such as a text among
// numbers, are left out, and the error is a mongoerr.DecodeErrors, which holds them: it comes with
// all the others.
//
//	names, err := allium.Distinct[string](ctx, users, "name", bson.D{})
func Distinct[V, T any](ctx context.Context, c *Collection[T], field string, filter any, opts ...DistinctOptions) ([]V, error) {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	cmd := &command.Distinct{Collection: c.name, Field: field, Filter: filter, Collation: o.Collation.raw(), Comment: o.Comment, Hint: o.Hint, RawData: o.RawData}
	op, err := c.op(ctx, cmd, o.Timeout)
	if err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	if err := maxTime(&op, o.MaxTime, &cmd.MaxTimeMS); err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	var out []V
	op.Read = func(op *exec.Op, res exec.Result) error {
		values, ok := res.Reply.Lookup("values").Array()
		if !ok {
			return op.Named(errors.New("server's reply has no array of values"))
		}
		out = []V{}
		var odd mongoerr.DecodeErrors
		for v := range values.Values() {
			out = append(out, *new(V))
			if err := decodeValue(op.BSON, v, &out[len(out)-1]); err != nil {
				e := undecoded(op, int64(len(out)-1+len(odd)), nil, err)
				e.Value = bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)}
				out, odd = out[:len(out)-1], append(odd, e)
			}
		}
		if odd == nil {
			return nil
		}
		return odd
	}
	res, err := c.run(ctx, &op)
	res.Release()
	return out, err
}

// decodeID decodes the _id that the server gave an upserted document. One that the program's
// options cannot decode is a bson.RawValue: the write was done, and must not look as if it had
// failed.
func decodeID(o *bson.Options, raw bson.RawValue) (id any) {
	if decodeValue(o, raw, &id) != nil {
		return bson.RawValue{Type: raw.Type, Value: bytes.Clone(raw.Value)}
	}
	return id
}

// decodeValue is decode for a value.
func decodeValue(o *bson.Options, raw bson.RawValue, v any) error {
	if r, ok := v.(*bson.RawValue); ok {
		*r = bson.RawValue{Type: raw.Type, Value: append([]byte{}, raw.Value...)}
		return nil
	}
	if o == nil {
		return raw.Unmarshal(v)
	}
	return o.UnmarshalValue(raw, v)
}
