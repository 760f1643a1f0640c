package allium

import (
	"context"
	"fmt"
	"math"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
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
	// Background is kept and listed by servers, and has no effect from 4.2 on.
	Background *bool
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
	if m.Background != nil {
		add("background", *m.Background)
	}
	if m.ExpireAfter != nil {
		add("expireAfterSeconds", int32(*m.ExpireAfter/time.Second))
	}
	for _, f := range []struct {
		key string
		v   any
	}{{"partialFilterExpression", m.PartialFilter}, {"weights", m.Weights},
		{"wildcardProjection", m.WildcardProjection}, {"storageEngine", m.StorageEngine}} {
		if f.v != nil {
			add(f.key, f.v)
		}
	}
	if m.Collation != nil {
		add("collation", m.Collation.raw())
	}
	for _, f := range []struct{ key, v string }{{"default_language", m.DefaultLanguage},
		{"language_override", m.LanguageOverride}} {
		if f.v != "" {
			add(f.key, f.v)
		}
	}
	for _, f := range []struct {
		key string
		v   int32
	}{{"textIndexVersion", m.TextVersion}, {"2dsphereIndexVersion", m.SphereVersion}, {"bits", m.Bits},
		{"v", m.Version}} {
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
	if len(names) == 0 {
		return "", err
	}
	return names[0], err
}

// CreateIndexes creates indexes and returns their names, with a *mongoerr.WriteConcernError too:
// the indexes are there.
func (c *Collection[T]) CreateIndexes(ctx context.Context, indexes []IndexModel,
	opts ...CreateIndexOptions) ([]string, error) {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return nil, c.failed(ctx, "createIndexes", c.name, err)
	}
	cmd := &command.CreateIndexes{Collection: c.name, CommitQuorum: o.CommitQuorum, Comment: o.Comment,
		RawData: o.RawData}
	for i := range indexes {
		if err := checkExpiry(indexes[i].ExpireAfter, math.MaxInt32); err != nil {
			return nil, c.failed(ctx, "createIndexes", c.name, fmt.Errorf("index %d: %w", i, err))
		}
		cmd.Indexes = append(cmd.Indexes,
			command.Index{Keys: indexes[i].Keys, Name: indexes[i].Name, Options: indexes[i].options()})
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
		if failure.Applied(err) {
			return cmd.Names, err
		}
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
	return c.asDatabase().adminWithin(ctx, cmd, &cmd.MaxTimeMS, o.MaxTime, o.Timeout)
}

// SearchIndexModel describes a search index to create.
type SearchIndexModel struct {
	// Name is the index's name. Empty: "default".
	Name string
	// Type is "search" or "vectorSearch". Empty: "search".
	Type string
	// Definition is a document such as {mappings: {dynamic: true}} or, for a vector search index,
	// {fields: [...]}.
	Definition any
}

// SearchIndexInfo describes a search index in the result of ListSearchIndexes. Raw holds the
// server's whole description. A field with another type than it should have is zero, and in Raw.
type SearchIndexInfo struct {
	ID   string
	Name string
	Type string
	// Status is for example "BUILDING" or "READY". Queryable reports whether the index can be used.
	Status    string
	Queryable bool
	// LatestDefinition is the newest definition, which may not be in use yet.
	LatestDefinition bson.Raw
	Raw              bson.Raw
}

// SearchIndexOptions are the options of CreateSearchIndex, CreateSearchIndexes, UpdateSearchIndex
// and DropSearchIndex.
type SearchIndexOptions struct {
	// Timeout bounds the operation, which does not wait for the index to be ready; a pointer to 0
	// means no limit.
	Timeout *time.Duration
}

// CreateSearchIndex creates a search index and returns its name. The server replies before the
// index is built: poll ListSearchIndexes until it is Queryable.
func (c *Collection[T]) CreateSearchIndex(ctx context.Context, index SearchIndexModel,
	opts ...SearchIndexOptions) (string, error) {
	names, err := c.CreateSearchIndexes(ctx, []SearchIndexModel{index}, opts...)
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", c.failed(ctx, "createSearchIndexes", c.name,
			fmt.Errorf("server names %d indexes, want 1", len(names)))
	}
	return names[0], nil
}

// CreateSearchIndexes creates search indexes and returns their names. See CreateSearchIndex.
func (c *Collection[T]) CreateSearchIndexes(ctx context.Context, indexes []SearchIndexModel,
	opts ...SearchIndexOptions) ([]string, error) {
	cmd := &command.CreateSearchIndexes{Collection: c.name}
	for _, i := range indexes {
		cmd.Indexes = append(cmd.Indexes, command.SearchIndex{Name: i.Name, Type: i.Type, Definition: i.Definition})
	}
	names := []string{}
	err := c.searchIndexes(ctx, cmd, opts, func(reply bson.Raw) error {
		list := reply.Lookup("indexesCreated")
		created, ok := list.Array()
		if !ok {
			return &mongoerr.ReplyError{Field: "indexesCreated", Type: list.Type, Want: "an array"}
		}
		for v := range created.Values() {
			doc, _ := v.Document()
			called := doc.Lookup("name")
			name, ok := called.StringValue()
			if !ok {
				return &mongoerr.ReplyError{Field: "indexesCreated.name", Type: called.Type, Want: "a string"}
			}
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// UpdateSearchIndex replaces the definition of the search index with this name. The server replies
// before the new definition is in use.
func (c *Collection[T]) UpdateSearchIndex(ctx context.Context, name string, definition any,
	opts ...SearchIndexOptions) error {
	return c.searchIndexes(ctx, &command.UpdateSearchIndex{Collection: c.name, Index: name, Definition: definition},
		opts, nil)
}

// DropSearchIndex deletes the search index with this name. It is no error if the collection does
// not exist.
func (c *Collection[T]) DropSearchIndex(ctx context.Context, name string, opts ...SearchIndexOptions) error {
	err := c.searchIndexes(ctx, &command.DropSearchIndex{Collection: c.name, Index: name}, opts, nil)
	if mongoerr.HasCode(err, errcode.NamespaceNotFound) {
		return nil
	}
	return err
}

// searchIndexes runs a command about search indexes. read gets the reply.
func (c *Collection[T]) searchIndexes(ctx context.Context, cmd command.Command, opts []SearchIndexOptions,
	read func(reply bson.Raw) error) error {
	o, err := option.Merge(opts), c.err
	op := exec.NewOp(cmd)
	if err == nil {
		err = c.inherits(ctx, &op, o.Timeout)
	}
	if err != nil {
		return c.failed(ctx, cmd.Name(), c.name, err)
	}
	if read != nil {
		op.Read = func(op *exec.Op, res exec.Result) error {
			if err := read(res.Reply); err != nil {
				return op.Named(err)
			}
			return nil
		}
	}
	res, err := c.run(ctx, &op)
	res.Release()
	return err
}

// ListSearchIndexesOptions are the options of ListSearchIndexes, which runs an aggregation. Zero
// fields are not sent.
type ListSearchIndexesOptions struct {
	// Name restricts the result to the search index of this name.
	Name string
	// BatchSize is the number of indexes per batch; a pointer to 0 makes an empty first batch.
	BatchSize *int32
	// AllowDiskUse lets the server write temporary files.
	AllowDiskUse *bool
	// Collation is how strings are compared.
	Collation *Collation
	// Comment is attached to the command in logs and profiles, and to those that fetch batches.
	Comment any
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode says otherwise; a
	// pointer to 0 means no limit.
	Timeout *time.Duration
}

// ListSearchIndexes lists the search indexes of the collection. No command about search indexes is
// sent with a read or a write concern, whatever the collection and the session have.
func (c *Collection[T]) ListSearchIndexes(ctx context.Context,
	opts ...ListSearchIndexesOptions) (*Cursor[SearchIndexInfo], error) {
	o := option.Merge(opts)
	stage := bson.D{}
	if o.Name != "" {
		stage = bson.D{{Key: "name", Value: o.Name}}
	}
	cur := &Cursor[SearchIndexInfo]{}
	err := aggregate(ctx, c.inherited, c.err, c.name, bson.A{bson.D{{Key: "$listSearchIndexes", Value: stage}}},
		&cur.cur, []AggregateOptions{{
			BatchSize: o.BatchSize, AllowDiskUse: o.AllowDiskUse, Collation: o.Collation, Comment: o.Comment,
			TimeoutMode: o.TimeoutMode, Timeout: o.Timeout,
		}})
	if err != nil {
		return nil, err
	}
	return cur, nil
}
