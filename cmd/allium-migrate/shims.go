package main

// helperSources are the bridges between the two ways of doing things.
var helperSources = map[string]string{
	"of": `// of returns the collection with documents of type T.
func of[T any](c *allium.Collection[any]) *allium.Collection[T] {
	return allium.As[T](c)
}`,
	"raw": `// raw returns the collection with documents that are not decoded.
func raw(c *allium.Collection[any]) *allium.Collection[bson.Raw] {
	return allium.As[bson.Raw](c)
}`,
	"singleResult": `// singleResult is a document that is decoded later. FindOne of a Collection[T] returns a T.
type singleResult struct {
	doc bson.Raw
	err error
}

func (r *singleResult) Decode(into any) error {
	if r.err != nil {
		return r.err
	}
	return asBefore.Unmarshal(r.doc, into)
}

func (r *singleResult) Err() error { return r.err }

func (r *singleResult) Raw() (bson.Raw, error) { return r.doc, r.err }

// DecodeBytes is Raw.
func (r *singleResult) DecodeBytes() (bson.Raw, error) { return r.doc, r.err }`,
	"one": `// one makes a singleResult of what FindOne and RunCommand return.
func one(doc bson.Raw, err error) *singleResult { return &singleResult{doc, err} }`,
	"all": `// all decodes the remaining documents of a cursor into a slice. As before, it decodes into the elements
// that the slice has, and a nil slice stays nil without documents.
func all[T any](ctx context.Context, cur *allium.Cursor[bson.Raw], into *[]T) error {
	docs, err := cur.All(ctx)
	if err != nil {
		return err
	}
	list := *into
	for i, doc := range docs {
		if i == len(list) {
			var none T
			list = append(list, none)
			list = list[:cap(list)]
		}
		if err := asBefore.Unmarshal(doc, &list[i]); err != nil {
			return err
		}
	}
	*into = list[:len(docs)]
	return nil
}`,
	"allInto": `// allInto decodes the remaining documents of a cursor into the slice that into points to. As before, it
// decodes into the elements that the slice has, and a nil slice stays nil without documents.
func allInto(ctx context.Context, cur *allium.Cursor[bson.Raw], into any) error {
	docs, err := cur.All(ctx)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(into)
	if to.Kind() != reflect.Pointer {
		return fmt.Errorf("results argument must be a pointer to a slice, but was a %s", to.Kind())
	}
	list := to.Elem()
	if list.Kind() == reflect.Interface {
		list = list.Elem()
	}
	if list.Kind() != reflect.Slice {
		return fmt.Errorf("results argument must be a pointer to a slice, but was a pointer to %s", list.Kind())
	}
	for i, doc := range docs {
		if i == list.Len() {
			list = reflect.Append(list, reflect.Zero(list.Type().Elem()))
			list = list.Slice(0, list.Cap())
		}
		if err := asBefore.Unmarshal(doc, list.Index(i).Addr().Interface()); err != nil {
			return err
		}
	}
	to.Elem().Set(list.Slice(0, len(docs)))
	return nil
}`,
	"distinctResult": `// distinctResult are values that are decoded later. allium.Distinct[T] returns them as a []T.
type distinctResult struct {
	values []bson.RawValue
	err    error
}

func (r *distinctResult) Err() error { return r.err }

func (r *distinctResult) Decode(into any) error {
	if r.err != nil {
		return r.err
	}
	to := reflect.ValueOf(into)
	if to.Kind() != reflect.Pointer || to.Elem().Kind() != reflect.Slice {
		return errors.New("values are decoded into a pointer to a slice")
	}
	list := reflect.MakeSlice(to.Elem().Type(), len(r.values), len(r.values))
	for i, v := range r.values {
		if err := asBefore.UnmarshalValue(v, list.Index(i).Addr().Interface()); err != nil {
			return err
		}
	}
	to.Elem().Set(list)
	return nil
}`,
	"values": `// values makes a distinctResult of what Distinct returns.
func values(list []bson.RawValue, err error) *distinctResult { return &distinctResult{list, err} }`,
	"connectContext": `// connectContext is connect for who has a context: opening a client takes none.
func connectContext(_ context.Context, opts ...*clientOptions) (*allium.Client, error) {
	return connect(opts...)
}`,
	"connected": `// connected stands where a client was told to connect: it does so by itself.
func connected(context.Context) error { return nil }`,
	"pointer": `// pointer returns a result as a pointer, which is nil after an error.
func pointer[T any](v T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &v, nil
}`,
	"partial": `// partial returns the result of many writes as a pointer, which is nil after an error unless some of
// the writes were refused.
func partial[T any](v T, err error) (*T, error) {
	var bulk *mongoerr.BulkWriteError
	var one *mongoerr.WriteError
	var concern *mongoerr.WriteConcernError
	if err == nil || errors.As(err, &bulk) || errors.As(err, &one) || errors.As(err, &concern) {
		return &v, err
	}
	return nil, err
}`,
	"given": `// given returns a filter. A map that is nil is one without conditions: Allium takes it for a mistake.
func given(filter any) any {
	if v := reflect.ValueOf(filter); v.Kind() == reflect.Map && v.IsNil() {
		return bson.D{}
	}
	return filter
}`,
	"inOrder": `// inOrder returns identifiers in the order of their documents.
func inOrder(ids map[int]any) []any {
	list := make([]any, 0, len(ids))
	for _, i := range slices.Sorted(maps.Keys(ids)) {
		list = append(list, ids[i])
	}
	return list
}`,
	"upsertedIDs": `// upsertedIDs returns the identifiers of the documents that updates have inserted, by their writes.
func upsertedIDs(ids map[int]any) map[int64]any {
	list := make(map[int64]any, len(ids))
	for i, id := range ids {
		list[int64(i)] = id
	}
	return list
}`,
	"anys": `// anys returns documents as values of type any.
func anys[T any](docs []T) []any {
	list := make([]any, len(docs))
	for i, doc := range docs {
		list[i] = doc
	}
	return list
}`,
	"transact": `// transact runs a function that returns a value in a transaction.
func transact(ctx context.Context, s *allium.Session, fn func(ctx context.Context) (any, error), opts ...allium.TransactionOptions) (v any, err error) {
	err = s.Transact(ctx, func(ctx context.Context) error {
		v, err = fn(ctx)
		return err
	}, opts...)
	return v, err
}`,
	"withSession": `// withSession calls a function with a context that carries a session.
func withSession(ctx context.Context, s *allium.Session, fn func(ctx context.Context) error) error {
	return fn(allium.WithSession(ctx, s))
}`,
	"useSession": `// useSession calls a function with a context that carries a session of its own.
func useSession(ctx context.Context, c *allium.Client, fn func(ctx context.Context) error) error {
	s, err := c.StartSession()
	if err != nil {
		return err
	}
	defer s.End(ctx)
	return fn(allium.WithSession(ctx, s))
}`,
	"clientOptions": `// clientOptions is a connection string with what else a client is told. allium.Open takes the two
// one after the other.
type clientOptions struct {
	URI string
	allium.ClientOptions
}`,
	"connect": `// connect opens a client.
func connect(opts ...*clientOptions) (*allium.Client, error) {
	var o clientOptions
	if len(opts) > 0 {
		o = *opts[0]
	}
	if o.URI == "" {
		o.URI = "mongodb://localhost:27017"
	}
	if o.BSON == nil {
		o.BSON = &asBefore
	}
	return allium.Open(o.URI, o.ClientOptions)
}`,
	"value": `// value returns what a raw value holds, and panics if it has another type.
func value[T any](v T, ok bool) T {
	if !ok {
		panic("BSON value has another type")
	}
	return v
}`,
	"noReply": `// noReply adds a reply that nobody looks at.
func noReply(err error) (bson.Raw, error) { return nil, err }`,
	"isNetworkError": `// isNetworkError reports whether a connection broke or could not be made.
func isNetworkError(err error) bool {
	var c *mongoerr.ConnectionError
	return errors.As(err, &c)
}`,
	"indexed": `// indexed returns an index with these keys. An IndexModel has keys and options in one.
func indexed(keys any, index allium.IndexModel) allium.IndexModel {
	index.Keys = keys
	return index
}`,
	"isObjectID": `// isObjectID reports whether a text is an ObjectID in hexadecimal digits.
func isObjectID(s string) bool {
	_, err := bson.ParseObjectID(s)
	return err == nil
}`,
	"writeModel": `// writeModel is a write before it is known on which collection, which makes an allium.WriteModel.
type writeModel func(c *allium.Collection[any]) allium.WriteModel`,
	"modelsOf": `// modelsOf makes the writes of a collection.
func modelsOf(c *allium.Collection[any], list []writeModel) []allium.WriteModel {
	models := make([]allium.WriteModel, len(list))
	for i, model := range list {
		models[i] = model(c)
	}
	return models
}`,
	"insertOneModel": `func insertOneModel(doc any) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.InsertOneModel(doc) }
}`,
	"updateOneModel": `func updateOneModel(filter, update any, opts ...allium.UpdateModelOptions) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.UpdateOneModel(filter, update, opts...) }
}`,
	"updateManyModel": `func updateManyModel(filter, update any, opts ...allium.UpdateModelOptions) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.UpdateManyModel(filter, update, opts...) }
}`,
	"replaceOneModel": `func replaceOneModel(filter, replacement any, opts ...allium.ReplaceModelOptions) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.ReplaceOneModel(filter, replacement, opts...) }
}`,
	"deleteOneModel": `func deleteOneModel(filter any, opts ...allium.DeleteModelOptions) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.DeleteOneModel(filter, opts...) }
}`,
	"deleteManyModel": `func deleteManyModel(filter any, opts ...allium.DeleteModelOptions) writeModel {
	return func(c *allium.Collection[any]) allium.WriteModel { return c.DeleteManyModel(filter, opts...) }
}`,
	"findOneAndReplace": `// findOneAndReplace replaces a document by one of another type than the collection's.
func findOneAndReplace(ctx context.Context, c *allium.Collection[any], filter, replacement any, opts ...allium.FindOneAndReplaceOptions) *singleResult {
	doc, err := asBefore.Marshal(replacement)
	if err != nil {
		return &singleResult{err: err}
	}
	return one(raw(c).FindOneAndReplace(ctx, filter, doc, opts...))
}`,
}

// helperUses are the helpers that a helper needs.
var helperUses = map[string][]string{
	"one": {"singleResult"}, "connect": {"clientOptions"}, "connectContext": {"connect"}, "values": {"distinctResult"},
	"findOneAndReplace": {"one", "raw", "singleResult"},
	"modelsOf":          {"writeModel"}, "insertOneModel": {"writeModel"}, "updateOneModel": {"writeModel"},
	"updateManyModel": {"writeModel"},
	"replaceOneModel": {"writeModel"}, "deleteOneModel": {"writeModel"}, "deleteManyModel": {"writeModel"},
}
