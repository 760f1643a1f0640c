package bench

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cProgram does the tasks with MongoDB's C driver; it says itself how.
//
//go:embed cdriver/peer.c
var cProgram []byte

// cPeers are the running copies of the C program, one for each deployment.
type cPeers struct {
	binary string
	at     map[string]*cPeer // by connection string
}

type cPeer struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// WithC compiles the tasks for the C driver, so that they are measured too. It needs a C compiler,
// pkg-config and libmongoc (Debian: libmongoc-dev); the error names what is missing.
func (e *Env) WithC() error {
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "libmongoc-1.0").Output()
	if err != nil {
		return fmt.Errorf("libmongoc-dev and pkg-config are not both installed: %w", err)
	}
	dir, err := e.scratch()
	if err != nil {
		return err
	}
	source, binary := filepath.Join(dir, "peer.c"), filepath.Join(dir, "peer")
	if err := os.WriteFile(source, cProgram, 0o600); err != nil {
		return err
	}
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", binary, source},
		strings.Fields(string(flags))...)
	if text, err := exec.Command("cc", append(args, "-lpthread")...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w\n%s", err, text)
	}
	e.c = &cPeers{binary, make(map[string]*cPeer)}
	return nil
}

// scratch returns a folder that goes with the environment.
func (e *Env) scratch() (string, error) {
	if e.dir == "" {
		dir, err := os.MkdirTemp("", "allium-bench-")
		if err != nil {
			return "", err
		}
		e.dir = dir
		e.onClose(func() error { return os.RemoveAll(dir) })
	}
	return e.dir, nil
}

// scratchFile writes data to a file for the C program and returns its path.
func (e *Env) scratchFile(name string, data []byte) (string, error) {
	dir, err := e.scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

// cTask returns what measures an operation of the C program, nil without WithC.
func (e *Env) cTask(uri, operation string, args ...string) func(n int, memory bool) (turn, error) {
	if e.c == nil {
		return nil
	}
	return func(n int, memory bool) (turn, error) {
		p, err := e.c.start(e, uri)
		if err != nil {
			return turn{}, err
		}
		if memory {
			if _, err := p.do("trim 1 -"); err != nil {
				return turn{}, err
			}
		}
		t, err := p.do(strings.Join(append([]string{operation, fmt.Sprint(n)}, args...), " "))
		if err != nil {
			return turn{}, fmt.Errorf("the C driver: %w", err)
		}
		t.wall, t.cpu = max(t.wall/time.Duration(n), 1), max(t.cpu/time.Duration(n), 1)
		return t, nil
	}
}

func (c *cPeers) start(e *Env, uri string) (*cPeer, error) {
	if p := c.at[uri]; p != nil {
		return p, nil
	}
	cmd := exec.Command(c.binary, uri)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &cPeer{stdin, bufio.NewReader(stdout)}
	c.at[uri] = p
	e.onClose(func() error { return errors.Join(stdin.Close(), cmd.Wait()) })
	return p, nil
}

// do sends a line and reads the figures of all its operations together.
func (p *cPeer) do(line string) (turn, error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return turn{}, err
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		return turn{}, fmt.Errorf("it ended: %w", err)
	}
	var wall, cpu, peak int64
	if _, err := fmt.Sscanf(answer, "ok %d %d %d", &wall, &cpu, &peak); err != nil {
		return turn{}, errors.New(strings.TrimSpace(strings.TrimPrefix(answer, "error ")))
	}
	return turn{wall: time.Duration(wall), cpu: time.Duration(cpu), peak: peak, calls: -1}, nil
}
