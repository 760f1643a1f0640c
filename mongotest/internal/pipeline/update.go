package pipeline

// Pipelines as updates, and expressions for find's filters and projections.

import (
	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// Update is an update in the form of a pipeline. It is not safe for concurrent use.
type Update struct {
	stages []transformer
}

// transformer is a stage that makes one document of one.
type transformer interface {
	apply(doc bson.Raw) (bson.Raw, error)
}

// ParseUpdate parses a pipeline of the stages that an update may have: $addFields, $set, $project,
// $unset, $replaceRoot, $replaceWith, and $fill with values, which is $addFields. Let in the
// options is the update's constants ("c").
func ParseUpdate(stages []bson.Raw, o *Options) (*Update, error) {
	p, err := newRuntime(o)
	if err != nil {
		return nil, err
	}
	return p.update(stages)
}

func (p *parser) update(stages []bson.Raw) (*Update, error) {
	p.rt.update = true
	pl, err := p.pipeline(stages)
	if err != nil {
		return nil, err
	}
	pl.linkHoles()
	u := &Update{}
	for _, st := range pl.stages {
		_, window := st.stage.(*windowStage) // of a $fill with methods
		if !st.def.update || window {
			name := st.def.name
			switch {
			case window && st.def.update:
				name = "$_internalSetWindowFields"
			case st.def.made != "":
				name = st.def.made
			}
			return nil, srverr.New(srverr.InvalidOptions, "%s is not allowed to be used within an update", name)
		}
		if t, ok := st.stage.(transformer); ok {
			u.stages = append(u.stages, t)
		}
	}
	return u, nil
}

// Apply returns what becomes of a document. The caller checks that _id stays as it was.
func (u *Update) Apply(doc bson.Raw) (bson.Raw, error) {
	var err error
	for _, st := range u.stages {
		if doc, err = st.apply(doc); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// freeExpr evaluates an expression with a state per evaluation, so that several goroutines may use
// it.
type freeExpr struct {
	e      expr.Expr
	shared *expr.State
}

func (f *freeExpr) Eval(doc bson.Raw) (bson.RawValue, error) {
	return expr.Eval(f.e, f.shared.Fork().WithRoot(doc))
}

// ExprParser returns the parser of $expr in filters and of expressions in find's projections. What
// it parses is safe for concurrent use.
func ExprParser(o *Options) (query.ExprParser, error) {
	p, err := newRuntime(o)
	if err != nil {
		return nil, err
	}
	return query.ExprParserFunc(func(v bson.RawValue) (query.Expr, error) {
		e, err := expr.Parse(v, p.scope)
		if err != nil {
			return nil, err
		}
		if e, err = expr.Optimize(e, p.rt.env); err != nil {
			return nil, &query.FoldError{Err: err}
		}
		return &freeExpr{e, p.rt.state}, nil
	}), nil
}
