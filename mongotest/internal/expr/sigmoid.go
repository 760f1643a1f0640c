package expr

import (
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() { registerParser("$sigmoid", parseSigmoid) }

// parseSigmoid reads $sigmoid (8.1), 1/(1+exp(-x)). It is made of the operators of that formula,
// and has their types and errors.
func parseSigmoid(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	input, onNull := v, bson.RawValue{}
	if doc, ok := v.Document(); ok && !IsOperation(doc) {
		input = bson.RawValue{}
		for key, item := range doc.All() {
			switch key {
			case "input":
				input = item
			case "onNull":
				onNull = item
			default:
				return nil, srverr.New(srverr.FailedToParse, "$sigmoid found an unknown argument: %s", key)
			}
		}
		switch {
		case doc.IsEmpty():
			return nil, srverr.New(srverr.TypeMismatch, "$sigmoid expects an expression or an object of named arguments")
		case input.Type == 0:
			return nil, srverr.New(srverr.FailedToParse, "Missing 'input' parameter to $sigmoid")
		}
	}
	of := func(name string, args ...bson.RawValue) bson.RawValue {
		at, doc := bson.BeginDocument(nil)
		list, doc := bson.BeginArrayElement(doc, name)
		for i, arg := range args {
			doc = bson.AppendRawValue(doc, strconv.Itoa(i), arg)
		}
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(bson.EndDocument(doc, list), at)}
	}
	one, minusOne := bsondoc.Int32Value(1), bsondoc.Int32Value(-1)
	e := of("$divide", one, of("$add", one, of("$exp", of("$multiply", minusOne, input))))
	if onNull.Type != 0 {
		e = of("$ifNull", e, onNull)
	}
	return parse(e, s, depth+1)
}

// IsOperation reports whether a document is an operator with its operands, and not a list of named
// arguments or an object of expressions.
func IsOperation(doc bson.Raw) bool {
	for key := range doc.All() {
		return strings.HasPrefix(key, "$")
	}
	return false
}
