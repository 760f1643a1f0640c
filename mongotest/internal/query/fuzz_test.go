package query

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// seeds are pairs of things to parse and documents, as Extended JSON.
var seeds = [][2]string{
	{`{"a":{"$gt":1,"$in":[1,null,{"$regularExpression":{"pattern":"a","options":"i"}}]}}`, `{"a":[1,{"b":[]}]}`},
	{`{"$or":[{"a.b":{"$elemMatch":{"$ne":1}}},{"a":{"$all":[{"$elemMatch":{"x":1}}]}}]}`, `{"a":{"b":[[1],2]}}`},
	{`{"$jsonSchema":{"properties":{"a":{"type":"array","items":{"minimum":1}}},"required":["a"]}}`, `{"a":[1]}`},
	{`{"a":{"$bitsAllSet":[1,2],"$mod":[2,1],"$type":["int",2],"$size":1,"$exists":true}}`, `{"a":7}`},
	{`{"$set":{"a.0.b":1},"$push":{"c":{"$each":[1,2],"$sort":-1,"$slice":-2,"$position":0}}}`, `{"a":[{"b":1}],"c":[3]}`},
	{`{"$inc":{"a":{"$numberDecimal":"1.5"}},"$rename":{"b":"c.d"},"$unset":{"e":1},"$bit":{"f":{"or":1}}}`, `{"a":1,"b":2}`},
	{`{"$pull":{"a":{"$gt":1}},"$addToSet":{"b":{"$each":[1]}},"$pop":{"c":1},"$currentDate":{"d":true}}`, `{"a":[1,2],"c":[1]}`},
	{`{"a":1,"b.c":{"$slice":[1,2]},"d.$":1}`, `{"b":{"c":[1,2,3]},"d":[1]}`},
	{`{"a":{"$elemMatch":{"b":1}},"_id":0,"c":{"d":1,"e":{"f":1}}}`, `{"_id":1,"a":[{"b":1}],"c":[{"d":1}]}`},
	{`{"a":1,"b.c":-1,"d":{"$meta":"textScore"}}`, `{"a":[2,1],"b":[{"c":1}]}`},
	{`{"locale":"en","strength":1,"caseLevel":true}`, `{"a":"É"}`},
}

// Whatever is parsed and whatever it is applied to, nothing panics, what is made is well-formed, a
// filter and its negation exclude each other, and a document that matches is within the bounds of
// an index.
func FuzzQuery(f *testing.F) {
	for _, s := range seeds {
		spec, err := bson.ParseExtJSON([]byte(s[0]))
		if err != nil {
			f.Fatal(err)
		}
		d, err := bson.ParseExtJSON([]byte(s[1]))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(spec), []byte(d))
	}
	f.Fuzz(func(t *testing.T, spec, d []byte) {
		if bson.Raw(spec).Validate() != nil || bson.Raw(d).Validate() != nil {
			return
		}
		o := &Options{Expr: ExprParserFunc(parseExpr)}
		all, _ := ParseFilter(doc(), nil)
		o.Collation, _ = ParseCollation(v44, spec)
		if filter, err := ParseFilter(spec, o); err == nil {
			matches, matchErr := filter.Match(d)
			filter.Bounds("a.b", false, true)
			filter.Seed(false)
			all = filter
			if nor, err := ParseFilter(doc("$nor", []any{bson.Raw(spec)}), o); err == nil && matchErr == nil {
				if neither, err := nor.Match(d); err == nil && neither == matches {
					t.Errorf("%v and its $nor agree on %v", bson.Raw(spec), bson.Raw(d))
				}
			}
			if o.Collation == nil && matchErr == nil && matches {
				for _, path := range []string{"a", "b", "a.b"} {
					if _, err := checkBounds(filter, d, path); err != nil {
						t.Errorf("%v: %v", bson.Raw(spec), err)
					}
				}
			}
		}
		if u, err := ParseUpdate(bsondoc.DocumentValue(spec), &UpdateOptions{Options: *o}); err == nil {
			if out, _, err := u.Apply(d, 0, Clock{}); err == nil && out.Validate() != nil {
				t.Errorf("%v applied to %v makes %x", bson.Raw(spec), bson.Raw(d), []byte(out))
			}
		}
		if p, err := ParseProjection(spec, all, o); err == nil && p != nil {
			if out, err := p.Apply(d, func(string) bson.RawValue { return nullValue }); err == nil && out.Validate() != nil {
				t.Errorf("%v projects %v to %x", bson.Raw(spec), bson.Raw(d), []byte(out))
			}
		}
		if s, err := ParseSort(spec, o); err == nil && s != nil {
			s.Key(d, nil)
		}
	})
}
