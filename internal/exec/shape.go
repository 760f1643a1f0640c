package exec

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/wire"
)

// maxShape bounds the shape of a filter, in bytes.
const maxShape = 1000

// maxShapeDepth bounds how deep a shape goes. What is below is a value.
const maxShapeDepth = 16

// shapeOf returns the shape of a message's filter or pipeline (stats.SlowOperation.Shape): only the
// names of fields, and those operators and stages that are known here; a question mark stands for
// everything else. It is empty if the command has no filter.
func shapeOf(name string, msg []byte) string {
	m, err := wire.ParseMsg(msg)
	if err != nil {
		return ""
	}
	return shapeIn(name, &m)
}

// Shape is the shape of the filter or pipeline of a command as listeners see it.
func Shape(name string, cmd bson.Raw) string { return shapeIn(name, &wire.Msg{Body: cmd}) }

func shapeIn(name string, m *wire.Msg) string {
	var v bson.RawValue
	switch name {
	case "find":
		v = m.Body.Lookup("filter")
	case "count", "distinct", "findAndModify", "mapReduce":
		v = m.Body.Lookup("query")
	case "aggregate":
		if stages, ok := m.Body.Lookup("pipeline").Array(); ok {
			return pipelineShape(stages)
		}
	case "update":
		v = first(m, "updates").Lookup("q")
	case "delete":
		v = first(m, "deletes").Lookup("q")
	case "bulkWrite":
		v = first(m, "ops").Lookup("filter")
	case "explain":
		return "" // of another command, which the server does not say took long
	}
	filter, ok := v.Document()
	if !ok {
		return ""
	}
	s := shape{}
	s.filter(filter, 0)
	return s.String()
}

// first returns the first statement of a command, wherever its statements stand.
func first(m *wire.Msg, name string) bson.Raw {
	for _, s := range m.Sequences {
		if s.ID == name {
			doc, _, err := bson.ReadDocument(s.Docs)
			if err != nil {
				return nil
			}
			return doc
		}
	}
	doc, _ := m.Body.Lookup(name, "0").Document()
	return doc
}

// shape is a shape under construction.
type shape struct{ strings.Builder }

// full reports whether the shape is as long as it may become, and says so in it.
func (s *shape) full() bool {
	if s.Len() < maxShape {
		return false
	}
	if !strings.HasSuffix(s.String(), "...") {
		s.WriteString("...")
	}
	return true
}

// The operators of filters, by what they take. Others are not shown: a name that no server knows
// may be anything.
var (
	logical   = []string{"$and", "$or", "$nor"} // a list of filters
	nested    = []string{"$not", "$elemMatch"}  // operators, or a filter
	plainOnes = []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$mod",
		"$regex", "$options", "$all", "$size",
		"$expr", "$where", "$jsonSchema", "$text", "$comment", "$sampleRate", "$geoWithin", "$geoIntersects", "$near",
		"$nearSphere", "$maxDistance",
		"$minDistance", "$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear", "$within", "$geoNear"}
)

// stages are the stages of pipelines whose names are shown.
var stages = []string{"$addFields", "$bucket", "$bucketAuto", "$changeStream", "$changeStreamSplitLargeEvent",
	"$collStats", "$count", "$currentOp",
	"$densify", "$documents", "$facet", "$fill", "$geoNear", "$graphLookup", "$group", "$indexStats", "$limit",
	"$listLocalSessions",
	"$listSearchIndexes", "$listSessions", "$lookup", "$match", "$merge", "$out", "$planCacheStats", "$project",
	"$rankFusion", "$redact",
	"$replaceRoot", "$replaceWith", "$sample", "$scoreFusion", "$search", "$searchMeta", "$set", "$setWindowFields",
	"$shardedDataDistribution",
	"$skip", "$sort", "$sortByCount", "$unionWith", "$unset", "$unwind", "$vectorSearch"}

// filter appends the shape of a filter, or of the operators on one field.
func (s *shape) filter(doc bson.Raw, depth int) {
	s.WriteByte('{')
	n := 0
	for key, v := range doc.All() {
		operator := strings.HasPrefix(key, "$")
		if !operator && encrypted(v, depth) {
			continue
		}
		if n++; n > 1 {
			s.WriteString(", ")
		}
		if s.full() {
			break
		}
		s.field(key, v, operator, depth+1)
	}
	s.WriteByte('}')
}

// field appends one field or operator and what it is compared with.
func (s *shape) field(key string, v bson.RawValue, operator bool, depth int) {
	list, isList := v.Array()
	doc, isDoc := v.Document()
	switch {
	case depth > maxShapeDepth:
		s.WriteByte('?')
	case !operator:
		s.name(key)
		if isDoc && operators(doc) {
			s.filter(doc, depth)
		} else {
			s.WriteByte('?')
		}
	case slices.Contains(logical, key) && isList:
		s.name(key)
		s.alternatives(list, depth)
	case slices.Contains(nested, key) && isDoc:
		s.name(key)
		s.filter(doc, depth)
	case slices.Contains(logical, key), slices.Contains(nested, key), slices.Contains(plainOnes, key):
		s.name(key)
		s.WriteByte('?')
	default:
		s.WriteString("?")
	}
}

// name appends the name of a field. A line of a log stays one line.
func (s *shape) name(key string) {
	const longest = 100
	if len(key) > longest {
		key = strings.ToValidUTF8(key[:longest], "") + "..."
	}
	s.WriteString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, key) + ": ")
}

// alternatives appends the shapes of the filters in a list, each shape once.
func (s *shape) alternatives(list bson.Raw, depth int) {
	var seen []string
	for v := range list.Values() {
		one := shape{}
		if doc, ok := v.Document(); ok {
			one.filter(doc, depth)
		} else {
			one.WriteByte('?')
		}
		if !slices.Contains(seen, one.String()) {
			seen = append(seen, one.String())
		}
		if len(seen)*4 > maxShape {
			break
		}
	}
	s.WriteByte('[')
	for i, one := range seen {
		if i > 0 {
			s.WriteString(", ")
		}
		if s.full() {
			break
		}
		s.WriteString(one)
	}
	s.WriteByte(']')
}

// operators reports whether a document is one of operators, such as {$gt: 3}; otherwise it is a
// value.
func operators(doc bson.Raw) bool {
	for key := range doc.All() {
		return strings.HasPrefix(key, "$")
	}
	return false
}

// encrypted reports whether a value is encrypted, or compares with one that is.
func encrypted(v bson.RawValue, depth int) bool {
	if b, ok := v.Binary(); ok {
		return b.Subtype == bson.BinaryEncrypted
	}
	doc, ok := v.Document()
	if !ok {
		if doc, ok = v.Array(); !ok {
			return false
		}
	}
	if depth > maxShapeDepth {
		return true // who knows
	}
	for v := range doc.Values() {
		if encrypted(v, depth+1) {
			return true
		}
	}
	return false
}

// pipelineShape returns the names of a pipeline's stages, with the shapes of those that filter.
func pipelineShape(list bson.Raw) string {
	s := shape{}
	s.WriteByte('[')
	n := 0
	for v := range list.Values() {
		if n++; n > 1 {
			s.WriteString(", ")
		}
		if s.full() {
			break
		}
		stage, _ := v.Document()
		s.stage(stage)
	}
	s.WriteByte(']')
	return s.String()
}

func (s *shape) stage(stage bson.Raw) {
	for name, v := range stage.All() {
		filter, ok := v.Document()
		switch {
		case name == "$match" && ok:
			s.WriteString("{$match: ")
			s.filter(filter, 0)
			s.WriteByte('}')
		case slices.Contains(stages, name):
			s.WriteString(name)
		default:
			s.WriteByte('?')
		}
		return
	}
	s.WriteByte('?')
}
