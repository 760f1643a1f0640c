package bson_test

import (
	"fmt"
	"math/big"
	"reflect"
	"testing"
	"time"

	"allium/bson"
)

type shapeBase struct {
	Created time.Time `bson:"created_at"`
}

type shaped struct {
	ID         int `bson:"_id"`
	Name       string
	*shapeBase `bson:",inline"`
	Left       int            `bson:"-"`
	Extra      map[string]any `bson:",inline"`
}

type namedBytes []byte

type ownForm struct{ A int }

func (ownForm) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

func TestShapeOf(t *testing.T) {
	for _, c := range []struct {
		t    reflect.Type
		kind bson.ShapeKind
	}{
		{reflect.TypeFor[int](), bson.ShapeValue}, {reflect.TypeFor[string](), bson.ShapeValue}, {reflect.TypeFor[time.Time](), bson.ShapeValue},
		{reflect.TypeFor[bson.ObjectID](), bson.ShapeValue}, {reflect.TypeFor[bson.D](), bson.ShapeValue}, {reflect.TypeFor[bson.Raw](), bson.ShapeValue},
		{reflect.TypeFor[[]byte](), bson.ShapeValue}, {reflect.TypeFor[namedBytes](), bson.ShapeValue}, {reflect.TypeFor[[4]byte](), bson.ShapeValue},
		{reflect.TypeFor[big.Int](), bson.ShapeValue}, {reflect.TypeFor[ownForm](), bson.ShapeValue}, {reflect.TypeFor[any](), bson.ShapeValue},
		{reflect.TypeFor[chan int](), bson.ShapeValue}, {reflect.TypeFor[bson.DBRef](), bson.ShapeValue},
		{reflect.TypeFor[bson.M](), bson.ShapeMap}, {reflect.TypeFor[map[string]any](), bson.ShapeMap}, {reflect.TypeFor[map[int]string](), bson.ShapeMap},
		{reflect.TypeFor[bson.A](), bson.ShapeList}, {reflect.TypeFor[[]any](), bson.ShapeList}, {reflect.TypeFor[[]string](), bson.ShapeList},
		{reflect.TypeFor[[]shaped](), bson.ShapeList}, {reflect.TypeFor[[2]int](), bson.ShapeList},
		{reflect.TypeFor[*int](), bson.ShapePointer}, {reflect.TypeFor[shaped](), bson.ShapeStruct},
	} {
		s, err := bson.ShapeOf(c.t)
		if err != nil || s.Kind != c.kind {
			t.Errorf("%s: kind %d, %v, want %d", c.t, s.Kind, err, c.kind)
		}
	}
	s, err := bson.ShapeOf(reflect.TypeFor[shaped]())
	if got, want := fmt.Sprint(s.Fields), "[{_id [0] int false false} {name [1] string false false} {created_at [2 0] time.Time false true} { [4] map[string]interface {} true false}]"; got != want || err != nil {
		t.Errorf("fields %s, %v, want %s", got, err, want)
	}
	if _, err := bson.ShapeOf(reflect.TypeFor[struct {
		A int `bson:"k"`
		B int `bson:"k"`
	}]()); err == nil {
		t.Error("a key is there twice, and there is no error")
	}
}

// TestShapeOfOptions: options say what tags and codecs count.
func TestShapeOfOptions(t *testing.T) {
	type inner struct{ A int }
	type doc struct {
		In inner `json:"in_json"`
	}
	encode := func(dst []byte, v inner) (bson.Type, []byte, error) { return bson.TypeNull, dst, nil }
	codecs, err := bson.NewCodecs(bson.CodecFor(encode, nil))
	if err != nil {
		t.Fatal(err)
	}
	o := bson.Options{JSONTags: true, Codecs: codecs}
	if s, err := o.ShapeOf(reflect.TypeFor[doc]()); err != nil || s.Fields[0].Key != "in_json" {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := o.ShapeOf(reflect.TypeFor[inner]()); err != nil || s.Kind != bson.ShapeValue {
		t.Errorf("with a codec: %v, %v", s, err)
	}
	if s, err := bson.ShapeOf(reflect.TypeFor[inner]()); err != nil || s.Kind != bson.ShapeStruct {
		t.Errorf("without: %v, %v", s, err)
	}
}
