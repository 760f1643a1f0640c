//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the signals of a terminal from the servers: they end after the command.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }
