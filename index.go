package allium

import (
	"context"
	"fmt"
	"math"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/option"
)

// IndexModel describes an index to create. The zero value of a field leaves it to the server.
type IndexModel struct {
	// Keys are the indexed fields in their order, such as bson.D{{Key: "name", Value: 1}}.
	Keys any
	// Name is the index's name. Empty: a name made from the keys, such as "name_1_age_-1".
	Name string
	// Unique rejects documents whose key another document has.
	Unique bool
	// Sparse leaves documents without the indexed fields out.
	Sparse bool
	// Hidden hides the index from the query planner.
	Hidden bool
	// ExpireAfter makes the server delete documents when the indexed date is this old, to the
	// second. It may be 0 to 2147483647 seconds, which are 68 years.
	ExpireAfter *time.Duration
	// PartialFilter leaves out the documents that do not match it.
	PartialFilter any
	// Collation says how strings are compared.
	Collation *Collation
	// Weights, DefaultLanguage, LanguageOverride and TextVersion are for text indexes.
	Weights          any
	DefaultLanguage  string
	LanguageOverride string
	TextVersion      int32
	// SphereVersion is for 2dsphere indexes; Bits, Min and Max are for 2d indexes.
	SphereVersion int32
	Bits          int32
	Min, Max      *float64
	// WildcardProjection says which fields a wildcard index covers.
	WildcardProjection any
	// StorageEngine holds options of the storage engine.
	StorageEngine any
	// Version is the version of the index format.
	Version int32
	// Clustered is for the index of a clustered collection.
	Clustered bool
}

// options returns the fields beside key and name, nil if there are none.
func (m *IndexModel) options() any {
	var d bson.D
	add := func(key string, v any) { d = append(d, bson.E{Key: key, Value: v}) }
	for _, f := range []struct {
		key string
		set bool
	}{{"unique", m.Unique}, {"sparse", m.Sparse}, {"hidden", m.Hidden}, {"clustered", m.Clustered}} {
		if f.set {
			add(f.key, true)
		}
	}
	if m.ExpireAfter != nil {
		add("expireAfterSeconds", int32(*m.ExpireAfter/time.Second))
	}
	for _, f := range []struct {
		key string
		v   any
	}{{"partialFilterExpression", m.PartialFilter}, {"weights", m.Weights}, {"wildcardProjection", m.WildcardProjection}, {"storageEngine", m.StorageEngine}} {
		if f.v != nil {
			add(f.key, f.v)
		}
	}
	if m.Collation != nil {
		add("collation", m.Collation.raw())
	}
	for _, f := range []struct{ key, v string }{{"default_language", m.DefaultLanguage}, {"language_override", m.LanguageOverride}} {
		if f.v != "" {
			add(f.key, f.v)
		}
	}
	for _, f := range []struct {
		key string
		v   int32
	}{{"textIndexVersion", m.TextVersion}, {"2dsphereIndexVersion", m.SphereVersion}, {"bits", m.Bits}, {"v", m.Version}} {
		if f.v != 0 {
			add(f.key, f.v)
		}
	}
	if m.Min != nil {
		add("min", *m.Min)
	}
	if m.Max != nil {
		add("max", *m.Max)
	}
	if d == nil {
		return nil
	}
	return d
}

// CreateIndexOptions are the options of CreateIndex and CreateIndexes. The zero value of a field
// leaves it to the server.
type CreateIndexOptions struct {
	// CommitQuorum is how many members must build the index before it is ready: a number,
	// "majority" or "votingMembers".
	CommitQuorum any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData addresses the indexes of the buckets of a time series collection (server 8.2 and
	// later). It is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// CreateIndex creates an index and returns its name. It is no error if the same index already
// exists.
func (c *Collection[T]) CreateIndex(ctx context.Context, index IndexModel, opts ...CreateIndexOptions) (string, error) {
	names, err := c.CreateIndexes(ctx, []IndexModel{index}, opts...)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// CreateIndexes creates indexes and returns their names.
func (c *Collection[T]) CreateIndexes(ctx context.Context, indexes []IndexModel, opts ...CreateIndexOptions) ([]string, error) {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return nil, c.failed(ctx, "createIndexes", c.name, err)
	}
	cmd := &command.CreateIndexes{Collection: c.name, CommitQuorum: o.CommitQuorum, Comment: o.Comment, RawData: o.RawData}
	for i := range indexes {
		if err := checkExpiry(indexes[i].ExpireAfter, math.MaxInt32); err != nil {
			return nil, c.failed(ctx, "createIndexes", c.name, fmt.Errorf("index %d: %w", i, err))
		}
		cmd.Indexes = append(cmd.Indexes, command.Index{Keys: indexes[i].Keys, Name: indexes[i].Name, Options: indexes[i].options()})
	}
	op, err := c.op(ctx, cmd, o.Timeout)
	if err == nil {
		err = maxTime(&op, o.MaxTime, &cmd.MaxTimeMS)
	}
	if err != nil {
		return nil, c.failed(ctx, "createIndexes", c.name, err)
	}
	res, err := c.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	res.Release()
	return cmd.Names, nil
}

// DropIndexOptions are the options of DropIndex and DropIndexes.
type DropIndexOptions struct {
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the indexes of the buckets of a time series collection (server 8.2 and
	// later). It is for the server's own tools, and may change or go at any time.
	RawData bool
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// DropIndex deletes the index with this name, or with these keys if index is a document. It never
// deletes all: a name that is "*" or empty, of whatever type, is an error.
func (c *Collection[T]) DropIndex(ctx context.Context, index any, opts ...DropIndexOptions) error {
	return c.dropIndexes(ctx, &command.DropIndexes{Index: index}, opts)
}

// DropIndexes deletes all indexes but that on _id.
func (c *Collection[T]) DropIndexes(ctx context.Context, opts ...DropIndexOptions) error {
	return c.dropIndexes(ctx, &command.DropIndexes{All: true}, opts)
}

func (c *Collection[T]) dropIndexes(ctx context.Context, cmd *command.DropIndexes, opts []DropIndexOptions) error {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return c.failed(ctx, "dropIndexes", c.name, err)
	}
	cmd.Collection, cmd.Comment, cmd.RawData = c.name, o.Comment, o.RawData
	if err := cmd.Check(c.bson); err != nil {
		return c.failed(ctx, "dropIndexes", c.name, err)
	}
	return c.within().adminWithin(ctx, cmd, &cmd.MaxTimeMS, o.MaxTime, o.Timeout)
}
