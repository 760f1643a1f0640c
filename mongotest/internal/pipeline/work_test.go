package pipeline

import (
	"errors"
	goruntime "runtime"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

// unending are stages that make much of one document {a: [...]}, of which the source has few.
var unending = []string{
	`[{"$unwind":"$a"},{"$match":{"a":-1}}]`,
	`[{"$unwind":"$a"},{"$group":{"_id":null,"n":{"$sum":1}}}]`,
	`[{"$unwind":"$a"},{"$sort":{"a":1}}]`,
	`[{"$unwind":"$a"},{"$skip":1000000000}]`,
	`[{"$unwind":"$a"},{"$count":"n"}]`,
	`[{"$facet":{"f":[{"$unwind":"$a"},{"$match":{"a":-1}}]}}]`,
	`[{"$lookup":{"from":"c","let":{},"pipeline":[{"$unwind":"$a"},{"$match":{"a":-1}}],"as":"l"}}]`,
	`[{"$unionWith":{"coll":"c","pipeline":[{"$unwind":"$a"},{"$match":{"a":-1}}]}},{"$match":{"x":1}}]`,
	`[{"$unwind":"$a"},{"$bucketAuto":{"groupBy":"$a","buckets":2}}]`,
	`[{"$unwind":"$a"},{"$bucket":{"groupBy":"$a","boundaries":[0,1],"default":2}}]`,
	`[{"$unwind":"$a"},{"$sample":{"size":2}}]`,
	`[{"$unwind":"$a"},{"$setWindowFields":{"sortBy":{"a":1},"output":{"s":{"$sum":"$a","window":{"documents":[-1,1]}}}}}]`,
	`[{"$densify":{"field":"n","range":{"step":1,"bounds":[0,400000]}}}]`,
	`[{"$set":{"x":{"$map":{"input":"$a","in":{"$size":{"$filter":{"input":"$a","cond":true}}}}}}}]`,
	`[{"$set":{"x":{"$reduce":{"input":"$a","initialValue":[],"in":{"$concatArrays":["$$value",["$$this"]]}}}}}]`,
	`[{"$set":{"x":{"$map":{"input":"$a","in":{"$in":[-1,"$a"]}}}}}]`,
	`[{"$set":{"x":{"$map":{"input":"$a","in":{"$size":{"$range":[0,1000]}}}}}}]`,
	`[{"$match":{"$expr":{"$eq":[1,{"$size":{"$map":{"input":"$a","in":{"$indexOfArray":["$a",-1]}}}}]}}}]`,
	`[{"$set":{"x":{"$map":{"input":"$a","in":{"$size":{"$setIntersection":["$a",[1]]}}}}}}]`,
	`[{"$set":{"x":{"$size":{"$setUnion":[{"$reverseArray":"$a"}]}}}}]`,
	`[{"$set":{"x":{"$sortArray":{"input":"$a","sortBy":-1}}}}]`,
	`[{"$set":{"x":{"$regexMatch":{"input":{"$reduce":{"input":{"$range":[0,30]},"initialValue":"","in":{"$concat":["$$value","a"]}}},"regex":"(a+)+b"}}}}]`,
	`[{"$set":{"x":{"$regexFindAll":{"input":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","regex":"(a+)+b"}}}}]`,
	`[{"$match":{"a":{"$in":[-1,-2]}}}]`,
	`[{"$set":{"x":1}},{"$match":{"a":{"$lt":-1}}}]`,
	`[{"$redact":{"$cond":[{"$eq":[1,{"$size":{"$map":{"input":"$a","in":{"$setUnion":["$a","$a"]}}}}]},"$$KEEP","$$PRUNE"]}}]`,
}

func manyItems(n int) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendInt32(bson.AppendInt32(dst, "_id", 1), "n", 1)
	array, dst := bson.BeginArrayElement(dst, "a")
	for i := range n {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeInt32, i), bson.AppendInt32Value(nil, int32(i))...)
	}
	return bson.EndDocument(bson.EndDocument(dst, array), start)
}

func TestInterrupt(t *testing.T) {
	ended := errors.New("ended")
	doc := manyItems(20_000)
	for _, text := range unending {
		t.Run(text, func(t *testing.T) {
			m := newMemory()
			ns := Namespace{"test", "c"}
			m.colls[ns] = []bson.Raw{doc}
			stages, err := StagesOf(parseDoc(t, `{"p":`+text+`}`).Lookup("p"))
			if err != nil {
				t.Fatal(err)
			}
			looks := 0
			check := func() error {
				if looks++; looks > 3 {
					return ended
				}
				return nil
			}
			if _, err := m.run(stages, &Options{Env: m, NS: ns, Version: expr.Version{Major: 8}, Check: check}); err != ended {
				t.Errorf("%v after %d looks", err, looks)
			}
			if looks > 4 {
				t.Errorf("looked %d times, and went on after the error", looks)
			}
		})
	}
}

// TestUnwindSize counts the bytes that $unwind allocates for each item: they do not depend on how
// many there are.
func TestUnwindSize(t *testing.T) {
	for _, path := range []string{"$a", "$d.a"} {
		perItem := func(n int) uint64 {
			doc := manyItems(n)
			if path == "$d.a" {
				start, dst := bson.BeginDocument(nil)
				doc = bson.EndDocument(bson.AppendDocument(dst, "d", doc), start)
			}
			stages, err := StagesOf(parseDoc(t, `{"p":[{"$unwind":{"path":"`+path+`","includeArrayIndex":"i"}}]}`).Lookup("p"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(stages, &Options{Version: expr.Version{Major: 8}, NS: Namespace{"test", "c"}})
			if err != nil {
				t.Fatal(err)
			}
			it, err := p.Run(FromSlice([]bson.Raw{doc}))
			if err != nil {
				t.Fatal(err)
			}
			it.Next()
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			for range 100 {
				if doc, err := it.Next(); doc == nil || err != nil {
					t.Fatal(doc, err)
				}
			}
			goruntime.ReadMemStats(&after)
			return (after.TotalAlloc - before.TotalAlloc) / 100
		}
		if small, large := perItem(200), perItem(100_000); large > 2*small+1000 {
			t.Errorf("%s: %d bytes for each of 200 items, %d of 100,000", path, small, large)
		}
	}
}

func TestMemoryLimits(t *testing.T) {
	norace.Skip(t, "it fills memory limits of 100 MB, on one goroutine")
	big := strings.Repeat("x", 1<<20)
	row := func(i int) bson.Raw {
		start, dst := bson.BeginDocument(nil)
		return bson.EndDocument(bson.AppendString(bson.AppendInt32(dst, "_id", int32(i)), "s", big), start)
	}
	for _, c := range []struct {
		stages string
		disk   bool
		code   int32
		text   string
	}{
		{`[{"$sort":{"_id":-1}}]`, false, srverr.QueryExceededMemoryLimitNoDiskUseAllowed, "PlanExecutor error during aggregation :: caused by :: Sort exceeded memory limit of 104857600 bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in."},
		{`[{"$sort":{"_id":-1}},{"$limit":3}]`, false, 0, ""},
		{`[{"$sort":{"_id":-1}},{"$limit":110}]`, false, srverr.QueryExceededMemoryLimitNoDiskUseAllowed, "PlanExecutor error during aggregation :: caused by :: Sort exceeded memory limit of 104857600 bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in."},
		{`[{"$group":{"_id":{"$concat":["$s",{"$toString":"$_id"}]}}}]`, false, srverr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in."},
		{`[{"$group":{"_id":{"$concat":["$s",{"$toString":"$_id"}]}}}]`, true, 0, ""},
		{`[{"$group":{"_id":{"$mod":["$_id",2]},"a":{"$push":"$s"}}}]`, false, srverr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in."},
		{`[{"$limit":1},{"$lookup":{"from":"c","as":"l","let":{},"pipeline":[]}}]`, false, 4568, "Total size of documents in c matching pipeline's $lookup stage exceeds 104857600 bytes"},
	} {
		m := newMemory()
		ns := Namespace{"test", "c"}
		for i := range 120 {
			m.colls[ns] = append(m.colls[ns], row(i))
		}
		stages, err := StagesOf(parseDoc(t, `{"p":`+c.stages+`}`).Lookup("p"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.run(stages, &Options{Env: m, NS: ns, Version: expr.Version{Major: 4, Minor: 4}, AllowDiskUse: c.disk})
		var code int32
		var text string
		if err != nil {
			e := srverr.From(err)
			code, text = e.Code, e.Msg
		}
		if code != c.code || text != c.text {
			t.Errorf("%s: %d %s", c.stages, code, text)
		}
	}
}
