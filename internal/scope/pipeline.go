package scope

import (
	"bytes"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/command"
)

// passing are the stages that make documents of those which reach them, and of nothing else.
var passing = map[string]bool{
	"$addFields": true, "$bucket": true, "$bucketAuto": true, "$changeStreamSplitLargeEvent": true, "$count": true,
	"$densify": true, "$fill": true,
	"$group": true, "$limit": true, "$match": true, "$project": true, "$redact": true, "$replaceRoot": true,
	"$replaceWith": true, "$sample": true,
	"$set": true, "$setWindowFields": true, "$skip": true, "$sort": true, "$sortByCount": true, "$unset": true,
	"$unwind": true,
}

// aggregate returns the pipeline of a command kept within the scopes.
func (s *Set) aggregate(c *command.Aggregate) (any, error) {
	encoded, ok := c.Pipeline.(bson.RawValue)
	if !ok {
		return nil, refused("a pipeline of type %T", c.Pipeline) // the caller has encoded it
	}
	if c.SearchIndexes && keys(encoded.Value) == 1 {
		return encoded, nil // the definitions of indexes
	}
	docs, err := stagesOf(encoded.Value)
	if err != nil {
		return nil, err
	}
	p := pipeline{set: s, coll: c.Collection, collation: c.Collation}
	if last := len(docs) - 1; last >= 0 {
		if key, _ := first(docs[last]); key == "$out" || key == "$merge" {
			return nil, refused("%s writes documents that nobody has checked: %s", key, wayOut)
		}
	}
	if len(s.conditions) == 0 {
		return encoded, nil
	}
	p.meta = bytes.Contains(encoded.Value, []byte("SEARCH_META"))
	out, err := p.over(docs, c.Collection, s.conditions)
	return array(out), err
}

// pipeline is a pipeline on its way into the scopes.
type pipeline struct {
	set       *Set
	coll      string // of the command
	collation bson.Raw
	meta      bool // it names SEARCH_META, which counts all documents
}

// stagesOf returns the stages of a pipeline.
func stagesOf(p bson.Raw) ([]bson.Raw, error) {
	if err := wellFormed(p); err != nil {
		return nil, err
	}
	var out []bson.Raw
	for v := range p.Values() {
		doc, ok := v.Document()
		if !ok || v.Type != bson.TypeEmbeddedDocument {
			return nil, refused("a stage is a BSON %s, want a document", v.Type)
		}
		if n := keys(doc); n != 1 {
			return nil, refused("a stage has %d fields, want one", n)
		}
		out = append(out, doc)
	}
	return out, nil
}

// first returns the only element of a stage.
func first(stage bson.Raw) (string, bson.RawValue) {
	for key, v := range stage.All() {
		return key, v
	}
	return "", bson.RawValue{}
}

func array(docs []bson.Raw) bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	for i, d := range docs {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), d...)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
}

// document returns {key: v}.
func document(key string, v bson.RawValue) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendRawValue(dst, key, v), start)
}

func embedded(doc bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
}

// over returns the stages of a pipeline that reads a collection, none with coll empty, kept within
// conditions: their $match comes first, or where the first stage has to be another one, in or
// behind it.
func (p *pipeline) over(stages []bson.Raw, coll string, conditions []condition) ([]bson.Raw, error) {
	var out []bson.Raw
	name, operand := "", bson.RawValue{}
	if len(stages) > 0 {
		name, operand = first(stages[0])
	}
	doc, _ := operand.Document()
	rest := stages
	switch match := func(user bson.Raw) (bson.Raw, error) { return joined(conditions, user, p.collation) }; {
	case coll == "" && name != "$documents":
		return nil, refused("a pipeline on a database may begin with $documents alone: %s", wayOut)
	case coll == "" || len(conditions) == 0:
		if coll == "" {
			out, rest = append(out, stages[0]), stages[1:]
		}
	case name == "$match" && operand.Type == bson.TypeEmbeddedDocument: // a $text must stay in the first stage
		f, err := match(doc)
		if err != nil {
			return nil, err
		}
		out, rest = append(out, document(name, embedded(f))), stages[1:]
	case name == "$geoNear":
		q, _ := doc.Lookup("query").Document()
		if q == nil {
			q = empty()
		}
		f, err := match(q)
		if err != nil {
			return nil, err
		}
		out, rest = append(out, document(name, embedded(appendSet(nil, doc, []element{{"query", embedded(f)}})))),
			stages[1:]
	case name == "$search" || name == "$vectorSearch":
		if p.meta || doc.Lookup("returnStoredSource").AsBool() || !doc.Lookup("returnScope").IsZero() {
			return nil, refused(
				"%s would tell of other documents by returnStoredSource, returnScope or $$SEARCH_META: leave them out, or %s", name, wayOut)
		}
		f, err := match(empty())
		if err != nil {
			return nil, err
		}
		out, rest = append(out, stages[0], document("$match", embedded(f))), stages[1:]
	default:
		f, err := match(empty())
		if err != nil {
			return nil, err
		}
		out = append(out, document("$match", embedded(f)))
	}
	for _, stage := range rest {
		kept, err := p.stage(stage)
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	return out, nil
}

func empty() bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(dst, start)
}

// stage returns a stage behind the first kept within the scopes.
func (p *pipeline) stage(stage bson.Raw) (bson.Raw, error) {
	name, v := first(stage)
	if passing[name] {
		return stage, nil
	}
	doc, isDoc := v.Document()
	if isDoc && v.Type == bson.TypeEmbeddedDocument {
		seen := map[string]bool{}
		for key := range doc.All() {
			if seen[key] {
				return nil, refused("%s has %q twice", name, key)
			}
			seen[key] = true
		}
	}
	switch {
	case name == "$lookup" && isDoc:
		return p.lookup(name, doc, "from")
	case name == "$unionWith":
		if _, ok := v.StringValue(); ok {
			doc = document("coll", v)
		}
		return p.lookup(name, doc, "coll")
	case name == "$graphLookup" && isDoc:
		conditions, _, err := p.source(name, doc.Lookup("from"))
		if err != nil || len(conditions) == 0 {
			return stage, err
		}
		q, _ := doc.Lookup("restrictSearchWithMatch").Document()
		if q == nil {
			q = empty()
		}
		f, err := joined(conditions, q, p.collation)
		return document(name, embedded(appendSet(nil, doc, []element{{"restrictSearchWithMatch", embedded(f)}}))), err
	case name == "$facet" && isDoc:
		var fields []element
		for key, v := range doc.All() {
			arr, _ := v.Array()
			stages, err := stagesOf(arr)
			if err != nil {
				return nil, err
			}
			for i := range stages {
				if stages[i], err = p.stage(stages[i]); err != nil {
					return nil, err
				}
			}
			fields = append(fields, element{key, array(stages)})
		}
		return document(name, embedded(appendSet(nil, doc, fields))), nil
	case name == "$out" || name == "$merge":
		return nil, refused("%s writes documents that nobody has checked: %s", name, wayOut)
	}
	return nil, refused("the stage %s is none that is known to tell of the documents alone that reach it: %s", name,
		wayOut)
}

// lookup returns a stage that reads another collection, which field names, by a pipeline.
func (p *pipeline) lookup(name string, doc bson.Raw, field string) (bson.Raw, error) {
	conditions, coll, err := p.source(name, doc.Lookup(field))
	if err != nil {
		return nil, err
	}
	inner := doc.Lookup("pipeline")
	if inner.IsZero() && len(conditions) == 0 {
		return document(name, embedded(doc)), nil
	}
	arr, ok := inner.Array()
	if !inner.IsZero() && !ok {
		return nil, refused("the pipeline of %s is a BSON %s, want an array", name, inner.Type)
	}
	var stages []bson.Raw
	if !inner.IsZero() {
		if stages, err = stagesOf(arr); err != nil {
			return nil, err
		}
	}
	if stages, err = p.over(stages, coll, conditions); err != nil {
		return nil, err
	}
	return document(name, embedded(appendSet(nil, doc, []element{{"pipeline", array(stages)}}))), nil
}

// source returns the conditions for the documents of a collection that a stage names.
func (p *pipeline) source(stage string, v bson.RawValue) ([]condition, string, error) {
	if v.IsZero() {
		return nil, "", nil
	}
	name, ok := v.StringValue()
	if doc, isDoc := v.Document(); isDoc {
		db, _ := doc.Lookup("db").StringValue()
		coll, _ := doc.Lookup("coll").StringValue()
		name, ok = coll, coll != "" && keys(doc) == 2
		if db != p.set.db {
			name = db + "." + coll
		}
		if ok && db != p.set.db {
			for _, one := range p.set.list {
				if len(one.conditions) > 0 && !slices.Contains(one.shared, name) {
					return nil, "", refused(
						"%s reads the other database's collection %q: name it in Scope.Shared if everybody may read it",
						stage, name)
				}
			}
			return nil, name, nil
		}
	}
	if !ok || name == "" {
		return nil, "", refused("%s does not name its collection", stage)
	}
	conditions, err := p.set.readable(stage, p.coll, name)
	return conditions, name, err
}

// Watch keeps a change stream within the scopes. stages are its pipeline, nil for none; full says
// which documents its events have, and before whether they have them as they were. It returns the
// pipeline, and which documents the events must have.
func (s *Set) Watch(stages bson.Raw, full, before string, collation bson.Raw) (bson.Raw, string, error) {
	if len(s.conditions) == 0 {
		return stages, full, nil
	}
	switch full {
	case "":
		full = "updateLookup"
	case "default", "off":
		return nil, "", refused(
			"option FullDocument is %q: events of updates have no document then by which they are known", full)
	}
	in := func(field string) ([]bson.Raw, error) {
		own, err := filters(s.conditions, field+".", collation)
		typ, _ := bson.MarshalValue(bson.D{{Key: "$type", Value: "object"}})
		return append([]bson.Raw{document(field, typ)}, own...), err
	}
	is, err := in("fullDocument")
	if err != nil {
		return nil, "", err
	}
	was, _ := in("fullDocumentBeforeChange")
	null, _ := bson.MarshalValue(nil)
	text, _ := bson.MarshalValue("delete")
	ends, _ := bson.MarshalValue(bson.D{{Key: "$in", Value: bson.A{"drop", "rename", "dropDatabase", "invalidate"}}})
	is = append(is, list("$or", []bson.Raw{document("fullDocumentBeforeChange", null), and(was)}))
	any := []bson.Raw{document("operationType", ends), and(is),
		and(append([]bson.Raw{document("operationType", text)}, was...))}
	out := []bson.Raw{document("$match", embedded(list("$or", any)))}
	if stages != nil {
		docs, err := stagesOf(stages)
		if err != nil {
			return nil, "", err
		}
		p := pipeline{set: s, collation: collation}
		for _, d := range docs {
			if d, err = p.stage(d); err != nil {
				return nil, "", err
			}
			out = append(out, d)
		}
	}
	return array(out).Value, full, nil
}

// stages returns an update by a pipeline together with what the scopes set.
func (r *Run) stages(o *bson.Options, update bson.Raw, upsert bool, given map[string]bool) (bson.RawValue, error) {
	none := bson.RawValue{}
	docs, err := stagesOf(update)
	if err != nil {
		return none, err
	}
	changes, err := r.changes(o)
	if err != nil {
		return none, err
	}
	for _, c := range changes {
		stage, err := c.stage()
		if err != nil {
			return none, err
		}
		docs = append(docs, stage)
	}
	if upsert {
		fields, err := r.fieldsOf(o)
		if err != nil {
			return none, err
		}
		for _, e := range fields {
			if !slices.ContainsFunc(r.conditions, func(c condition) bool { return c.path == e.key && c.op == "$eq" }) {
				return none, refused("an upsert by a pipeline cannot set %q as Scope.OnInsert wants it: use operators",
					e.key)
			}
		}
	}
	for _, d := range docs {
		if err := r.changesBy(d, given); err != nil {
			return none, err
		}
	}
	return array(docs), nil
}

// stage returns the change as a stage of an update.
func (c *change) stage() (bson.Raw, error) {
	value, op := document("$literal", c.value), "$set"
	field := func(v any) bson.RawValue {
		out, _ := bson.MarshalValue(bson.D{{Key: c.path, Value: v}})
		return out
	}
	switch c.op {
	case "$set":
		return document(op, field(value)), nil
	case "$inc":
		return document(op, field(bson.D{{Key: "$add",
			Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$" + c.path, 0}}}, value}}})), nil
	case "$currentDate":
		if c.value.AsBool() {
			return document(op, field("$$NOW")), nil
		}
	case "$unset":
		path, _ := bson.MarshalValue(c.path)
		return document("$unset", path), nil
	}
	return nil, refused("an update by a pipeline cannot have the %s of %q of Scope.OnUpdate", c.op, c.path)
}

// changesBy checks a stage of an update.
func (s *Set) changesBy(stage bson.Raw, given map[string]bool) error {
	if len(s.conditions) == 0 {
		return nil
	}
	name, v := first(stage)
	doc, isDoc := v.Document()
	switch {
	case (name == "$set" || name == "$addFields") && isDoc && v.Type == bson.TypeEmbeddedDocument:
		return s.computes(name, "", doc, given)
	case name == "$unset":
		paths := []bson.RawValue{v}
		if arr, ok := v.Array(); ok {
			paths = slices.Collect(arr.Values())
		}
		for _, path := range paths {
			text, _ := path.StringValue()
			if err := s.allows(change{"$unset", text, v}, given); err != nil {
				return err
			}
		}
		return nil
	case name == "$project" && isDoc && v.Type == bson.TypeEmbeddedDocument:
		for path, v := range doc.All() {
			if v.Type != bson.TypeBoolean && !v.IsNumber() || v.AsBool() {
				return refused("$project of an update drops fields: use $unset with their names")
			}
			if err := s.allows(change{"$unset", path, v}, given); err != nil {
				return err
			}
		}
		return nil
	}
	return refused("%s in an update could move a document out of it: use $set and $unset, or %s", name, wayOut)
}

// computes checks the fields of a $set: expressions, or documents of fields.
func (s *Set) computes(stage, prefix string, fields bson.Raw, given map[string]bool) error {
	for key, v := range fields.All() {
		path := prefix + key
		for _, c := range s.conditions {
			if !c.overlaps(path) {
				continue
			}
			doc, isDoc := v.Document()
			isDoc = isDoc && v.Type == bson.TypeEmbeddedDocument
			text, isText := v.StringValue()
			value := v
			switch {
			case isDoc && operators(doc):
				if value = doc.Lookup("$literal"); value.IsZero() || keys(doc) != 1 || !c.set(path, value) {
					return moves(stage, c.path)
				}
				given[c.path] = true
			case isDoc && (doc.IsEmpty() || len(path) >= len(c.path)):
				return moves(stage, c.path)
			case isDoc: // its fields are set, the others stay
				if err := s.computes(stage, path+".", doc, given); err != nil {
					return err
				}
			case isText && strings.HasPrefix(text, "$"), !c.set(path, value):
				return moves(stage, c.path)
			default:
				given[c.path] = true
			}
		}
	}
	return nil
}
