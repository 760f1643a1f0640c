package main

import (
	"fmt"
	"reflect"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/mongo/options"
)

// optionDefaults prints what new options have set, and what those have that are merged of none, of
// nil and of such as a program made itself.
func optionDefaults() {
	say.Line("defaults", options.DefaultName, options.DefaultChunkSize, options.DefaultRevision, options.DefaultOrdered,
		options.DefaultCausalConsistency)
	for _, o := range []any{
		options.Aggregate(), options.AutoEncryption(), options.GridFSBucket(), options.BulkWrite(),
		options.ChangeStream(), options.ClientEncryption(), options.Client(), options.Collection(), options.Count(),
		options.CreateCollection(), options.CreateIndexes(), options.CreateView(), options.DataKey(),
		options.Database(), options.DefaultIndex(), options.Delete(), options.Distinct(), options.DropIndexes(),
		options.Encrypt(), options.EstimatedDocumentCount(), options.FindOneAndDelete(), options.FindOneAndReplace(),
		options.FindOneAndUpdate(), options.FindOne(), options.Find(), options.GridFSFind(), options.Index(),
		options.InsertMany(), options.InsertOne(), options.ListCollections(), options.ListDatabases(),
		options.ListIndexes(), options.Logger(), options.GridFSName(), options.Replace(),
		options.RewrapManyDataKey(), options.RunCmd(), options.SearchIndexes(), options.Session(),
		options.TimeSeries(), options.Transaction(), options.Update(), options.GridFSUpload(),
	} {
		say.Line(fmt.Sprintf("new %T", o), set(o))
	}
	merging("MergeAggregateOptions", options.MergeAggregateOptions)
	merging("MergeAutoEncryptionOptions", options.MergeAutoEncryptionOptions)
	merging("MergeBucketOptions", options.MergeBucketOptions)
	merging("MergeBulkWriteOptions", options.MergeBulkWriteOptions)
	merging("MergeChangeStreamOptions", options.MergeChangeStreamOptions)
	merging("MergeClientEncryptionOptions", options.MergeClientEncryptionOptions)
	merging("MergeClientOptions", options.MergeClientOptions)
	merging("MergeCollectionOptions", options.MergeCollectionOptions)
	merging("MergeCountOptions", options.MergeCountOptions)
	merging("MergeCreateCollectionOptions", options.MergeCreateCollectionOptions)
	merging("MergeCreateIndexesOptions", options.MergeCreateIndexesOptions)
	merging("MergeCreateViewOptions", options.MergeCreateViewOptions)
	merging("MergeDataKeyOptions", options.MergeDataKeyOptions)
	merging("MergeDatabaseOptions", options.MergeDatabaseOptions)
	merging("MergeDeleteOptions", options.MergeDeleteOptions)
	merging("MergeDistinctOptions", options.MergeDistinctOptions)
	merging("MergeDropIndexesOptions", options.MergeDropIndexesOptions)
	merging("MergeEncryptOptions", options.MergeEncryptOptions)
	merging("MergeEstimatedDocumentCountOptions", options.MergeEstimatedDocumentCountOptions)
	merging("MergeFindOneAndDeleteOptions", options.MergeFindOneAndDeleteOptions)
	merging("MergeFindOneAndReplaceOptions", options.MergeFindOneAndReplaceOptions)
	merging("MergeFindOneAndUpdateOptions", options.MergeFindOneAndUpdateOptions)
	merging("MergeFindOneOptions", options.MergeFindOneOptions)
	merging("MergeFindOptions", options.MergeFindOptions)
	merging("MergeGridFSFindOptions", options.MergeGridFSFindOptions)
	merging("MergeIndexOptions", options.MergeIndexOptions)
	merging("MergeInsertManyOptions", options.MergeInsertManyOptions)
	merging("MergeInsertOneOptions", options.MergeInsertOneOptions)
	merging("MergeListCollectionsOptions", options.MergeListCollectionsOptions)
	merging("MergeListDatabasesOptions", options.MergeListDatabasesOptions)
	merging("MergeListIndexesOptions", options.MergeListIndexesOptions)
	merging("MergeNameOptions", options.MergeNameOptions)
	merging("MergeReplaceOptions", options.MergeReplaceOptions)
	merging("MergeRewrapManyDataKeyOptions", options.MergeRewrapManyDataKeyOptions)
	merging("MergeRunCmdOptions", options.MergeRunCmdOptions)
	merging("MergeSessionOptions", options.MergeSessionOptions)
	merging("MergeTransactionOptions", options.MergeTransactionOptions)
	merging("MergeUpdateOptions", options.MergeUpdateOptions)
	merging("MergeUploadOptions", options.MergeUploadOptions)
}

// merging prints what merge makes of options that say nothing.
func merging[T any](name string, merge func(...*T) *T) {
	say.Line(name+" of none", set(merge()))
	say.Line(name+" of nil", set(merge(nil)))
	say.Line(name+" of a zero", set(merge(new(T))))
	say.Line(name+" of both", set(merge(new(T), nil, new(T))))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if !f.IsExported() || len(f.Index) > 1 {
			continue
		}
		with := func(n int64) (*T, any) {
			o := new(T)
			v := reflect.ValueOf(o).Elem().FieldByIndex(f.Index)
			v.Set(say.Filled(f.Type, n))
			return o, v.Interface()
		}
		one, first := with(1)
		two, second := with(2)
		zero, nothing := with(0)
		which := func(o *T) string {
			v := reflect.ValueOf(o).Elem().FieldByIndex(f.Index)
			for name, value := range map[string]any{"first": first, "second": second, "zero": nothing} {
				same := v.Kind() != reflect.Pointer || v.Pointer() == reflect.ValueOf(value).Pointer()
				if same && !v.IsZero() && reflect.DeepEqual(v.Interface(), value) {
					return name
				}
			}
			return fmt.Sprint("none, is zero: ", v.IsZero())
		}
		say.Line(name+" of "+f.Name, which(merge(one)), which(merge(one, two)), which(merge(two, nil, one)),
			which(merge(one, new(T))), which(merge(nil, one, nil)), which(merge(one, zero)), which(merge(zero, one)))
		say.Line(name+" leaves "+f.Name, which(one), which(two), merge(one) == one)
	}
}

// set returns the names and values of the fields that are not zero.
func set(options any) (fields []string) {
	v := reflect.ValueOf(options).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() || f.IsZero() {
			continue
		}
		for f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() == reflect.Func || f.Kind() == reflect.Struct {
			fields = append(fields, v.Type().Field(i).Name)
			continue
		}
		fields = append(fields, fmt.Sprint(v.Type().Field(i).Name, "=", f))
	}
	return fields
}
