package query

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/work"
)

// list returns an array of n items.
func list(n int, item func(i int) any) []any {
	l := make([]any, n)
	for i := range l {
		l[i] = item(i)
	}
	return l
}

// star is a polygon whose n vertices lie on a circle.
func star(n int) bson.Raw {
	ring := list(n, func(i int) any {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		return []any{10 * cos, 10 * sin}
	})
	return doc("type", "Polygon", "coordinates", []any{append(ring, ring[0])})
}

// zigzag is a line with n vertices.
func zigzag(n int, lat float64) bson.Raw {
	return doc("type", "LineString", "coordinates", list(n, func(i int) any { return []any{float64(i) * 170 / float64(n), lat + float64(i%2)} }))
}

// wide is a document with n fields.
func wide(n, sign int) bson.Raw {
	var parts []any
	for i := range n {
		parts = append(parts, strconv.Itoa(i*sign+n), i)
	}
	return doc(parts...)
}

// TestEnds leaves what takes long at the first look at the command: filters, updates and sorts look
// after a bounded number of steps.
func TestEnds(t *testing.T) {
	const many = 3000
	ints := list(many, func(i int) any { return many - i })
	words := list(many, func(i int) any { return strings.Repeat("a", 30) })
	docs := list(many, func(i int) any { return doc("x", i) })
	ended := errors.New("ended")
	apply := func(o *Options, old, update bson.Raw, filters ...bson.Raw) error {
		u, err := ParseUpdate(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: update}, &UpdateOptions{Options: *o, ArrayFilters: filters})
		if err != nil {
			return err
		}
		_, _, err = u.Apply(old, -1, Clock{})
		return err
	}
	match := func(o *Options, old, filter bson.Raw) error {
		f, err := ParseFilter(filter, o)
		if err != nil {
			return err
		}
		_, err = f.Match(old)
		return err
	}
	for name, run := range map[string]func(o *Options) error{
		"a regular expression": func(o *Options) error {
			return match(o, doc("a", strings.Repeat("a", 30)), doc("a", doc("$regex", "(a+)+b")))
		},
		"an array":              func(o *Options) error { return match(o, doc("a", ints), doc("a", -1)) },
		"an array of documents": func(o *Options) error { return match(o, doc("a", docs), doc("a.x", -1)) },
		"$elemMatch":            func(o *Options) error { return match(o, doc("a", docs), doc("a", doc("$elemMatch", doc("x", -1)))) },
		"regular expressions":   func(o *Options) error { return match(o, doc("a", words), doc("a", doc("$regex", "b$"))) },
		"a long $in":            func(o *Options) error { return match(o, doc("a", 1), doc("a", doc("$in", ints))) },
		"$all":                  func(o *Options) error { return match(o, doc("a", ints), doc("a", doc("$all", ints))) },
		"$push with $sort": func(o *Options) error {
			return apply(o, doc("a", ints), doc("$push", doc("a", doc("$each", []any{}, "$sort", 1))))
		},
		"$addToSet": func(o *Options) error {
			return apply(o, doc("a", ints), doc("$addToSet", doc("a", doc("$each", ints))))
		},
		"$pullAll": func(o *Options) error {
			return apply(o, doc("a", ints), doc("$pullAll", doc("a", list(many, func(i int) any { return -1 - i }))))
		},
		"$pull by a filter":  func(o *Options) error { return apply(o, doc("a", docs), doc("$pull", doc("a", doc("x", -1)))) },
		"$pull by operators": func(o *Options) error { return apply(o, doc("a", ints), doc("$pull", doc("a", doc("$gt", many+1)))) },
		"an array filter":    func(o *Options) error { return apply(o, doc("a", ints), doc("$set", doc("a.$[i]", 1)), doc("i", -1)) },
		"uniqueItems": func(o *Options) error {
			return match(o, doc("a", docs), doc("$jsonSchema", doc("properties", doc("a", doc("uniqueItems", true)))))
		},
		"documents with the same fields": func(o *Options) error {
			return match(o, doc("a", []any{wide(many, 1), wide(many, -1)}), doc("$jsonSchema", doc("properties", doc("a", doc("uniqueItems", true)))))
		},
		"a pattern": func(o *Options) error {
			return match(o, doc("a", strings.Repeat("a", 30)), doc("$jsonSchema", doc("properties", doc("a", doc("pattern", "(a+)+b")))))
		},
		"an enum": func(o *Options) error { return match(o, doc("a", 1), doc("$jsonSchema", doc("enum", docs))) },
		"a polygon": func(o *Options) error {
			return match(o, doc("a", star(200)), doc("a", doc("$geoIntersects", doc("$geometry", star(3)))))
		},
		"a region": func(o *Options) error {
			return match(o, doc("a", star(3)), doc("a", doc("$geoWithin", doc("$geometry", star(200)))))
		},
		"lines": func(o *Options) error {
			return match(o, doc("a", zigzag(200, 1)), doc("a", doc("$geoIntersects", doc("$geometry", zigzag(200, 5)))))
		},
		"what is near": func(o *Options) error {
			return match(o, doc("a", zigzag(many, 1)), doc("a", doc("$nearSphere", doc("$geometry", doc("type", "Point", "coordinates", []any{0, 0})))))
		},
		"a sort": func(o *Options) error {
			s, err := ParseSort(doc("x", 1), o)
			if err != nil {
				return err
			}
			var list []bson.Raw
			for i := range many {
				list = append(list, doc("x", many-i))
			}
			err = s.SortDocuments(list)
			if err == nil && !slices.IsSortedFunc(list, func(a, b bson.Raw) int { return bson.Compare(a.Lookup("x"), b.Lookup("x")) }) {
				t.Error("not sorted")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(&Options{}); err != nil {
				t.Fatalf("without an end: %v", err)
			}
			looks := 0
			o := &Options{Work: work.New(func() error { looks++; return ended })}
			if err := run(o); err != ended || looks != 1 {
				t.Errorf("%v after %d looks", err, looks)
			}
		})
	}
}
