package flight

import (
	"errors"
	"fmt"
)

var errExit = errors.New("runtime.Goexit was called")

// Call calls f, which may be the program's own code, on a goroutine of the driver's. A panic in it
// becomes an error with its stack.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Recovered(v)
		}
	}()
	return f()
}

// Panic is the error of code that has panicked.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Unwrap returns what was panicked with, if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
