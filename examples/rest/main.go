// Command rest is a REST service of books as it might run in production: handlers with their
// status codes (books.go), probes that survive an election, traces and metrics (operate.go), and a
// graceful end. With a server from "go run ./cmd/allium serve --replset 1 --port 27017":
//
//	go run .
//	curl -d '{"isbn": "9780134190440", "title": "The Go Language"}' localhost:8080/books
//
// $MONGODB_URI names another server, $LISTEN another address. Traces and metrics go to the
// collector at $OTEL_EXPORTER_OTLP_ENDPOINT, as $OTEL_SERVICE_NAME; without it, nowhere.
package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"allium"
	"allium/otel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := listen(ctx)
	stop()
	if err != nil {
		slog.Error("the service ends", "error", err)
		os.Exit(1)
	}
}

// listen reads the settings and serves until the context ends.
func listen(ctx context.Context) error {
	tel, err := export(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "localhost:8080"))
	if err != nil {
		return err
	}
	return serve(ctx, listener, cmp.Or(os.Getenv("MONGODB_URI"), "mongodb://localhost:27017"), tel, 5*time.Second)
}

// serve answers requests until the context ends. Then it says that it is not ready, goes on for the
// time drain, in which a load balancer notices, finishes the requests that it has, and closes what
// it opened, the last first. All of it fits into the 30 seconds of Kubernetes.
func serve(ctx context.Context, listener net.Listener, uri string, tel *telemetry, drain time.Duration) (err error) {
	defer listener.Close()
	defer func() {
		err = errors.Join(err, within(2*time.Second, tel.tracer.Shutdown), within(2*time.Second, tel.meter.Shutdown))
	}()
	client, err := allium.Open(uri, allium.ClientOptions{
		AppName: "books", Timeout: new(15 * time.Second), // longer than an election
		SlowOperation:  200 * time.Millisecond,
		Tracing:        &allium.Tracing{Tracer: otel.NewTracer(tel.tracer), Enabled: new(true)},
		CommandMonitor: tel.client.CommandMonitor(nil), PoolMonitor: tel.client.PoolMonitor(nil),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, within(4*time.Second, client.Close)) }()
	shop, err := newShop(ctx, client)
	if err != nil {
		return err
	}

	probes := &probes{client: client}
	mux, books := http.NewServeMux(), http.NewServeMux()
	probes.register(mux)
	shop.register(books)
	mux.Handle("/", otelhttp.NewHandler(books, "books", otelhttp.WithTracerProvider(tel.tracer),
		otelhttp.WithMeterProvider(tel.meter)))
	server := &http.Server{Handler: mux, ReadTimeout: 15 * time.Second, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	probes.ready.Store(true)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	probes.ready.Store(false)
	time.Sleep(drain)
	return within(15*time.Second, server.Shutdown)
}

// within gives a function that ends something a time of its own: that of the program is over.
func within(d time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return end(ctx)
}
