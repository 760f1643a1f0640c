// Command guide is the program of docs/guide.md: a small bookshop. Every snippet of the guide
// stands in these files, line by line, and go test checks that.
//
//	go run ./examples/guide
//
// It connects to $MONGODB_URI if that is set, and starts a deployment inside its own process
// otherwise.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"allium"
	"allium/mongotest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Getenv("MONGODB_URI"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "guide:", err)
		os.Exit(1)
	}
}

// run goes through the guide.
func run(ctx context.Context, uri string, out io.Writer) error {
	if uri == "" {
		d, err := mongotest.Open(mongotest.ReplicaSet(1))
		if err != nil {
			return err
		}
		defer d.Stop()
		uri = d.URI()
	}
	client, err := connect(ctx, uri)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	shop := newShop(client)
	if err := client.Database("bookshop").Drop(ctx); err != nil {
		return err
	}
	if err := shop.indexes(ctx); err != nil {
		return err
	}
	events, err := shop.follow(ctx)
	if err != nil {
		return err
	}
	defer events.Close(ctx)

	id, err := shop.add(ctx, Book{ISBN: "9780131103627", Title: "The C Programming Language",
		Authors: []string{"Kernighan", "Ritchie"}, Cents: 5999, Stock: 1, Added: time.Now()})
	if err != nil {
		return err
	}
	if err := shop.addMany(ctx, []Book{
		{ISBN: "9780134190440", Title: "The Go Programming Language", Authors: []string{"Donovan", "Kernighan"},
			Cents: 3999, Stock: 5},
		{ISBN: "9780262510875", Title: "Structure and Interpretation of Computer Programs",
			Authors: []string{"Abelson", "Sussman"}, Cents: 6500},
	}); err != nil {
		return err
	}
	_, err = shop.add(ctx, Book{ISBN: "9780131103627"})
	fmt.Fprintln(out, "a second time:", err)

	book, err := shop.byISBN(ctx, "9780134190440")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "found:", book.Title)
	_, err = shop.byISBN(ctx, "0")
	fmt.Fprintln(out, "not found:", err)

	if err := shop.cheap(ctx, out, 6000); err != nil {
		return err
	}
	totals, err := shop.byAuthor(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "most books:", totals[0].Author, totals[0].Books)

	if err := shop.setPrice(ctx, id, 4999); err != nil {
		return err
	}
	fmt.Fprintln(out, "first order:", shop.order(ctx, id, "Ada"))
	fmt.Fprintln(out, "second order:", shop.order(ctx, id, "Grace"))

	if err := nextEvents(ctx, events, out, 3); err != nil {
		return err
	}
	if err := shop.cover(ctx, out); err != nil {
		return err
	}
	figures(client, out)
	return nil
}

// figures prints who uses the connections to each server, and who waits for one.
func figures(client *allium.Client, out io.Writer) {
	for _, pool := range client.Stats().Pools {
		fmt.Fprintln(out, pool.InUse, "of", pool.MaxOpen, "connections in use,", pool.Waiting, "operations wait")
	}
}

// connect returns the client that the whole program shares.
func connect(ctx context.Context, uri string) (*allium.Client, error) {
	client, err := allium.Open(uri, allium.ClientOptions{
		AppName: "bookshop",            // in the server's logs
		Timeout: new(10 * time.Second), // of each operation

		SlowOperation: 200 * time.Millisecond, // is logged, without values
	})
	if err != nil {
		return nil, err // the connection string or an option is wrong
	}
	if err := client.Ping(ctx); err != nil { // not needed, but says at once what is wrong
		client.Close(ctx)
		return nil, err
	}
	return client, nil
}
