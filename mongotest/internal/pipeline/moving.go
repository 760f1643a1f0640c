package pipeline

// Window functions that follow a window as it moves: documents are added at its end and taken away
// at its beginning. What rounding leaves behind stays, as it does in a server.

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
)

// moving is what such a function has of its window. Documents are given to it by their indexes.
type moving interface {
	add(i int)
	remove(i int)
	value() bson.RawValue
}

// follow returns the values that a function has for the window of each document.
func (b bounds) follow(w *windowStage, docs []bson.Raw, m moving) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(docs))
	begin, end := 0, 0
	for i := range docs {
		from, to, err := b.at(i, docs)
		if err != nil {
			return nil, err
		}
		for ; end < to; end++ {
			if err := w.rt.interrupted(); err != nil {
				return nil, err
			}
			m.add(end)
		}
		for ; begin < min(from, end); begin++ {
			m.remove(begin)
		}
		out[i] = m.value()
	}
	return out, nil
}

// covariance is $covariancePop and $covarianceSamp. What is no array of two numbers does not count.
type covariance struct {
	bounds
	operand
	sample bool
}

func parseCovariance(sample bool) func(*windowStage, *parser, bson.RawValue, bounds) (windowFunction, error) {
	return func(_ *windowStage, p *parser, arg bson.RawValue, b bounds) (windowFunction, error) {
		c := &covariance{bounds: b, sample: sample}
		return c, c.operand.parse(p)(arg)
	}
}

func (c *covariance) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	pairs, err := c.values(w, docs)
	if err != nil {
		return nil, err
	}
	return c.follow(w, docs, &productSum{pairs: pairs, sample: c.sample, products: integer(0)})
}

// productSum sums up the products of the differences from two means.
type productSum struct {
	pairs  []bson.RawValue
	sample bool

	n         int // finite pairs
	x, y      expr.MovingSum
	products  mixed
	nonFinite expr.MovingSum
	infinite  int // pairs that are not finite
}

func (s *productSum) pair(i int) (x, y bson.RawValue, ok bool) {
	list := bsondoc.Items(s.pairs[i])
	if s.pairs[i].Type != bson.TypeArray || len(list) != 2 || !list[0].IsNumber() || !list[1].IsNumber() {
		return x, y, false
	}
	return list[0], list[1], true
}

func finite(v bson.RawValue) bool {
	x := mixedOf(v)
	return !x.isNaN() && (x.isDecimal && !x.decimal.IsInf() || !x.isDecimal && !math.IsInf(x.double, 0))
}

func mean(sum *expr.MovingSum, n int) mixed {
	return mixedOf(sum.Value()).quo(mixed{double: float64(n)})
}

func (s *productSum) add(i int) {
	x, y, ok := s.pair(i)
	switch {
	case !ok:
	case !finite(x) || !finite(y):
		s.infinite++
		s.nonFinite.Add(x)
		s.nonFinite.Add(y)
	default:
		dx := mixedOf(x)
		if s.n > 0 {
			dx = dx.sub(mean(&s.x, s.n))
		}
		s.n++
		s.x.Add(x)
		s.y.Add(y)
		s.products = s.products.add(dx.mul(mixedOf(y).sub(mean(&s.y, s.n))))
	}
}

func (s *productSum) remove(i int) {
	x, y, ok := s.pair(i)
	switch {
	case !ok:
	case !finite(x) || !finite(y):
		if s.infinite--; s.infinite == 0 {
			s.nonFinite = expr.MovingSum{}
			return
		}
		s.nonFinite.Remove(x)
		s.nonFinite.Remove(y)
	case s.n == 1:
		s.n, s.x, s.y, s.products = 0, expr.MovingSum{}, expr.MovingSum{}, integer(0)
	default:
		dy := mixedOf(y).sub(mean(&s.y, s.n))
		s.n--
		s.x.Remove(x)
		s.y.Remove(y)
		s.products = s.products.sub(mixedOf(x).sub(mean(&s.x, s.n)).mul(dy))
	}
}

func (s *productSum) value() bson.RawValue {
	n := s.n
	if s.sample {
		n--
	}
	switch {
	case n <= 0:
		return nullValue
	case s.n == 1:
		return bsondoc.DoubleValue(0)
	case s.infinite > 0:
		return s.nonFinite.Value()
	}
	return s.products.quo(mixed{double: float64(n)}).value()
}

// deviation is $stdDevPop and $stdDevSamp over a window whose beginning moves. Those over others
// are computed like the accumulators, which round otherwise and know no difference between NaN
// and infinity.
type deviation struct {
	spec *expr.AccumulatorSpec
	bounds
	sample bool
}

func (d *deviation) optimize(env *expr.Env) error { return d.spec.Optimize(env) }

func (d *deviation) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		var err error
		if values[i], err = d.spec.Argument(w.rt.state.WithRoot(doc)); err != nil {
			return nil, err
		}
	}
	return d.follow(w, docs, &squareSum{values: values, sample: d.sample})
}

// squareSum sums up the squares of the differences from the mean.
type squareSum struct {
	values []bson.RawValue
	sample bool

	n, infinite  int // finite numbers, and others
	sum, squares expr.MovingSum
}

func (s *squareSum) add(i int)    { s.move(i, 1) }
func (s *squareSum) remove(i int) { s.move(i, -1) }

func (s *squareSum) move(i, by int) {
	v := s.values[i]
	switch {
	case !v.IsNumber():
		return
	case !finite(v):
		s.infinite += by
		return
	case s.n+by == 0:
		s.n, s.sum, s.squares = 0, expr.MovingSum{}, expr.MovingSum{}
		return
	case s.n > 0:
		n := float64(s.n)
		x := n*mixedOf(v).approximate() - mixedOf(s.sum.Value()).approximate()
		s.squares.Add(bsondoc.DoubleValue(x * x * float64(by) / (n * (n + float64(by)))))
	}
	if s.n += by; by > 0 {
		s.sum.Add(v)
	} else {
		s.sum.Remove(v)
	}
}

func (s *squareSum) value() bson.RawValue {
	n := s.n
	if s.sample {
		n--
	}
	squares := mixedOf(s.squares.Value()).approximate()
	switch {
	case s.infinite > 0 || n <= 0:
		return nullValue
	case squares < 0, !s.sample && s.n == 1:
		return bsondoc.Int32Value(0)
	}
	return bsondoc.DoubleValue(math.Sqrt(squares / float64(n)))
}
