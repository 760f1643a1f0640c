package advisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/exec"
	"allium/mongoerr"
)

// general are the fields that all commands may have and that are not those of the command itself.
var general = map[string]bool{
	"lsid": true, "txnNumber": true, "startTransaction": true, "autocommit": true, "readConcern": true,
	"writeConcern": true, "maxTimeMS": true,
	"apiVersion": true, "apiStrict": true, "apiDeprecationErrors": true, "stmtIds": true,
}

// own returns a command without what the driver has added. Of a list of statements it keeps one.
func own(cmd bson.Raw) bson.D {
	var out bson.D
	for key, v := range cmd.All() {
		switch {
		case general[key] || strings.HasPrefix(key, "$"):
		case key == "updates" || key == "deletes":
			arr, _ := v.Array()
			for s := range arr.Values() {
				out = append(out, bson.E{Key: key, Value: bson.A{s}})
				break
			}
		default:
			out = append(out, bson.E{Key: key, Value: v})
		}
	}
	return out
}

// mostStatements bounds how many statements of one command are looked at.
const mostStatements = 100

// statements returns the operation as one for each statement that it has.
func (op *operation) statements() []*operation {
	key := map[string]string{"update": "updates", "delete": "deletes"}[op.name]
	list, ok := op.cmd.Lookup(key).Array()
	if key == "" || !ok {
		return []*operation{op}
	}
	var out []*operation
	for s := range list.Values() {
		cmd := own(op.cmd)
		cmd.Set(key, bson.A{s})
		raw, err := bson.Marshal(cmd)
		if err != nil || len(out) == mostStatements {
			break
		}
		one := *op
		one.cmd, one.shape = raw, exec.Shape(op.name, raw)
		out = append(out, &one)
	}
	return out
}

// plans asks for the plan of a kind of query, once.
func (a *Advisor) plans(ctx context.Context, op *operation) {
	filter := bson.RawValue{}
	switch op.name {
	case "find":
		filter = op.cmd.Lookup("filter")
	case "count", "distinct", "findAndModify":
		filter = op.cmd.Lookup("query")
	case "update":
		filter = op.cmd.Lookup("updates", "0", "q")
	case "delete":
		filter = op.cmd.Lookup("deletes", "0", "q")
	case "aggregate":
		if op.coll == "" || !op.cmd.Lookup("pipeline", "0", "$changeStream").IsZero() {
			return
		}
		filter = op.cmd.Lookup("pipeline", "0", "$match")
	default:
		return
	}
	doc, _ := filter.Document()
	key := fmt.Sprint("plan ", op.caller.file, op.caller.line, op.name, op.db, op.coll, op.shape, op.cmd.Lookup("sort"))
	if !a.once(key) {
		return
	}
	reply, err := a.plain.Database(op.db).RunCommand(ctx,
		bson.D{{Key: "explain", Value: own(op.cmd)}, {Key: "verbosity", Value: "queryPlanner"}})
	if err != nil {
		return // a command that cannot be explained, such as one on a system collection
	}
	stages := map[string]bool{}
	collect(reply, stages)
	switch {
	case stages["EOF"] || len(stages) == 0: // there are no documents yet
		a.mu.Lock()
		delete(a.planned, key)
		a.mu.Unlock()
	case stages["COLLSCAN"] && !doc.IsEmpty():
		a.found(op, RuleIndex, "it reads the whole collection: create an index on the fields of its filter, or exempt the collection")
	}
	if stages["SORT"] {
		a.found(op, RuleSort, "the server sorts in memory: create an index that ends with the fields of the sort, or exempt the collection")
	}
}

// collect finds the stages of the plan that won.
func collect(doc bson.Raw, stages map[string]bool) {
	for key, v := range doc.All() {
		switch key {
		case "rejectedPlans", "parsedQuery", "command", "serverInfo", "serverParameters", "filter", "optimizedPipeline",
			"collation":
			continue
		case "stage":
			if name, ok := v.StringValue(); ok {
				stages[strings.Clone(name)] = true
			}
		}
		if inner, ok := v.Document(); ok {
			collect(inner, stages)
		} else if inner, ok := v.Array(); ok {
			collect(inner, stages)
		}
	}
}

// once reports whether it is asked for the first time.
func (a *Advisor) once(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.planned[key] {
		return false
	}
	a.planned[key] = true
	return true
}

// repeated is what one line has sent.
type repeated struct {
	since time.Time
	n     int
	last  int64 // the operation that was counted last: attempts are one
}

// repeated looks at how often a query was sent.
func (a *Advisor) repeated(op *operation, e *event.CommandStarted) {
	if a.o.Repeats < 0 || op.name != "find" && op.name != "aggregate" && op.name != "count" && op.name != "distinct" {
		return
	}
	key := fmt.Sprint(op.caller.stack, op.name, op.db, op.coll, op.shape)
	now := time.Now()
	a.mu.Lock()
	r := a.repeats[key]
	if r == nil || a.o.Within > 0 && now.Sub(r.since) > a.o.Within {
		r = &repeated{since: now}
		a.repeats[key] = r
	}
	if r.last != e.OperationID || e.OperationID == 0 {
		r.n++
	}
	r.last = e.OperationID
	n := r.n
	a.mu.Unlock()
	if n == a.o.Repeats+1 {
		a.found(op, RuleRepeated, fmt.Sprintf(
			"this line has sent it more than %d times: one query with $in, or a $lookup, gets all at once",
			a.o.Repeats))
	}
}

// strength orders read concerns.
var strength = map[string]int{"": 0, "available": 0, "local": 1, "majority": 2, "linearizable": 3, "snapshot": 3}

// concerns compares the concerns of a command with what is declared.
func (a *Advisor) concerns(op *operation, cmd bson.Raw) {
	inTransaction := !cmd.Lookup("autocommit").IsZero() && op.name != "commitTransaction"
	switch op.name {
	case "insert", "update", "delete", "findAndModify", "bulkWrite", "commitTransaction":
		if a.o.WriteConcern != nil && !inTransaction {
			a.written(op, cmd)
		}
	case "find", "aggregate", "distinct", "count":
		if a.o.ReadConcern == nil || inTransaction && cmd.Lookup("startTransaction").IsZero() {
			return
		}
		level, _ := cmd.Lookup("readConcern", "level").StringValue()
		if want := string(a.o.ReadConcern.Level); max(strength[level], 1) < strength[want] {
			a.found(op, RuleConcern, fmt.Sprintf("its read concern is %q, want %q", level, want))
		}
	}
}

// written compares the write concern of a command with what is declared.
func (a *Advisor) written(op *operation, cmd bson.Raw) {
	want := a.o.WriteConcern
	has, ok := cmd.Lookup("writeConcern").Document()
	w := has.Lookup("w")
	if !ok || w.IsZero() {
		w, _ = bson.MarshalValue(1)
		if a.version() >= 13 { // server 5.0: majority is the implicit default
			w, _ = bson.MarshalValue("majority")
		}
	}
	if weaker(w, want.W) {
		a.found(op, RuleConcern, fmt.Sprintf("its write concern is w: %v, want w: %v", w, want.W))
	}
	if journal := has.Lookup("j"); want.Journal != nil && *want.Journal && !journal.AsBool() {
		a.found(op, RuleConcern, "its write concern does not wait for the journal (j: true)")
	}
}

// weaker reports whether a w asks for less than another one. A tag, and a majority, are more than
// one member.
func weaker(w bson.RawValue, want any) bool {
	n, isNumber := w.AsInt64()
	text, _ := w.StringValue()
	switch want := want.(type) {
	case nil:
		return false
	case string:
		return text != want
	default:
		least, err := bson.MarshalValue(want)
		m, ok := least.AsInt64()
		return err == nil && ok && isNumber && n < m
	}
}

// version returns the wire version that all known servers speak, 0 if it is not known.
func (a *Advisor) version() int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.major == 0 {
		for _, s := range a.plain.Topology().Servers {
			if v := s.MaxWireVersion; v > 0 && (a.major == 0 || v < a.major) {
				a.major = v
			}
		}
	}
	return a.major
}

// growth looks at arrays that an update has made longer.
func (a *Advisor) growth(ctx context.Context, op *operation) {
	if a.o.MostElements < 0 {
		return
	}
	var filter, update bson.RawValue
	switch op.name {
	case "update":
		filter, update = op.cmd.Lookup("updates", "0", "q"), op.cmd.Lookup("updates", "0", "u")
	case "findAndModify":
		filter, update = op.cmd.Lookup("query"), op.cmd.Lookup("update")
	default:
		return
	}
	changes, ok := update.Document()
	if !ok || update.Type != bson.TypeEmbeddedDocument {
		return
	}
	for _, name := range []string{"$push", "$addToSet"} {
		fields, _ := changes.Lookup(name).Document()
		for path, v := range fields.All() {
			if how, ok := v.Document(); ok && !how.Lookup("$slice").IsZero() || strings.Contains(path, "$") {
				continue
			}
			n, err := a.longest(ctx, op, filter, path)
			if err == nil && n > int64(a.o.MostElements) {
				a.found(op, RuleGrowth, fmt.Sprintf(
					"%s of %q has no $slice, and the array has %d elements: bound it, or put them into a collection of their own", name, path, n))
			}
		}
	}
}

// longest returns the length of the longest array at a path of the documents that match.
func (a *Advisor) longest(ctx context.Context, op *operation, filter bson.RawValue, path string) (int64, error) {
	array := bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$isArray", Value: "$" + path}},
		bson.D{{Key: "$size", Value: "$" + path}}, 0}}}
	cur, err := a.plain.Database(op.db).Collection(op.coll).Aggregate(ctx,
		bson.A{bson.D{{Key: "$match", Value: filter}}, bson.D{{Key: "$limit", Value: 1000}},
			bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil},
				{Key: "n", Value: bson.D{{Key: "$max", Value: array}}}}}}})
	if err != nil {
		return 0, err
	}
	docs, err := cur.All(ctx)
	if err != nil || len(docs) == 0 {
		return 0, err
	}
	n, _ := docs[0].Get("n")
	v, err := bson.MarshalValue(n)
	size, _ := v.AsInt64()
	return size, err
}

// unknown are the codes by which a server says that it does not know something.
var unknown = []int{
	9,                   // FailedToParse: an update operator
	59,                  // CommandNotFound
	72, 115, 168, 40415, // InvalidOptions, CommandNotSupported, InvalidPipelineOperator, a field of a command
	197, 5897, // InvalidIndexSpecificationOption
	323,          // APIStrictError
	15952, 15999, // accumulators and expressions
	40324, 31325, 5107201, // stages, expressions
}

// declared runs a kind of command on the deployment that is declared, once.
func (a *Advisor) declared(ctx context.Context, op *operation) {
	if a.o.Declared == nil {
		return
	}
	cmd, err := bson.Marshal(own(op.cmd))
	if err != nil || !a.once(fmt.Sprint("declared ", op.db, op.coll, kinds(cmd))) {
		return
	}
	_, err = a.o.Declared.Database(op.db).RunCommand(ctx, bson.Raw(cmd))
	var server *mongoerr.ServerError
	var bulk *mongoerr.BulkWriteError
	code, text := 0, ""
	switch {
	case errors.As(err, &bulk) && len(bulk.WriteErrors) > 0:
		code, text = int(bulk.WriteErrors[0].Code), bulk.WriteErrors[0].Message
	case errors.As(err, &server):
		code, text = int(server.Code), server.Message
	}
	for _, c := range unknown {
		if code == c {
			a.found(op, RuleDeclared, "the deployment that is declared refuses it: "+text)
			return
		}
	}
	if err != nil && strings.HasPrefix(strings.ToLower(text), "unknown ") || strings.Contains(text, "Unrecognized") ||
		strings.Contains(text, "nknown operator") {
		a.found(op, RuleDeclared, "the deployment that is declared refuses it: "+text)
	}
}

// kinds returns the names in a command, without values: they decide whether a server knows it.
func kinds(cmd bson.Raw) string {
	var b strings.Builder
	for key, v := range cmd.All() {
		b.WriteString(key)
		b.WriteByte(' ')
		if key == "documents" {
			continue
		}
		if inner, ok := v.Document(); ok {
			b.WriteString("{" + kinds(inner) + "}")
		} else if inner, ok := v.Array(); ok {
			b.WriteString("[" + kinds(inner) + "]")
		}
	}
	return b.String()
}
