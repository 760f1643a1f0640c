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

// namedOperands are the operands of operators that are not in the table of named ones, in the order
// in which they are shown. A "=" before a name tells that its value is no expression.
var namedOperands = map[string]string{
	"$map": "input =as in", "$filter": "input =as cond limit", "$reduce": "input initialValue in",
	"$convert": "input to onError onNull", "$getField": "field input", "$setField": "field input value",
	"$unsetField": "field input", "$sortArray": "input =sortBy", "$firstN": "n input", "$lastN": "n input",
	"$minN": "n input", "$maxN": "n input",
}

// shownAsWritten are operators whose argument is no expression.
var shownAsWritten = map[string]bool{"$literal": true, "$const": true, "$meta": true, "$rand": true, "$function": true,
	"$_internalJsEmit": true, "$percentile": true, "$median": true}

func shownOperator(name string, arg bson.RawValue, s *Scope) bson.Raw {
	doc, isDocument := arg.Document()
	if n, _, count := firstElement(doc); count == 1 && strings.HasPrefix(n, "$") {
		isDocument = false // an operator, whose value is the operand
	}
	if shownAsWritten[name] {
		return bsondoc.Single(name, arg)
	}
	if to, ok := conversions[name]; ok {
		operand := arg
		if items := bsondoc.Items(arg); arg.Type == bson.TypeArray && len(items) == 1 {
			operand = items[0]
		}
		return bsondoc.Single("$convert", bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "input", Shown(operand, s))
			if to.Type == bson.TypeInt32 {
				n, _ := to.AsInt64()
				to = bsondoc.StringValue(bsontext.TypeName(bson.Type(n)))
			}
			d.B = bson.AppendRawValue(d.B, "to", single("$const", to))
		})))
	}
	if dateParts[name] {
		date, zone := arg, bson.RawValue{}
		if items := bsondoc.Items(arg); arg.Type == bson.TypeArray && len(items) == 1 {
			date = items[0]
		} else if isDocument {
			date, zone = doc.Lookup("date"), doc.Lookup("timezone")
		}
		return bsondoc.Single(name, bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "date", Shown(date, s))
			if zone.Type != 0 {
				d.B = bson.AppendRawValue(d.B, "timezone", Shown(zone, s))
			}
		})))
	}
	switch {
	case name == "$cond" && isDocument:
		return bsondoc.Single(name, bsondoc.ArrayValue(Shown(doc.Lookup("if"), s), Shown(doc.Lookup("then"), s),
			Shown(doc.Lookup("else"), s)))
	case name == "$switch":
		return bsondoc.Single(name, shownSwitch(doc, s))
	case name == "$let":
		return bsondoc.Single(name, bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "vars", shownFields(doc.Lookup("vars"), s))
			d.B = bson.AppendRawValue(d.B, "in", Shown(doc.Lookup("in"), s))
		})))
	case name == "$zip":
		return bsondoc.Single(name, shownZip(doc, s))
	case name == "$getField" && !isDocument:
		return bsondoc.Single(name, bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "field", Shown(arg, s))
			d.Str("input", "$$CURRENT")
		})))
	}
	if operands := operandNames(name); operands != nil && isDocument {
		return bsondoc.Single(name, bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			for _, k := range operands {
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
		})))
	}
	if arg.Type == bson.TypeArray {
		return bsondoc.Single(name, shownList(arg, s))
	}
	return bsondoc.Single(name, bsondoc.ArrayValue(Shown(arg, s)))
}

// operandNames returns the names of an operator's operands; nil if they are positional.
func operandNames(name string) []string {
	if list, ok := namedOperands[name]; ok {
		return strings.Fields(list)
	}
	op := namedOps[name]
	if op == nil {
		return nil
	}
	var list []string
	for _, p := range op.params {
		list = append(list, p.name)
	}
	return list
}

func shownSwitch(doc bson.Raw, s *Scope) bson.RawValue {
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

func shownZip(doc bson.Raw, s *Scope) bson.RawValue {
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

// conversions are what operators that are short for $convert convert to; dateParts are those for a
// part of a date.
var (
	conversions = map[string]bson.RawValue{}
	dateParts   = map[string]bool{}
)
