package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// misused uses sessions as they are not to be used: with each method those of another client, those
// that have ended, and those whose transaction has.
func misused() {
	client, err := newClient(options.Client().ApplyURI(uri).SetAppName("misuse"))
	must(err)
	defer func() { _ = client.Disconnect(ctx) }()
	begin := func(of *mongo.Client) Session {
		s, err := of.StartSession()
		must(err)
		return s
	}
	c := client.Database("deep").Collection("misused")
	for _, use := range []struct {
		name string
		make func() Session
	}{
		{"of another client", func() Session { return begin(admin) }},
		{"of another client in a transaction", func() Session {
			s := begin(admin)
			must(s.StartTransaction())
			return s
		}},
		{"ended", func() Session {
			s := begin(client)
			s.EndSession(ctx)
			return s
		}},
		{"ended in a transaction", func() Session {
			s := begin(client)
			must(s.StartTransaction())
			s.EndSession(ctx)
			return s
		}},
		{"committed", func() Session {
			s := begin(client)
			must(s.StartTransaction())
			must(s.CommitTransaction(ctx))
			return s
		}},
		{"aborted", func() Session {
			s := begin(client)
			must(s.StartTransaction())
			must(s.AbortTransaction(ctx))
			return s
		}},
	} {
		for _, call := range calls {
			must(admin.Database("deep").Drop(ctx))
			_, err := admin.Database("deep").Collection("misused").InsertOne(ctx, d("_id", 1))
			must(err)
			s := use.make()
			say.Try("misused "+use.name+" "+call.name, func() []any {
				came := say.Dump(broken(call.run(mongo.NewSessionContext(ctx, s), c)))
				if strings.HasPrefix(use.name, "ended") {
					return []any{came} // walks say what its own methods return
				}
				return []any{came, fmt.Sprint(s.AbortTransaction(ctx)), fmt.Sprint(s.StartTransaction()),
					fmt.Sprint(s.AbortTransaction(ctx))}
			})
			s.EndSession(ctx)
		}
	}
	must(admin.Database("deep").Drop(ctx))
	say.Try("misused panic", func() []any {
		return []any{client.UseSession(ctx, func(InSession) error { panic("own panic") })}
	})
	say.Line("misused after a panic", client.NumberSessionsInProgress())
	say.Try("misused nested", func() []any {
		var outer, inner, joined bool
		err := client.UseSession(ctx, func(a InSession) error {
			first := mongo.SessionFromContext(a)
			outer = first != nil
			return client.UseSession(a, func(b InSession) error {
				second := mongo.SessionFromContext(b)
				inner, joined = second != nil, second == first
				_, err := c.InsertOne(b, d("_id", 1))
				return err
			})
		})
		return []any{outer, inner, joined, err, client.NumberSessionsInProgress()}
	})
	say.Try("misused nested transaction", func() []any {
		s := begin(client)
		defer s.EndSession(ctx)
		res, err := s.WithTransaction(ctx, func(a InSession) (any, error) {
			_, err := c.InsertOne(a, d("_id", 2))
			must(err)
			other := begin(client)
			defer other.EndSession(ctx)
			return other.WithTransaction(a, func(b InSession) (any, error) {
				_, err := c.InsertOne(b, d("_id", 3))
				return "inner", err
			})
		})
		n, err2 := c.CountDocuments(ctx, d())
		return []any{res, err, n, err2}
	})
}

// late disconnects clients with a context that has ended, or ends before the operation does that
// the client is at.
func late() {
	for _, state := range []string{"unused", "used", "in a transaction", "at work"} {
		for _, end := range []string{"canceled", "over", "ends meanwhile"} {
			say.Try("disconnected late, "+state+", "+end, func() []any {
				client, err := newClient(options.Client().ApplyURI(uri).SetAppName("late"))
				must(err)
				done := make(chan struct{})
				close(done)
				switch state {
				case "used":
					must(client.Ping(ctx, nil))
				case "in a transaction":
					s, err := client.StartSession()
					must(err)
					must(s.StartTransaction())
					_, err = client.Database("deep").Collection("late").InsertOne(mongo.NewSessionContext(ctx, s), d())
					must(err)
				case "at work":
					done = make(chan struct{})
					started := make(chan struct{})
					var once sync.Once
					monitor := &event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) {
						once.Do(func() { close(started) })
					}}
					client, err = newClient(options.Client().ApplyURI(uri).SetAppName("late").SetMonitor(monitor))
					must(err)
					go func() {
						defer close(done)
						_ = client.Database("admin").RunCommand(ctx, d("sleep", 1, "millis", 1000)).Err()
					}()
					<-started
				}
				ended, cancel := context.WithTimeout(ctx, map[string]time.Duration{
					"canceled": time.Hour, "over": 0, "ends meanwhile": 20 * time.Millisecond}[end])
				if end == "canceled" {
					cancel()
				}
				defer cancel()
				err = client.Disconnect(ended)
				again := client.Disconnect(ctx)
				<-done
				return []any{err, again, client.Ping(ctx, nil)}
			})
		}
	}
}
