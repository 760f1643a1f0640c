package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// walker goes through a filter, an update or a pipeline that is written in the source, as a server
// reads it. A rule sets what it wants to hear of.
type walker struct {
	*usage
	// word: an operator or a stage, where one of the kind is read. place is what the place of a
	// stage has to have, or "".
	word func(e entry, kind, place string)
	// misplaced: something is where it cannot be.
	misplaced func(n ast.Node, format string, args ...any)
	// order: a document whose keys are in an order that means something, and there are two or more.
	order func(x ast.Expr, d document, what string)
	// equal: the value of a field in a filter. filter: one that is not written in the source.
	equal  func(d document, e entry)
	filter func(x ast.Expr)
	// operand: a part of an expression that is no document or array that is written here. d is the
	// document that it is in.
	operand func(x ast.Expr, d document)
}

// walk goes through an argument.
func (w *walker) walk(s site) {
	switch s.role {
	case filterRole:
		w.inFilter(s.expr)
	case updateRole:
		if stages, whole, ok := w.array(s.expr); ok {
			w.stages(stages, whole, "update")
			return
		}
		w.update(s.expr)
	case pipelineRole:
		w.pipeline(s.expr, "")
	case streamRole:
		w.pipeline(s.expr, "stream")
	case sortRole, keysRole, hintRole, commandRole:
		w.ordered(s.expr, s.role.String())
	}
}

// ordered tells of a document whose order means something.
func (w *walker) ordered(x ast.Expr, what string) {
	if d, ok := w.document(x); ok && len(d.entries) > 1 && w.order != nil {
		w.order(x, d, what)
	}
}

// inFilter goes through a filter.
func (w *walker) inFilter(x ast.Expr) {
	d, ok := w.document(x)
	if !ok {
		if w.filter != nil {
			w.filter(x)
		}
		return
	}
	for _, e := range d.entries {
		switch {
		case !e.known || !strings.HasPrefix(e.key, "$"):
			w.condition(d, e)
		case e.key == "$and" || e.key == "$or" || e.key == "$nor":
			parts, _, _ := w.array(e.value)
			for _, part := range parts {
				w.inFilter(part)
			}
		case e.key == "$expr":
			w.expression(e.value, d)
		case e.key == "$query" || e.key == "$orderby" || e.key == "$maxTimeMS": // of old servers
		case placed("filter", e.key, "field"):
			w.wrong(e.node, "%s is a condition on a field: want {field: {%s: …}}", e.key, e.key)
		default:
			w.tell(e, "filter", "top")
		}
	}
}

// condition goes through what a filter asks of a field.
func (w *walker) condition(d document, e entry) {
	ops, ok := w.document(e.value)
	switch {
	case !ok || !ops.hasOperator():
		if w.equal != nil {
			w.equal(d, e)
		}
	case ops.has("$ref", "$id"): // a DBRef
	default:
		w.conditions(ops)
	}
}

// inNear are settings beside $near.
var inNear = []string{"$maxDistance", "$minDistance", "$uniqueDocs"}

// conditions goes through the operators on a field.
func (w *walker) conditions(ops document) {
	for _, e := range ops.entries {
		switch {
		case !e.known || !strings.HasPrefix(e.key, "$") || slices.Contains(inNear, e.key):
		case e.key == "$not":
			if inner, ok := w.document(e.value); ok {
				w.conditions(inner)
			}
		case e.key == "$elemMatch":
			inner, _ := w.document(e.value)
			w.elements(e.value, inner)
		case placed("filter", e.key, "top"):
			w.wrong(e.node, "%s stands in the place of a field: want {%s: …} beside the fields, not below one", e.key,
				e.key)
		default:
			w.tell(e, "filter", "field")
		}
	}
}

// elements goes through what is asked of the elements of an array: of themselves, or of their
// fields.
func (w *walker) elements(x ast.Expr, d document) {
	if placed("filter", d.first(), "field") {
		w.conditions(d)
	} else {
		w.inFilter(x)
	}
}

// update goes through an update with operators.
func (w *walker) update(x ast.Expr) {
	d, ok := w.document(x)
	if !ok || !d.hasOperator() {
		return
	}
	for _, op := range d.entries {
		if !op.known || !strings.HasPrefix(op.key, "$") {
			continue
		}
		w.tell(op, "update", "")
		fields, ok := w.document(op.value)
		if !ok {
			continue
		}
		for _, f := range fields.entries {
			inner, ok := w.document(f.value)
			switch {
			case f.known && strings.HasPrefix(f.key, "$") && known("update", f.key):
				w.wrong(f.node, "%s stands below %s: operators of an update stand beside each other", f.key, op.key)
			case !ok:
			case op.key == "$pull":
				w.elements(f.value, inner)
			case op.key == "$push" && inner.has("$each"):
				w.ordered(inner.get("$sort"), "$sort")
			case op.key == "$set" || op.key == "$setOnInsert":
				name := inner.first()
				if strings.HasPrefix(name, "$") && !inner.has("$ref", "$id", "$each") &&
					(known("update", name) || known("expression", name)) {
					w.wrong(inner.entries[0].node, "%s below %s is stored as it is: %s", name, op.key, instead(name))
				}
			}
		}
	}
}

// instead says what to do with an operator below $set.
func instead(name string) string {
	if known("expression", name) {
		return "an expression needs a pipeline, [{$set: …}]"
	}
	return "it is an operator of its own, {" + name + ": {field: …}}"
}

// pipeline goes through a pipeline. place is what each stage's place must have, or "".
func (w *walker) pipeline(x ast.Expr, place string) {
	if stages, whole, ok := w.array(x); ok {
		w.stages(stages, whole, place)
	} else if w.filter != nil {
		w.filter(x)
	}
}

func (w *walker) stages(stages []ast.Expr, whole bool, place string) {
	for i, x := range stages {
		d, ok := w.document(x)
		if !ok {
			continue
		}
		if len(d.entries) > 1 && w.order != nil {
			w.order(x, d, "stage")
		}
		if len(d.entries) == 0 || !d.entries[0].known {
			continue
		}
		e := d.entries[0]
		w.tell(e, "stage", place)
		if placed("stage", e.key, "first") && i > 0 && whole {
			w.wrong(e.node, "%s must be the first stage", e.key)
		}
		if placed("stage", e.key, "last") && i < len(stages)-1 && e.key != "$changeStreamSplitLargeEvent" {
			w.wrong(e.node, "%s must be the last stage", e.key)
		}
		w.stage(e, d)
	}
}

func (w *walker) stage(e entry, around document) {
	spec, isDoc := w.document(e.value)
	sub := func(key string) {
		if x := spec.get(key); x != nil {
			w.pipeline(x, "")
		}
	}
	switch e.key {
	case "$match":
		w.inFilter(e.value)
	case "$sort":
		w.ordered(e.value, "$sort")
	case "$project", "$addFields", "$set":
		for _, f := range spec.entries {
			w.expression(f.value, spec)
		}
	case "$group", "$bucket", "$bucketAuto":
		for _, f := range spec.entries {
			if f.known && (f.key == "_id" || f.key == "groupBy") {
				w.expression(f.value, spec)
			}
			out := spec
			if e.key != "$group" {
				if !f.known || f.key != "output" {
					continue
				}
				out, _ = w.document(f.value)
			}
			if e.key == "$group" {
				out.entries = []entry{f}
			}
			for _, f := range out.entries {
				if f.known && f.key == "_id" && e.key == "$group" {
					continue
				}
				w.accumulator(f, "accumulator")
			}
		}
	case "$setWindowFields":
		w.ordered(spec.get("sortBy"), "sortBy")
		if out, ok := w.document(spec.get("output")); ok {
			for _, f := range out.entries {
				w.accumulator(f, "window")
			}
		}
	case "$facet":
		for _, f := range spec.entries {
			if f.value != nil {
				w.pipeline(f.value, "")
			}
		}
	case "$lookup", "$unionWith":
		sub("pipeline")
	case "$graphLookup":
		if x := spec.get("restrictSearchWithMatch"); x != nil {
			w.inFilter(x)
		}
		if x := spec.get("startWith"); x != nil {
			w.expression(x, spec)
		}
	case "$geoNear":
		if x := spec.get("query"); x != nil {
			w.inFilter(x)
		}
	case "$replaceRoot":
		if x := spec.get("newRoot"); x != nil {
			w.expression(x, spec)
		}
	case "$replaceWith", "$redact", "$sortByCount":
		if isDoc {
			w.expression(e.value, around)
		}
	}
}

// accumulator goes through a field of $group, or of $setWindowFields.
func (w *walker) accumulator(f entry, kind string) {
	acc, ok := w.document(f.value)
	if !ok || !acc.whole {
		return
	}
	for _, op := range acc.entries {
		switch {
		case !op.known || kind == "window" && op.key == "window":
		case !strings.HasPrefix(op.key, "$"):
			w.wrong(op.node, "a field of a group needs an accumulator such as $sum, not %q", op.key)
		case kind == "window" && known("accumulator", op.key):
			w.tell(op, "accumulator", "")
		default:
			w.tell(op, kind, "")
		}
		if op.key == "$accumulator" || op.key == "window" {
			continue
		}
		if by, ok := w.document(op.value); ok && by.has("sortBy") {
			w.ordered(by.get("sortBy"), "sortBy")
		}
		w.expression(op.value, acc)
	}
}

// expression goes through an aggregation expression.
func (w *walker) expression(x ast.Expr, in document) {
	if x == nil {
		return
	}
	if d, ok := w.document(x); ok {
		for _, e := range d.entries {
			if e.known && strings.HasPrefix(e.key, "$") {
				w.tell(e, "expression", "")
			}
			switch {
			case e.known && (e.key == "$literal" || e.key == "$function" || e.key == "sortBy" || e.key == "$meta" ||
				e.key == "$getField"):
			case e.value != nil:
				w.expression(e.value, d)
			}
		}
		return
	}
	if elems, _, ok := w.array(x); ok {
		for _, elem := range elems {
			w.expression(elem, in)
		}
		return
	}
	if w.operand != nil {
		w.operand(x, in)
	}
}

func (w *walker) tell(e entry, kind, place string) {
	if w.word != nil {
		w.word(e, kind, place)
	}
}

func (w *walker) wrong(n ast.Node, format string, args ...any) {
	if w.misplaced != nil {
		w.misplaced(n, format, args...)
	}
}

// structOf returns the struct that t is or points to, and its named type, nil if it has none.
func structOf(t types.Type) (*types.Struct, *types.Named) {
	s, ok := under(t).(*types.Struct)
	if !ok {
		return nil, nil
	}
	return s, named(t)
}
