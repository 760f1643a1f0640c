package bsoncore

import (
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

// TestTypes asks for the types of this version, where they are others than those of version 2.
func TestTypes(t *testing.T) {
	d, err := primitive.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	doc := NewDocumentBuilder().AppendDecimal128("d", d).AppendInt32("n", 7).StartDocument("s").AppendString("t", "x").FinishDocument().Build()
	if have := doc.Lookup("d").Decimal128(); have != d {
		t.Errorf("%v, want %v", have, d)
	}
	if v, err := doc.LookupErr("s", "t"); err != nil || v.Type != bsontype.String || v.StringValue() != "x" {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := doc.LookupErr("n", "t"); err != (InvalidDepthTraversalError{"n", bsontype.Int32}) {
		t.Errorf("%T: %v", err, err)
	}
	func() {
		defer func() {
			if r := recover(); r != (ElementTypeError{"bsoncore.Value.Double", bsontype.Int32}) {
				t.Errorf("panics with %#v", r)
			}
		}()
		doc.Lookup("n").Double()
	}()
}

// TestDocumentSequence reads the same documents in both styles, and broken ones.
func TestDocumentSequence(t *testing.T) {
	one, two := BuildDocument(nil, AppendInt32Element(nil, "a", 1)), BuildDocument(nil)
	list := append(append([]byte{}, one...), two...)
	array := BuildArray(nil, Value{bsontype.EmbeddedDocument, one}, Value{bsontype.EmbeddedDocument, two})
	for _, c := range []struct {
		style DocumentSequenceStyle
		data  []byte
		count int
		err   error
	}{
		{SequenceStyle, list, 2, nil},
		{ArrayStyle, array, 2, nil},
		{SequenceStyle, nil, 0, nil},
		{ArrayStyle, BuildArray(nil), 0, nil},
		{SequenceStyle, list[:len(list)-1], 0, ErrCorruptedDocument},
		{ArrayStyle, array[:len(array)-3], 0, ErrCorruptedDocument},
		{ArrayStyle, BuildArray(nil, Value{bsontype.Int32, []byte{1, 0, 0, 0}}), 0, ErrNonDocument},
		{0, list, 0, ErrInvalidDocumentSequenceStyle},
	} {
		ds := &DocumentSequence{Style: c.style, Data: c.data}
		docs, err := ds.Documents()
		if !errors.Is(err, c.err) || len(docs) != c.count || ds.DocumentCount() != c.count {
			t.Errorf("style %d, %d bytes: %d documents, %v", c.style, len(c.data), len(docs), err)
		}
		for range c.count {
			if _, err := ds.Next(); err != nil {
				t.Error(err)
			}
		}
		if _, err := ds.Next(); c.err == nil && err != io.EOF {
			t.Errorf("behind the last: %v", err)
		}
	}
}
