// Command worker takes jobs out of a collection and does them, as a program beside a service might:
// each job once, however many workers there are, and again if the worker that had it died. Here it
// makes thumbnails, or says so.
//
//	go run ./cmd/allium serve --replset 1 --port 27017     # a server, until it is interrupted
//	go run ./examples/worker add cat.jpg dog.jpg           # queues two jobs
//	go run ./examples/worker                               # works until it is interrupted
//
// $MONGODB_URI names another server. The queue is in queue.go.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"allium"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		slog.Error("the worker ends", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	client, err := allium.Open(cmp.Or(os.Getenv("MONGODB_URI"), "mongodb://localhost:27017"), allium.ClientOptions{
		AppName: "worker",
		Timeout: new(15 * time.Second),
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	q, err := newQueue(ctx, client)
	if err != nil {
		return err
	}
	if len(args) > 1 && args[0] == "add" {
		return q.add(ctx, args[1:]...)
	}
	q.work(ctx, thumbnail)
	return nil
}

// thumbnail does a job. What it does may be done twice.
func thumbnail(ctx context.Context, job Job) error {
	if job.File == "" {
		return errors.New("no file")
	}
	fmt.Println("a thumbnail of", job.File)
	return nil
}
