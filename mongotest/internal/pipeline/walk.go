package pipeline

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

// What the stages of a pipeline do with collections and with the deployment, at every depth, before
// anybody has parsed it: a specification may be anything.

// Stage is a stage where it stands.
type Stage struct {
	Name  string
	Spec  bson.RawValue
	NS    Namespace // the collection whose documents the pipeline begins with
	def   *stageDef // never nil
	index int
}

// unknown is the row of stages that there are not.
var unknown stageDef

// StageOf returns the stage of a pipeline on a collection.
func StageOf(ns Namespace, doc bson.Raw) Stage {
	s := Stage{NS: ns, def: &unknown}
	for name, v := range doc.All() {
		if s.Name, s.Spec = name, v; stages[name] != nil {
			s.def = stages[name]
		}
		break
	}
	return s
}

// Walk visits the stages of a pipeline and of its sub-pipelines, those of a stage after the stage,
// until visit returns an error.
func Walk(ns Namespace, stages []bson.Raw, visit func(s Stage) error) error {
	for i, doc := range stages {
		s := StageOf(ns, doc)
		s.index = i
		if err := visit(s); err != nil {
			return err
		}
		for _, sub := range s.subs() {
			if err := Walk(sub.ns, sub.stages, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Resolver follows a namespace that may be a view, as [Env] does.
type Resolver func(ns Namespace) (base Namespace, stages []bson.Raw, err error)

// CheckNesting refuses stages that read collections from within each other more often than
// pipelines may nest, and those that come to more views one after the other than views may lie on
// each other. The pipeline is that of views already that so many lie on.
func CheckNesting(ns Namespace, stages []bson.Raw, views int, resolve Resolver) error {
	n, err := nesting(ns, stages, resolve, map[Namespace]nested{})
	switch {
	case err != nil:
		return err
	case views+n.views > MaxViewDepth:
		return ErrViewDepth()
	case n.reads > maxSubPipelines:
		return errNesting()
	}
	return nil
}

// MaxViewDepth is how many views may lie on each other.
const MaxViewDepth = 20

// ErrViewDepth is the error of a pipeline that comes to more views than that.
func ErrViewDepth() error {
	return srverr.New(srverr.ViewDepthLimitExceeded,
		"View depth too deep or view cycle detected; maximum depth is %d", MaxViewDepth)
}

// nested is how often stages read collections from within each other at most, and how many views
// they come to on one way.
type nested struct{ reads, views int }

// nesting returns how deep stages read. known has it of namespaces.
func nesting(ns Namespace, stages []bson.Raw, resolve Resolver, known map[Namespace]nested) (n nested, err error) {
	for _, doc := range stages {
		s := StageOf(ns, doc)
		_, reads := s.Reads()
		for _, sub := range s.subs() {
			deep, err := nesting(sub.ns, sub.stages, resolve, known)
			if err != nil {
				return n, err
			}
			if reads {
				below, ok := known[sub.ns]
				if !ok {
					base, view, err := resolve(sub.ns)
					if err != nil {
						return n, err
					}
					if below, err = nesting(base, view, resolve, known); err != nil {
						return n, err
					}
					if base != sub.ns {
						below.views++
					}
					known[sub.ns] = below
				}
				deep = nested{1 + max(deep.reads, below.reads), max(deep.views, below.views)}
			}
			n = nested{max(n.reads, deep.reads), max(n.views, deep.views)}
		}
	}
	return n, nil
}

// StagesIn returns the stages of a value that ought to be a pipeline.
func StagesIn(v bson.RawValue) (list []bson.Raw) {
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return nil
	}
	for item := range bson.Raw(v.Value).Values() {
		doc, _ := item.Document()
		list = append(list, doc)
	}
	return list
}

// sub is a sub-pipeline.
type sub struct {
	ns     Namespace
	stages []bson.Raw
}

// subs returns the sub-pipelines of a stage. One that has none, but reads a collection, has an
// empty one.
func (s *Stage) subs() (list []sub) {
	ns, reads := s.Reads()
	if !reads {
		ns = s.NS
	}
	if s.def.pipelines != "" {
		eachAt(s.Spec, s.def.pipelines, func(v bson.RawValue) { list = append(list, sub{ns, StagesIn(v)}) })
	}
	if list == nil && reads {
		list = []sub{{ns: ns}}
	}
	return list
}

// eachAt visits the values at a path, in which "*" stands for every field.
func eachAt(v bson.RawValue, path string, visit func(bson.RawValue)) {
	if path == "" {
		visit(v)
		return
	}
	field, rest, _ := strings.Cut(path, ".")
	doc, _ := v.Document()
	for key, item := range doc.All() {
		if field == "*" || field == key {
			eachAt(item, rest, visit)
		}
	}
}

// Parts is what becomes of the parts of a stage's specification: of its sub-pipelines, of its
// filter, and of everything else, which may be an expression.
type Parts struct {
	Pipeline   func(stages []bson.Raw) ([]bson.Raw, error)
	Filter     func(filter bson.Raw) (bson.Raw, error)
	Expression func(v bson.RawValue) (bson.RawValue, error)
	// Name is for what names fields or collections, Keyed for a document whose fields are named by
	// whoever wrote it, and Key for one such name before a sub-pipeline. If they are nil, the first
	// two are expressions, and a key stays.
	Name  func(v bson.RawValue) (bson.RawValue, error)
	Keyed func(v bson.RawValue) (bson.RawValue, error)
	Key   func(name string) string
}

// Rewrite returns the specification with its parts rewritten.
func (s *Stage) Rewrite(p Parts) (bson.RawValue, error) {
	doc, isDoc := s.Spec.Document()
	switch {
	case isDoc && s.def.filter == whole:
		return p.filter(s.Spec)
	case p.Keyed != nil && s.def.pipelines == "" && listed(s.def.keyed, whole):
		return p.Keyed(s.Spec)
	case p.Name != nil && listed(s.def.names, whole) && (!isDoc || s.def.names == whole):
		return p.Name(s.Spec)
	case !isDoc:
		return p.Expression(s.Spec)
	}
	// With Keyed, what is no expression has fields of the stage, whose names nobody has chosen.
	first, _ := bsondoc.FirstElement(doc)
	fields := p.Keyed != nil && !strings.HasPrefix(first, "$")
	if s.def.pipelines == "" && s.def.filter == "" && !fields && (p.Name == nil || s.def.names == "") {
		return p.Expression(s.Spec)
	}
	return p.below(doc, s.def.pipelines, s.def)
}

// listed reports whether a name is one of those that a string has between spaces.
func listed(list, name string) bool {
	for item := range strings.SplitSeq(list, " ") {
		if item == name {
			return true
		}
	}
	return false
}

// below rewrites a document that has pipelines at a path; "" is for none. Only at the top it has
// what the stage's row names.
func (p *Parts) below(doc bson.Raw, pipelines string, def *stageDef) (bson.RawValue, error) {
	field, rest, _ := strings.Cut(pipelines, ".")
	start, b := bson.BeginDocument(nil)
	for key, item := range doc.All() {
		var err error
		sub, isDoc := item.Document()
		pipes := field != "" && (field == "*" || field == key)
		if pipes && field == "*" && p.Key != nil {
			key = p.Key(key)
		}
		switch {
		case pipes && rest != "" && isDoc:
			item, err = p.below(sub, rest, &unknown)
		case pipes && item.Type == bson.TypeArray:
			item, err = p.pipeline(item)
		case def.filter == key && item.Type == bson.TypeEmbeddedDocument:
			item, err = p.filter(item)
		case p.Name != nil && listed(def.names, key):
			item, err = p.Name(item)
		case p.Keyed != nil && listed(def.keyed, key):
			item, err = p.Keyed(item)
		default:
			item, err = p.Expression(item)
		}
		if err != nil {
			return bsondoc.DocumentValue(doc), err
		}
		b = bson.AppendRawValue(b, key, item)
	}
	return bsondoc.DocumentValue(bson.EndDocument(b, start)), nil
}

func (p *Parts) pipeline(v bson.RawValue) (bson.RawValue, error) {
	list, err := p.Pipeline(StagesIn(v))
	if err != nil {
		return v, err
	}
	out := make([]bson.RawValue, len(list))
	for i, doc := range list {
		out[i] = bsondoc.DocumentValue(doc)
	}
	return bsondoc.ArrayValue(out...), nil
}

func (p *Parts) filter(v bson.RawValue) (bson.RawValue, error) {
	doc, err := p.Filter(bson.Raw(v.Value))
	return bsondoc.DocumentValue(doc), err
}

// Reads returns the collection that the stage reads beside its input.
func (s *Stage) Reads() (ns Namespace, ok bool) { return s.named(s.def.reads) }

// Writes returns the collection that the stage writes.
func (s *Stage) Writes() (ns Namespace, ok bool) { return s.named(s.def.writes) }

// named returns the collection that the specification is, or names in a field, as {db, coll} or
// with the field db beside it.
func (s *Stage) named(field string) (ns Namespace, ok bool) {
	if field == "" {
		return ns, false
	}
	doc, _ := s.Spec.Document()
	v := s.Spec
	if v.Type != bson.TypeString {
		v = doc.Lookup(field)
	}
	if inner, ok := v.Document(); ok {
		doc, v = inner, inner.Lookup("coll")
	}
	ns.DB = s.NS.DB
	if db, ok := doc.Lookup("db").StringValue(); ok && db != "" {
		ns.DB = db
	}
	ns.Coll, ok = v.StringValue()
	return ns, ok
}

// Unsharded returns the collection that a mongos of a version lets the stage only use if it is not
// sharded.
func (s *Stage) Unsharded(v expr.Version) (ns Namespace, ok bool) {
	if s.def.unsharded == nil || !s.def.unsharded(v) {
		return ns, false
	}
	if ns, ok = s.Writes(); !ok {
		ns, ok = s.Reads()
	}
	return ns, ok
}

// Searches reports whether the stage is one that a search index answers.
func (s *Stage) Searches() bool { return s.def.search }

// PerDocument reports whether the stage looks at one document after the other, so that shards do it
// for themselves.
func (s *Stage) PerDocument() bool { return s.def.at == eachShard }

// OnPrimaryShard reports whether only the primary shard can do the stage.
func (s *Stage) OnPrimaryShard() bool { return s.def.at == primaryShard }

// LeavesShard reports whether the stage is not done where the documents are, even if one shard has
// them all.
func (s *Stage) LeavesShard() bool { return s.def.at == primaryShard || s.def.at == elsewhere }

// CheckV1 refuses a stage that version 1 of the Stable API does not have.
func (s *Stage) CheckV1() error {
	if s.def.notV1 {
		return srverr.New(srverr.APIStrictError, "stage %s is not allowed with 'apiStrict: true' in API Version 1",
			s.Name)
	}
	doc, _ := s.Spec.Document()
	for field := range doc.All() {
		if s.def.v1Field != "" && field != s.def.v1Field {
			return srverr.New(srverr.APIStrictError, "only the '%s' option to %s is supported in API Version 1",
				s.def.v1Field, s.Name)
		}
	}
	return nil
}

// Use is an action that a pipeline needs a privilege for; without a database it is one on the
// cluster.
type Use struct {
	Action string
	NS     Namespace
}

// Uses returns what a pipeline does on collections: it reads those that it and its sub-pipelines
// begin with, and writes others, past their validators if bypass.
func Uses(ns Namespace, stages []bson.Raw, bypass bool) []Use {
	list := begin(ns, stages)
	_ = Walk(ns, stages, func(s Stage) error {
		if _, ok := s.Reads(); ok {
			for _, sub := range s.subs() {
				list = append(list, begin(sub.ns, sub.stages)...)
			}
		}
		if to, ok := s.Writes(); ok {
			actions := s.def.actions(s.Spec)
			if bypass {
				actions = append(actions, "bypassDocumentValidation")
			}
			for _, action := range actions {
				list = append(list, Use{action, to})
			}
		}
		return nil
	})
	return list
}

// begin returns what is done on the collection that a pipeline begins with.
func begin(ns Namespace, list []bson.Raw) []Use {
	if len(list) > 0 {
		if s := StageOf(ns, list[0]); s.def.uses != nil {
			return s.def.uses(s)
		}
	}
	return []Use{{"find", ns}}
}

// uses are the actions of a first stage that does something else than find.
func uses(actions ...string) func(s Stage) []Use {
	return func(s Stage) (list []Use) {
		for _, action := range actions {
			list = append(list, Use{action, s.NS})
		}
		return list
	}
}

// onCluster is for stages that need an action on the cluster.
func onCluster(action string) func(s Stage) []Use {
	return func(Stage) []Use { return []Use{{Action: action}} }
}

// usesOfAll is for stages that show what concerns the user, or with allUsers all of that kind.
func usesOfAll(action string) func(s Stage) []Use {
	return func(s Stage) []Use {
		if doc, _ := s.Spec.Document(); doc.Lookup("allUsers").AsBool() {
			return []Use{{Action: action}}
		}
		return nil
	}
}

func before51(v expr.Version) bool { return !v.AtLeast(5, 1) }

func actionsOfOut(bson.RawValue) []string { return []string{"insert", "remove"} }

// actionsOfMerge returns what $merge does with documents that match, and with those that do not.
func actionsOfMerge(spec bson.RawValue) (actions []string) {
	doc, _ := spec.Document()
	matched, _ := doc.Lookup("whenMatched").StringValue()
	notMatched, given := doc.Lookup("whenNotMatched").StringValue()
	if !given || notMatched == "insert" {
		actions = append(actions, "insert")
	}
	if matched != "fail" {
		actions = append(actions, "update")
	}
	return actions
}
