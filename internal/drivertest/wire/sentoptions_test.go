package wire

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// optionCase is an operation, whose option struct O is the last parameter of run. Each field of O
// but those of elsewhere is set alone: the command must then have exactly one field more than
// without options, and it must stand where it belongs.
type optionCase struct {
	name    string
	command string
	at      string            // where the fields stand: "" is the command itself
	keys    map[string]string // the fields whose keys are not their names, with their places, for example "cursor.batchSize"
	same    []string          // the fields that send nothing of their own: they are tested elsewhere
	options reflect.Type
	several bool // structs may be given
	run     func(ctx context.Context, o []reflect.Value) error
}

func optionCaseOf[O any](name, command, at string, keys map[string]string, same []string, run func(ctx context.Context, o ...O) error) optionCase {
	return optionCase{name, command, at, keys, same, reflect.TypeFor[O](), true, func(ctx context.Context, o []reflect.Value) error {
		opts := make([]O, len(o))
		for i, o := range o {
			opts[i] = o.Interface().(O)
		}
		return run(ctx, opts...)
	}}
}

// modelCaseOf is that of a model of a write, whose options are its fields.
func modelCaseOf[O any](name, command, at string, keys map[string]string, same []string, run func(ctx context.Context, m O) error) optionCase {
	return optionCase{name, command, at, keys, same, reflect.TypeFor[O](), false, func(ctx context.Context, o []reflect.Value) error {
		return run(ctx, o[0].Interface().(O))
	}}
}

// flatten lists the fields of a command with their types, as "updates.0.hint string".
func flatten(doc bson.Raw, prefix string, into map[string]string) {
	for key, v := range doc.All() {
		switch key {
		case "lsid", "$clusterTime", "txnNumber", "filter", "q", "query", "u", "key", "documents", "definition":
			continue
		}
		path := prefix + key
		switch inner, ok := v.Document(); {
		case ok && (key == "cursor" || key == "$changeStream" || prefix == "updates." || prefix == "deletes." || prefix == "ops." || prefix == "nsInfo." || prefix == "indexes." || prefix == "pipeline."):
			flatten(inner, path+".", into)
		case v.Type == bson.TypeArray && (key == "updates" || key == "deletes" || key == "ops" || key == "nsInfo" || key == "indexes" || key == "pipeline" && prefix == ""):
			list, _ := v.Array()
			flatten(list, path+".", into)
		default:
			into[path] = v.Type.String()
		}
	}
}

// sampleOption returns a value for a field, and the BSON type that it must be sent with.
func sampleOption(name string, t reflect.Type) (any, bson.Type) {
	document := bson.D{{Key: "x", Value: 1}}
	switch {
	case name == "Hint" || name == "Comment" || name == "CommitQuorum":
		return "majority", bson.TypeString
	case name == "ArrayFilters" || name == "Pipeline":
		return bson.A{document}, bson.TypeArray
	case name == "ResumeAfter" || name == "StartAfter":
		raw, _ := bson.Marshal(document)
		return bson.Raw(raw), bson.TypeEmbeddedDocument
	case name == "CommandFields": // its fields are sent, and not it
		return bson.D{{Key: "commandFields", Value: "x"}}, bson.TypeString
	case name == "CollectionUUIDs":
		return [][]byte{make([]byte, 16)}, bson.TypeBinary
	case name == "ExpireAfter":
		return new(time.Hour), bson.TypeInt64
	}
	switch t {
	case reflect.TypeFor[any]():
		return document, bson.TypeEmbeddedDocument
	case reflect.TypeFor[*bool]():
		return new(false), bson.TypeBoolean
	case reflect.TypeFor[bool]():
		return true, bson.TypeBoolean
	case reflect.TypeFor[*int32]():
		return new(int32(0)), bson.TypeInt32
	case reflect.TypeFor[*int64]():
		return new(int64(0)), bson.TypeInt64
	case reflect.TypeFor[int32]():
		return int32(7), bson.TypeInt32
	case reflect.TypeFor[int64]():
		return int64(7), bson.TypeInt64
	case reflect.TypeFor[time.Duration]():
		return 7 * time.Second, bson.TypeInt64
	case reflect.TypeFor[string]():
		return "sample", bson.TypeString
	case reflect.TypeFor[allium.FullDocument](), reflect.TypeFor[allium.ValidationLevel](), reflect.TypeFor[allium.ValidationAction]():
		return reflect.ValueOf("sample").Convert(t).Interface(), bson.TypeString
	case reflect.TypeFor[*float64]():
		return new(0.5), bson.TypeDouble
	case reflect.TypeFor[*allium.Collation]():
		return &allium.Collation{Locale: "en"}, bson.TypeEmbeddedDocument
	case reflect.TypeFor[*bson.Timestamp]():
		return &bson.Timestamp{T: 1}, bson.TypeTimestamp
	}
	panic(fmt.Sprintf("no sample for %s %s", name, t))
}

// keyOf is the key of a field unless the case says otherwise.
func keyOf(field string) string {
	switch field {
	case "MaxTime":
		return "maxTimeMS"
	case "ShowRecordID":
		return "showRecordId"
	}
	r := []rune(field)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// TestOptionsAreSent sets every option of every operation alone and checks that the command has
// exactly that field more, with the right type: an option that is not set is not sent, and none is
// forgotten (specifications: CRUD, Index Management, Enumerating Collections and Databases, Change
// Streams).
func TestOptionsAreSent(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).With("a server of version 8.2", mongotest.Version("8.2")))
	db, coll := p.Client.Database("db"), p.Coll
	created := db.Collection("created")
	plain, plainCreated := coll, created
	fields := allium.CollectionOptions{CommandFields: bson.D{{Key: "added", Value: 1}}}
	const ofCollections = "find aggregate count distinct insert update delete findAndModify createIndexes dropIndexes listIndexes drop renameCollection"
	filter, set := rig.FieldOf("x", 1), rig.SetOf("y", 1)
	found := func(_ bson.D, err error) error { return err }
	statement := map[string]string{"BypassDocumentValidation": "bypassDocumentValidation", "Let": "let", "Comment": "comment", "RawData": "rawData"}
	batch := map[string]string{"BatchSize": "cursor.batchSize"}
	changes := map[string]string{"BatchSize": "cursor.batchSize", "Comment": "comment", "Collation": "collation", "SplitLargeEvents": "pipeline.1.$changeStreamSplitLargeEvent"}
	modify := map[string]string{"ReturnNew": "new", "Projection": "fields"}
	create := map[string]string{"SizeInBytes": "size", "MaxDocuments": "max", "TimeSeries": "timeseries", "ExpireAfter": "expireAfterSeconds", "PreAndPostImages": "changeStreamPreAndPostImages", "IDIndex": "idIndex"}
	cursors := []string{"TimeoutMode", "MaxAwaitTime", "Timeout"}
	for _, tc := range []optionCase{
		optionCaseOf("find", "find", "", nil, append([]string{"CursorType", "Exhaust"}, cursors...), func(ctx context.Context, o ...allium.FindOptions) error {
			cur, err := coll.Find(ctx, filter, o...)
			return rig.Drain(ctx, cur, err)
		}),
		optionCaseOf("find one", "find", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.FindOneOptions) error {
			return found(coll.FindOne(ctx, filter, o...))
		}),
		optionCaseOf("aggregate", "aggregate", "", batch, cursors, func(ctx context.Context, o ...allium.AggregateOptions) error {
			cur, err := coll.Aggregate(ctx, []bson.D{}, o...)
			return rig.Drain(ctx, cur, err)
		}),
		optionCaseOf("aggregate on the database", "aggregate", "", batch, cursors, func(ctx context.Context, o ...allium.AggregateOptions) error {
			cur, err := db.Aggregate(ctx, []bson.D{{{Key: "$listLocalSessions", Value: bson.D{}}}}, o...)
			return rig.Drain(ctx, cur, err)
		}),
		optionCaseOf("list search indexes", "aggregate", "", map[string]string{"BatchSize": "cursor.batchSize", "Name": "pipeline.0.$listSearchIndexes"}, append([]string{"Name"}, cursors...), func(ctx context.Context, o ...allium.ListSearchIndexesOptions) error {
			cur, err := coll.ListSearchIndexes(ctx, o...)
			return rig.Drain(ctx, cur, err)
		}),
		optionCaseOf("count documents", "aggregate", "", map[string]string{"Skip": "pipeline.1.$skip", "Limit": "pipeline.1.$limit"}, []string{"Timeout"},
			func(ctx context.Context, o ...allium.CountOptions) error {
				return rig.ErrorOf(coll.CountDocuments(ctx, filter, o...))
			}),
		optionCaseOf("count", "count", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.CountOptions) error {
			return rig.ErrorOf(coll.Count(ctx, filter, o...))
		}),
		optionCaseOf("estimated count", "count", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.EstimatedCountOptions) error {
			return rig.ErrorOf(coll.EstimatedDocumentCount(ctx, o...))
		}),
		optionCaseOf("distinct", "distinct", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.DistinctOptions) error {
			return rig.ErrorOf(allium.Distinct[any](ctx, coll, "x", filter, o...))
		}),
		optionCaseOf("insert one", "insert", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.InsertOneOptions) error {
			return rig.ErrorOf(coll.InsertOne(ctx, filter, o...))
		}),
		optionCaseOf("insert many", "insert", "", nil, []string{"Unordered", "Timeout"}, func(ctx context.Context, o ...allium.InsertManyOptions) error {
			return rig.ErrorOf(coll.InsertMany(ctx, []bson.D{filter}, o...))
		}),
		optionCaseOf("update one", "update", "updates.0.", statement, []string{"Timeout"}, func(ctx context.Context, o ...allium.UpdateOptions) error {
			return rig.ErrorOf(coll.UpdateOne(ctx, filter, set, o...))
		}),
		optionCaseOf("update many", "update", "updates.0.", statement, []string{"Sort", "Timeout"}, func(ctx context.Context, o ...allium.UpdateOptions) error {
			return rig.ErrorOf(coll.UpdateMany(ctx, filter, set, o...))
		}),
		optionCaseOf("replace one", "update", "updates.0.", statement, []string{"Timeout"}, func(ctx context.Context, o ...allium.ReplaceOptions) error {
			return rig.ErrorOf(coll.ReplaceOne(ctx, filter, filter, o...))
		}),
		optionCaseOf("delete one", "delete", "deletes.0.", statement, []string{"Timeout"}, func(ctx context.Context, o ...allium.DeleteOptions) error {
			return rig.ErrorOf(coll.DeleteOne(ctx, filter, o...))
		}),
		optionCaseOf("delete many", "delete", "deletes.0.", statement, []string{"Timeout"}, func(ctx context.Context, o ...allium.DeleteOptions) error {
			return rig.ErrorOf(coll.DeleteMany(ctx, filter, o...))
		}),
		optionCaseOf("find one and update", "findAndModify", "", modify, []string{"Timeout"}, func(ctx context.Context, o ...allium.FindOneAndUpdateOptions) error {
			return found(coll.FindOneAndUpdate(ctx, filter, set, o...))
		}),
		optionCaseOf("find one and replace", "findAndModify", "", modify, []string{"Timeout"}, func(ctx context.Context, o ...allium.FindOneAndReplaceOptions) error {
			return found(coll.FindOneAndReplace(ctx, filter, filter, o...))
		}),
		optionCaseOf("find one and delete", "findAndModify", "", modify, []string{"Timeout"}, func(ctx context.Context, o ...allium.FindOneAndDeleteOptions) error {
			return found(coll.FindOneAndDelete(ctx, filter, o...))
		}),
		optionCaseOf("bulk write, update", "update", "", nil, []string{"Unordered", "Timeout"}, func(ctx context.Context, o ...allium.BulkWriteOptions) error {
			return rig.ErrorOf(coll.BulkWrite(ctx, []allium.WriteModel{coll.UpdateOneModel(filter, set)}, o...))
		}),
		optionCaseOf("bulk write, delete", "delete", "", nil, []string{"Unordered", "Timeout", "BypassDocumentValidation"}, func(ctx context.Context, o ...allium.BulkWriteOptions) error {
			return rig.ErrorOf(coll.BulkWrite(ctx, []allium.WriteModel{coll.DeleteOneModel(filter)}, o...))
		}),
		optionCaseOf("bulk write, insert", "insert", "", nil, []string{"Unordered", "Timeout", "Let"}, func(ctx context.Context, o ...allium.BulkWriteOptions) error {
			return rig.ErrorOf(coll.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(filter)}, o...))
		}),
		optionCaseOf("bulk write of the client", "bulkWrite", "", map[string]string{"CollectionUUIDs": "nsInfo.0.collectionUUID"}, []string{"Unordered", "VerboseResults", "WriteConcern", "Timeout"}, func(ctx context.Context, o ...allium.ClientBulkWriteOptions) error {
			return rig.ErrorOf(p.Client.BulkWrite(ctx, []allium.WriteModel{p.Coll.UpdateOneModel(filter, set)}, o...))
		}),
		modelCaseOf("model: update", "update", "updates.0.", nil, nil, func(ctx context.Context, o allium.UpdateModelOptions) error {
			return rig.ErrorOf(coll.BulkWrite(ctx, []allium.WriteModel{coll.UpdateOneModel(filter, set, o)}))
		}),
		modelCaseOf("model of the client: replace", "bulkWrite", "ops.0.", nil, nil, func(ctx context.Context, o allium.ReplaceModelOptions) error {
			return rig.ErrorOf(p.Client.BulkWrite(ctx, []allium.WriteModel{p.Coll.ReplaceOneModel(filter, filter, o)}))
		}),
		modelCaseOf("model of the client: delete", "bulkWrite", "ops.0.", nil, nil, func(ctx context.Context, o allium.DeleteModelOptions) error {
			return rig.ErrorOf(p.Client.BulkWrite(ctx, []allium.WriteModel{p.Coll.DeleteOneModel(filter, o)}))
		}),
		optionCaseOf("watch", "aggregate", "pipeline.0.$changeStream.", changes, []string{"MaxAwaitTime", "Timeout"}, func(ctx context.Context, o ...allium.WatchOptions) error {
			s, err := coll.Watch(ctx, nil, o...)
			if err == nil {
				err = s.Close(ctx)
			}
			return err
		}),
		optionCaseOf("create indexes", "createIndexes", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.CreateIndexOptions) error {
			return rig.ErrorOf(coll.CreateIndexes(ctx, []allium.IndexModel{{Keys: filter}}, o...))
		}),
		optionCaseOf("drop index", "dropIndexes", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.DropIndexOptions) error { return coll.DropIndex(ctx, "x_1", o...) }),
		optionCaseOf("drop indexes", "dropIndexes", "", nil, []string{"Timeout"}, func(ctx context.Context, o ...allium.DropIndexOptions) error { return coll.DropIndexes(ctx, o...) }),
		optionCaseOf("list indexes", "listIndexes", "", batch, []string{"TimeoutMode", "Timeout"}, func(ctx context.Context, o ...allium.ListIndexesOptions) error {
			cur, err := coll.ListIndexes(ctx, o...)
			return rig.Drain(ctx, cur, err)
		}),
		optionCaseOf("list collections", "listCollections", "", map[string]string{"BatchSize": "cursor.batchSize", "Filter": ""}, []string{"TimeoutMode", "Timeout"},
			func(ctx context.Context, o ...allium.ListCollectionsOptions) error {
				cur, err := db.ListCollections(ctx, o...)
				return rig.Drain(ctx, cur, err)
			}),
		optionCaseOf("list databases", "listDatabases", "", map[string]string{"Filter": ""}, []string{"Timeout"}, func(ctx context.Context, o ...allium.ListDatabasesOptions) error {
			return rig.ErrorOf(p.Client.ListDatabases(ctx, o...))
		}),
		// EncryptedFields makes and drops collections beside the one: see package encryption.
		optionCaseOf("create collection", "create", "", create, []string{"EncryptedFields", "Pipeline", "Timeout"}, func(ctx context.Context, o ...allium.CreateCollectionOptions) error {
			return db.CreateCollection(ctx, "created", o...)
		}),
		optionCaseOf("modify collection", "collMod", "", map[string]string{"SizeInBytes": "cappedSize", "MaxDocuments": "cappedMax", "TimeSeries": "timeseries",
			"ExpireAfter": "expireAfterSeconds", "PreAndPostImages": "changeStreamPreAndPostImages"}, []string{"Index", "Pipeline", "NeverExpire", "Timeout"},
			func(ctx context.Context, o ...allium.ModifyCollectionOptions) error {
				return db.ModifyCollection(ctx, "created", o...)
			}),
		optionCaseOf("drop collection", "drop", "", nil, []string{"EncryptedFields", "Timeout"}, func(ctx context.Context, o ...allium.DropOptions) error {
			return created.Drop(ctx, o...)
		}),
		optionCaseOf("rename", "renameCollection", "", nil, []string{"Database", "Timeout"}, func(ctx context.Context, o ...allium.RenameOptions) error {
			return created.Rename(ctx, "renamed", o...)
		}),
	} {
		t.Run(tc.name, func(t *testing.T) {
			fieldsOf := func(o ...reflect.Value) map[string]string {
				p.Recorder.Reset()
				runErr := tc.run(t.Context(), o) // what the server thinks of the option does not matter here
				sent := p.Recorder.Of(tc.command)
				if len(sent) == 0 {
					t.Fatalf("nothing was sent: %v", runErr)
				}
				all := map[string]string{}
				flatten(sent[0].Body, "", all)
				return all
			}
			base := fieldsOf(reflect.New(tc.options).Elem())
			of := tc.name != "aggregate on the database" && slices.Contains(strings.Fields(ofCollections), tc.command)
			coll, created = plain.With(fields), plainCreated.With(fields)
			if got := fieldsOf(reflect.New(tc.options).Elem()); (got["added"] != "") != of {
				t.Errorf("of a collection with CommandFields, the command has %v", got)
			}
			coll, created = plain, plainCreated
			for i := range tc.options.NumField() {
				f := tc.options.Field(i)
				if slices.Contains(tc.same, f.Name) {
					continue
				}
				sample, want := sampleOption(f.Name, f.Type)
				o := reflect.New(tc.options).Elem()
				o.Field(i).Set(reflect.ValueOf(sample))
				path, ok := tc.keys[f.Name]
				if !ok {
					path = tc.at + keyOf(f.Name)
				}
				if path == "" { // a filter, which flatten leaves out
					continue
				}
				got := fieldsOf(o)
				if tc.several { // the last that sets a field counts, wherever it stands
					none := reflect.New(tc.options).Elem()
					for _, all := range [][]reflect.Value{{o, none}, {none, o}} {
						if again := fieldsOf(all...); !maps.Equal(got, again) {
							t.Errorf("%s in one of two structs: %v, want %v", f.Name, again, got)
						}
					}
				}
				var more []string
				for key := range maps.Keys(got) {
					if base[key] == "" {
						more = append(more, key)
					}
				}
				wanted := want.String()
				if f.Name == "PreAndPostImages" || f.Name == "SplitLargeEvents" {
					wanted = bson.TypeEmbeddedDocument.String()
				}
				if strings.HasPrefix(path, "pipeline.1") && f.Name != "SplitLargeEvents" { // $group moves on
					more = slices.DeleteFunc(more, func(s string) bool { return strings.HasPrefix(s, "pipeline.2") })
				}
				if path == "ops.0.many" || path == "updates.0.many" {
					path = strings.TrimSuffix(path, "many") + "multi"
				}
				if !slices.Equal(more, []string{path}) || got[path] != wanted {
					t.Errorf("%s: the command has %v more, a %s; want %s, a %s", f.Name, more, got[path], path, wanted)
				}
				for key := range base {
					if got[key] == "" && !strings.HasPrefix(key, "pipeline.1") {
						t.Errorf("%s takes %s away", f.Name, key)
					}
				}
			}
		})
	}
}

// TestValuesAreSent sets every field of the values that are sent as documents alone: a pointer to
// false is sent as false, and what is not set is not sent (specifications: Collation, Stable API).
func TestValuesAreSent(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1).Since("5.0"))
	for name, sends := range map[string]struct {
		of   reflect.Type
		sent func(t *testing.T, v reflect.Value) bson.Raw
		keys map[string]string
	}{
		"collation": {reflect.TypeFor[allium.Collation](), func(t *testing.T, v reflect.Value) bson.Raw {
			rec := &rig.Recorder{}
			client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
			c := v.Interface().(allium.Collation)
			client.Database("d").Collection("c").FindOne(t.Context(), bson.D{}, allium.FindOneOptions{Collation: &c})
			doc, _ := rec.Of("find")[0].Body.Lookup("collation").Document()
			return doc
		}, nil},
		"index change": {reflect.TypeFor[allium.IndexChange](), func(t *testing.T, v reflect.Value) bson.Raw {
			rec := &rig.Recorder{}
			client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
			c := v.Interface().(allium.IndexChange)
			client.Database("d").ModifyCollection(t.Context(), "c", allium.ModifyCollectionOptions{Index: &c})
			doc, _ := rec.Of("collMod")[0].Body.Lookup("index").Document()
			return doc
		}, map[string]string{"Keys": "keyPattern", "ExpireAfter": "expireAfterSeconds"}},
		"server API": {reflect.TypeFor[allium.ServerAPI](), func(t *testing.T, v reflect.Value) bson.Raw {
			rec := &rig.Recorder{}
			api := v.Interface().(allium.ServerAPI)
			api.Version = "1" // it must be set
			client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: rec.Monitor(), ServerAPI: &api})
			client.Database("d").Collection("c").FindOne(t.Context(), bson.D{})
			return rec.Of("find")[0].Body
		}, map[string]string{"Version": "apiVersion", "Strict": "apiStrict", "DeprecationErrors": "apiDeprecationErrors"}},
	} {
		t.Run(name, func(t *testing.T) {
			keys := func(doc bson.Raw) map[string]bson.RawValue {
				all := map[string]bson.RawValue{}
				for key, v := range doc.All() {
					all[strings.Clone(key)] = v
				}
				return all
			}
			base := keys(sends.sent(t, reflect.New(sends.of).Elem()))
			for i := range sends.of.NumField() {
				f := sends.of.Field(i)
				v := reflect.New(sends.of).Elem()
				var want any = "sample"
				switch v.Field(i).Kind() {
				case reflect.Pointer:
					v.Field(i).Set(reflect.New(f.Type.Elem()))
					want = v.Field(i).Elem().Interface()
				case reflect.Int:
					v.Field(i).SetInt(3)
					want = 3
				case reflect.String:
					v.Field(i).SetString("sample")
				case reflect.Interface:
					want = bson.D{{Key: "x", Value: 1}}
					v.Field(i).Set(reflect.ValueOf(want))
				default:
					t.Fatalf("%s may be false or 0, and nobody can say so: it must be a pointer", f.Name)
				}
				key, ok := sends.keys[f.Name]
				if !ok {
					key = keyOf(f.Name)
				}
				switch {
				case key == "apiVersion":
					want = "1"
				case f.Type == reflect.TypeFor[*time.Duration]():
					want = 0
				}
				got := keys(sends.sent(t, v))
				if got[key].IsZero() || bson.Compare(got[key], rig.Must(bson.MarshalValue(want))) != 0 {
					t.Errorf("%s: %s is %v, want %v", f.Name, key, got[key], want)
				}
				delete(got, key)
				for k := range got {
					if _, ok := base[k]; !ok {
						t.Errorf("%s: sends %s, too", f.Name, k)
					}
				}
			}
		})
	}
}

// TestMaxTimeZero: a MaxTime of 0 is none, and sends nothing; the longest that there is goes as the
// longest that servers take, which lifts a limit of their own as zero would.
func TestMaxTimeZero(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	rig.Must(coll.InsertOne(ctx, bson.D{}))
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	runs := map[string]func(d time.Duration) error{
		"find": func(d time.Duration) error {
			return rig.ErrorOf(coll.Find(ctx, bson.D{}, allium.FindOptions{MaxTime: d}))
		},
		"find, one": func(d time.Duration) error {
			return rig.ErrorOf(coll.FindOne(ctx, bson.D{}, allium.FindOneOptions{MaxTime: d}))
		},
		"findAndModify": func(d time.Duration) error {
			return rig.ErrorOf(coll.FindOneAndUpdate(ctx, bson.D{}, set, allium.FindOneAndUpdateOptions{MaxTime: d}))
		},
		"aggregate": func(d time.Duration) error {
			return rig.ErrorOf(coll.Aggregate(ctx, bson.A{}, allium.AggregateOptions{MaxTime: d}))
		},
		"count": func(d time.Duration) error {
			return rig.ErrorOf(coll.EstimatedDocumentCount(ctx, allium.EstimatedCountOptions{MaxTime: d}))
		},
		"distinct": func(d time.Duration) error {
			return rig.ErrorOf(allium.Distinct[any](ctx, coll, "x", bson.D{}, allium.DistinctOptions{MaxTime: d}))
		},
		"createIndexes": func(d time.Duration) error {
			return rig.ErrorOf(coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}}, allium.CreateIndexOptions{MaxTime: d}))
		},
	}
	for name, run := range runs {
		command, _, _ := strings.Cut(name, ",")
		for d, want := range map[time.Duration]string{0: "", 1: "1", time.Second: "1000", math.MaxInt64: "2147483647"} {
			rec.Reset()
			// A millisecond may be over before the server has done it (MaxTimeMSExpired, 50).
			if err := run(d); err != nil && !(want == "1" && mongoerr.HasCode(err, 50)) {
				t.Errorf("%s, %v: %v", name, d, err)
				continue
			}
			v := rec.Of(command)[0].Body.Lookup("maxTimeMS")
			if v.IsZero() != (want == "") || want != "" && v.String() != want {
				t.Errorf("%s, %v: maxTimeMS is %s, want %q", name, d, v, want)
			}
		}
	}
}
