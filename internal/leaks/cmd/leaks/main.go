// Command leaks runs a command, usually the tests, and searches all that it prints and all that
// its clients log at all levels for the secrets that the tests plant:
//
//	go run ./internal/leaks/cmd/leaks go test -count=1 ./...
//
// It prints the lines with a secret, how many lines it has read, and passes on what the command
// prints. Tests that count allocations, or what is logged by default, fail under it. The exit
// status is that of the command, and 1 if there was a secret or no log.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"allium/internal/leaks"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: leaks COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "leaks:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// search counts the lines that it has read, and prints those with a secret.
type search struct {
	out          io.Writer
	lines, found atomic.Int64
}

func (s *search) line(where, line string) {
	s.lines.Add(1)
	if name := leaks.Line(line); name != "" {
		s.found.Add(1)
		fmt.Fprintf(s.out, "LEAK %s in %s: %.400s\n", name, where, line)
	}
}

// run runs a command with a log of its clients.
func run(command []string, out io.Writer) (status int, err error) {
	dir, err := os.MkdirTemp("", "leaks")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return 1, err
	}
	defer log.Close()
	logged, printed := &search{out: out}, &search{out: out}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "MONGODB_LOG_ALL=trace", "MONGODB_LOG_PATH="+path,
		"MONGODB_LOG_MAX_DOCUMENT_LENGTH=100000")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(r, func(line string) {
			printed.line("the output", line)
			fmt.Fprintln(out, line)
		})
	}()
	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		w.Close()
		<-done
		ended <- err
	}()
	// The log is read while it grows, and cut off behind the reader, since the tests of everything
	// write a lot.
	reader := &follower{file: log, path: path}
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(time.Second):
		}
		if err := reader.next(func(line string) { logged.line("a log", line) }, !running); err != nil {
			return 1, err
		}
	}
	fmt.Fprintf(out, "leaks: %d lines of logs and %d of output, %d with a secret\n", logged.lines.Load(),
		printed.lines.Load(), logged.found.Load()+printed.found.Load())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil
	case err != nil:
		return 1, err
	case logged.found.Load()+printed.found.Load() > 0:
		return 1, errors.New("there are secrets in what was logged or printed")
	case logged.lines.Load() == 0:
		return 1, errors.New("nothing was logged: were the results of tests taken from the cache? Add -count=1")
	}
	return 0, nil
}

// read calls do for each line, however long.
func read(r io.Reader, do func(string)) {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			do(trim(line))
		}
		if err != nil {
			return
		}
	}
}

func trim(line string) string {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}

// follower reads a file that others append to.
type follower struct {
	file *os.File
	path string
	rest []byte // of a line that has not come as a whole
	read int64
}

// mostBytes is how large the file may grow before what has been read is thrown away.
const mostBytes = 256 << 20

// next reads what has come; last says that nothing more will.
func (f *follower) next(do func(string), last bool) error {
	buf := make([]byte, 1<<20)
	for {
		n, err := f.file.Read(buf)
		f.read += int64(n)
		f.rest = append(f.rest, buf[:n]...)
		start := 0
		for i := len(f.rest) - n; i < len(f.rest); i++ {
			if f.rest[i] == '\n' {
				do(string(f.rest[start:i]))
				start = i + 1
			}
		}
		f.rest = append(f.rest[:0], f.rest[start:]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if last && len(f.rest) > 0 {
		do(string(f.rest))
		f.rest = nil
	}
	if f.read < mostBytes {
		return nil
	}
	// Those who append go on at the new end. A line that comes at this very moment is lost.
	f.read = 0
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	_, err := f.file.Seek(0, io.SeekStart)
	return err
}
