package analysis

import (
	"slices"
	"strings"

	"allium/bson"
)

// pipeline returns the stages with placeholders, and the tree of the documents that come out; n is
// that of those that come in, vars are the variables of a $lookup around it.
func (a *analysis) pipeline(stages bson.RawValue, n *node, vars map[string]*node) (bson.RawValue, *node, error) {
	list, ok := docs(stages)
	if !ok {
		return stages, nil, a.refuse("", "", "a pipeline must be an array of documents", "")
	}
	out := make([]bson.RawValue, len(list))
	for i, doc := range list {
		name, arg := first(doc)
		if count(doc) != 1 {
			return stages, nil, a.refuse("", name, "a stage must have one field", "")
		}
		f, ok := stageFuncs[name]
		if !ok {
			instead := "run it on a collection without encrypted fields, or " + bypassing
			if name == "$changeStream" {
				instead = "use a client with BypassQueryAnalysis or BypassEncryption: both decrypt events"
			}
			return stages, nil, a.refuse("", "", "Unsupported pipeline stage for encryption: "+name, instead)
		}
		st := &stage{analysis: a, name: name, in: n, scope: scope{root: n, current: n, vars: vars}}
		place, computes := a.place, a.computes
		a.place, a.computes = join(a.place, index(i)+"."+name), computes || !rewritten[name]
		arg, next, err := f(st, arg)
		a.place, a.computes = place, computes
		if err != nil {
			return stages, nil, err
		}
		out[i], n = document(pair(name, arg)), next
	}
	return array(out), n, nil
}

// rewritten are the stages in which servers replace what Queryable Encryption compares with. In
// others, and in pipelines within others, a comparison is never true.
var rewritten = map[string]bool{"$match": true, "$geoNear": true, "$graphLookup": true, "$lookup": true}

// stage is the analysis of one stage.
type stage struct {
	*analysis
	name  string
	in    *node
	scope scope
}

type stageFunc func(s *stage, arg bson.RawValue) (bson.RawValue, *node, error)

var stageFuncs map[string]stageFunc

func init() {
	stageFuncs = map[string]stageFunc{
		"$match": (*stage).matchStage, "$project": (*stage).project, "$addFields": (*stage).addFields,
		"$set":   (*stage).addFields,
		"$unset": (*stage).unset, "$replaceRoot": (*stage).replaceRoot, "$replaceWith": (*stage).replaceWith,
		"$limit": (*stage).unchanged, "$skip": (*stage).unchanged, "$sample": (*stage).unchanged,
		"$indexStats": (*stage).unchanged,
		"$collStats":  (*stage).unchanged, "$geoNear": (*stage).geoNear, "$sort": (*stage).sortStage,
		"$bucket":     (*stage).bucket,
		"$bucketAuto": (*stage).bucket, "$sortByCount": (*stage).sortByCount, "$group": (*stage).group,
		"$count":  (*stage).countStage,
		"$unwind": (*stage).unwind, "$redact": (*stage).redact, "$facet": (*stage).facet, "$lookup": (*stage).lookup,
		"$graphLookup": (*stage).graphLookup, "$unionWith": (*stage).unionWith,
	}
}

func (s *stage) refuse(path, reason, instead string) error {
	return s.analysis.refuse(path, s.name, reason, instead)
}

func (s *stage) document(v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, s.refuse("", "the stage wants a document", "")
	}
	return doc, s.unique(doc, s.name)
}

// plain analyses an expression whose value must not be encrypted.
func (s *stage) plain(v bson.RawValue) (bson.RawValue, error) {
	out, op, err := s.expression(v, &s.scope)
	if err == nil && op.node != nil {
		err = s.refuse(op.path, "an encrypted field cannot be used here", "")
	}
	return out, err
}

// plainPath refuses a path at, above or below an encrypted field.
func (s *stage) plainPath(n *node, path, reason string) error {
	found, err := s.at(n, path, s.name)
	if err == nil && found != nil {
		err = s.refuse(path, reason, "")
	}
	return err
}

func (s *stage) unchanged(arg bson.RawValue) (bson.RawValue, *node, error) { return arg, s.in, nil }

func (s *stage) matchStage(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, ok := arg.Document()
	if !ok {
		return arg, nil, s.refuse("", "the stage wants a document", "")
	}
	out, err := s.pipelineMatch(doc, s.in)
	return document(out), s.in, err
}

// pipelineMatch is match within a stage. With Queryable Encryption the filter keeps its form.
func (s *stage) pipelineMatch(doc bson.Raw, n *node) (bson.Raw, error) {
	form := formIfMarked
	if s.queryable {
		form = formOwn
	}
	return s.matchIn(doc, n, form, s.scope.vars)
}

// sortKeys refuses a sort by encrypted fields.
func (a *analysis) sortKeys(v bson.RawValue, n *node, operator string) error {
	doc, ok := v.Document()
	if !ok {
		return a.refuse("", operator, "a sort must be a document", "")
	}
	for path, order := range doc.All() {
		if order.Type == bson.TypeEmbeddedDocument {
			if name, _ := first(order.Value); name != "$meta" {
				return a.refuse(path, operator, "Unsupported sort order for encryption", "use 1 or -1")
			}
			continue
		}
		found, err := a.at(n, path, operator)
		if err != nil {
			return err
		}
		if found != nil {
			return a.refuse(path, operator, "cannot sort by an encrypted field, since ciphertexts have no useful order",
				"sort after decryption")
		}
	}
	return nil
}

func (s *stage) sortStage(arg bson.RawValue) (bson.RawValue, *node, error) {
	return arg, s.in, s.sortKeys(arg, s.in, s.name)
}

// project analyses an inclusion or an exclusion.
func (s *stage) project(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	out, n, err := s.projection(doc, "", false)
	return document(out), n, err
}

// projection analyses the projection doc. positional allows what only find has.
func (s *stage) projection(doc bson.Raw, prefix string, find bool) (bson.Raw, *node, error) {
	exclusion := excludes(doc, find)
	var n *node
	if exclusion {
		n = s.in
	} else if id := s.in.child("_id"); id != nil {
		n = n.with("_id", id)
	}
	out, err := s.projected(doc, prefix, exclusion, find, &n)
	return out, n, err
}

func (s *stage) projected(doc bson.Raw, prefix string, exclusion, find bool, n **node) (bson.Raw, error) {
	return rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		path := join(prefix, key)
		if find && (path == "$" || strings.HasSuffix(path, ".$")) {
			return v, s.plainPath(s.in, strings.TrimSuffix(path, ".$"),
				"the positional operator cannot be used on an encrypted field")
		}
		found, err := s.at(s.in, path, s.name)
		if err != nil {
			return v, err
		}
		inner, isDocument := v.Document()
		switch {
		case v.IsNumber() || v.Type == bson.TypeBoolean:
			if !truth(v) {
				*n = (*n).with(path, nil)
			} else if !exclusion {
				*n = include(*n, s.in, path)
			}
			return v, nil
		case isDocument && !isOperator(v):
			if count(inner) == 0 {
				return v, s.refuse(path, "an empty document is no projection", "")
			}
			if found != nil && found.enc != nil {
				return v, s.below(path, s.name)
			}
			out, err := s.projected(inner, path, exclusion, find, n)
			return document(out), err
		case exclusion && !find:
			return v, s.refuse(path, "an exclusion cannot compute fields", "")
		}
		if find && isDocument {
			switch name, arg := first(inner); name {
			case "$slice":
				return v, s.plainPath(s.in, path, "the operator cannot be used on an encrypted field")
			case "$elemMatch":
				if err := s.plainPath(s.in, path, "the operator cannot be used on an encrypted field"); err != nil {
					return v, err
				}
				m := matcher{analysis: s.analysis}
				return v, m.plain(path, document(pair(name, arg)))
			case "$meta":
				return v, nil
			}
		}
		out, op, err := s.expression(v, &s.scope)
		if err == nil {
			*n = (*n).with(path, op.node)
		}
		return out, err
	})
}

// excludes reports whether a projection says which fields to leave out. What it says about _id does
// not count.
func excludes(doc bson.Raw, find bool) bool {
	only := true
	for key, v := range doc.All() {
		if key == "_id" && count(doc) > 1 {
			continue
		}
		if inner, ok := v.Document(); ok {
			if isOperator(v) {
				// In find these add to what else is there. In a stage they are expressions.
				if name, _ := first(inner); find && (name == "$slice" || name == "$meta") {
					continue
				}
				return false
			}
			return excludes(inner, find)
		}
		if !v.IsNumber() && v.Type != bson.TypeBoolean {
			return false
		}
		return !truth(v)
	}
	return only
}

func truth(v bson.RawValue) bool { return v.AsBool() }

// include returns n with what in has at path.
func include(n, in *node, path string) *node {
	found, _ := in.at(path)
	if found == nil {
		return n
	}
	// The arrays on the way stay arrays.
	key, below, deeper := strings.Cut(path, ".")
	if !deeper {
		return n.with(key, found)
	}
	c := in.step(key)
	if c == nil || c.opaque {
		return n.with(key, c)
	}
	sub := include(n.child(key), c, below)
	if sub != nil && c.array {
		sub = sub.elements()
	}
	return n.with(key, sub)
}

func (s *stage) addFields(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	n := s.in
	out, err := s.added(doc, "", &n)
	return document(out), n, err
}

func (s *stage) added(doc bson.Raw, prefix string, n **node) (bson.Raw, error) {
	return rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		path := join(prefix, key)
		if _, err := s.at(s.in, path, s.name); err != nil {
			return v, err
		}
		if inner, ok := v.Document(); ok && !isOperator(v) && count(inner) > 0 {
			if found, _ := s.in.at(path); found != nil && found.enc != nil {
				return v, s.below(path, s.name)
			}
			out, err := s.added(inner, path, n)
			return document(out), err
		}
		out, op, err := s.expression(v, &s.scope)
		if err == nil {
			*n = (*n).with(path, op.node)
		}
		return out, err
	})
}

func (s *stage) unset(arg bson.RawValue) (bson.RawValue, *node, error) {
	list, err := s.arguments(s.name, arg, 0)
	if err != nil {
		return arg, nil, err
	}
	n := s.in
	for _, v := range list {
		path, ok := v.StringValue()
		if !ok {
			return arg, nil, s.refuse("", "the stage wants the names of fields", "")
		}
		if _, err := s.at(s.in, path, s.name); err != nil {
			return arg, nil, err
		}
		n = n.with(path, nil)
	}
	return arg, n, nil
}

func (s *stage) replaceRoot(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	var n *node
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		if key != "newRoot" {
			return v, s.refuse("", "the stage has no field '"+key+"'", "")
		}
		v, next, err := s.replaceWith(v)
		n = next
		return v, err
	})
	return document(out), n, err
}

func (s *stage) replaceWith(arg bson.RawValue) (bson.RawValue, *node, error) {
	out, op, err := s.expression(arg, &s.scope)
	if err == nil && op.node != nil && op.node.enc != nil {
		err = s.refuse(op.path, "an encrypted field is no document", "")
	}
	return out, op.node, err
}

func (s *stage) countStage(arg bson.RawValue) (bson.RawValue, *node, error) { return arg, nil, nil }

func (s *stage) unwind(arg bson.RawValue) (bson.RawValue, *node, error) {
	path, n := "", s.in
	if doc, ok := arg.Document(); ok {
		if err := s.unique(doc, s.name); err != nil {
			return arg, nil, err
		}
		for key, v := range doc.All() {
			switch key {
			case "path":
				path, _ = v.StringValue()
			case "includeArrayIndex":
				name, _ := v.StringValue()
				if _, err := s.at(s.in, name, s.name); err != nil {
					return arg, nil, err
				}
				n = n.with(name, nil)
			case "preserveNullAndEmptyArrays":
			default:
				return arg, nil, s.refuse("", "the stage has no field '"+key+"'", "")
			}
		}
	} else {
		path, _ = arg.StringValue()
	}
	path, ok := strings.CutPrefix(path, "$")
	if !ok {
		return arg, nil, s.refuse("", "the stage wants the path of a field", "")
	}
	found, err := s.at(s.in, path, s.name)
	switch {
	case err != nil:
		return arg, nil, err
	case found == nil:
		return arg, n, nil
	case found.enc != nil:
		return arg, nil, s.refuse(path, "an encrypted field cannot be unwound", "")
	case found.array:
		n = n.with(path, found.element())
	}
	return arg, n, nil
}

// redact allows no encrypted field: the expression is evaluated at every level of a document, where
// a path may stand for another field each time.
func (s *stage) redact(arg bson.RawValue) (bson.RawValue, *node, error) {
	err := s.in.each(func(n *node) error {
		marks, compares := len(s.marks), s.compares
		s.compares = false
		_, op, err := s.expression(arg, &scope{root: s.in, current: n, vars: s.scope.vars})
		if err == nil && (op.node != nil || len(s.marks) > marks || s.compares) {
			err = s.refuse(op.path, "an encrypted field cannot be used here", "")
		}
		s.compares = compares
		return err
	})
	return arg, s.in, err
}

func (s *stage) geoNear(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	n := s.in
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "query":
			filter, err := s.document(v)
			if err != nil {
				return v, err
			}
			filter, err = s.pipelineMatch(filter, s.in)
			return document(filter), err
		case "key", "distanceField", "includeLocs":
			path, _ := v.StringValue()
			if key != "key" {
				n = n.with(path, nil)
			}
			return v, s.plainPath(s.in, path, "an encrypted field cannot be used here")
		case "near", "minDistance", "maxDistance":
			return s.plain(v)
		case "spherical", "distanceMultiplier", "num", "limit", "uniqueDocs":
			return v, nil
		}
		return v, s.refuse("", "the stage has no field '"+key+"'", "")
	})
	return document(out), n, err
}

func (s *stage) facet(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	var n *node
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		place := s.place
		s.place = join(place, key)
		v, next, err := s.pipeline(v, s.in, s.scope.vars)
		s.place = place
		if next != nil {
			next = opaqueNode
		}
		n = n.with(key, next)
		return v, err
	})
	return document(out), n, err
}

// from returns the namespace of another collection, and its tree.
func (s *stage) from(v bson.RawValue) (*node, error) {
	name, ok := v.StringValue()
	if !ok {
		return nil, s.refuse("", "the other collection must be one of the same database, by its name", "")
	}
	ns := s.db + "." + name
	other, ok := s.schemas[ns]
	if !ok {
		return nil, s.refuse("", "the schema of "+ns+" is not known", "")
	}
	if other == nil {
		return nil, nil
	}
	return other.root, nil
}

// joinable refuses a join of two fields unless equal values have equal bytes in both.
func (s *stage) joinable(local *node, localPath string, foreign *node, foreignPath string) error {
	if local == nil && foreign == nil {
		return nil
	}
	if err := s.comparing(localPath, s.name); err != nil {
		return err
	}
	path := localPath
	if local == nil {
		path = foreignPath
	}
	if local == nil || foreign == nil || local.enc == nil || foreign.enc == nil || local.enc.Kind != Deterministic ||
		!local.enc.same(foreign.enc) {
		return s.refuse(path, "a join needs two fields without encryption, or two that are encrypted deterministically with the same key and type", "")
	}
	return nil
}

func (s *stage) lookup(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	foreign, err := s.from(doc.Lookup("from"))
	if err != nil {
		return arg, nil, err
	}
	as, ok := doc.Lookup("as").StringValue()
	if !ok {
		return arg, nil, s.refuse("", "the stage wants 'as', a string", "")
	}
	if _, err := s.at(s.in, as, s.name); err != nil {
		return arg, nil, err
	}
	if v := doc.Lookup("localField"); !v.IsZero() || !doc.Lookup("foreignField").IsZero() {
		localField, ok := v.StringValue()
		foreignField, ok2 := doc.Lookup("foreignField").StringValue()
		if !ok || !ok2 {
			return arg, nil, s.refuse("", "the stage wants 'localField' and 'foreignField', strings", "")
		}
		local, err := s.at(s.in, localField, s.name)
		if err != nil {
			return arg, nil, err
		}
		other, err := s.at(foreign, foreignField, s.name)
		if err != nil {
			return arg, nil, err
		}
		if err := s.joinable(local, localField, other, foreignField); err != nil {
			return arg, nil, err
		}
	}
	vars := s.scope.vars
	let := doc.Lookup("let")
	if v, ok := let.Document(); ok {
		if err := s.unique(v, s.name); err != nil {
			return arg, nil, err
		}
		inner := &s.scope
		changed, err := rewrite(v, func(name string, v bson.RawValue) (bson.RawValue, error) {
			v, op, err := s.expression(v, &s.scope)
			if s.queryable && op.node != nil {
				// Servers compare with the tags of the document that the pipeline reads, not with
				// those of the one that the variable comes from.
				op.node = opaqueNode
			}
			inner = inner.define(name, op.node)
			return v, err
		})
		if err != nil {
			return arg, nil, err
		}
		let, vars = document(changed), inner.vars
	}
	joined := foreign
	out, err := rewrite(lookupOrder(doc, s.queryable), func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "from", "as", "localField", "foreignField":
			return v, nil
		case "let":
			if let.Type != bson.TypeEmbeddedDocument {
				return v, s.refuse("", "'let' must be a document", "")
			}
			return let, nil
		case "pipeline":
			v, next, err := s.inner("pipeline", v, foreign, vars)
			joined = next
			return v, err
		}
		return v, s.refuse("", "the stage has no field '"+key+"'", "")
	})
	if err != nil {
		return arg, nil, err
	}
	return document(out), s.in.with(as, joined.elements()), nil
}

// inner analyses a pipeline within the stage.
func (s *stage) inner(name string, v bson.RawValue, n *node, vars map[string]*node) (bson.RawValue, *node, error) {
	place := s.place
	s.place = join(place, name)
	v, next, err := s.pipeline(v, n, vars)
	s.place = place
	return v, next, err
}

// lookupOrder returns doc in the order in which the servers' analysis writes it for Queryable
// Encryption.
func lookupOrder(doc bson.Raw, queryable bool) bson.Raw {
	if !queryable {
		return doc
	}
	start, b := bson.BeginDocument(nil)
	order := []string{"from", "as", "localField", "foreignField"}
	for _, key := range order {
		if v := doc.Lookup(key); !v.IsZero() {
			b = bson.AppendRawValue(b, key, v)
		}
	}
	for key, v := range doc.All() {
		if !slices.Contains(order, key) {
			b = bson.AppendRawValue(b, key, v)
		}
	}
	return bson.EndDocument(b, start)
}

func (s *stage) graphLookup(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	foreign, err := s.from(doc.Lookup("from"))
	if err != nil {
		return arg, nil, err
	}
	path := func(key string) string { p, _ := doc.Lookup(key).StringValue(); return p }
	to, err := s.at(foreign, path("connectToField"), s.name)
	if err != nil {
		return arg, nil, err
	}
	from, err := s.at(foreign, path("connectFromField"), s.name)
	if err != nil {
		return arg, nil, err
	}
	if err := s.joinable(from, path("connectFromField"), to, path("connectToField")); err != nil {
		return arg, nil, err
	}
	joined := foreign
	if depth := path("depthField"); depth != "" {
		if err := s.plainPath(foreign, depth, "an encrypted field cannot be used here"); err != nil {
			return arg, nil, err
		}
		joined = joined.with(depth, nil)
	}
	as := path("as")
	if _, err := s.at(s.in, as, s.name); err != nil {
		return arg, nil, err
	}
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "from", "connectFromField", "connectToField", "as", "depthField", "maxDepth":
			return v, nil
		case "startWith":
			out, op, err := s.expression(v, &s.scope)
			if err != nil {
				return v, err
			}
			if op.node == nil && op.constant && to != nil && op.value.Type != bson.TypeArray {
				return s.compared(to.enc, path("connectToField"), s.name, op.value)
			}
			return out, s.joinable(op.node, op.path, to, path("connectToField"))
		case "restrictSearchWithMatch":
			filter, err := s.document(v)
			if err != nil {
				return v, err
			}
			filter, err = s.pipelineMatch(filter, foreign)
			return document(filter), err
		}
		return v, s.refuse("", "the stage has no field '"+key+"'", "")
	})
	return document(out), s.in.with(as, joined.elements()), err
}

func (s *stage) unionWith(arg bson.RawValue) (bson.RawValue, *node, error) {
	coll := arg
	doc, isDocument := arg.Document()
	if isDocument {
		if err := s.unique(doc, s.name); err != nil {
			return arg, nil, err
		}
		coll = doc.Lookup("coll")
	}
	foreign, err := s.from(coll)
	if err != nil {
		return arg, nil, err
	}
	if isDocument {
		changed, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
			switch key {
			case "coll":
				return v, nil
			case "pipeline":
				v, next, err := s.inner("pipeline", v, foreign, nil)
				foreign = next
				return v, err
			}
			return v, s.refuse("", "the stage has no field '"+key+"'", "")
		})
		if err != nil {
			return arg, nil, err
		}
		arg = document(changed)
	}
	if !s.in.equal(foreign) {
		return arg, nil, s.refuse("", "the collections are encrypted in different ways",
			"project the encrypted fields away before")
	}
	return arg, s.in, nil
}
