package bench

import (
	"bytes"
	"reflect"
	"testing"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium/bson"
)

// typePair is a type of Allium's and the official driver's for the same thing.
type typePair struct{ ours, theirs reflect.Type }

func pairOf[Ours, Theirs any]() typePair {
	return typePair{reflect.TypeFor[Ours](), reflect.TypeFor[Theirs]()}
}

var typePairs = []typePair{
	pairOf[bson.ObjectID, official.ObjectID](), pairOf[bson.DateTime, official.DateTime](), pairOf[bson.Binary, official.Binary](),
	pairOf[bson.Timestamp, official.Timestamp](), pairOf[bson.Decimal128, official.Decimal128](), pairOf[bson.Regex, official.Regex](),
	pairOf[bson.JavaScript, official.JavaScript](), pairOf[bson.Symbol, official.Symbol](), pairOf[bson.DBPointer, official.DBPointer](),
	pairOf[bson.CodeWithScope, official.CodeWithScope](), pairOf[bson.Undefined, official.Undefined](), pairOf[bson.Null, official.Null](),
	pairOf[bson.MinKey, official.MinKey](), pairOf[bson.MaxKey, official.MaxKey](), pairOf[bson.Raw, official.Raw](),
	pairOf[bson.RawValue, official.RawValue](), pairOf[bson.D, official.D](), pairOf[bson.M, official.M](), pairOf[bson.A, official.A](),
}

// around makes the types that t can lie in.
func around(t reflect.Type) []reflect.Type {
	return []reflect.Type{t, reflect.PointerTo(t), reflect.SliceOf(t), reflect.MapOf(reflect.TypeFor[string](), t), reflect.ArrayOf(1, t)}
}

// typeConversions are the differences: what only one of the drivers takes. The key is the Go type
// and the BSON type.
var typeConversions = map[string]string{
	"bson.JavaScript/string":       "strings are taken for code, as for symbols",
	"bson.DateTime/64-bit integer": "as for time.Time",
	"bson.Symbol/binary":           "bytes are no symbol",
}

// TestTypesAgree decodes values of every BSON type into every type that the packages have for one,
// and encodes what came of it.
func TestTypesAgree(t *testing.T) {
	field := func(t reflect.Type) reflect.Type {
		return reflect.StructOf([]reflect.StructField{{Name: "V", Type: t, Tag: `bson:"v"`}})
	}
	nilIsNull := bson.Options{NilSliceAsNull: true, NilMapAsNull: true, NilBytesAsNull: true}
	for _, pair := range typePairs {
		theirs := around(pair.theirs)
		for i, our := range around(pair.ours) {
			for _, v := range values() {
				for _, inside := range []any{v.value, official.A{v.value}, official.D{{Key: "k", Value: v.value}}} {
					data, err := official.Marshal(official.D{{Key: "v", Value: inside}})
					if err != nil {
						t.Fatal(err)
					}
					got, want := reflect.New(field(our)), reflect.New(field(theirs[i]))
					gotErr, wantErr := bson.Unmarshal(data, got.Interface()), official.Unmarshal(data, want.Interface())
					if (gotErr == nil) != (wantErr == nil) {
						value := v.value
						if a, ok := value.(official.A); ok && len(a) > 0 {
							value = a[0]
						}
						bsonType, _, _ := official.MarshalValue(value)
						if typeConversions[pair.ours.String()+"/"+bson.Type(bsonType).String()] == "" {
							t.Errorf("decode %v into %s:\nAllium:   %v\nofficial: %v", bson.Raw(data), our, gotErr, wantErr)
						}
						continue
					}
					if gotErr != nil {
						continue
					}
					wantAgain, err := official.Marshal(want.Interface())
					if err != nil {
						continue // it cannot encode some of the zero values that null becomes
					}
					if again, err := nilIsNull.Marshal(got.Interface()); err != nil || !bytes.Equal(again, wantAgain) {
						t.Errorf("%v through %s:\nAllium:   %v, %v\nofficial: %v", bson.Raw(data), our, bson.Raw(again), err, official.Raw(wantAgain))
					}
				}
			}
		}
	}
}
