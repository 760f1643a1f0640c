package bson

// E is one element of a D: a key and its value.
type E struct {
	Key   string
	Value any
}

// D is an ordered BSON document. Use it where the order of the keys matters, as in commands and
// sort specifications, and where no struct fits.
//
//	bson.D{{Key: "age", Value: -1}, {Key: "name", Value: 1}}
type D []E

// M is a BSON document without an order of its own.
//
//	bson.M{"name": "Ada"}
type M map[string]any

// A is a BSON array.
type A []any

// Get returns the value of the first element with this key, and whether there is one.
func (d D) Get(key string) (any, bool) {
	for i := range d {
		if d[i].Key == key {
			return d[i].Value, true
		}
	}
	return nil, false
}
