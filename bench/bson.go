package bench

import (
	"fmt"
	"reflect"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium/bson"
)

// The ratios that Allium aims at.
const (
	targetStructDecode = 4
	targetStructEncode = 3
	targetDocDecode    = 3
	targetDocEncode    = 2
	targetExtJSON      = 3
)

// bsonScale is how many documents the specification's iteration encodes or decodes.
const bsonScale = 10_000

// bsonTasks are the specification's BSON benchmarks (flat, deep and full documents) for every form
// that a document can take in Go, and the same with a realistic struct.
func bsonTasks(*Env) ([]Task, error) {
	files, err := readArchive("extended_bson.tgz")
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, name := range []string{"flat", "deep", "full"} {
		json := files[name+"_bson.json"]
		var d official.D
		if err := official.UnmarshalExtJSON(json, true, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		data, err := official.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		// The specification counts the size of the source file; so does this.
		t, err := documentTasks("bson/"+name, len(json), data)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t...)
		switch name {
		case "flat":
			// The struct has the document's keys, all of them: reflection makes it, since the keys
			// are random.
			t, err = structTasks("bson/flat", len(json), data, reflect.New(structOf(d, false)).Interface(),
				reflect.New(structOf(d, true)).Interface())
		case "deep":
			t, err = structTasks("bson/deep", len(json), data, new(tree), new(tree))
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t...)
	}
	o := sampleOrder(official.NewObjectID(), official.NewObjectID())
	data, err := official.Marshal(o)
	if err != nil {
		return nil, err
	}
	t, err := structTasks("bson/order", len(data), data, new(order[bson.ObjectID]), new(order[official.ObjectID]))
	if err != nil {
		return nil, err
	}
	tasks = append(tasks, t...)
	t, err = documentTasks("bson/order", len(data), data)
	tasks = append(tasks, t...)
	for i := range tasks {
		tasks[i].Scale = bsonScale
	}
	return tasks, err
}

// documentTasks are the tasks for a document without a struct.
func documentTasks(name string, size int, data []byte) ([]Task, error) {
	var d bson.D
	var m bson.M
	var od official.D
	var om official.M
	for _, err := range []error{
		bson.Unmarshal(data, &d), bson.Unmarshal(data, &m), official.Unmarshal(data, &od),
		official.Unmarshal(data, &om),
	} {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	text, err := official.MarshalExtJSON(od, true, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// In interfaces from the start: what the caller allocates for that is not the drivers'.
	var anyD, anyM, anyRaw, officialD, officialM, officialRaw any = d, m, bson.Raw(data), od, om, official.Raw(data)
	return []Task{
		{Name: name + "/decode D", Bytes: size, Target: targetDocDecode,
			Allium:   repeat(func() error { var d bson.D; return bson.Unmarshal(data, &d) }),
			Official: repeat(func() error { var d official.D; return official.Unmarshal(data, &d) })},
		{Name: name + "/decode M", Bytes: size, Target: targetDocDecode,
			Allium:   repeat(func() error { var m bson.M; return bson.Unmarshal(data, &m) }),
			Official: repeat(func() error { var m official.M; return official.Unmarshal(data, &m) })},
		{Name: name + "/decode Raw", Bytes: size,
			Allium:   repeat(func() error { var r bson.Raw; return bson.Unmarshal(data, &r) }),
			Official: repeat(func() error { var r official.Raw; return official.Unmarshal(data, &r) })},
		{Name: name + "/write Extended JSON", Bytes: size, Target: targetExtJSON,
			Allium:   repeat(func() error { _, err := bson.MarshalExtJSON(anyD, true); return err }),
			Official: repeat(func() error { _, err := official.MarshalExtJSON(officialD, true, false); return err })},
		{Name: name + "/write relaxed Extended JSON", Bytes: size, Target: targetExtJSON,
			Allium:   repeat(func() error { _, err := bson.MarshalExtJSON(anyD, false); return err }),
			Official: repeat(func() error { _, err := official.MarshalExtJSON(officialD, false, false); return err })},
		{Name: name + "/read Extended JSON into D", Bytes: size, Target: targetExtJSON,
			Allium:   repeat(func() error { var d bson.D; return bson.UnmarshalExtJSON(text, &d) }),
			Official: repeat(func() error { var d official.D; return official.UnmarshalExtJSON(text, true, &d) })},
		{Name: name + "/encode D", Bytes: size, Target: targetDocEncode,
			Allium:   repeat(func() error { _, err := bson.Marshal(anyD); return err }),
			Official: repeat(func() error { _, err := official.Marshal(officialD); return err })},
		{Name: name + "/encode M", Bytes: size, Target: targetDocEncode,
			Allium:   repeat(func() error { _, err := bson.Marshal(anyM); return err }),
			Official: repeat(func() error { _, err := official.Marshal(officialM); return err })},
		{Name: name + "/encode Raw", Bytes: size,
			Allium:   repeat(func() error { _, err := bson.Marshal(anyRaw); return err }),
			Official: repeat(func() error { _, err := official.Marshal(officialRaw); return err })},
	}, nil
}

// structTasks are the tasks for a struct; ours and theirs are pointers to its two variants.
func structTasks(name string, size int, data []byte, ours, theirs any) ([]Task, error) {
	for _, err := range []error{bson.Unmarshal(data, ours), official.Unmarshal(data, theirs)} {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	ourType, theirType := reflect.TypeOf(ours).Elem(), reflect.TypeOf(theirs).Elem()
	return []Task{
		{Name: name + "/decode struct", Bytes: size, Target: targetStructDecode,
			Allium:   repeat(func() error { return bson.Unmarshal(data, reflect.New(ourType).Interface()) }),
			Official: repeat(func() error { return official.Unmarshal(data, reflect.New(theirType).Interface()) })},
		{Name: name + "/encode struct", Bytes: size, Target: targetStructEncode,
			Allium:   repeat(func() error { _, err := bson.Marshal(ours); return err }),
			Official: repeat(func() error { _, err := official.Marshal(theirs); return err })},
	}, nil
}

// structOf returns a struct type with a field for each key of d.
func structOf(d official.D, theirs bool) reflect.Type {
	var fields []reflect.StructField
	for i, e := range d {
		t := reflect.TypeOf(e.Value)
		if _, ok := e.Value.(official.ObjectID); ok && !theirs {
			t = reflect.TypeFor[bson.ObjectID]()
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: t, Tag: reflect.StructTag(fmt.Sprintf("bson:%q", e.Key)),
		})
	}
	return reflect.StructOf(fields)
}
