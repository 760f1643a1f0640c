// Package work ends long loops when their operation ends: code that counts its steps looks now and
// then whether the operation was killed, ran out of time, or runs on a node that stops.
//
// Loops that are far down, in comparisons of a sort or in a match of a regular expression, have no
// way to return an error. A [Meter] leaves them by a panic, which [Catch] turns into the error. Who
// hands out a Meter has a Catch below its own callers.
package work

// Interval is how many steps lie between two looks. A step takes less than a microsecond or so.
const Interval = 1024

// Meter counts the steps of an operation. A nil *Meter counts nothing. It belongs to one goroutine
// at a time.
type Meter struct {
	check func() error
	steps int
}

// New returns a meter of the operation that check ends by an error. nil: nothing ends it, and there
// is no meter.
func New(check func() error) *Meter {
	if check == nil {
		return nil
	}
	return &Meter{check: check}
}

// ended is what a meter panics with.
type ended struct{ err error }

// Check returns what ends the operation, nil if nothing does.
func (m *Meter) Check() func() error {
	if m == nil {
		return nil
	}
	return m.check
}

// Do counts steps. If the operation has ended it does not return: see [Catch].
func (m *Meter) Do(steps int) {
	if m == nil {
		return
	}
	if m.steps += steps; m.steps >= Interval {
		m.look()
	}
}

// Count returns Do, nil if nobody counts.
func (m *Meter) Count() func(steps int) {
	if m == nil {
		return nil
	}
	return m.Do
}

func (m *Meter) look() {
	m.steps = 0
	End(m.check())
}

// End leaves the loops up to [Catch] if err is not nil.
func End(err error) {
	if err != nil {
		panic(&ended{err})
	}
}

// Catch is deferred by functions below which a meter counts: err is then the one that has ended the
// operation. Other panics go on.
func Catch(err *error) {
	if v := recover(); v != nil {
		e, ok := v.(*ended)
		if !ok {
			panic(v)
		}
		*err = e.err
	}
}

// Ended returns the error that a recovered panic stands for, nil if a meter did not panic.
func Ended(v any) error {
	if e, ok := v.(*ended); ok {
		return e.err
	}
	return nil
}

// Counting returns a comparison that counts.
func Counting[T any](m *Meter, compare func(a, b T) int) func(a, b T) int {
	if m == nil {
		return compare
	}
	return func(a, b T) int {
		m.Do(1)
		return compare(a, b)
	}
}
