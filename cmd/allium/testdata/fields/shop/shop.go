// Package shop has documents of many shapes, for the test of allium fields.
package shop

import (
	"math/big"
	"time"

	"allium/bson"
	"allium/cmd/allium/testdata/fields/geo"
)

// Order is a document.
type Order struct {
	ID     bson.ObjectID `bson:"_id,omitempty"`
	Ship   Address
	Bill   *Address `bson:"bill_to"`
	Nick   *string
	Deep   **int
	Lines  []Line
	Refs   []*Line `bson:"refs"`
	More   *[]Line
	Pair   [2]Line
	Tags   []string
	Prices map[string]float64
	Any    any
	When   time.Time
	Sum    big.Int
	Money  Money
	Own    Own
	base   `bson:",inline"`
	*Audit `bson:",inline"`
	Plain
	Next     *Order
	Box      geo.Box
	Skip     string `bson:"-"`
	private  string
	Dotted   int            `bson:"a.b"`
	Extra    map[string]any `bson:",inline"`
	ShipCity string         // has the name of Ship.City
	Anon     struct{ X, Y int }
}

// Address is a part of documents.
type Address struct {
	Street string
	City   string `bson:"town"`
	At     geo.Point
}

// Line is a part of documents, and has paths of its own.
type Line struct {
	SKU   string `bson:"sku"`
	Price float64
	Parts []Part
}

// Part is a part of documents.
type Part struct{ Name string }

type base struct {
	Created time.Time `bson:"created_at"`
}

// Audit is a part of documents.
type Audit struct{ By string }

// Plain is embedded and no part of the document around it.
type Plain struct{ Note string }

// Money encodes itself.
type Money struct{ Cents int64 }

// MarshalBSONValue encodes the amount as an integer.
func (m Money) MarshalBSONValue() (byte, []byte, error) {
	v, err := bson.MarshalValue(m.Cents)
	return byte(v.Type), v.Value, err
}

// Own has a tag and encodes itself: it is no document.
type Own struct {
	A int `bson:"a"`
}

// MarshalBSON encodes nothing.
func (*Own) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{}) }

// Untagged has no tag, and is not asked for.
type Untagged struct{ A int }

// Generic has instances alone.
type Generic[T any] struct {
	V T `bson:"v"`
}
