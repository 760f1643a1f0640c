package mongo

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// An IndexView creates, drops and lists the indexes of a collection.
type IndexView struct{ coll *Collection }

// An IndexModel is an index to create.
type IndexModel struct {
	Keys    any // the indexed fields in their order, a document
	Options *options.IndexOptions
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

func indexOf(s v2mongo.IndexSpecification) *IndexSpecification {
	return &IndexSpecification{
		Name: s.Name, Namespace: s.Namespace, KeysDocument: bson.Raw(s.KeysDocument), Version: s.Version,
		ExpireAfterSeconds: s.ExpireAfterSeconds, Sparse: s.Sparse, Unique: s.Unique, Clustered: s.Clustered,
	}
}

// UnmarshalBSON decodes what listIndexes returns.
//
// Deprecated: use ListSpecifications.
func (i *IndexSpecification) UnmarshalBSON(data []byte) error {
	var doc struct {
		Name               string   `bson:"name"`
		Namespace          string   `bson:"ns"`
		KeysDocument       bson.Raw `bson:"key"`
		Version            int32    `bson:"v"`
		ExpireAfterSeconds *int32   `bson:"expireAfterSeconds"`
		Sparse             *bool    `bson:"sparse"`
		Unique             *bool    `bson:"unique"`
		Clustered          *bool    `bson:"clustered"`
	}
	if err := bson.Unmarshal(data, &doc); err != nil {
		return err
	}
	*i = IndexSpecification(doc)
	return nil
}

// List lists the indexes.
func (iv IndexView) List(ctx context.Context, opts ...*options.ListIndexesOptions) (*Cursor, error) {
	return newCursor(iv.coll.inner.Indexes().List(ctx,
		with(opts, options.MergeListIndexesOptions, convert.ListIndexes)...))
}

// ListSpecifications describes the indexes.
func (iv IndexView) ListSpecifications(ctx context.Context,
	opts ...*options.ListIndexesOptions) ([]*IndexSpecification, error) {
	specs, err := iv.coll.inner.Indexes().ListSpecifications(ctx,
		with(opts, options.MergeListIndexesOptions, convert.ListIndexes)...)
	if err != nil {
		return nil, failure(err)
	}
	out := make([]*IndexSpecification, len(specs))
	for i, s := range specs {
		out[i] = indexOf(s)
	}
	return out, nil
}

// CreateOne creates an index, and returns its name.
func (iv IndexView) CreateOne(ctx context.Context, model IndexModel,
	opts ...*options.CreateIndexesOptions) (string, error) {
	names, err := iv.CreateMany(ctx, []IndexModel{model}, opts...)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// CreateMany creates indexes, and returns their names.
func (iv IndexView) CreateMany(ctx context.Context, models []IndexModel,
	opts ...*options.CreateIndexesOptions) ([]string, error) {
	inner, background := make([]v2mongo.IndexModel, len(models)), make([]*bool, len(models))
	for i, m := range models {
		if m.Keys == nil {
			return nil, fmt.Errorf("index model keys cannot be nil")
		}
		if v := reflect.ValueOf(m.Keys); v.Kind() == reflect.Map && v.Len() > 1 {
			return nil, ErrMapForOrderedArgument{ParamName: "keys"}
		}
		inner[i].Keys = m.Keys
		if m.Options != nil {
			inner[i].Options = &v2options.IndexOptionsBuilder{Opts: convert.Index(m.Options).List()}
			background[i] = m.Options.Background
		}
	}
	settings := append(with(opts, options.MergeCreateIndexesOptions, convert.CreateIndexes),
		convert.Background(background))
	names, err := iv.coll.inner.Indexes().CreateMany(ctx, inner, settings...)
	return names, failure(err)
}

// DropOne drops an index. The result says in nIndexesWas how many there were.
func (iv IndexView) DropOne(ctx context.Context, name string, opts ...*options.DropIndexesOptions) (bson.Raw, error) {
	if name == "*" {
		return nil, ErrMultipleIndexDrop
	}
	return iv.drop(ctx, name, opts)
}

// DropOneWithKey drops the index with these keys. The result is that of DropOne.
func (iv IndexView) DropOneWithKey(ctx context.Context, keySpecDocument any,
	opts ...*options.DropIndexesOptions) (bson.Raw, error) {
	if keySpecDocument == nil {
		return nil, ErrNilDocument
	}
	return iv.drop(ctx, keySpecDocument, opts)
}

// DropAll drops all indexes but that of _id. The result is that of DropOne.
func (iv IndexView) DropAll(ctx context.Context, opts ...*options.DropIndexesOptions) (bson.Raw, error) {
	return iv.drop(ctx, "*", opts)
}

func (iv IndexView) drop(ctx context.Context, index any, opts []*options.DropIndexesOptions) (bson.Raw, error) {
	cmd := bson.D{{Key: "dropIndexes", Value: iv.coll.Name()}, {Key: "index", Value: index}}
	if d := options.MergeDropIndexesOptions(opts...).MaxTime; d != nil && *d > 0 {
		cmd = append(cmd, bson.E{Key: "maxTimeMS", Value: d.Milliseconds()})
	}
	reply, err := iv.coll.db.RunCommand(ctx, cmd).Raw()
	if err != nil {
		return nil, err
	}
	was := bson.D{}
	if n, err := reply.LookupErr("nIndexesWas"); err == nil {
		was = bson.D{{Key: "nIndexesWas", Value: n}}
	}
	return bson.Marshal(was)
}

// An IndexOptionsBuilder makes a document of the settings of an index.
//
// Deprecated: use options.IndexOptions.
type IndexOptionsBuilder struct{ document bson.D }

// NewIndexOptionsBuilder returns a builder of an empty document.
//
// Deprecated: use options.IndexOptions.
func NewIndexOptionsBuilder() *IndexOptionsBuilder { return new(IndexOptionsBuilder) }

func (iob *IndexOptionsBuilder) set(key string, value any) *IndexOptionsBuilder {
	iob.document = append(iob.document, bson.E{Key: key, Value: value})
	return iob
}

// Build returns the document.
func (iob *IndexOptionsBuilder) Build() bson.D { return iob.document }

// Background sets the field background.
func (iob *IndexOptionsBuilder) Background(v bool) *IndexOptionsBuilder {
	return iob.set("background", v)
}

// ExpireAfterSeconds sets the field expireAfterSeconds.
func (iob *IndexOptionsBuilder) ExpireAfterSeconds(v int32) *IndexOptionsBuilder {
	return iob.set("expireAfterSeconds", v)
}

// Name sets the field name.
func (iob *IndexOptionsBuilder) Name(v string) *IndexOptionsBuilder { return iob.set("name", v) }

// Sparse sets the field sparse.
func (iob *IndexOptionsBuilder) Sparse(v bool) *IndexOptionsBuilder { return iob.set("sparse", v) }

// StorageEngine sets the field storageEngine.
func (iob *IndexOptionsBuilder) StorageEngine(v any) *IndexOptionsBuilder {
	return iob.set("storageEngine", v)
}

// Unique sets the field unique.
func (iob *IndexOptionsBuilder) Unique(v bool) *IndexOptionsBuilder { return iob.set("unique", v) }

// Version sets the field v.
func (iob *IndexOptionsBuilder) Version(v int32) *IndexOptionsBuilder { return iob.set("v", v) }

// DefaultLanguage sets the field default_language.
func (iob *IndexOptionsBuilder) DefaultLanguage(v string) *IndexOptionsBuilder {
	return iob.set("default_language", v)
}

// LanguageOverride sets the field language_override.
func (iob *IndexOptionsBuilder) LanguageOverride(v string) *IndexOptionsBuilder {
	return iob.set("language_override", v)
}

// TextVersion sets the field textIndexVersion.
func (iob *IndexOptionsBuilder) TextVersion(v int32) *IndexOptionsBuilder {
	return iob.set("textIndexVersion", v)
}

// Weights sets the field weights.
func (iob *IndexOptionsBuilder) Weights(v any) *IndexOptionsBuilder { return iob.set("weights", v) }

// SphereVersion sets the field 2dsphereIndexVersion.
func (iob *IndexOptionsBuilder) SphereVersion(v int32) *IndexOptionsBuilder {
	return iob.set("2dsphereIndexVersion", v)
}

// Bits sets the field bits.
func (iob *IndexOptionsBuilder) Bits(v int32) *IndexOptionsBuilder { return iob.set("bits", v) }

// Max sets the field max.
func (iob *IndexOptionsBuilder) Max(v float64) *IndexOptionsBuilder { return iob.set("max", v) }

// Min sets the field min.
func (iob *IndexOptionsBuilder) Min(v float64) *IndexOptionsBuilder { return iob.set("min", v) }

// BucketSize sets the field bucketSize.
func (iob *IndexOptionsBuilder) BucketSize(v int32) *IndexOptionsBuilder {
	return iob.set("bucketSize", v)
}

// PartialFilterExpression sets the field partialFilterExpression.
func (iob *IndexOptionsBuilder) PartialFilterExpression(v any) *IndexOptionsBuilder {
	return iob.set("partialFilterExpression", v)
}

// Collation sets the field collation.
func (iob *IndexOptionsBuilder) Collation(v any) *IndexOptionsBuilder { return iob.set("collation", v) }

// SearchIndexView creates, drops and lists the search indexes of a collection.
type SearchIndexView struct{ inner v2mongo.SearchIndexView }

// A SearchIndexModel is a search index to create.
type SearchIndexModel struct {
	Definition any // a document
	Options    *options.SearchIndexesOptions
}

// List lists the search indexes.
func (siv SearchIndexView) List(ctx context.Context, searchIdxOpts *options.SearchIndexesOptions,
	opts ...*options.ListSearchIndexesOptions) (*Cursor, error) {
	var index v2options.Lister[v2options.SearchIndexesOptions]
	if searchIdxOpts != nil {
		index = convert.SearchIndexes(searchIdxOpts)
	}
	return newCursor(siv.inner.List(ctx, index,
		with(opts, last[options.ListSearchIndexesOptions], convert.ListSearchIndexes)...))
}

// last returns the last options that are not nil.
func last[T any](opts ...*T) *T {
	out := new(T)
	for _, o := range opts {
		if o != nil {
			out = o
		}
	}
	return out
}

// CreateOne creates a search index, and returns its name.
func (siv SearchIndexView) CreateOne(ctx context.Context, model SearchIndexModel,
	opts ...*options.CreateSearchIndexesOptions) (string, error) {
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
	_ ...*options.CreateSearchIndexesOptions) ([]string, error) {
	inner := make([]v2mongo.SearchIndexModel, len(models))
	for i, m := range models {
		inner[i].Definition = m.Definition
		if m.Options != nil {
			inner[i].Options = &v2options.SearchIndexesOptionsBuilder{Opts: convert.SearchIndexes(m.Options).List()}
		}
	}
	names, err := siv.inner.CreateMany(ctx, inner)
	return names, failure(err)
}

// DropOne drops a search index.
func (siv SearchIndexView) DropOne(ctx context.Context, name string, _ ...*options.DropSearchIndexOptions) error {
	return failure(siv.inner.DropOne(ctx, name))
}

// UpdateOne replaces the definition of a search index.
func (siv SearchIndexView) UpdateOne(ctx context.Context, name string, definition any,
	_ ...*options.UpdateSearchIndexOptions) error {
	return failure(siv.inner.UpdateOne(ctx, name, definition))
}
