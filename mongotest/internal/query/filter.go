package query

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/fts"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Options is what surrounds a filter, an update or a projection. A nil *Options means the defaults.
type Options struct {
	// Collation compares strings; nil compares bytes.
	Collation *Collation
	// Version is the server version to behave as; zero is the newest.
	Version release.Version
	// Expr parses aggregation expressions: $expr, and expressions in projections. With nil they are
	// refused.
	Expr ExprParser
	// NoExpr refuses $expr where the server does, as in partial index filters; NoText refuses $text
	// and geo queries likewise, NoNear those of the latter that sort.
	NoExpr, NoText, NoNear bool
	// Unsorted keeps the conditions in the order in which they are written, as stages after a
	// pipeline's first do.
	Unsorted bool
	// NoWhere refuses $where, NoSchema $jsonSchema.
	NoWhere, NoSchema bool
	// Where compiles the code of $where. nil: the server runs no JavaScript. A filter with $where
	// is used by one goroutine at a time.
	Where WhereCompiler
	// Work counts the steps of the command that the filter, update or sort is for, which it ends.
	// What is parsed with one is used by one goroutine at a time.
	Work *work.Meter
}

func (o *Options) meter() *work.Meter {
	if o == nil {
		return nil
	}
	return o.Work
}

// ExprParser parses aggregation expressions. An error that it finds while computing the constant
// parts it returns as a *FoldError.
type ExprParser interface {
	ParseExpr(v bson.RawValue) (Expr, error)
}

// ExprParserFunc is a function that is an ExprParser.
type ExprParserFunc func(v bson.RawValue) (Expr, error)

// ParseExpr calls f.
func (f ExprParserFunc) ParseExpr(v bson.RawValue) (Expr, error) { return f(v) }

// WhereCompiler compiles the code of $where to what tells whether a document matches.
type WhereCompiler interface {
	CompileWhere(code string) (func(doc bson.Raw) (bool, error), error)
}

// FoldError is an error found while computing the constant parts of an expression. In a filter the
// server reports it after all parse errors, and says where it was.
type FoldError struct{ Err error }

func (e *FoldError) Error() string { return e.Err.Error() }

// Unwrap returns the expression's error.
func (e *FoldError) Unwrap() error { return e.Err }

// Expr is a parsed aggregation expression. Eval returns the zero RawValue for a missing value.
type Expr interface {
	Eval(doc bson.Raw) (bson.RawValue, error)
}

func (o *Options) version() (v release.Version) {
	if o != nil {
		v = o.Version
	}
	return v
}

func (o *Options) collation() *Collation {
	if o == nil {
		return nil
	}
	return o.Collation
}

// Filter is a parsed find filter. It is safe for concurrent use.
type Filter struct {
	root node
	coll *Collation
	text *textNode // $text, if there is one
	near *Near

	source  bson.Raw
	options *Options

	id bson.RawValue // of a filter that is nothing but {_id: value}
}

// ParseFilter parses a filter. The filter's bytes must not change while it is in use.
func ParseFilter(filter bson.Raw, o *Options) (_ *Filter, err error) {
	defer work.Catch(&err)
	p := newFilterParser(o)
	root, err := p.parse(filter, levelTop)
	if err != nil {
		return nil, err
	}
	if err := foldError(root); err != nil {
		return nil, err
	}
	f := p.filter(root)
	f.source, f.options = filter, o
	if f.near != nil && !nearOnTop(f.root) {
		return nil, badValue("geoNear must be top-level expr")
	}
	return f, nil
}

// nearOnTop tells whether the $near of a filter is its root or a child of the $and that is the
// root.
func nearOnTop(root node) bool {
	if a, ok := root.(*and); ok {
		return slices.ContainsFunc(a.children, func(n node) bool {
			_, isNear := n.(*nearNode)
			return isNear
		})
	}
	_, isNear := root.(*nearNode)
	return isNear
}

// unordered returns the filter's tree as the positional operator of projections sees it:
// simplified, but in the order in which it was written, which was seen in 4.4, and not in 8.2.
func (f *Filter) unordered() (node, error) {
	root, err := f.written(f.options.plain())
	if err != nil {
		return nil, err
	}
	if f.options.version().AllParsed() {
		return normalize(root), nil
	}
	return flatten(root), nil
}

// written returns the filter's tree as it was written.
func (f *Filter) written(o *Options) (node, error) {
	return newFilterParser(o).parse(f.source, levelTop)
}

// plain returns the options without what the server calls special features: $expr, $jsonSchema,
// $text, $where and geo queries that need an index.
func (o *Options) plain() *Options {
	out := Options{Collation: o.collation(), Version: o.version()}
	if o != nil {
		out = *o
	}
	out.NoExpr, out.NoSchema, out.NoText, out.NoWhere = true, true, true, true
	return &out
}

func newFilterParser(o *Options) *filterParser {
	p := &filterParser{coll: o.collation(), version: o.version(), work: o.meter()}
	if o != nil {
		p.unsorted = o.Unsorted
		p.noNear = o.NoNear
		p.expr, p.noExpr, p.noText, p.noWhere, p.noSchema, p.where = o.Expr, o.NoExpr, o.NoText, o.NoWhere, o.NoSchema,
			o.Where
	}
	return p
}

func (p *filterParser) filter(root node) *Filter {
	if p.unsorted {
		root = flatten(root)
	} else {
		root = normalize(root)
	}
	f := &p.out
	f.root, f.coll, f.text, f.near = root, p.coll, p.text, p.near
	if l, ok := root.(*leaf); ok && l.path.name == "_id" {
		if c, ok := l.test.(*compareTest); ok && c.op == equal && isExactID(c.rhs, c.coll) {
			f.id = c.rhs
		}
	}
	return f
}

// isExactID tells whether {_id: v} means exactly the document with this _id: v is not compared by a
// collation, not null (which a missing _id would match as well), and no regular expression.
func isExactID(v bson.RawValue, coll *Collation) bool {
	switch v.Type {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeRegex, bson.TypeArray, bson.TypeMinKey, bson.TypeMaxKey:
		return false
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument:
		return coll == nil
	}
	return true
}

// Match tells whether a document matches. The only errors are those of $expr and $where, and the
// one that ends the command.
func (f *Filter) Match(doc bson.Raw) (bool, error) {
	ok, _, err := f.MatchIndex(doc)
	return ok, err
}

// MatchIndex is Match; if an array was traversed it also returns the index of the element that made
// the document match, for the positional operator, else -1.
func (f *Filter) MatchIndex(doc bson.Raw) (ok bool, index int, err error) {
	if f.options.meter() != nil {
		defer work.Catch(&err)
	}
	return f.root.match(doc)
}

// IDEquality returns the value of a filter that is nothing but {_id: value} (or {_id: {$eq:
// value}}), for the fast path to one document: the document with an equal _id, if there is one, is
// the result, and it need not be matched again.
func (f *Filter) IDEquality() (bson.RawValue, bool) { return f.id, f.id.Type != 0 }

// MatchesAll reports whether the filter is empty.
func (f *Filter) MatchesAll() bool {
	a, ok := f.root.(*and)
	return ok && len(a.children) == 0
}

// NeedsTextIndex reports whether the filter contains $text. Until SearchIn says which index it
// searches, every document matches it.
func (f *Filter) NeedsTextIndex() bool { return f.text != nil }

// NegatesText reports whether the filter has $text below $nor, where no text index can answer it.
func (f *Filter) NegatesText() bool { return f.text != nil && negatesText(f.root, false) }

func negatesText(n node, negated bool) bool {
	var children []node
	switch n := n.(type) {
	case *textNode:
		return negated
	case *and:
		children = n.children
	case *or:
		children = n.children
	case *nor:
		children, negated = n.children, true
	case *not:
		return negatesText(n.child, true)
	}
	return slices.ContainsFunc(children, func(c node) bool { return negatesText(c, negated) })
}

// SearchIn makes $text search by the definition of a text index. The error is that of a language
// that does not exist.
func (f *Filter) SearchIn(index *fts.Index) error {
	if _, ok := fts.Language(f.text.query.Language); !ok && f.text.query.Language != "" {
		return badValue("unsupported language: \"%s\" for text index version 3", f.text.query.Language)
	}
	f.text.search = index.Search(&f.text.query)
	if f.text.query.Language == "" { // explain shows the index's own
		f.text.query.Language = index.Language()
	}
	return nil
}

// TextSearch returns what $text searches for, nil as long as it is not known where; rest is the
// filter without it, nil if nothing is left.
func (f *Filter) TextSearch() (search *fts.Search, rest *Filter) {
	var list []Condition
	all, ok := f.Condition().All()
	if !ok {
		all = []Condition{f.Condition()}
	}
	for _, c := range all {
		if _, isText := c.node.(*textNode); !isText {
			list = append(list, c)
		}
	}
	return f.text.search, Joined(list)
}

// TextScore returns how well a document fits what $text searches for, 0 as long as there is no
// index to search in.
func (f *Filter) TextScore(doc bson.Raw) float64 {
	if f.text.search == nil {
		return 0
	}
	return f.text.search.Score(doc)
}

// textNode is $text.
type textNode struct {
	query  fts.Query
	search *fts.Search // in an index; nil until it is known
}

func (t *textNode) match(doc bson.Raw) (bool, int, error) {
	return t.search == nil || t.search.Match(doc), noIndex, nil
}

func (t *textNode) matchValue(bson.RawValue) bool { return false }

// NeedsGeoIndex reports whether the filter contains $near or $nearSphere. In which order the
// documents come is up to the caller: see Near.
func (f *Filter) NeedsGeoIndex() bool { return f.near != nil }

// foldError returns the first error of a constant expression; each level of the tree adds its say.
func foldError(n node) error {
	var children []node
	switch n := n.(type) {
	case *exprNode:
		if n.fold == nil {
			return nil
		}
		return withContext("Failed to optimize expression", n.fold)
	case *and:
		children = n.children
	case *or:
		children = n.children
	case *nor:
		children = n.children
	}
	for _, c := range children {
		if err := foldError(c); err != nil {
			return withContext("Failed to optimize expression", err)
		}
	}
	return nil
}

// exprNode is $expr.
type exprNode struct {
	expr Expr
	fold error
	// compares are comparisons of fields with constants that hold in every document that matches.
	compares []exprComparison
	source   bson.RawValue
}

// exprComparison is a comparison of a field with a constant in an expression.
type exprComparison struct {
	path  Path
	op    comparison
	value bson.RawValue
}

// exprOrders are the comparisons of expressions, and what each is with its sides exchanged. Members
// before 5.0 plan with equalities alone.
var exprOrders = map[string][2]comparison{
	"$eq": {equal, equal}, "$lt": {less, greater}, "$lte": {less | equal, greater | equal},
	"$gt": {greater, less}, "$gte": {greater | equal, less | equal},
}

// exprComparisons returns the comparisons that an expression demands at its top.
func exprComparisons(v bson.RawValue, orders bool) (list []exprComparison) {
	doc, ok := v.Document()
	if !ok {
		return nil
	}
	for name, args := range doc.All() {
		if args.Type != bson.TypeArray {
			continue
		}
		switch name {
		case "$and":
			for e := range bson.Raw(args.Value).Values() {
				list = append(list, exprComparisons(e, orders)...)
			}
		case "$eq", "$lt", "$lte", "$gt", "$gte":
			if name != "$eq" && !orders {
				break
			}
			op := exprOrders[name]
			a, b := bson.Raw(args.Value).Lookup("0"), bson.Raw(args.Value).Lookup("1")
			how := op[0]
			path, value, ok := fieldAndConstant(a, b)
			if !ok {
				how = op[1]
				path, value, ok = fieldAndConstant(b, a)
			}
			if ok {
				list = append(list, exprComparison{NewPath(path), how, value})
			}
		}
	}
	return list
}

// fieldAndConstant reads the two sides of a comparison.
func fieldAndConstant(field, constant bson.RawValue) (path string, value bson.RawValue, ok bool) {
	path, ok = field.StringValue()
	if !ok || len(path) < 2 || path[0] != '$' || path[1] == '$' {
		return "", value, false
	}
	if doc, isDoc := constant.Document(); isDoc {
		if constant = doc.Lookup("$literal"); constant.Type == 0 || constant.Type == bson.TypeEmbeddedDocument {
			return "", value, false
		}
	} else if s, isString := constant.StringValue(); isString && strings.HasPrefix(s, "$") {
		return "", value, false
	}
	switch constant.Type {
	case bson.TypeArray, bson.TypeUndefined:
		return "", value, false
	}
	return path[1:], constant, true
}

func (e *exprNode) match(doc bson.Raw) (bool, int, error) {
	v, err := e.expr.Eval(doc)
	if err != nil {
		return false, noIndex, err
	}
	return truthy(v), noIndex, nil
}

func (e *exprNode) matchValue(bson.RawValue) bool { return false }

// whereNode is $where.
type whereNode struct {
	code string
	run  func(doc bson.Raw) (bool, error)
}

func (w *whereNode) match(doc bson.Raw) (bool, int, error) {
	ok, err := w.run(doc)
	return ok, noIndex, err
}

func (w *whereNode) matchValue(bson.RawValue) bool { return false }

// truthy converts a value to a boolean as aggregation does.
func truthy(v bson.RawValue) bool {
	if v.Type == bson.TypeDecimal128 {
		d, _ := v.Decimal128()
		hi, lo := d.Bits()
		return lo != 0 || hi&(1<<49-1) != 0 || hi>>61&3 == 3
	}
	return v.AsBool()
}

// badValue is the error that most malformed filters end with.
func badValue(format string, args ...any) error {
	return srverr.New(srverr.BadValue, format, args...)
}

// Collation returns what the filter compares strings by, nil for their bytes.
func (f *Filter) Collation() *Collation { return f.coll }

// SimpleCollation reports whether the filter compares strings by their bytes.
func (f *Filter) SimpleCollation() bool { return f.coll == nil }
