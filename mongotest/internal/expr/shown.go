package expr

// How explain shows expressions: with their constants computed, and operators in their full form.

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
)

// Shown returns an operand as explain shows it. Constants stand in $const, a single positional
// operand in an array, and what is short for something else as what it is short for. Of several
// constant operands each is shown; a server may add them up. Expressions that do not parse, because
// they name variables of their surroundings, are shown with their parts.
func Shown(v bson.RawValue, s *Scope) bson.RawValue {
	if c, ok := computed(v, s); ok {
		return single("$const", c)
	}
	switch v.Type {
	case bson.TypeString:
		if text, _ := v.StringValue(); strings.HasPrefix(text, "$$CURRENT.") {
			return bsondoc.StringValue("$" + strings.TrimPrefix(text, "$$CURRENT."))
		} else if !strings.HasPrefix(text, "$") {
			return single("$const", v)
		}
		return v
	case bson.TypeArray:
		return shownList(v, s)
	case bson.TypeEmbeddedDocument:
		name, arg, n := firstElement(v.Value)
		if n == 1 && strings.HasPrefix(name, "$") {
			return bsondoc.DocumentValue(shownOperator(name, arg, s))
		}
		return shownFields(v, s)
	}
	return single("$const", v)
}

// ShownAccumulator returns an accumulator of $group, {$sum: 1}, as explain shows it.
func ShownAccumulator(v bson.RawValue, s *Scope) bson.RawValue {
	doc, ok := v.Document()
	if !ok {
		return v
	}
	switch name, arg, _ := firstElement(doc); name {
	case "$count":
		return single("$sum", single("$const", bsondoc.Int32Value(1)))
	case "$accumulator", "$top", "$bottom", "$topN", "$bottomN", "$percentile", "$median":
		return v
	case "$firstN", "$lastN", "$minN", "$maxN":
		return single(name, shownFields(arg, s))
	default:
		return single(name, Shown(arg, s))
	}
}

func single(name string, v bson.RawValue) bson.RawValue {
	return bsondoc.DocumentValue(bsondoc.Single(name, v))
}

// computed returns the value of a constant expression.
func computed(v bson.RawValue, s *Scope) (bson.RawValue, bool) {
	e, err := Parse(v, s)
	if err != nil {
		return bson.RawValue{}, false
	}
	if e, err = Optimize(e, s.env); err != nil {
		return bson.RawValue{}, false
	}
	c, ok := Constant(e)
	return c, ok && c.Type != 0
}

func shownList(list bson.RawValue, s *Scope) bson.RawValue {
	items := bsondoc.Items(list)
	for i, item := range items {
		items[i] = Shown(item, s)
	}
	return bsondoc.ArrayValue(items...)
}

func shownFields(doc bson.RawValue, s *Scope) bson.RawValue {
	at, dst := bson.BeginDocument(nil)
	for k, item := range bson.Raw(doc.Value).All() {
		dst = bson.AppendRawValue(dst, k, Shown(item, s))
	}
	return bsondoc.DocumentValue(bson.EndDocument(dst, at))
}

func shownOperator(name string, arg bson.RawValue, s *Scope) bson.Raw {
	op := operators[name]
	if op.as != "" {
		name = op.as
	}
	if op.shown == nil {
		op.shown = shownPositional
	}
	return bsondoc.Single(name, op.shown(arg, s))
}

func shownPositional(arg bson.RawValue, s *Scope) bson.RawValue {
	if arg.Type == bson.TypeArray {
		return shownList(arg, s)
	}
	return bsondoc.ArrayValue(Shown(arg, s))
}

// shownAsWritten is for operators whose argument is no expression.
func shownAsWritten(arg bson.RawValue, _ *Scope) bson.RawValue { return arg }

// shownOperands shows named operands in the order of their names. A "=" before a name tells that
// its value is no expression.
func shownOperands(names ...string) showing {
	return func(arg bson.RawValue, s *Scope) bson.RawValue {
		doc, ok := operands(arg)
		if !ok {
			return shownPositional(arg, s)
		}
		return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			for _, k := range names {
				k, plain := strings.CutPrefix(k, "=")
				item := doc.Lookup(k)
				if item.Type == 0 && k == "as" {
					item = bsondoc.StringValue("this")
				}
				if item.Type != 0 && !plain {
					item = Shown(item, s)
				}
				if item.Type != 0 {
					d.B = bson.AppendRawValue(d.B, k, item)
				}
			}
		}))
	}
}

// operands returns the document of named operands, and whether there is one: an operator is a
// document, too.
func operands(arg bson.RawValue) (bson.Raw, bool) {
	doc, ok := arg.Document()
	if n, _, count := firstElement(doc); count == 1 && strings.HasPrefix(n, "$") {
		ok = false
	}
	return doc, ok
}

// only returns the operand that stands alone in an array, and whether it does.
func only(arg bson.RawValue) (bson.RawValue, bool) {
	if arg.Type != bson.TypeArray {
		return arg, false
	}
	items := bsondoc.Items(arg)
	if len(items) != 1 {
		return arg, false
	}
	return items[0], true
}

// shownConversion shows what is short for $convert to a type as the operands of that.
func shownConversion(to bson.RawValue) showing {
	if to.Type == bson.TypeInt32 {
		n, _ := to.AsInt64()
		to = bsondoc.StringValue(bsontext.TypeName(bson.Type(n)))
	}
	return func(arg bson.RawValue, s *Scope) bson.RawValue {
		operand, _ := only(arg)
		return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "input", Shown(operand, s))
			d.B = bson.AppendRawValue(d.B, "to", single("$const", to))
		}))
	}
}

func shownDatePart(arg bson.RawValue, s *Scope) bson.RawValue {
	zone := bson.RawValue{}
	date, alone := only(arg)
	if doc, ok := operands(arg); ok && !alone {
		date, zone = doc.Lookup("date"), doc.Lookup("timezone")
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "date", Shown(date, s))
		if zone.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "timezone", Shown(zone, s))
		}
	}))
}

func shownCond(arg bson.RawValue, s *Scope) bson.RawValue {
	doc, ok := operands(arg)
	if !ok {
		return shownPositional(arg, s)
	}
	return bsondoc.ArrayValue(Shown(doc.Lookup("if"), s), Shown(doc.Lookup("then"), s), Shown(doc.Lookup("else"), s))
}

func shownLet(arg bson.RawValue, s *Scope) bson.RawValue {
	doc, _ := arg.Document()
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "vars", shownFields(doc.Lookup("vars"), s))
		d.B = bson.AppendRawValue(d.B, "in", Shown(doc.Lookup("in"), s))
	}))
}

func shownGetField(arg bson.RawValue, s *Scope) bson.RawValue {
	if _, ok := operands(arg); ok {
		return shownOperands("field", "input")(arg, s)
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "field", Shown(arg, s))
		d.Str("input", "$$CURRENT")
	}))
}

func shownSwitch(arg bson.RawValue, s *Scope) bson.RawValue {
	doc, _ := arg.Document()
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		branches := bsondoc.Items(doc.Lookup("branches"))
		for i, b := range branches {
			branches[i] = bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
				branch, _ := b.Document()
				d.B = bson.AppendRawValue(d.B, "case", Shown(branch.Lookup("case"), s))
				d.B = bson.AppendRawValue(d.B, "then", Shown(branch.Lookup("then"), s))
			}))
		}
		d.B = bson.AppendRawValue(d.B, "branches", bsondoc.ArrayValue(branches...))
		if other := doc.Lookup("default"); other.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "default", Shown(other, s))
		}
	}))
}

func shownZip(arg bson.RawValue, s *Scope) bson.RawValue {
	doc, _ := arg.Document()
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		inputs, defaults := doc.Lookup("inputs"), doc.Lookup("defaults")
		d.B = bson.AppendRawValue(d.B, "inputs", shownList(inputs, s))
		if defaults.Type == 0 {
			defaults = bsondoc.ArrayValue()
		}
		d.B = bson.AppendRawValue(d.B, "defaults", shownList(defaults, s))
		d.Flag("useLongestLength", doc.Lookup("useLongestLength").AsBool())
	}))
}
