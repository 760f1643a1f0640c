package mongotest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"allium/bson"
	"allium/mongotest"
)

// scripted starts a deployment with scripts and returns what they print.
func scripted(t *testing.T, fsys fstest.MapFS, opts ...mongotest.Option) (*mongotest.Deployment, string) {
	t.Helper()
	var out bytes.Buffer
	d, err := mongotest.Open(append(opts, mongotest.Scripts(fsys, mongotest.ScriptOptions{Database: "app", Out: &out, Env: map[string]string{"PASSWORD": "apple"}}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d, out.String()
}

// TestInitScriptPrints runs expressions, each in a script of its own.
func TestInitScriptPrints(t *testing.T) {
	const fill = "db.c.insertMany([{_id: 1, n: 1}, {_id: 2, n: 2}, {_id: 3, n: 3}]); "
	for _, c := range []struct{ script, want string }{
		{`print(db.getName(), db, db.c.getFullName(), db["a.b"].c, db.getSiblingDB("x").y.z)`, "app app app.c app.a.b.c x.y.z"},
		{`print(db.getSiblingDB("a").getMongo().getDB("b").getCollection("c").getName())`, "c"},
		{`printjson({a: 1, b: [true, null], c: "x"})`, `{ "a" : 1, "b" : [ true, null ], "c" : "x" }`},
		{`const {a, ...rest} = {a: 1, b: 2}; let x = ` + "`${a}`" + `; class C { m() { return 1 } }; print(x, rest, new C().m(), [...new Set([1, 1])])`, `1 { "b" : 2 } 1 [ 1 ]`},
		{`print(process.env.PASSWORD, process.env.NONE, _getEnv("NONE") === "")`, "apple undefined true"},
		{`print(db.c.insertOne({_id: 7}))`, `{ "acknowledged" : true, "insertedId" : 7 }`},
		{`var d = {x: 1}; var r = db.c.insertOne(d); print(r.insertedId instanceof ObjectId, d._id.equals(r.insertedId), Object.keys(db.c.findOne())[0])`, "true true _id"},
		{`print(db.c.insertMany([{_id: "a"}, {_id: "b"}]).insertedIds)`, `{ "0" : "a", "1" : "b" }`},
		{fill + `print(db.c.find({n: {$gt: 1}}, {n: 1}).sort({n: -1}).skip(0).limit(5).toArray())`, `[ { "_id" : 3, "n" : 3 }, { "_id" : 2, "n" : 2 } ]`},
		{fill + `db.c.find().sort({_id: 1}).map(d => d.n * 2).forEach((n, i) => print(i, n))`, "0 2\n1 4\n2 6"},
		{fill + `for (const d of db.c.find().sort({_id: 1}).batchSize(2)) { print(d._id) }`, "1\n2\n3"},
		{fill + `var c = db.c.find().batchSize(1); var n = 0; while (c.hasNext()) { c.next(); n++ }; print(n, db.c.find().count(), db.c.find().itcount())`, "3 3 3"},
		{fill + `print(db.c.updateOne({_id: 1}, {$set: {n: 5}}), db.c.updateMany({}, {$inc: {n: 1}}).modifiedCount, db.c.replaceOne({_id: 9}, {z: 1}, {upsert: true}).upsertedCount)`, "{\n\t\"acknowledged\" : true,\n\t\"insertedId\" : null,\n\t\"matchedCount\" : 1,\n\t\"modifiedCount\" : 1,\n\t\"upsertedCount\" : 0\n} 3 1"},
		{fill + `print(db.c.deleteOne({_id: 1}).deletedCount, db.c.deleteMany({}).deletedCount, db.c.countDocuments(), db.c.findOne())`, "1 2 0 null"},
		{fill + `print(db.c.countDocuments({n: {$gt: 1}}), db.c.estimatedDocumentCount(), db.c.distinct("n"))`, "2 3 [ 1, 2, 3 ]"},
		{fill + `print(db.c.aggregate([{$match: {n: {$lt: 3}}}, {$group: {_id: null, s: {$sum: "$n"}}}]).toArray())`, `[ { "_id" : null, "s" : 3 } ]`},
		{fill + `db.c.aggregate([{$out: "copy"}]); print(db.copy.countDocuments({}), db.getCollectionNames())`, `3 [ "c", "copy" ]`},
		{fill + `print(db.c.findOneAndUpdate({_id: 1}, {$set: {n: 9}}, {returnDocument: "after"}), db.c.findOneAndDelete({_id: 2}), db.c.findOneAndDelete({_id: 99}))`, `{ "_id" : 1, "n" : 9 } { "_id" : 2, "n" : 2 } null`},
		{fill + `print(db.c.bulkWrite([{insertOne: {document: {_id: 4}}}, {updateMany: {filter: {}, update: {$set: {m: 1}}}}, {deleteOne: {filter: {_id: 4}}}]).modifiedCount)`, "4"},
		{`var b = db.c.initializeUnorderedBulkOp(); b.insert({_id: 1}); b.find({_id: 1}).update({$set: {a: 1}}); b.find({_id: 2}).upsert().updateOne({$set: {a: 2}}); print(b.execute().upsertedCount, db.c.count())`, "1 2"},
		{`print(db.c.createIndex({a: 1, b: -1}, {unique: true}), db.c.createIndexes([{t: "text"}, {g: "2dsphere"}]), db.c.getIndexes().length)`, `a_1_b_-1 [ "t_text", "g_2dsphere" ] 4`},
		{`db.createCollection("v", {validator: {a: {$type: "int"}}, capped: true, size: 4096}); print(db.v.isCapped(), db.v.drop(), db.v.drop(), db.v.exists())`, "true true true null"},
		{`db.createView("w", "c", [{$match: {}}]); print(db.getCollectionInfos({name: "w"})[0].type)`, "view"},
		{`db.createUser({user: "u", pwd: process.env.PASSWORD, roles: [{role: "readWrite", db: "app"}]}); print(db.auth("u", "apple"), db.getUser("u").roles, db.getSiblingDB("admin").getUser("u"))`, `{ "ok" : 1 } [ { "role" : "readWrite", "db" : "app" } ] null`},
		{`db.createUser({user: "u", pwd: "a", roles: []}); try { db.auth("u", "wrong") } catch (e) { print(e.name, e.code, e.message) }`, "MongoServerError 18 Authentication failed."},
		{`db.createRole({role: "r", privileges: [], roles: []}); db.createUser({user: "u", pwd: "a", roles: []}); db.grantRolesToUser("u", ["r"]); print(db.getUser("u").roles.length)`, "1"},
		{`try { db.runCommand({nosuch: 1}) } catch (e) { print(e instanceof MongoServerError, e.code, e.codeName, e.message) }`, "true 59 CommandNotFound no such command: 'nosuch'"},
		{`db.c.insertOne({_id: 1}); try { db.c.insertOne({_id: 1}) } catch (e) { print(e.code, e instanceof Error) }`, "11000 true"},
		{`print(db.runCommand("ping").ok, db.adminCommand({ping: 1}).ok, db.version().charAt(0), db.hello().isWritablePrimary)`, "1 1 8 true"},
		{`print(ISODate("2020-01-02T03:04:05Z").toISOString(), NumberLong("5"), NumberDecimal("1.5"), UUID("00112233-4455-6677-8899-aabbccddeeff"))`, `2020-01-02T03:04:05.000Z NumberLong(5) NumberDecimal("1.5") UUID("00112233-4455-6677-8899-aabbccddeeff")`},
		{`print(EJSON.stringify(EJSON.parse('{"a":{"$numberLong":"5"}}'), {relaxed: false}), EJSON.stringify({a: 1}, null, 2))`, "{\"a\":{\"$numberLong\":\"5\"}} {\n  \"a\": 1\n}"},
		{`load("lib.inc"); print(twice(4))`, "8"},
		{`console.log("a", 1); quit(); print("b")`, "a 1"},
		{`db = connect("mongodb://localhost:27017/other?x=1"); print(db)`, "other"},
		{`db.getSiblingDB("config"); sh.enableSharding; print(typeof rs.initiate, sleep(1))`, "function undefined"},
		{`db.c.insertOne({n: 1}); db.getSiblingDB("admin").runCommand({setParameter: 1, ttlMonitorSleepSecs: 7}); print(db.adminCommand({getParameter: 1, ttlMonitorSleepSecs: 1}).ttlMonitorSleepSecs)`, "7"},
	} {
		_, out := scripted(t, fstest.MapFS{"s.js": {Data: []byte(c.script)}, "lib.inc": {Data: []byte("function twice(x) { return 2 * x }")}})
		out = strings.TrimSuffix(strings.ReplaceAll(out, "lib.inc is passed over: it is no .js and no .json file\n", ""), "\n")
		if out != c.want {
			t.Errorf("%s\nprints %s\nwant   %s", c.script, out, c.want)
		}
	}
}

// TestInitScriptValues: BSON is what mongosh makes of JavaScript's values.
func TestInitScriptValues(t *testing.T) {
	d, _ := scripted(t, fstest.MapFS{"s.js": {Data: []byte(`db.c.insertOne({_id: 1, i: 7, big: 3000000000, f: 1.5, neg: -0, u: undefined, l: NumberLong(7), d: Double(7), n: NumberInt("3"),
		dec: NumberDecimal("1"), t: new Date(0), r: /a/i, b: BinData(0, "AQ=="), o: ObjectId("000000000000000000000001"), m: MinKey, a: [1, {x: true}], s: "x", nil: null, ts: Timestamp(1, 2)})`)}})
	c := dialNode(t, d, d.Primary())
	reply := ok(t, run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "app"}}))
	doc, _ := reply.Lookup("cursor", "firstBatch", "0").Document()
	text, err := bson.AppendExtJSON(nil, doc, true)
	want := `{"_id":{"$numberInt":"1"},"i":{"$numberInt":"7"},"big":{"$numberDouble":"3000000000.0"},"f":{"$numberDouble":"1.5"},"neg":{"$numberDouble":"-0.0"},"u":null,"l":{"$numberLong":"7"},` +
		`"d":{"$numberDouble":"7.0"},"n":{"$numberInt":"3"},"dec":{"$numberDecimal":"1"},"t":{"$date":{"$numberLong":"0"}},"r":{"$regularExpression":{"pattern":"a","options":"i"}},` +
		`"b":{"$binary":{"base64":"AQ==","subType":"00"}},"o":{"$oid":"000000000000000000000001"},"m":{"$minKey":1},"a":[{"$numberInt":"1"},{"x":true}],"s":"x","nil":null,"ts":{"$timestamp":{"t":1,"i":2}}}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s, %v", text, want, err)
	}
}

// Scripts and documents take their turns by name, on every kind of deployment.
func TestInitScriptOrder(t *testing.T) {
	files := fstest.MapFS{
		"01-make.js":        {Data: []byte(`rs.initiate; db.items.createIndex({n: 1}); print(db.items.countDocuments({}))`)},
		"items.json":        {Data: []byte(`{"_id": 1}` + "\n" + `{"_id": 2}`)},
		"other.things.json": {Data: []byte(`[{"_id": 1}]`)},
		"zz-look.js":        {Data: []byte(`print(db.items.countDocuments({}), db.getSiblingDB("other").things.countDocuments({}), db.getUsers().users.length)`)},
		"README":            {Data: []byte("x")},
		".hidden.sh":        {Data: []byte("x")},
	}
	for name, opts := range map[string][]mongotest.Option{
		"standalone": nil, "set": {mongotest.ReplicaSet(3)}, "cluster": {mongotest.Sharded(2, 2)}, "balancer": {mongotest.LoadBalanced(1)}, "secured": {mongotest.Auth("a", "b"), mongotest.TLS()},
	} {
		_, out := scripted(t, files, opts...)
		// The collection exists when its documents come: they are added, as mongoimport does.
		if want := "0\nREADME is passed over: it is no .js and no .json file\n2 1 0\n"; out != want {
			t.Errorf("%s: %q", name, out)
		}
	}
}

func TestInitScriptInitiate(t *testing.T) {
	set := `print(rs.initiate({_id: "rs0", members: [{_id: 0, host: "x"}]}).ok, rs.status().ok, rs.conf()._id)`
	if _, out := scripted(t, fstest.MapFS{"s.js": {Data: []byte(set)}}, mongotest.ReplicaSet(1)); out != "1 1 rs0\n" {
		t.Error(out)
	}
	if _, err := mongotest.Open(mongotest.Scripts(fstest.MapFS{"s.js": {Data: []byte("\nrs.initiate()")}}, mongotest.ScriptOptions{})); err == nil || !strings.HasPrefix(err.Error(), "s.js:2:") {
		t.Error(err)
	}
}

// Errors name file, line and column.
func TestInitScriptErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.js", "print(1);\n  db.c.insertOne(7)", "a.js:2:17: MongoshInvalidInputError: want a document, and not 7"},
		{"a.js", "var x = ;", "a.js:1:9: SyntaxError: "},
		{"a.js", "\n\nundefinedFunction()", "a.js:3:"},
		{"a.js", "function f() {\n  db.c.updateOne({}, {a: 1})\n}\nf()", "a.js:2:"},
		{"a.js", "db.runCommand({nosuch: 1})", "no such command: 'nosuch'"},
		{"a.js", "db.createUser({user: 'u'})", "a.js:1:14: MongoServerError: "},
		{"a.js", "throw new Error('mine')", "Error: mine"},
		{"a.js", "throw 'mine'", "mine"},
		{"a.js", "db.c.watch()", "MongoshUnimplementedError: watch is not there in initialization scripts"},
		{"a.js", "require('fs')", "require is not there"},
		{"a.js", "load('none.js')", "none.js"},
		{"a.js", "quit(3)", "a.js: the script ended with the status 3"},
		{"a.json", "{\"a\":}", "a.json:1:6: "},
		{"a.sh", "mongosh", "a.sh: there is no shell here to run it: want .js files"},
		{"a.js", "for (;;) {}", "enough"},
	} {
		ends := 0
		d, err := mongotest.Open(mongotest.Scripts(fstest.MapFS{c.name: {Data: []byte(c.text)}}, mongotest.ScriptOptions{Check: func() error {
			if ends++; ends > 2 && strings.HasPrefix(c.text, "for") {
				return errors.New("enough")
			}
			return nil
		}}))
		if err == nil {
			d.Stop()
			t.Errorf("%s: it started", c.text)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nsays %v\nwant %s", c.text, err, c.want)
		}
	}
}
