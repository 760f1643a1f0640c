package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// arguments prints what becomes of arguments that no operation can do with.
func arguments(db *mongo.Database) {
	c := db.Collection("arguments")
	var nilUser *user
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	for i, doc := range []any{nil, nilUser, 5, "s", bson.A{1}, []byte{5, 0, 0, 0, 0}, []byte{1}, bson.Raw(nil),
		bson.D(nil), bson.M(nil), map[string]int(nil), make(chan int), struct{ C chan int }{}, bson.M{"f": func() {}},
		[]int{1}, bson.Raw{5, 0, 0, 0, 0}} {
		_, err := c.InsertOne(ctx, doc)
		say(fmt.Sprint("insert argument ", i), err)
		_, err = c.Find(ctx, doc)
		say(fmt.Sprint("find argument ", i), err)
		_, err = c.UpdateOne(ctx, bson.D{}, doc)
		say(fmt.Sprint("update argument ", i), err)
		_, err = c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: "none"}}, doc)
		say(fmt.Sprint("replace argument ", i), err)
		_, err = c.DeleteOne(ctx, doc)
		say(fmt.Sprint("delete argument ", i), err)
		_, err = c.InsertMany(ctx, []any{doc})
		say(fmt.Sprint("insert many argument ", i), err)
		cur, err := c.Aggregate(ctx, doc)
		say(fmt.Sprint("pipeline ", i), cur == nil, err)
		cur, err = c.Aggregate(ctx, []any{doc})
		say(fmt.Sprint("stage ", i), cur == nil, err)
		say(fmt.Sprint("command argument ", i), db.RunCommand(ctx, doc).Err())
		check(c.Drop(ctx))
	}
	for i, docs := range []any{nil, []any{}, 5, bson.D{{Key: "a", Value: 1}}, []any{nil}, [1]user{{1, "a", 1}},
		bson.M{"a": 1}, (*[]any)(nil), "s"} {
		res, err := c.InsertMany(ctx, docs)
		say(fmt.Sprint("insert many ", i), res == nil, err)
	}
	for i, u := range []any{bson.D{}, bson.D{{Key: "a", Value: 1}},
		bson.D{{Key: "a", Value: 1}, {Key: "$set", Value: 1}}, bson.A{}, mongo.Pipeline{},
		bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}, bson.A{5}, []bson.D{{}},
		bson.M{"$set": bson.M{"a": 1}}, user{1, "a", 1}} {
		_, err := c.UpdateOne(ctx, bson.D{}, u)
		say(fmt.Sprint("update ", i), err)
		_, err = c.UpdateMany(ctx, bson.D{}, u)
		say(fmt.Sprint("update many ", i), err)
		say(fmt.Sprint("find and update ", i), c.FindOneAndUpdate(ctx, bson.D{}, u).Err())
	}
	for i, r := range []any{bson.D{{Key: "$set", Value: 1}}, bson.D{}, bson.M{"$a": 1},
		bson.D{{Key: "a", Value: 1}, {Key: "$b", Value: 1}}} {
		_, err := c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: "none"}}, r)
		say(fmt.Sprint("replace ", i), err != nil, err)
		say(fmt.Sprint("find and replace ", i), c.FindOneAndReplace(ctx, bson.D{{Key: "_id", Value: "none"}}, r).Err())
	}
	several := bson.M{"a": 1, "b": 1}
	_, err := c.Find(ctx, bson.D{}, options.Find().SetSort(several))
	say("sort of several keys", err)
	_, err = c.Find(ctx, bson.D{}, options.Find().SetHint(several))
	say("hint of several keys", err)
	_, err = c.Find(ctx, bson.D{}, options.Find().SetSort(bson.M{"a": 1}))
	say("sort of one key", err)
	_, err = c.UpdateOne(ctx, bson.D{}, set, options.UpdateOne().SetHint(several))
	say("update hint", err)
	_, err = c.DeleteOne(ctx, bson.D{}, options.DeleteOne().SetHint(several))
	say("delete hint", err)
	say("find one sort", c.FindOne(ctx, bson.D{}, options.FindOne().SetSort(several)).Err())
	say("find and delete sort", c.FindOneAndDelete(ctx, bson.D{}, options.FindOneAndDelete().SetSort(several)).Err())
	_, err = c.Aggregate(ctx, mongo.Pipeline{}, options.Aggregate().SetHint(several))
	say("aggregate hint", err)
	_, err = c.Find(ctx, bson.D{}, options.Find().SetMin(several))
	say("min of several keys", err)
	_, err = c.UpdateByID(ctx, nil, set)
	say("update by nil", err)
	_, err = c.CountDocuments(ctx, nil)
	say("count nil", err)
	say("nil sort", c.FindOne(ctx, bson.D{}, options.FindOne().SetSort(nil)).Err())
	_, err = c.Find(ctx, bson.D{}, nil, options.Find(), (*options.FindOptionsBuilder)(nil))
	say("nil options", err)
	_, err = c.Find(ctx, bson.D{}, &refusing{})
	say("options that fail", err)
	ctx2, cancel := context.WithCancel(ctx)
	cancel()
	err = c.FindOne(ctx2, bson.D{}).Err()
	say("cancelled", errors.Is(err, context.Canceled), mongo.IsTimeout(err), mongo.IsNetworkError(err))
	ctx2, cancel2 := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel2()
	_, err = c.InsertOne(ctx2, bson.D{})
	say("too late", errors.Is(err, context.DeadlineExceeded), mongo.IsTimeout(err), mongo.IsNetworkError(err))
	_, err = c.InsertOne(nil, bson.D{{Key: "_id", Value: 1}})
	say("nil context", err)
}

// refusing is a Lister whose function fails.
type refusing struct{}

func (*refusing) List() []func(*options.FindOptions) error {
	return []func(*options.FindOptions) error{func(*options.FindOptions) error { return errors.New("refused") }}
}

// cursors prints what cursors do.
func cursors(db *mongo.Database) {
	c := db.Collection("cursors")
	var docs []user
	for i := range 10 {
		docs = append(docs, user{i, fmt.Sprint("n", i), i})
	}
	_, err := c.InsertMany(ctx, docs)
	check(err)
	byID := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})
	cur, err := c.Find(ctx, bson.D{}, byID, options.Find().SetBatchSize(4))
	check(err)
	say("new cursor", cur.ID() != 0, cur.RemainingBatchLength(), cur.Err(), cur.Current)
	for i := 0; cur.Next(ctx); i++ {
		var u user
		err := cur.Decode(&u)
		say(fmt.Sprint("cursor ", i), u, err, cur.RemainingBatchLength(), cur.ID() != 0, cur.Current)
		if i == 4 {
			cur.SetBatchSize(1)
		}
	}
	say("cursor at the end", cur.Err(), cur.ID(), cur.RemainingBatchLength(), cur.Next(ctx), cur.TryNext(ctx),
		cur.Close(ctx), cur.Close(ctx), cur.Next(ctx), cur.Err())
	cur, _ = c.Find(ctx, bson.D{}, byID)
	var u user
	say("decode before", cur.Decode(&u) != nil)
	cur.Next(ctx)
	say("decode twice", cur.Decode(&u), cur.Decode(&u), u, cur.Decode(nil), cur.Decode(u), cur.Decode((*user)(nil)))
	var wrong struct{ Name int }
	say("decode wrong", cur.Decode(&wrong))
	say("decode and on", cur.Next(ctx), cur.Decode(&u), u)
	var users []user
	say("all the rest", cur.All(ctx, &users), len(users), users[0], cur.Err(), cur.ID())
	say("all again", cur.All(ctx, &users), len(users))
	say("closed", cur.Close(ctx), cur.Next(ctx), cur.Err())
	all := func(name string, into any, opts ...options.Lister[options.FindOptions]) {
		cur, err := c.Find(ctx, bson.D{},
			append([]options.Lister[options.FindOptions]{byID, options.Find().SetLimit(2)}, opts...)...)
		check(err)
		try("all into "+name, func() { say("all into "+name, cur.All(ctx, into), cur.Next(ctx)) })
	}
	var ds []bson.D
	all("D", &ds)
	var ms []bson.M
	all("M", &ms)
	var ps []*user
	all("pointers", &ps)
	say("all pointers", len(ps), *ps[0], *ps[1])
	var anys []any
	all("any", &anys)
	say("all of any", fmt.Sprintf("%T", anys[0]), len(anys))
	raws := []bson.Raw{}
	all("Raw", &raws)
	say("all of Raw", raws[0], raws[1])
	full := make([]user, 5)
	full[0].Age = 100
	all("full", &full)
	say("all of full", full, ds, len(ms), ms[0]["name"])
	var nothing []user
	all("nothing", &nothing, options.Find().SetSkip(100))
	say("all of nothing", nothing == nil, len(nothing))
	empty := []user{{1, "x", 1}}
	all("empty", &empty, options.Find().SetSkip(100))
	say("all of empty", empty == nil, len(empty))
	var array [2]user
	all("array", &array)
	all("struct", &u)
	all("no pointer", users)
	all("nil", nil)
	var anything any = []user{}
	all("interface", &anything)
	say("all of interface", fmt.Sprintf("%T", anything))
	var ints []struct{ Name int }
	all("misfits", &ints)
	say("all of misfits", len(ints))

	preloaded, err := mongo.NewCursorFromDocuments([]any{bson.D{{Key: "a", Value: 1}}, user{5, "x", 1},
		raw(bson.D{{Key: "b", Value: 1}})}, nil, nil)
	say("preloaded", err, preloaded.ID(), preloaded.RemainingBatchLength(), preloaded.Err())
	for i := 0; preloaded.Next(ctx); i++ {
		var m bson.M
		say(fmt.Sprint("preloaded ", i), preloaded.Decode(&m), m, preloaded.Current, preloaded.RemainingBatchLength())
	}
	say("preloaded at the end", preloaded.Err(), preloaded.ID(), preloaded.Close(ctx), preloaded.Next(ctx))
	preloaded, err = mongo.NewCursorFromDocuments([]any{bson.D{{Key: "a", Value: 1}}}, errors.New("preloaded"), nil)
	say("preloaded with an error", err, preloaded.Err(), preloaded.Next(ctx), preloaded.Err(), preloaded.All(ctx, &ms))
	preloaded, err = mongo.NewCursorFromDocuments([]any{nil}, nil, nil)
	say("preloaded nil", preloaded == nil, err)
	preloaded, err = mongo.NewCursorFromDocuments(nil, nil, nil)
	say("preloaded nothing", err, preloaded.Next(ctx), preloaded.All(ctx, &ds), ds == nil)
	preloaded, err = mongo.NewCursorFromDocuments([]any{5}, nil, nil)
	say("preloaded number", preloaded == nil, err)
	preloaded, err = mongo.NewCursorFromDocuments([]any{bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: 2}}},
		nil, nil)
	say("preloaded all", err, preloaded.All(ctx, &ds), ds)

	cur, err = c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match",
		Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 3}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "_id", Value: -1}}}}}, options.Aggregate().SetBatchSize(2))
	say("aggregate", err, cur.RemainingBatchLength(), cur.All(ctx, &ds), ds)
	cur, err = c.Aggregate(ctx, bson.A{bson.D{{Key: "$out", Value: "copied"}}})
	say("aggregate out", err, cur.Next(ctx), cur.Err(), cur.ID())
	cur, err = c.Aggregate(ctx, mongo.Pipeline{{{Key: "$bad", Value: 1}}})
	say("aggregate bad", cur == nil, err)
	cur, err = db.Aggregate(ctx, mongo.Pipeline{{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}}})
	if err == nil {
		say("aggregate on the database", cur.All(ctx, &ds), ds)
	} else {
		say("aggregate on the database", err)
	}
	cur, err = c.Find(ctx, bson.D{{Key: "$bad", Value: 1}})
	say("find bad", cur == nil, err)
	cur, err = c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	check(err)
	check(db.RunCommand(ctx, bson.D{{Key: "killCursors", Value: "cursors"},
		{Key: "cursors", Value: bson.A{cur.ID()}}}).Err())
	n := 0
	for cur.Next(ctx) {
		n++
	}
	var command mongo.CommandError
	say("killed", n, errors.As(cur.Err(), &command), command.Code, command.Name, cur.Next(ctx), cur.Close(ctx))
	cur, err = db.RunCommandCursor(ctx, bson.D{{Key: "find", Value: "cursors"},
		{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "batchSize", Value: 3}})
	check(err)
	cur.SetBatchSize(2)
	cur.SetComment("c")
	var left []int
	for cur.Next(ctx) {
		left = append(left, cur.RemainingBatchLength())
	}
	say("command cursor", left, cur.Err())
	cur, err = db.RunCommandCursor(ctx, bson.D{{Key: "ping", Value: 1}})
	say("command without a cursor", cur == nil, err != nil)
	check(db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)))
	capped := db.Collection("capped")
	_, err = capped.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	check(err)
	cur, err = capped.Find(ctx, bson.D{},
		options.Find().SetCursorType(options.TailableAwait).SetMaxAwaitTime(10*time.Millisecond))
	check(err)
	say("tailing", cur.TryNext(ctx))
	say("tailing first", cur.Current)
	say("tailing at the end", cur.TryNext(ctx), cur.Err(), cur.ID() != 0)
	_, err = capped.InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
	check(err)
	say("tailing on", cur.TryNext(ctx))
	say("tailing second", cur.Current)
	say("tailing closed", cur.Close(ctx), cur.ID())
	cur, err = capped.Find(ctx, bson.D{}, options.Find().SetCursorType(options.CursorType(7)))
	say("no such cursor", cur == nil, err)
}

// results prints what a SingleResult does.
func results(db *mongo.Database) {
	var u user
	for i, r := range []*mongo.SingleResult{
		mongo.NewSingleResultFromDocument(bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "x"}}, nil, nil),
		mongo.NewSingleResultFromDocument(bson.D{{Key: "_id", Value: 1}}, errors.New("e"), nil),
		mongo.NewSingleResultFromDocument(nil, nil, nil),
		mongo.NewSingleResultFromDocument(5, nil, nil), mongo.NewSingleResultFromDocument(nil, errors.New("e"), nil),
		mongo.NewSingleResultFromDocument(bson.D{}, mongo.ErrNoDocuments, bson.NewRegistry()),
		mongo.NewSingleResultFromDocument(bson.D{}, nil, bson.NewRegistry()),
		db.RunCommand(ctx, bson.D{{Key: "count", Value: "cursors"}}),
		db.RunCommand(ctx, bson.D{{Key: "nothing", Value: 1}}), db.RunCommand(ctx, bson.M{"a": 1, "b": 2}),
		db.RunCommand(ctx, bson.D{{Key: "insert", Value: "crud"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}}),
		db.RunCommand(ctx, bson.D{{Key: "insert", Value: "crud"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: "w"}}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 9}}}}),
		db.RunCommand(ctx, bson.D{}), db.RunCommand(ctx, bson.M{"dbStats": 1}, options.RunCmd()),
	} {
		doc, err := r.Raw()
		say(fmt.Sprint("result ", i), doc != nil, err, r.Err())
		say(fmt.Sprint("result decoded ", i), r.Decode(&u) == nil, u, r.Decode(&u) == nil)
	}
	r := mongo.NewSingleResultFromDocument(bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: 5}}, nil, nil)
	say("result misfit", r.Decode(&u), r.Decode(nil), r.Decode(u), r.Decode((*user)(nil)), r.Acknowledged)
	var d bson.D
	say("result D", r.Decode(&d), d)
	m := bson.M{"old": 1}
	say("result M", r.Decode(m), m, r.Decode(&m), m)
	var any1 any
	say("result any", r.Decode(&any1), fmt.Sprintf("%T", any1))
}
