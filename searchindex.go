package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/mongoerr"
)

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
func (c *Collection[T]) CreateSearchIndex(ctx context.Context, index SearchIndexModel, opts ...SearchIndexOptions) (string, error) {
	names, err := c.CreateSearchIndexes(ctx, []SearchIndexModel{index}, opts...)
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", c.failed(ctx, "createSearchIndexes", c.name, fmt.Errorf("server names %d indexes, want 1", len(names)))
	}
	return names[0], nil
}

// CreateSearchIndexes creates search indexes and returns their names. See CreateSearchIndex.
func (c *Collection[T]) CreateSearchIndexes(ctx context.Context, indexes []SearchIndexModel, opts ...SearchIndexOptions) ([]string, error) {
	cmd := &command.CreateSearchIndexes{Collection: c.name}
	for _, i := range indexes {
		cmd.Indexes = append(cmd.Indexes, command.SearchIndex{Name: i.Name, Type: i.Type, Definition: i.Definition})
	}
	names := []string{}
	err := c.searchIndexes(ctx, cmd, opts, func(reply bson.Raw) error {
		created, ok := reply.Lookup("indexesCreated").Array()
		if !ok {
			return errors.New("server's reply does not name the indexes")
		}
		for v := range created.Values() {
			doc, _ := v.Document()
			name, ok := doc.Lookup("name").StringValue()
			if !ok {
				return errors.New("server's reply has an index without a name")
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
func (c *Collection[T]) UpdateSearchIndex(ctx context.Context, name string, definition any, opts ...SearchIndexOptions) error {
	return c.searchIndexes(ctx, &command.UpdateSearchIndex{Collection: c.name, Index: name, Definition: definition}, opts, nil)
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
func (c *Collection[T]) searchIndexes(ctx context.Context, cmd command.Command, opts []SearchIndexOptions, read func(reply bson.Raw) error) error {
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
func (c *Collection[T]) ListSearchIndexes(ctx context.Context, opts ...ListSearchIndexesOptions) (*Cursor[SearchIndexInfo], error) {
	o := option.Merge(opts)
	stage := bson.D{}
	if o.Name != "" {
		stage = bson.D{{Key: "name", Value: o.Name}}
	}
	cur := &Cursor[SearchIndexInfo]{}
	err := aggregate(ctx, c.scope, c.err, c.name, bson.A{bson.D{{Key: "$listSearchIndexes", Value: stage}}}, &cur.cur, []AggregateOptions{{
		BatchSize: o.BatchSize, AllowDiskUse: o.AllowDiskUse, Collation: o.Collation, Comment: o.Comment, TimeoutMode: o.TimeoutMode, Timeout: o.Timeout,
	}})
	if err != nil {
		return nil, err
	}
	return cur, nil
}
