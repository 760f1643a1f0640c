//go:build !windows

package interop

import "os"

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
