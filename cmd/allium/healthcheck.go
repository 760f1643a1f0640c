package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"allium"
	"allium/bson"
)

// healthFlags are the command line of allium healthcheck.
type healthFlags struct {
	readyFile string
	timeout   time.Duration
}

func (f *healthFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.readyFile, "ready-file", "",
		"ask the deployment that wrote this `file` (allium serve --ready-file)")
	fs.DurationVar(&f.timeout, "timeout", 2*time.Second,
		"a deployment that does not answer within this `duration` is not healthy")
}

// ownServer is what is asked without a connection string: the server of this container.
const ownServer = "mongodb://127.0.0.1:27017/?directConnection=true"

// healthcheck reports by its exit status whether a deployment is ready: it answers, and takes
// writes or is a secondary. It needs no user.
func healthcheck(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium healthcheck"
	var f healthFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	uri := ownServer
	switch {
	case fs.NArg() > 1, fs.NArg() == 1 && f.readyFile != "":
		return misuse(name, stderr, "want one connection string, or -ready-file")
	case f.timeout <= 0:
		return misuse(name, stderr, fmt.Sprintf("-timeout %v: want a time that is positive", f.timeout))
	case fs.NArg() == 1:
		uri = fs.Arg(0)
	}
	if f.readyFile != "" {
		var err error
		if uri, err = readyURI(f.readyFile); err != nil {
			return fail(name, stderr, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	client, err := allium.Open(uri, allium.ClientOptions{AppName: "allium healthcheck"})
	if err != nil {
		return misuse(name, stderr, err.Error())
	}
	defer client.Close(context.WithoutCancel(ctx))
	reply, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}})
	if err == nil && !reply.Lookup("isWritablePrimary").AsBool() && !reply.Lookup("ismaster").AsBool() &&
		!reply.Lookup("secondary").AsBool() {
		err = errors.New("the server answers, and is neither a primary nor a secondary")
	}
	if err != nil {
		return fail(name, stderr, err)
	}
	fmt.Fprintln(stdout, "healthy")
	return succeeded
}

// readyURI returns the connection string that allium serve wrote into a file. The server is of this
// machine, and its certificate need not be that of the address.
func readyURI(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("not ready: %w", err)
	}
	var line ready
	if err := json.Unmarshal(text, &line); err != nil || line.URI == "" {
		return "", fmt.Errorf("%s: want the line of allium serve --ready-file: %v", path, err)
	}
	if strings.Contains(line.URI, "tls=true") && line.CAFile == "" {
		return line.URI + "&tlsInsecure=true", nil
	}
	return line.URI, nil
}
