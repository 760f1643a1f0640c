package tracing_test

import (
	"fmt"

	"allium/tracing"
)

func ExampleDriverVersion() {
	// This is a test, which is built from a folder. A program that got the driver by its version
	// prints that.
	fmt.Println(tracing.DriverVersion())
	// Output: devel
}
