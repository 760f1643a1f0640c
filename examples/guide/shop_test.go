package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

func TestOrder(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1)) // ready when it returns, gone when the test ends
	client, err := connect(t.Context(), d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	shop := newShop(client)
	id, err := shop.add(t.Context(), Book{Title: "The Go Programming Language", Stock: 1})
	if err != nil {
		t.Fatal(err)
	}

	// The connection breaks when the first insert arrives: the transaction is run again.
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true})
	if err := shop.order(t.Context(), id, "Ada"); err != nil {
		t.Error(err)
	}
	if err := shop.order(t.Context(), id, "Grace"); err != errSoldOut {
		t.Errorf("the second order: %v", err)
	}
}

func TestServerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // nothing waits for real
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, Timeout: new(10 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		shop := newShop(client)
		if _, err := shop.add(t.Context(), Book{}); err != nil {
			t.Fatal(err)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Minute})
		if _, err := shop.byISBN(t.Context(), "0"); !mongoerr.IsTimeout(err) {
			t.Errorf("after ten seconds: %v", err)
		}
	})
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "", &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"a second time: there is a book 9780131103627 already",
		"found: The Go Programming Language",
		"not found: there is no book 0",
		"3999 The Go Programming Language\n5999 The C Programming Language",
		"most books: Kernighan 2",
		"first order: <nil>\nsecond order: sold out",
		"insert The C Programming Language\ninsert The Go Programming Language\ninsert Structure",
		"cover: 6 bytes",
		"of 100 connections in use, 0 operations wait",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestErrors(t *testing.T) {
	d := mongotest.Start(t)
	client, err := connect(t.Context(), d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	if err := newShop(client).setPrice(t.Context(), bson.NewObjectID(), 1); err == nil {
		t.Error("there is no book, and its price was set")
	}
	if _, err := connect(t.Context(), "mongodb://localhost:1/?serverSelectionTimeoutMS=10"); !errors.As(err, new(*mongoerr.SelectionError)) {
		t.Errorf("no server: %v", err)
	}
}
