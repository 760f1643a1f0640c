package mongotest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// scriptResult returns a command's first batch, or its results, as canonical Extended JSON.
func scriptResult(t *testing.T, reply bson.Raw) string {
	t.Helper()
	v := reply.Lookup("cursor", "firstBatch")
	if v.Type == 0 {
		v = reply.Lookup("results")
	}
	text, err := bson.AppendExtJSONValue(nil, v, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type scriptStep struct{ command, want string }

const orders = `{"insert": "orders", "documents": [
	{"_id": 1, "cust": "a", "price": 25, "qty": {"$numberInt": "1"}, "items": ["x", "y"]},
	{"_id": 2, "cust": "a", "price": 70, "qty": {"$numberInt": "2"}, "items": ["x"]},
	{"_id": 3, "cust": "b", "price": 50, "qty": {"$numberInt": "3"}, "items": ["z"]},
	{"_id": 4, "cust": "c", "price": 10, "qty": {"$numberInt": "4"}, "items": []}], "$db": "t"}`

func TestScripts(t *testing.T) {
	steps := []scriptStep{
		{`{"find": "orders", "filter": {"$where": "this.price * this.qty > 100"}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":2},{"_id":3}]`},
		{`{"find": "orders", "filter": {"$where": {"$code": "function() { return obj.items.length == 1 && this.cust != 'b' }"}}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":2}]`},
		{`{"find": "orders", "filter": {"cust": "a", "$or": [{"$where": "this.qty == 1"}, {"qty": 9}]}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":1}]`},
		{`{"find": "orders", "filter": {"$where": "if (typeof n == 'undefined') n = 0; n++ < 2"}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":1},{"_id":2}]`},
		{`{"find": "orders", "filter": {"$expr": {"$function": {"body": "function(p, q) { return p > 30 && q < 3 }", "args": ["$price", "$qty"], "lang": "js"}}}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":2}]`},
		{`{"aggregate": "orders", "pipeline": [{"$sort": {"_id": 1}}, {"$limit": 2}, {"$project": {"_id": 0, "r": {"$function": {"body": "(list, missing) => list.join('-') + missing", "args": ["$items", "$nosuch"], "lang": "js"}}}}], "cursor": {}, "$db": "t"}`,
			`[{"r":"x-ynull"},{"r":"xnull"}]`},
		{`{"aggregate": "orders", "pipeline": [{"$sort": {"_id": 1}}, {"$group": {"_id": "$cust", "r": {"$accumulator": {"init": "function(a) { return {n: 0, sum: a} }", "initArgs": [100], "accumulate": "function(s, p) { s.n++; s.sum += p; return s }", "accumulateArgs": ["$price"],
			"merge": "function(a, b) { return {n: a.n + b.n, sum: a.sum + b.sum} }", "finalize": "function(s) { return s.sum / s.n }", "lang": "js"}}}}, {"$sort": {"_id": 1}}], "cursor": {}, "$db": "t"}`,
			`[{"_id":"a","r":97.5},{"_id":"b","r":150.0},{"_id":"c","r":110.0}]`},
		{`{"aggregate": "orders", "pipeline": [{"$group": {"_id": null, "r": {"$accumulator": {"init": "function() { return [] }", "accumulate": "function(s, x) { return s.concat(x) }", "accumulateArgs": ["$items"], "merge": "function(a, b) { return a.concat(b) }", "lang": "js"}}}}], "cursor": {}, "$db": "t"}`,
			`[{"_id":null,"r":["x","y","x","z"]}]`},
		{`{"mapReduce": "orders", "map": {"$code": "function() { emit(this.cust, this.price * this.qty) }"}, "reduce": {"$code": "function(k, v) { return Array.sum(v) }"}, "out": {"inline": 1}, "$db": "t"}`,
			`[{"_id":"a","value":165.0},{"_id":"b","value":150.0},{"_id":"c","value":40.0}]`},
		{`{"mapReduce": "orders", "map": "function() { for (var i of this.items) emit(i, {n: 1, by: factor}) }", "reduce": "function(k, v) { return {n: v.reduce((s, x) => s + x.n, 0), by: factor} }", "finalize": "function(k, v) { return k + v.n * v.by + inc(1) }",
			"scope": {"factor": 10, "inc": {"$code": "function(x) { return x + 1 }"}}, "query": {"qty": {"$lt": 3}}, "sort": {"_id": -1}, "limit": 2, "jsMode": true, "verbose": true, "out": {"inline": 1}, "$db": "t"}`,
			`[{"_id":"x","value":"x202"},{"_id":"y","value":"y102"}]`},
		{`{"mapReduce": "orders", "map": "function() { emit(this.cust, 1) }", "reduce": "function(k, v) { return Array.sum(v) }", "out": "counts", "$db": "t"}`, ``},
		{`{"find": "counts", "sort": {"_id": 1}, "$db": "t"}`, `[{"_id":"a","value":2.0},{"_id":"b","value":1.0},{"_id":"c","value":1.0}]`},
		{`{"mapReduce": "orders", "map": "function() { emit(this.cust, 10) }", "reduce": "function(k, v) { return Array.sum(v) }", "query": {"cust": "a"}, "out": {"reduce": "counts"}, "$db": "t"}`, ``},
		{`{"mapReduce": "orders", "map": "function() { emit('d', 10) }", "reduce": "function(k, v) { return Array.sum(v) }", "query": {"_id": 1}, "out": {"merge": "counts", "db": "t"}, "$db": "t"}`, ``},
		{`{"find": "counts", "sort": {"_id": 1}, "$db": "t"}`, `[{"_id":"a","value":22.0},{"_id":"b","value":1.0},{"_id":"c","value":1.0},{"_id":"d","value":10.0}]`},
		{`{"mapReduce": "orders", "map": "function() { emit(1, this._id) }", "reduce": "function(k, v) { return v.length }", "out": {"replace": "counts", "db": "other"}, "$db": "t"}`, ``},
		{`{"find": "counts", "$db": "other"}`, `[{"_id":1.0,"value":4.0}]`},
		{`{"insert": "system.js", "documents": [{"_id": "half", "value": {"$code": "function(x) { return x / 2 }"}}], "$db": "t"}`, ``},
		{`{"find": "orders", "filter": {"$where": "half(this.price) == 25"}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":3}]`},
		{`{"mapReduce": "orders", "map": "function() { emit(0, half(this.price)) }", "reduce": "function(k, v) { return Array.sum(v) }", "out": {"inline": 1}, "$db": "t"}`, `[{"_id":0.0,"value":77.5}]`},
		{`{"mapReduce": "nosuch", "map": "f", "reduce": "f", "out": {"inline": 1}, "$db": "t"}`, `[]`},
		{`{"update": "orders", "updates": [{"q": {"$where": "this._id > 3"}, "u": {"$set": {"big": true}}}], "$db": "t"}`, ``},
		{`{"findAndModify": "orders", "query": {"$where": "this.big"}, "update": [{"$set": {"name": {"$function": {"body": "function(c) { return c.toUpperCase() }", "args": ["$cust"], "lang": "js"}}}}], "$db": "t"}`, ``},
		{`{"find": "orders", "filter": {"big": true}, "projection": {"_id": 0, "name": 1}, "$db": "t"}`, `[{"name":"C"}]`},
		{`{"delete": "orders", "deletes": [{"q": {"$where": "this._id == 4"}, "limit": 0}], "$db": "t"}`, ``},
		{`{"aggregate": "orders", "pipeline": [{"$count": "n"}], "cursor": {}, "$db": "t"}`, `[{"n":3}]`},
	}
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
		for _, version := range []string{"4.4", "8.0"} {
			t.Run(name+" "+version, func(t *testing.T) {
				d := mongotest.Start(t, topology, mongotest.Version(version))
				c := dial(t, d.Hosts()[0])
				ok(t, command(t, c, extJSON(t, orders)))
				for _, s := range steps {
					reply := ok(t, command(t, c, extJSON(t, s.command)))
					if s.want != "" {
						if got := scriptResult(t, reply); got != s.want {
							t.Errorf("%s\n got %s\nwant %s", s.command, got, s.want)
						}
					}
				}
			})
		}
	}
}

func TestScriptErrors(t *testing.T) {
	const function = `{"aggregate": "orders", "pipeline": [{"$project": {"r": {"$function": `
	end := `}}}], "cursor": {}, "$db": "t"}`
	steps := []errorStep{
		{orders, 0, ""},
		{`{"find": "orders", "filter": {"$where": "nosuch.x"}, "$db": "t"}`, 139, "ReferenceError: nosuch is not defined :\n_funcs1@:1:31\n"},
		{`{"find": "orders", "filter": {"$where": "this.a.b"}, "$db": "t"}`, 139, "TypeError: this.a is undefined :\n_funcs1@:1:38\n"},
		{`{"find": "orders", "filter": {"$where": ""}, "$db": "t"}`, 2, "code for $where cannot be empty"},
		{`{"find": "orders", "filter": {"$where": {"$code": "1", "$scope": {}}}, "$db": "t"}`, 2, "$where got bad type"},
		{`{"aggregate": "orders", "pipeline": [{"$match": {"$or": [{"$where": "1"}]}}], "cursor": {}, "$db": "t"}`, 2, "$where is not allowed in this context"},
		{function + `{"body": "function() { return nosuch }", "args": [], "lang": "js"}` + end, 139, "ReferenceError: nosuch is not defined :\n_funcs1@:1:31\n"},
		{function + `{"body": "f", "args": 1, "lang": "js"}` + end, 31266, "The args field must be of type array"},
		{function + `{"body": "f", "lang": "js"}` + end, 31263, "Invalid $project :: caused by :: The args field must be specified."},
		{function + `{"body": "f", "args": []}` + end, 31418, "Invalid $project :: caused by :: The lang field must be specified."},
		{function + `{"body": "f", "args": [], "lang": "py"}` + end, 31419, "Invalid $project :: caused by :: Currently the only supported language specifier is 'js'."},
		{`{"create": "v", "validator": {"$expr": {"$function": {"body": "f", "args": [], "lang": "js"}}}, "$db": "t"}`, 4660800, "$function cannot be used inside a validator."},
		{`{"mapReduce": "orders", "map": "function() { emit(1) }", "reduce": "f", "out": {"inline": 1}, "$db": "t"}`, 31220, "MapReduce internal error :: caused by :: emit takes 2 args"},
	}
	checkErrors(t, mongotest.Start(t, mongotest.Standalone(), mongotest.Version("4.4")), steps)
	off := mongotest.Start(t, mongotest.Standalone(), mongotest.NoScripting())
	checkErrors(t, off, []errorStep{
		{orders, 0, ""},
		{`{"find": "orders", "filter": {"$where": "1"}, "$db": "t"}`, 2, "no globalScriptEngine in $where parsing"},
		{`{"mapReduce": "orders", "map": "f", "reduce": "f", "out": {"inline": 1}, "$db": "t"}`, 31264, "MapReduce internal error :: caused by :: Cannot run server-side javascript without the javascript engine enabled"},
		{function + `{"body": "f", "args": [], "lang": "js"}` + end, 31264, "PlanExecutor error during aggregation :: caused by :: Cannot run server-side javascript without the javascript engine enabled"},
	})
}

// A program that runs for ever ends with its time, by killOp, with its client, and with its server.
func TestScriptEnds(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, orders)))
	const loop = `{"find": "orders", "filter": {"$where": "while (true) {}"}, "$db": "t"`
	for _, cmd := range []string{
		loop + `, "maxTimeMS": 30}`,
		`{"aggregate": "orders", "pipeline": [{"$project": {"r": {"$function": {"body": "function() { sleep(1e9) }", "args": [], "lang": "js"}}}}], "cursor": {}, "maxTimeMS": 30, "$db": "t"}`,
		`{"mapReduce": "orders", "map": "function() { for (;;) {} }", "reduce": "f", "out": "x", "maxTimeMS": 30, "$db": "t"}`,
		`{"count": "orders", "query": {"$where": "for (;;) {}"}, "maxTimeMS": 30, "$db": "t"}`,
		`{"find": "orders", "filter": {"$where": "/^(?=a)(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaab')"}, "maxTimeMS": 30, "$db": "t"}`, // backtracks for seconds
	} {
		if n, _ := command(t, c, extJSON(t, cmd)).Lookup("code").Int32(); n != 50 {
			t.Errorf("%s ends with %d", cmd, n)
		}
	}
	wait := func(there bool) (id bson.RawValue) {
		t.Helper()
		for range 500 {
			reply := ok(t, command(t, c, extJSON(t, `{"currentOp": 1, "command.filter.$where": {"$exists": true}, "$db": "admin"}`)))
			if id = reply.Lookup("inprog", "0", "opid"); (id.Type != 0) == there {
				return id
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("the operation is there: %t", !there)
		return id
	}
	endless := bson.D{{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: "while (true) {}"}}}, {Key: "$db", Value: "t"}}
	other := dial(t, d.Hosts()[0])
	replies := make(chan bson.Raw, 1)
	go func() { replies <- command(t, other, extJSON(t, loop+`}`)) }()
	ok(t, run(t, c, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: wait(true)}, {Key: "$db", Value: "admin"}}))
	if n, _ := (<-replies).Lookup("code").Int32(); n != 11601 {
		t.Errorf("killOp gives %d", n)
	}
	send(t, other, endless)
	wait(true)
	other.Close()
	wait(false)
	last := dial(t, d.Hosts()[0])
	send(t, last, endless)
	wait(true)
	d.Stop()
}

// sleep takes the time of the bubble.
func TestScriptSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.InMemory())
		conn, err := d.DialContext(t.Context(), "tcp", d.Hosts()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ok(t, command(t, conn, extJSON(t, orders)))
		start := time.Now()
		ok(t, command(t, conn, extJSON(t, `{"find": "orders", "filter": {"$where": "sleep(60000) || true"}, "$db": "t"}`)))
		if got := time.Since(start); got != 4*time.Minute {
			t.Errorf("four documents take %v", got)
		}
	})
}
