package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"allium/bench/internal/nullserver"
	"allium/mongotest"
)

// childVariable tells a copy of the program to be a server.
const childVariable = "ALLIUM_BENCH_SERVER"

// Child is called first thing in main: in a process that was started to be a server, it is one, and
// does not return.
func Child() {
	kind := os.Getenv(childVariable)
	if kind == "" {
		return
	}
	if err := child(kind); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child serves until standard input ends. An interrupt of a terminal reaches all processes of the
// program: what is measured is still to be finished.
func child(kind string) error {
	signal.Ignore(os.Interrupt)
	switch kind {
	case "mongotest":
		d, err := mongotest.Open(mongotest.ReplicaSet(1))
		if err != nil {
			return err
		}
		defer d.Stop()
		fmt.Println(d.URI())
	case "mongotest TLS":
		d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.TLS())
		if err != nil {
			return err
		}
		defer d.Stop()
		dir, err := os.MkdirTemp("", "allium-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		ca, cert, err := d.WriteTLSFiles(dir)
		if err != nil {
			return err
		}
		fmt.Println(d.URI() + "&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(cert))
	case "null":
		s, err := nullserver.New()
		if err != nil {
			return err
		}
		for i, serve := range []func(net.Listener) error{s.Serve, nullserver.PingPong} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			go serve(l)
			fmt.Println([]string{"mongodb://" + l.Addr().String() + "/", l.Addr().String()}[i])
		}
	default:
		return fmt.Errorf("there is no server %q", kind)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// startChild starts a server in a process of its own, so that its processor time is not the
// client's, and returns the lines that it prints. It ends with stop, or with this process.
func startChild(kind string, lines int) (out []string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+kind)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(stdout)
	for range lines {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, nil, errors.Join(err, stdin.Close(), cmd.Wait())
		}
		out = append(out, strings.TrimSpace(line))
	}
	go io.Copy(os.Stderr, r)
	return out, func() error { return errors.Join(stdin.Close(), cmd.Wait()) }, nil
}
