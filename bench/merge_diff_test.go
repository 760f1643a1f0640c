package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium/bson"
)

// letGo empties what the drivers differ in: with the official one a pointer in an interface
// survives a null, and the interfaces that were in a slice before count.
func letGo(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && v.Elem().Kind() == reflect.Pointer {
			v.SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				letGo(f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Interface {
			v.SetZero()
		}
		for i := range v.Len() {
			letGo(v.Index(i))
		}
	}
}

// TestMergingAgrees decodes into variables that already have a value, and encodes values that have
// no address.
func TestMergingAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range targets() {
		t.Run(typ.String(), func(t *testing.T) {
			for range 300 {
				src := reflect.New(typ)
				fill(r, src.Elem(), 0)
				data, err := official.Marshal(src.Interface())
				if err != nil {
					continue
				}
				byValue, err := bson.Marshal(src.Elem().Interface())
				if err != nil || !bytes.Equal(byValue, data) {
					t.Fatalf("encode %+v:\nAllium:   %v %v\nofficial: %v", src.Elem(), bson.Raw(byValue), err, official.Raw(data))
				}
				seed := r.Uint64()
				ours, theirs := reflect.New(typ), reflect.New(typ)
				fill(rand.New(rand.NewPCG(seed, 1)), ours.Elem(), 0)
				fill(rand.New(rand.NewPCG(seed, 1)), theirs.Elem(), 0)
				letGo(ours.Elem())
				letGo(theirs.Elem())
				before := fmt.Sprintf("%+v", plain(ours.Elem()))
				gotErr, wantErr := bson.Unmarshal(data, ours.Interface()), official.Unmarshal(data, theirs.Interface())
				if (gotErr == nil) != (wantErr == nil) {
					t.Fatalf("decode %v into %s:\nAllium:   %v\nofficial: %v", bson.Raw(data), before, gotErr, wantErr)
				}
				if gotErr != nil {
					continue
				}
				if a, b := fmt.Sprintf("%+v", plain(ours.Elem())), fmt.Sprintf("%+v", plain(theirs.Elem())); a != b {
					t.Fatalf("decode %v into %s:\nAllium:   %s\nofficial: %s", bson.Raw(data), before, a, b)
				}
			}
		})
	}
}
