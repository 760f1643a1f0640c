// Package convert makes options of version 2 of those of this version.
package convert

import (
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
	v2readconcern "go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	v2writeconcern "go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A setting is options that are set by a function.
type setting[T any] struct{ one [1]func(*T) error }

// List returns the function.
func (s *setting[T]) List() []func(*T) error { return s.one[:] }

func set[T any](f func(*T)) v2options.Lister[T] {
	return &setting[T]{[1]func(*T) error{func(o *T) error {
		f(o)
		return nil
	}}}
}

// Collation returns a collation of version 2.
func Collation(c *options.Collation) *v2options.Collation { return (*v2options.Collation)(c) }

// ReadConcern returns a read concern of version 2.
func ReadConcern(rc *readconcern.ReadConcern) *v2readconcern.ReadConcern {
	if rc == nil {
		return nil
	}
	return &v2readconcern.ReadConcern{Level: rc.Level}
}

// WriteConcern returns a write concern of version 2.
func WriteConcern(wc *writeconcern.WriteConcern) *v2writeconcern.WriteConcern {
	if wc == nil {
		return nil
	}
	out := &v2writeconcern.WriteConcern{W: wc.W, Journal: wc.Journal}
	if wc.WTimeout > 0 && wc.Acknowledged() {
		out.W = coding.TimedW{W: wc.W, Timeout: wc.WTimeout}
	}
	return out
}

// Registry returns a registry of version 2, nil for nil if the settings need none.
func Registry(r *bsoncodec.Registry, o *options.BSONOptions) *v2bson.Registry {
	documentD := o != nil && o.DefaultDocumentD && !o.DefaultDocumentM
	if r == nil {
		if !documentD {
			return nil
		}
		r = bson.DefaultRegistry
	}
	out := dialect.Registry(r)
	if documentD {
		out = coding.WithDocuments(out, dialect.Of.Any[bson.TypeEmbeddedDocument]).(*v2bson.Registry)
	}
	return out
}

// BSONOptions returns settings of version 2.
func BSONOptions(o *options.BSONOptions) *v2options.BSONOptions {
	if o == nil {
		return nil
	}
	return &v2options.BSONOptions{
		UseJSONStructTags: o.UseJSONStructTags, ErrorOnInlineDuplicates: o.ErrorOnInlineDuplicates,
		IntMinSize:    o.IntMinSize,
		NilMapAsEmpty: o.NilMapAsEmpty, NilSliceAsEmpty: o.NilSliceAsEmpty, NilByteSliceAsEmpty: o.NilByteSliceAsEmpty,
		OmitZeroStruct: o.OmitZeroStruct, StringifyMapKeysWithFmt: o.StringifyMapKeysWithFmt,
		AllowTruncatingDoubles: o.AllowTruncatingDoubles,
		BinaryAsSlice:          o.BinaryAsSlice, DefaultDocumentM: o.DefaultDocumentM,
		UseLocalTimeZone: o.UseLocalTimeZone,
		ZeroMaps:         o.ZeroMaps, ZeroStructs: o.ZeroStructs,
	}
}

// ArrayFilters returns the filters. Those with a registry of their own are encoded.
func ArrayFilters(af *options.ArrayFilters) []any {
	if af == nil {
		return nil
	}
	if af.Registry == nil {
		return af.Filters
	}
	docs, err := af.ToArray()
	if err != nil {
		return af.Filters // to fail where errors are returned
	}
	out := make([]any, len(docs))
	for i, doc := range docs {
		out[i] = doc
	}
	return out
}

func text(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func rangeBuilder(o *options.RangeOptions) *v2options.RangeOptionsBuilder {
	if o == nil {
		return nil
	}
	return &v2options.RangeOptionsBuilder{Opts: Range(o).List()}
}

func defaultIndexBuilder(o *options.DefaultIndexOptions) *v2options.DefaultIndexOptionsBuilder {
	if o == nil {
		return nil
	}
	return &v2options.DefaultIndexOptionsBuilder{Opts: DefaultIndex(o).List()}
}

func timeSeriesBuilder(o *options.TimeSeriesOptions) *v2options.TimeSeriesOptionsBuilder {
	if o == nil {
		return nil
	}
	return &v2options.TimeSeriesOptionsBuilder{Opts: TimeSeries(o).List()}
}

func rawValue(v *bson.RawValue) *v2bson.RawValue {
	if v == nil {
		return nil
	}
	return &v2bson.RawValue{Type: v.Type, Value: v.Value}
}

// Transaction returns the settings of a transaction as those of version 2.
func Transaction(o *options.TransactionOptions) *v2options.TransactionOptionsBuilder {
	return v2options.Transaction().SetReadConcern(ReadConcern(o.ReadConcern)).SetReadPreference(o.ReadPreference).
		SetWriteConcern(committed(o.WriteConcern, o.MaxCommitTime))
}

// committed adds the time of a commit to a write concern.
func committed(wc *writeconcern.WriteConcern, limit *time.Duration) *v2writeconcern.WriteConcern {
	out := WriteConcern(wc)
	if limit == nil || *limit <= 0 || !wc.Acknowledged() {
		return out
	}
	if out == nil {
		out = new(v2writeconcern.WriteConcern)
	}
	w, ok := out.W.(coding.TimedW)
	if !ok {
		w.W = out.W
	}
	w.Commit = *limit
	out.W = w
	return out
}

// Session returns the settings of a session as those of version 2.
func Session(o *options.SessionOptions) *v2options.SessionOptionsBuilder {
	b := v2options.Session()
	// Merged settings have the default, which a snapshot takes the place of.
	if c := o.CausalConsistency; c != nil && (c != &options.DefaultCausalConsistency || !*c) {
		b.SetCausalConsistency(*c)
	}
	if o.Snapshot != nil {
		b.SetSnapshot(*o.Snapshot)
	}
	return b.SetDefaultTransactionOptions(Transaction(&options.TransactionOptions{
		ReadConcern: o.DefaultReadConcern, ReadPreference: o.DefaultReadPreference, WriteConcern: o.DefaultWriteConcern,
		MaxCommitTime: o.DefaultMaxCommitTime,
	}))
}

// D returns a document of version 2.
func D(d primitive.D) v2bson.D { return v2bson.D(d) }

// Background sets the option background of each index that is created.
func Background(indexes []*bool) v2options.Lister[v2options.CreateIndexesOptions] {
	return set(func(to *v2options.CreateIndexesOptions) {
		coding.WithOption(&to.Internal, coding.Background, indexes)
	})
}

// SocketTimeout sets how long a read or write of a connection may take.
func SocketTimeout(to *v2options.ClientOptions, d *time.Duration) {
	if d != nil && *d > 0 {
		coding.WithOption(&to.Custom, coding.SocketTimeout, *d)
	}
}

// ListSearchIndexes returns the settings as those of version 2.
func ListSearchIndexes(o *options.ListSearchIndexesOptions) v2options.Lister[v2options.ListSearchIndexesOptions] {
	return set(func(to *v2options.ListSearchIndexesOptions) {
		if o.AggregateOpts != nil {
			to.AggregateOptions = new(v2options.AggregateOptions)
			_ = Aggregate(o.AggregateOpts).List()[0](to.AggregateOptions)
		}
	})
}
