// Command randomprobe prints what random calls of package mongo send and return: operations with
// random arguments, and random setters of their options in random order. Its arguments are the
// connection string of a deployment, a seed and the number of calls. The test of package compare
// builds it with the official driver and with the drop-in, and compares what both print.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A probe makes calls, and says what came of them.
type probe struct {
	random   *rand.Rand
	coll     *mongo.Collection
	commands []string // that were sent since the last line
	out      *bufio.Writer
}

func main() {
	seed, err := strconv.ParseUint(os.Args[2], 10, 64)
	check(err)
	n, err := strconv.Atoi(os.Args[3])
	check(err)
	p := &probe{out: bufio.NewWriter(os.Stdout)}
	defer p.out.Flush()
	client, err := mongo.Connect(options.Client().ApplyURI(os.Args[1]).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			p.commands = append(p.commands, "> "+e.DatabaseName+" "+command(e.Command))
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			p.commands = append(p.commands, "ok "+e.CommandName)
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			p.commands = append(p.commands, "failed "+e.CommandName)
		},
	}))
	check(err)
	defer client.Disconnect(context.Background())
	p.coll = client.Database("random").Collection("c")
	check(p.coll.Drop(context.Background()))
	for i := range n {
		// A line must not hang on those before: each call has a random source of its own.
		p.random = rand.New(rand.NewPCG(seed, uint64(i)))
		{
			check(p.coll.Drop(context.Background()))
			_, err := p.coll.InsertMany(context.Background(), []bson.D{
				{{Key: "_id", Value: 1}, {Key: "a", Value: 1}, {Key: "s", Value: "x"}},
				{{Key: "_id", Value: 2}, {Key: "a", Value: 2}, {Key: "list", Value: bson.A{1, 2, "x"}}},
				{{Key: "_id", Value: 3}, {Key: "a", Value: nil}, {Key: "in", Value: bson.D{{Key: "a", Value: 1.5}}}},
			})
			check(err)
		}
		p.commands = nil
		p.call(i)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// call makes one call, and prints its line.
func (p *probe) call(i int) {
	op := operations[p.random.IntN(len(operations))]
	what := fmt.Sprintf("%d %s", i, op.name)
	defer func() {
		if r := recover(); r != nil {
			p.say(what, "panic", fmt.Sprint(r))
		}
	}()
	opts, set := p.options(op.options)
	args := []reflect.Value{}
	var shown []string
	for _, kind := range op.args {
		// What is wrong with a bulk write the drop-in says before it sends anything.
		arg := p.argument(kind, op.name != "BulkWrite" && op.name != "CreateOne")
		shown = append(shown, fmt.Sprintf("%T", arg))
		args = append(args, reflect.ValueOf(&arg).Elem())
	}
	what += " (" + strings.Join(shown, ", ") + ") " + set
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.say(what, op.run(ctx, p, args, opts))
}

// say prints a line: the call, what was sent, and what came of it.
func (p *probe) say(what string, results ...string) {
	line := what + "\t" + strings.Join(p.commands, " ; ") + " | " + strings.Join(results, " | ")
	fmt.Fprintln(p.out, strings.ReplaceAll(line, "\n", `\n`))
}

// command is a command without what differs from one connection to the other.
func command(cmd bson.Raw) string {
	elements, err := cmd.Elements()
	check(err)
	if elements[0].Key() == "getMore" { // has a number of the server's
		return "getMore " + fields(elements[1:])
	}
	return text(elements[0].Key(), elements[0].Value()) + " " + fields(elements[1:])
}

// fields are the fields of a command, or of a part of one, in order. Those that are false are left
// out, since that is what servers take for granted.
func fields(elements []bson.RawElement) string {
	var list []string
	limited := slices.ContainsFunc(elements, func(e bson.RawElement) bool { return e.Key() == "limit" })
	for _, e := range elements {
		switch key, v := e.Key(), e.Value(); {
		case key == "batchSize" && limited: // one more than the limit lets the server close the cursor
		case key == "cursors": // have numbers of the server's
		case slices.Contains([]string{"lsid", "$clusterTime", "txnNumber", "maxTimeMS", "$db"}, key):
		case v.Type == bson.TypeBoolean && !v.Boolean() && key != "ordered":
		case key == "collation":
			inside, err := v.Document().Elements()
			check(err)
			list = append(list, key+":{"+fields(inside)+"}")
		case slices.Contains([]string{"updates", "deletes", "indexes"}, key):
			values, err := v.Array().Values()
			check(err)
			for i, part := range values {
				inside, err := part.Document().Elements()
				check(err)
				list = append(list, fmt.Sprint(key, i, ":{", fields(inside), "}"))
			}
		default:
			list = append(list, text(key, v))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func text(key string, v bson.RawValue) string {
	s := v.String()
	if v.Type == bson.TypeInt64 {
		s = "int64 " + s
	}
	// ObjectIDs that the driver has made are others each time.
	for {
		i := strings.Index(s, `{"$oid":"`)
		if i < 0 {
			break
		}
		s = s[:i] + "OID" + s[i+len(`{"$oid":"000000000000000000000000"}`):]
	}
	return key + ":" + s
}

// An operation is a method of a collection.
type operation struct {
	name    string
	args    []kind
	options any // a function that makes the builder of its options, nil if it has none
	run     func(ctx context.Context, p *probe, args []reflect.Value, opts reflect.Value) string
}

// A kind is what an argument is for.
type kind int

const (
	filter kind = iota
	update
	document
	documents
	pipeline
	field
	keys
)

func method(name string, builder any, args ...kind) operation {
	return operation{name, args, builder, func(ctx context.Context, p *probe, args []reflect.Value,
		opts reflect.Value) string {
		in := []reflect.Value{reflect.ValueOf(ctx)}
		m := reflect.ValueOf(p.coll).MethodByName(name)
		for i, arg := range args {
			if t := m.Type().In(i + 1); t.Kind() != reflect.Interface {
				arg = arg.Elem()
			}
			in = append(in, arg)
		}
		if opts.IsValid() {
			in = append(in, opts)
		}
		var results []string
		for _, out := range m.Call(in) {
			results = append(results, result(ctx, out))
		}
		return strings.Join(results, " | ")
	}}
}

var operations = []operation{
	method("InsertOne", options.InsertOne, document), method("InsertMany", options.InsertMany, documents),
	method("UpdateOne", options.UpdateOne, filter, update), method("UpdateMany", options.UpdateMany, filter, update),
	method("ReplaceOne", options.Replace, filter, document),
	method("DeleteOne", options.DeleteOne, filter), method("DeleteMany", options.DeleteMany, filter),
	method("Find", options.Find, filter), method("FindOne", options.FindOne, filter),
	method("FindOneAndUpdate", options.FindOneAndUpdate, filter, update),
	method("FindOneAndReplace", options.FindOneAndReplace, filter, document),
	method("FindOneAndDelete", options.FindOneAndDelete, filter),
	method("CountDocuments", options.Count, filter),
	method("EstimatedDocumentCount", options.EstimatedDocumentCount),
	method("Distinct", options.Distinct, field, filter), method("Aggregate", options.Aggregate, pipeline),
	{"CreateOne", []kind{keys}, options.Index, func(ctx context.Context, p *probe, args []reflect.Value,
		opts reflect.Value) string {
		model := mongo.IndexModel{Keys: args[0].Interface()}
		if opts.IsValid() {
			model.Options, _ = opts.Interface().(*options.IndexOptionsBuilder)
		}
		name, err := p.coll.Indexes().CreateOne(ctx, model)
		return fmt.Sprint(name, " | ", err != nil) // the error says which field came first
	}},
	{"BulkWrite", []kind{filter, update, document}, options.BulkWrite, func(ctx context.Context, p *probe,
		args []reflect.Value, opts reflect.Value) string {
		models := []mongo.WriteModel{
			mongo.NewUpdateOneModel().SetFilter(args[0].Interface()).SetUpdate(args[1].Interface()).SetUpsert(true),
			mongo.NewInsertOneModel().SetDocument(args[2].Interface()),
			mongo.NewDeleteOneModel().SetFilter(args[0].Interface()),
			mongo.NewReplaceOneModel().SetFilter(args[0].Interface()).SetReplacement(args[2].Interface()),
		}
		p.random.Shuffle(len(models), func(i, j int) { models[i], models[j] = models[j], models[i] })
		var list []options.Lister[options.BulkWriteOptions]
		if opts.IsValid() {
			list = append(list, opts.Interface().(*options.BulkWriteOptionsBuilder))
		}
		res, err := p.coll.BulkWrite(ctx, models[:1+p.random.IntN(4)], list...)
		if err != nil { // counts of what was upserted are wrong with the official driver then
			return fmt.Sprint(res.InsertedCount, res.DeletedCount, " | ", described(err))
		}
		ids := len(res.UpsertedIDs)
		res.UpsertedIDs = nil
		return fmt.Sprintf("%+v %d", res, ids)
	}},
}

// result is a result in words.
func result(ctx context.Context, v reflect.Value) string {
	switch r := v.Interface().(type) {
	case nil:
		return "nil"
	case error:
		return described(r)
	case *mongo.Cursor:
		if r == nil {
			return "no cursor"
		}
		var all []bson.D
		err := r.All(ctx, &all)
		return fmt.Sprint(texts(all), " ", described(err))
	case *mongo.SingleResult:
		var d bson.D
		err := r.Decode(&d)
		return fmt.Sprint(texts([]bson.D{d}), " ", r.Acknowledged, " ", described(err))
	case *mongo.DistinctResult:
		raw, err := r.Raw()
		return fmt.Sprint(bson.RawValue{Type: bson.TypeArray, Value: raw}, " ", described(err))
	case *mongo.InsertOneResult:
		if r == nil {
			return "no result"
		}
		return fmt.Sprintf("%T %v", r.InsertedID, r.Acknowledged)
	case *mongo.InsertManyResult:
		if r == nil {
			return "no result"
		}
		var ids []string
		for _, id := range r.InsertedIDs {
			ids = append(ids, fmt.Sprintf("%T", id))
		}
		return fmt.Sprint(ids, r.Acknowledged)
	case *mongo.UpdateResult:
		if r == nil {
			return "no result"
		}
		return fmt.Sprintf("%d %d %d %T %v", r.MatchedCount, r.ModifiedCount, r.UpsertedCount, r.UpsertedID,
			r.Acknowledged)
	default:
		return fmt.Sprintf("%+v", v.Interface())
	}
}

func texts(docs []bson.D) string {
	var list []string
	for _, d := range docs {
		raw, err := bson.Marshal(d)
		if err != nil {
			list = append(list, err.Error())
			continue
		}
		list = append(list, text("", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}))
	}
	return strings.Join(list, " ")
}

// described says of what type an error is, and what programs ask of it. The texts of errors that
// come from no server are compared elsewhere.
func described(err error) string {
	if err == nil {
		return "nil"
	}
	var server mongo.ServerError
	var labeled mongo.LabeledError
	s := fmt.Sprintf("%T", err)
	if errors.As(err, &server) {
		s += fmt.Sprintf(" %.80q %v", err.Error(), server.ErrorCodes()) // what is behind may be a command
	}
	if errors.As(err, &labeled) {
		for _, label := range []string{"TransientTransactionError", "RetryableWriteError", "NetworkError"} {
			if labeled.HasErrorLabel(label) {
				s += " " + label
			}
		}
	}
	for _, e := range []error{mongo.ErrNoDocuments, mongo.ErrNilDocument, mongo.ErrNilValue, mongo.ErrEmptySlice,
		mongo.ErrNotSlice, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			s += " is " + e.Error()
		}
	}
	if mongo.IsDuplicateKeyError(err) {
		s += " duplicate"
	}
	return s
}
