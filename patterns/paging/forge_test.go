package paging

import (
	"allium"
	"allium/bson"
)

// Forge returns tokens that somebody could make who knows what they are made of, and does not
// follow: for the query with a filter, out of a token of another one.
func Forge[T any](token string, coll *allium.Collection[T], filter any, o Options) map[string]string {
	q, err := newQuery(coll, filter, o)
	if err != nil {
		panic(err)
	}
	from, err := encoding.DecodeString(token)
	if err != nil {
		panic(err)
	}
	make := func(flags byte, hash []byte, body []byte) string {
		b := append([]byte{versionPlain, flags}, hash...)
		return encoding.EncodeToString(append(b, body...))
	}
	doc := from[2+hashSize:]
	one := func(vs ...any) []byte {
		d := bson.D{}
		for _, v := range vs {
			d = append(d, bson.E{Key: "", Value: v})
		}
		b, err := bson.Marshal(d)
		if err != nil {
			panic(err)
		}
		return b
	}
	return map[string]string{
		"elsewhere":      make(0, q.hash[:], doc),
		"flags":          make(128, q.hash[:], one(5, 1)),
		"no document":    make(0, q.hash[:], nil),
		"a cut document": make(0, q.hash[:], one(5, 1)[:9]),
		"one key":        make(0, q.hash[:], one(5)),
		"three keys":     make(0, q.hash[:], one(5, 1, 1)),
		"an array":       make(0, q.hash[:], one(5, bson.A{1})),
		"text behind":    make(0, q.hash[:], append(one(5, 1), 0)),
		"version":        encoding.EncodeToString(append([]byte{9, 0}, q.hash[:]...)),
	}
}
