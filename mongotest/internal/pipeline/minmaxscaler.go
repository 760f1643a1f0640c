package pipeline

import (
	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

// minMaxScaler is $minMaxScaler (8.2): where the value of a document lies between the least and the
// greatest of its window, on a scale from least to most. The manual has the formula; where all
// values of a window are equal it says nothing, and they are the least of the scale here.
type minMaxScaler struct {
	bounds
	operand
	least, most mixed
}

func parseMinMaxScaler(_ *windowStage, p *parser, arg bson.RawValue, b bounds) (windowFunction, error) {
	s := &minMaxScaler{bounds: b, least: integer(0), most: integer(1)}
	if doc, ok := arg.Document(); !ok || expr.IsOperation(doc) {
		return s, s.parse(p)(arg)
	}
	limit := func(name string, dst *mixed) func(v bson.RawValue) error {
		return func(v bson.RawValue) error {
			c, err := p.constant(v)
			if err != nil {
				return err
			}
			if c == nil || !c.IsNumber() {
				return srverr.New(srverr.FailedToParse,
					"'%s' of $minMaxScaler must be a constant number, but found %s", name, bsontext.Value(v))
			}
			*dst = mixedOf(*c)
			return nil
		}
	}
	err := namedArgs{"input": s.parse(p), "min": limit("min", &s.least), "max": limit("max", &s.most)}.read(arg,
		func(string) string { return "$minMaxScaler expects an object" },
		func(key string) string { return "$minMaxScaler found an unknown argument: " + key })
	switch {
	case err != nil:
		return nil, err
	case s.input == nil:
		return nil, srverr.New(srverr.FailedToParse, "$minMaxScaler requires an 'input' expression")
	case s.most.sub(s.least).isNaN() || !positive(s.most.sub(s.least)):
		return nil, srverr.New(srverr.FailedToParse, "'min' of $minMaxScaler must be less than 'max'")
	}
	return s, nil
}

func positive(x mixed) bool { return bson.Compare(x.value(), integer(0).value()) > 0 }

func (s *minMaxScaler) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values, err := s.values(w, docs)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if !v.IsNumber() {
			return nil, srverr.New(srverr.TypeMismatch, "$minMaxScaler only supports numeric types, not %s",
				bsontext.TypeName(v.Type))
		}
	}
	out := make([]bson.RawValue, len(docs))
	from, to := -1, -1
	var low, high bson.RawValue // of the window from..to
	for i := range docs {
		begin, end, err := s.at(i, docs)
		if err != nil {
			return nil, err
		}
		if begin >= end {
			out[i] = nullValue
			continue
		}
		if begin != from || end != to { // windows that do not move have their limits already
			from, to = begin, end
			low, high = values[from], values[from]
			for _, v := range values[from:to] {
				if err := w.rt.interrupted(); err != nil {
					return nil, err
				}
				if bson.Compare(v, low) < 0 {
					low = v
				}
				if bson.Compare(v, high) > 0 {
					high = v
				}
			}
		}
		span := mixedOf(high).sub(mixedOf(low))
		if span.isZero() {
			out[i] = s.least.value()
			continue
		}
		out[i] = mixedOf(values[i]).sub(mixedOf(low)).quo(span).mul(s.most.sub(s.least)).add(s.least).value()
	}
	return out, nil
}
