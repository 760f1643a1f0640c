package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // in the connection string
	}{
		{"--standalone --port 0", "mongodb://127.0.0.1:"},
		{"--replset 3 --port 0", "replicaSet=rs0"},
		{"--sharded 2x2 --port 0", "mongodb://127.0.0.1:"},
		{"--load-balanced 2 --port 0", "loadBalanced=true"},
		{"--replset 1 --auth root:secret --tls --port 0 --version 4.4", "tlsCAFile="},
	} {
		t.Run(c.args, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			out, w := io.Pipe()
			done := make(chan int)
			go func() { done <- run(ctx, append([]string{"serve"}, strings.Fields(c.args)...), w, io.Discard) }()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || !strings.Contains(line, c.want) {
				t.Errorf("printed %q, %v", line, err)
			}
			cancel()
			if status := <-done; status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

func TestServeRefuses(t *testing.T) {
	for _, args := range []string{
		"", "nosuch", "serve extra", "serve --standalone --replset 1", "serve --sharded two", "serve --auth root",
		"serve --version 3.6 --port 0", "serve --nosuch",
	} {
		var stderr bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), io.Discard, &stderr); status == 0 {
			t.Errorf("allium %s exits with 0", args)
		} else if stderr.Len() == 0 {
			t.Errorf("allium %s says nothing", args)
		}
	}
}
