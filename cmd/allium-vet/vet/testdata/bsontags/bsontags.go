package bsontags

import "time"

type bad struct {
	A    int       `bson:"a,omitemtpy"`  // want `unknown option "omitemtpy" in the tag: omitempty is meant`
	B    int       `bson:"b, omitempty"` // want `unknown option " omitempty"`
	C    int       `bson:"x"`
	D    int       `bson:"x"`         // want `C and D have the same key "x"`
	E    string    `bson:"omitempty"` // want "the field is stored as \"omitempty\": an option stands behind a comma"
	F    []string  `bson:",inline"`   // want `inline is for structs, pointers to structs and maps, not for \[\]string`
	K    []string  `bson:"inline"`    // want `inline is for structs, pointers to structs and maps, not for \[\]string`
	g    int       `bson:"g"`         // want `the tag of g does nothing`
	I    int       `bson:"i "`        // want `with the blank`
	ID   int       `bson:"_id"`
	Path string    `bson:"a.b"`     // want `"a.b" cannot be the key of a field in a stored document`
	Time time.Time `bson:",inlien"` // want `inline is meant`
}

type base struct{ X int }

type good[T any] struct {
	base   `bson:",inline"`
	*other `bson:",inline"`
	third  `bson:"inline"`
	Rest   map[string]any `bson:",inline"`
	Any    T              `bson:",inline"`
	A      int            `bson:"a,omitempty,minsize" json:"a"`
	B      int            `bson:"-"`
	c      int
	D      int `json:"d"`
	E      int `bson:"e,index"` // of another library
}

type other struct{ Y int }

type third struct{ Z int }

type update struct {
	Set   any    `bson:"$set"`
	Price string `bson:"lines.price"`
}

type own struct {
	a int `bson:"a"`
}

func (own) MarshalBSON() ([]byte, error) { return nil, nil }
