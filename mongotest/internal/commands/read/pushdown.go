package read

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/release"
)

// What of a pipeline the query in front of it does: the server hands it a $match, a $sort, a $limit
// and a $skip at the front, and which fields the rest of the pipeline reads.

// pushed is what a query does for a pipeline.
type pushed struct {
	filter, sort, projection bson.Raw
	// The $project that the query does, if it computes fields, and the paths that it reads, which
	// projection has.
	computed    bson.Raw
	paths       []string
	skip, limit int64
	distinct    string     // the field by whose values the pipeline groups, and nothing else
	first       bool       // of each group it takes the first document's values
	counts      bool       // nothing of the documents is read, they are only counted
	rest        []bson.Raw // the stages that are left
}

// pushDown splits a pipeline. whole tells that the documents are needed as they are: the shards'
// results are merged.
func pushDown(v release.Version, stages []bson.Raw, whole bool) (p pushed) {
	p.rest = stages
	take := func(name string) (spec bson.RawValue, ok bool) {
		if len(p.rest) == 0 {
			return spec, false
		}
		first, spec := bsondoc.FirstElement(p.rest[0])
		if first != name {
			return spec, false
		}
		p.rest = p.rest[1:]
		return spec, true
	}
	if spec, ok := take("$match"); ok {
		p.filter, _ = spec.Document()
	}
	if whole {
		return p
	}
	if spec, ok := take("$sort"); ok {
		p.sort, _ = spec.Document()
	}
	if v.AtLeast(5, 0) || p.sort != nil {
		p.takeLimits(v, take)
	}
	if v.AtLeast(4, 4) {
		p.project(v.AtLeast(5, 0))
	}
	return p
}

// takeLimits takes $skip and $limit from the front as far as a query can do them: it skips first.
func (p *pushed) takeLimits(v release.Version, take func(string) (bson.RawValue, bool)) {
	for {
		if spec, ok := take("$limit"); ok {
			n, _ := spec.AsInt64()
			if p.limit == 0 || n < p.limit {
				p.limit = n
			}
			continue
		}
		if p.limit > 0 || !v.AtLeast(5, 0) {
			return
		}
		spec, ok := take("$skip")
		if !ok {
			return
		}
		n, _ := spec.AsInt64()
		p.skip += n
	}
}

// project finds out which fields the stages that are left read. A $project that takes fields and
// nothing else the query does itself; with computes, also one that computes some.
func (p *pushed) project(computes bool) {
	if len(p.rest) == 0 {
		return
	}
	name, spec := bsondoc.FirstElement(p.rest[0])
	if doc, ok := spec.Document(); ok && name == "$project" {
		if taken, ok := inclusion(doc); ok {
			p.projection, p.rest = taken, p.rest[1:]
			return
		}
		if computes && includes(doc) {
			p.computed, p.rest = p.rest[0], p.rest[1:]
			p.paths = projectionPaths(doc)
			p.projection = (&fields{p.paths}).projection()
			return
		}
	}
	if group, ok := spec.Document(); ok && name == "$group" {
		if path, ok := groupPath(group.Lookup("_id")); ok && onlyFirsts(group) {
			p.distinct, p.first = path, !onlyField(group, "_id")
		}
	}
	f := fields{}
	if !f.ofStages(p.rest) {
		return
	}
	if len(f.paths) == 0 {
		p.counts = true
		return
	}
	p.projection = f.projection()
}

// groupPath returns the path of a field whose values name the groups, by themselves or as the one
// field of a document.
func groupPath(id bson.RawValue) (path string, ok bool) {
	if doc, isDoc := id.Document(); isDoc {
		name, v := bsondoc.FirstElement(doc)
		if strings.HasPrefix(name, "$") || !onlyField(doc, name) {
			return "", false
		}
		id = v
	}
	s, _ := id.StringValue()
	path, ok = strings.CutPrefix(s, "$")
	return path, ok && !strings.HasPrefix(path, "$")
}

// onlyFirsts reports whether a $group takes nothing but values of the first documents.
func onlyFirsts(group bson.Raw) bool {
	for k, v := range group.All() {
		doc, ok := v.Document()
		if name, _ := bsondoc.FirstElement(doc); k != "_id" && (!ok || name != "$first") {
			return false
		}
	}
	return true
}

func onlyField(doc bson.Raw, name string) bool {
	for k := range doc.All() {
		if k != name {
			return false
		}
	}
	return true
}

// inclusion returns a projection as a pipeline that takes fields shows it; ok is false if it does
// anything else.
func inclusion(spec bson.Raw) (doc bson.Raw, ok bool) {
	takes, some := true, false
	var look func(prefix string, doc bson.Raw)
	look = func(prefix string, doc bson.Raw) {
		for k, v := range doc.All() {
			inner, nested := v.Document()
			switch {
			case nested && !inner.IsEmpty() && !strings.HasPrefix(k, "$"):
				look(prefix+k+".", inner)
			case strings.HasPrefix(k, "$") || !v.IsNumber() && v.Type != bson.TypeBoolean:
				takes = false
			case v.AsBool():
				some = true
			case prefix+k != "_id":
				takes = false
			}
		}
	}
	if look("", spec); !takes || !some {
		return nil, false
	}
	return pipeline.ShownProjection(spec), true
}

// includes reports whether a projection takes and computes fields, and leaves out none but _id.
func includes(spec bson.Raw) bool {
	some := false
	for k, v := range spec.All() {
		switch inner, nested := v.Document(); {
		case v.IsNumber() || v.Type == bson.TypeBoolean:
			if !v.AsBool() && k != "_id" {
				return false
			}
			some = some || v.AsBool()
		case nested && !inner.IsEmpty():
			if first, _ := bsondoc.FirstElement(inner); !strings.HasPrefix(first, "$") && !includes(inner) {
				return false
			}
			some = true
		default:
			some = true
		}
	}
	return some
}

// projectionPaths returns the paths that a projection reads that takes and computes fields: the
// empty one, which stands for the document, if they cannot be told.
func projectionPaths(spec bson.Raw) []string {
	f := fields{}
	if !f.ofProjection(spec) {
		return []string{""}
	}
	return append([]string{}, f.paths...) // which is not nil
}

// fields are the paths that stages read of the documents that they are given.
type fields struct{ paths []string }

func (f *fields) add(path string) {
	if path != "" && !slices.Contains(f.paths, path) {
		f.paths = append(f.paths, path)
	}
}

// ofStages notes what stages read; ok is false if they may read all of a document, or hand it on.
func (f *fields) ofStages(stages []bson.Raw) (ok bool) {
	for _, stage := range stages {
		name, spec := bsondoc.FirstElement(stage)
		doc, _ := spec.Document()
		switch name {
		case "$match":
			if !f.ofFilter(doc) {
				return false
			}
		case "$sort":
			for k, v := range doc.All() {
				if v.Type == bson.TypeEmbeddedDocument {
					return false
				}
				f.add(k)
			}
		case "$skip", "$limit":
		case "$addFields", "$set":
			if !f.ofValue(spec) {
				return false
			}
		case "$unwind":
			path, _ := spec.StringValue()
			if doc != nil {
				path, _ = doc.Lookup("path").StringValue()
			}
			f.add(strings.TrimPrefix(path, "$"))
		case "$group", "$bucket", "$replaceRoot", "$replaceWith", "$sortByCount":
			return f.ofValue(spec)
		case "$count":
			return true
		case "$project":
			return f.ofProjection(doc)
		default:
			return false
		}
	}
	return false
}

func (f *fields) ofFilter(doc bson.Raw) bool {
	for k, v := range doc.All() {
		switch k {
		case "$and", "$or", "$nor":
			for item := range bson.Raw(v.Value).Values() {
				if !f.ofFilter(item.Value) {
					return false
				}
			}
			continue
		case "$expr":
			if !f.ofValue(v) {
				return false
			}
			continue
		}
		if strings.HasPrefix(k, "$") {
			return false
		}
		f.add(k)
	}
	return true
}

// ofProjection notes what a projection reads that takes or computes fields.
func (f *fields) ofProjection(doc bson.Raw) bool {
	if !f.ofProjected("", doc) {
		return false
	}
	if id := doc.Lookup("_id"); id.Type == 0 || id.AsBool() || !id.IsNumber() && id.Type != bson.TypeBoolean {
		f.add("_id")
	}
	return true
}

func (f *fields) ofProjected(prefix string, doc bson.Raw) bool {
	for k, v := range doc.All() {
		path := prefix + k
		inner, nested := v.Document()
		if first, _ := bsondoc.FirstElement(inner); nested && !inner.IsEmpty() && !strings.HasPrefix(first, "$") {
			if !f.ofProjected(path+".", inner) {
				return false
			}
			continue
		}
		switch {
		case !v.IsNumber() && v.Type != bson.TypeBoolean: // computed, within what the document has there
			if strings.Contains(path, ".") || !f.ofValue(v) {
				return false
			}
		case v.AsBool():
			f.add(path)
		case path != "_id":
			return false // it leaves fields out
		}
	}
	return true
}

// ofValue notes the paths in expressions; ok is false if one is for the whole document.
func (f *fields) ofValue(v bson.RawValue) (ok bool) {
	switch v.Type {
	case bson.TypeString:
		s, _ := v.StringValue()
		switch {
		case strings.HasPrefix(s, "$$ROOT") || strings.HasPrefix(s, "$$CURRENT"):
			return false
		case strings.HasPrefix(s, "$$"):
		case strings.HasPrefix(s, "$"):
			f.add(s[1:])
		}
	case bson.TypeEmbeddedDocument:
		for k, v := range bson.Raw(v.Value).All() {
			switch k {
			case "$literal", "$const":
				continue
			case "$getField", "$setField", "$unsetField", "$function", "$accumulator", "$meta":
				return false
			case "$top", "$topN", "$bottom", "$bottomN": // whose order names fields by themselves
				spec, _ := v.Document()
				by, _ := spec.Lookup("sortBy").Document()
				for path := range by.All() {
					f.add(path)
				}
			}
			if strings.HasPrefix(k, "$_internal") {
				return false
			}
			if !f.ofValue(v) {
				return false
			}
		}
	case bson.TypeArray:
		for v := range bson.Raw(v.Value).Values() {
			if !f.ofValue(v) {
				return false
			}
		}
	}
	return true
}

// projection is the projection that takes the fields: in order, without those below others.
func (f *fields) projection() bson.Raw {
	list := slices.DeleteFunc(slices.Clone(f.paths), func(path string) bool { return path == "" })
	slices.Sort(list)
	return bsondoc.Build(func(d *bsondoc.Builder) {
		id := false
		last := ""
		for _, path := range list {
			if last != "" && strings.HasPrefix(path, last+".") {
				continue
			}
			last = path
			ofID := path == "_id" || strings.HasPrefix(path, "_id.")
			if id = id || ofID; ofID {
				path = "_id"
			}
			d.B = bson.AppendInt32(d.B, path, 1)
		}
		if !id {
			d.B = bson.AppendInt32(d.B, "_id", 0)
		}
	})
}
