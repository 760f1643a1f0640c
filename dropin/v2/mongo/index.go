package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// An IndexView creates, drops and lists the indexes of a collection.
type IndexView struct{ coll *Collection }

// An IndexModel is an index to create.
type IndexModel struct {
	Keys    any // the indexed fields in their order, a document
	Options *options.IndexOptionsBuilder
}

// IndexSpecification describes an index.
type IndexSpecification struct {
	Name               string
	Namespace          string
	KeysDocument       bson.Raw
	Version            int32
	ExpireAfterSeconds *int32
	Sparse             *bool
	Unique             *bool
	Clustered          *bool
}

// An indexDocument is an index as the server describes it.
type indexDocument struct {
	Name               string
	Namespace          string   `bson:"ns"`
	KeysDocument       bson.Raw `bson:"key"`
	Version            int32    `bson:"v"`
	ExpireAfterSeconds *int32   `bson:"expireAfterSeconds"`
	Sparse             *bool
	Unique             *bool
	Clustered          *bool
}

func (d indexDocument) specification() IndexSpecification { return IndexSpecification(d) }

const codeNamespaceNotFound = 26

// List lists the indexes.
func (iv IndexView) List(ctx context.Context, opts ...options.Lister[options.ListIndexesOptions]) (*Cursor, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	if ctx, err = iv.coll.client.context(ctx); err != nil {
		return nil, err
	}
	start, cmd := abson.BeginDocument(nil)
	cmd = abson.AppendString(cmd, "listIndexes", iv.coll.name)
	at, cmd := abson.BeginDocumentElement(cmd, "cursor")
	if o.BatchSize != nil {
		cmd = abson.AppendInt32(cmd, "batchSize", *o.BatchSize)
	}
	cmd = abson.EndDocument(cmd, at)
	if rawData(o.Internal) {
		cmd = abson.AppendBool(cmd, "rawData", true)
	}
	fields, err := iv.coll.commandFields(o.Internal)
	if err != nil {
		return nil, err
	}
	cmd = append(cmd, fields.Elements()...)
	cur, err := iv.coll.db.retried(ctx, abson.EndDocument(cmd, start),
		allium.RunCursorCommandOptions{BatchSize: o.BatchSize})
	switch {
	case err != nil && mongoerr.HasCode(err, codeNamespaceNotFound):
		return &Cursor{coder: iv.coll.coder}, nil
	case err != nil:
		return nil, commandFailed(err)
	}
	return newCursor(cur, iv.coll.coder), nil
}

// ListSpecifications lists the indexes.
func (iv IndexView) ListSpecifications(ctx context.Context,
	opts ...options.Lister[options.ListIndexesOptions]) ([]IndexSpecification, error) {
	cur, err := iv.List(ctx, opts...)
	if err != nil {
		return nil, err
	}
	docs, err := cur.documents(ctx)
	if err != nil {
		return nil, err
	}
	var out []IndexSpecification
	for _, doc := range docs {
		var d indexDocument
		if err := bson.Unmarshal(doc, &d); err != nil {
			return nil, err
		}
		spec := d.specification()
		spec.Namespace = iv.coll.db.name + "." + iv.coll.name
		out = append(out, spec)
	}
	return out, nil
}

// CreateOne creates an index, and returns its name.
func (iv IndexView) CreateOne(ctx context.Context, model IndexModel,
	opts ...options.Lister[options.CreateIndexesOptions]) (string, error) {
	names, err := iv.CreateMany(ctx, []IndexModel{model}, opts...)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// CreateMany creates indexes, and returns their names.
func (iv IndexView) CreateMany(ctx context.Context, models []IndexModel,
	opts ...options.Lister[options.CreateIndexesOptions]) ([]string, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	indexes := make([]allium.IndexModel, len(models))
	background, _ := optionsutil.Value(o.Internal, coding.Background).([]*bool) // an option of version 1
	for i, m := range models {
		if m.Keys == nil {
			return nil, errors.New("index model keys cannot be nil")
		}
		if hasManyKeys(m.Keys) {
			return nil, ErrMapForOrderedArgument{"keys"}
		}
		if indexes[i], err = iv.model(m); err != nil {
			return nil, err
		}
		if i < len(background) {
			indexes[i].Background = background[i]
		}
	}
	if ctx, err = iv.coll.client.context(ctx); err != nil {
		return nil, err
	}
	settings := allium.CreateIndexOptions{RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal),
		CommitQuorum: o.CommitQuorum}
	inner, err := iv.coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	names, err := inner.CreateIndexes(ctx, indexes, settings)
	if err != nil {
		return nil, failure(err)
	}
	return names, nil
}

func (iv IndexView) model(m IndexModel) (out allium.IndexModel, err error) {
	keys, err := iv.coll.document(m.Keys)
	if err != nil {
		return out, err
	}
	var o *options.IndexOptions
	if o, err = merged([]options.Lister[options.IndexOptions]{m.Options}); err != nil {
		return out, err
	}
	a := arguments{coder: iv.coll.coder}
	out = allium.IndexModel{
		Keys: keys, Name: set(o.Name), Unique: set(o.Unique), Sparse: set(o.Sparse), Hidden: set(o.Hidden),
		PartialFilter: a.optional(o.PartialFilterExpression),
		Collation:     collated(o.Collation), Weights: a.optional(o.Weights), DefaultLanguage: set(o.DefaultLanguage),
		LanguageOverride: set(o.LanguageOverride),
		TextVersion:      set(o.TextVersion), SphereVersion: set(o.SphereVersion), Bits: set(o.Bits), Min: o.Min,
		Max:                o.Max,
		WildcardProjection: a.optional(o.WildcardProjection), StorageEngine: a.optional(o.StorageEngine),
		Version: set(o.Version),
	}
	if o.ExpireAfterSeconds != nil {
		d := time.Duration(*o.ExpireAfterSeconds) * time.Second
		out.ExpireAfter = &d
	}
	if out.Name == "" && a.err == nil {
		out.Name, a.err = indexName(keys)
	}
	return out, a.err
}

// indexName makes an index's name of its keys.
func indexName(keys abson.Raw) (string, error) {
	name := ""
	for key, v := range keys.All() {
		if name != "" {
			name += "_"
		}
		var text string
		switch v.Type {
		case abson.TypeInt32, abson.TypeInt64:
			n, _ := v.AsInt64()
			text = fmt.Sprint(n)
		case abson.TypeDouble:
			f, _ := v.Double()
			text = fmt.Sprint(f)
		case abson.TypeString:
			text, _ = v.StringValue()
		default:
			return "", ErrInvalidIndexValue
		}
		name += key + "_" + text
	}
	return name, nil
}

// DropOne drops the index of a name.
func (iv IndexView) DropOne(ctx context.Context, name string,
	opts ...options.Lister[options.DropIndexesOptions]) error {
	if name == "*" {
		return ErrMultipleIndexDrop
	}
	return iv.drop(ctx, name, opts)
}

// DropWithKey drops the index with these keys.
func (iv IndexView) DropWithKey(ctx context.Context, keySpecDocument any,
	opts ...options.Lister[options.DropIndexesOptions]) error {
	doc, err := iv.coll.document(keySpecDocument)
	if err != nil {
		return err
	}
	return iv.drop(ctx, doc, opts)
}

func (iv IndexView) drop(ctx context.Context, index any, opts []options.Lister[options.DropIndexesOptions]) error {
	o, err := built(opts)
	if err != nil {
		return err
	}
	if ctx, err = iv.coll.client.context(ctx); err != nil {
		return err
	}
	inner, err := iv.coll.with(o.Internal)
	if err != nil {
		return err
	}
	return failure(inner.DropIndex(ctx, index,
		allium.DropIndexOptions{RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal)}))
}

// DropAll drops all indexes but that on _id.
func (iv IndexView) DropAll(ctx context.Context, opts ...options.Lister[options.DropIndexesOptions]) error {
	o, err := built(opts)
	if err != nil {
		return err
	}
	if ctx, err = iv.coll.client.context(ctx); err != nil {
		return err
	}
	inner, err := iv.coll.with(o.Internal)
	if err != nil {
		return err
	}
	return failure(inner.DropIndexes(ctx,
		allium.DropIndexOptions{RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal)}))
}

// A SearchIndexView creates, changes, drops and lists the search indexes of a collection.
type SearchIndexView struct{ coll *Collection }

// A SearchIndexModel is a search index to create.
type SearchIndexModel struct {
	Definition any
	Options    *options.SearchIndexesOptionsBuilder
}

// List lists the search indexes, or the one that searchIdxOpts names.
func (siv SearchIndexView) List(ctx context.Context, searchIdxOpts options.Lister[options.SearchIndexesOptions],
	opts ...options.Lister[options.ListSearchIndexesOptions]) (*Cursor, error) {
	which, err := merged([]options.Lister[options.SearchIndexesOptions]{searchIdxOpts})
	if err != nil {
		return nil, err
	}
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	stage := bson.D{}
	if which.Name != nil && *which.Name != "" {
		stage = append(stage, bson.E{Key: "name", Value: *which.Name})
	}
	var aggregation []options.Lister[options.AggregateOptions]
	if a := o.AggregateOptions; a != nil {
		aggregation = append(aggregation, listed[options.AggregateOptions]{func(into *options.AggregateOptions) error {
			*into = *a
			return nil
		}})
	}
	return siv.coll.Aggregate(ctx, Pipeline{{{Key: "$listSearchIndexes", Value: stage}}}, aggregation...)
}

// listed is a Lister of one function.
type listed[T any] [1]func(*T) error

// List implements options.Lister.
func (l listed[T]) List() []func(*T) error { return l[:] }

// CreateOne creates a search index, and returns its name.
func (siv SearchIndexView) CreateOne(ctx context.Context, model SearchIndexModel,
	opts ...options.Lister[options.CreateSearchIndexesOptions]) (string, error) {
	names, err := siv.CreateMany(ctx, []SearchIndexModel{model}, opts...)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", errors.New("response does not name the index")
	}
	return names[0], nil
}

// CreateMany creates search indexes, and returns their names.
func (siv SearchIndexView) CreateMany(ctx context.Context, models []SearchIndexModel,
	_ ...options.Lister[options.CreateSearchIndexesOptions]) ([]string, error) {
	indexes := make([]allium.SearchIndexModel, len(models))
	for i, m := range models {
		if m.Definition == nil {
			return nil, errors.New("search index model definition cannot be nil")
		}
		definition, err := siv.coll.document(m.Definition)
		if err != nil {
			return nil, err
		}
		o, err := merged([]options.Lister[options.SearchIndexesOptions]{m.Options})
		if err != nil {
			return nil, err
		}
		indexes[i] = allium.SearchIndexModel{Name: set(o.Name), Type: set(o.Type), Definition: definition}
	}
	ctx, err := siv.coll.client.context(ctx)
	if err != nil {
		return nil, err
	}
	names, err := siv.coll.inner.CreateSearchIndexes(ctx, indexes)
	if missing(err) {
		return []string{}, nil
	}
	if err != nil {
		return nil, failure(err)
	}
	return names, nil
}

// DropOne drops the search index of a name.
func (siv SearchIndexView) DropOne(ctx context.Context, name string,
	_ ...options.Lister[options.DropSearchIndexOptions]) error {
	if name == "*" {
		return ErrMultipleIndexDrop
	}
	ctx, err := siv.coll.client.context(ctx)
	if err != nil {
		return err
	}
	return driverError(commandFailed(siv.coll.inner.DropSearchIndex(ctx, name)))
}

// UpdateOne gives the search index of a name another definition.
func (siv SearchIndexView) UpdateOne(ctx context.Context, name string, definition any,
	_ ...options.Lister[options.UpdateSearchIndexOptions]) error {
	doc, err := siv.coll.document(definition)
	if err != nil {
		return err
	}
	if ctx, err = siv.coll.client.context(ctx); err != nil {
		return err
	}
	return driverError(commandFailed(siv.coll.inner.UpdateSearchIndex(ctx, name, doc)))
}
