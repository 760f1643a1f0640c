// Command realserver starts a deployment of real servers, runs a command on it, and ends both:
//
//	go run ./tools/realserver -topology replset                       # .ci/deployment, as in CI
//	go run ./tools/realserver -topology sharded go test ./gridfs
//	go run ./tools/realserver -image mongo:8.0 -topology standalone   # in containers
//
// The servers are the mongod and mongos on the PATH, in a temporary folder, or those of an image
// that docker runs. The command finds the connection string in $MONGODB_URI; the exit status is its
// own. What the servers print is in the folder -logs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	var s settings
	flag.StringVar(&s.topology, "topology", "replset",
		"standalone, replset (three members) or sharded (two shards behind two mongoses)")
	flag.StringVar(&s.mongod, "mongod", "mongod", "the `program` that is a server")
	flag.StringVar(&s.mongos, "mongos", "mongos", "the `program` that routes in a sharded cluster")
	flag.StringVar(&s.image, "image", "", "run the servers in containers of this `image`")
	flag.IntVar(&s.port, "port", 27017, "the first `port`; up to five more follow")
	flag.StringVar(&s.logs, "logs", "results", "the `folder` for what the servers print")
	flag.Parse()
	command := flag.Args()
	if len(command) == 0 {
		command = []string{"bash", ".ci/deployment", s.logs}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, command)
	stop()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "realserver:", err)
		os.Exit(1)
	}
}

// run starts the servers, runs the command, and ends the servers. The error of a command that was
// started is an *exec.ExitError.
func run(ctx context.Context, s settings, command []string) (err error) {
	d, err := start(ctx, s)
	defer func() {
		if ended := d.end(); err == nil {
			err = ended
		}
	}()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, d.uri)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "MONGODB_URI="+d.uri)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
