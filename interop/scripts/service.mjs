// Looks at a deployment that was started as a service: a user of a script, fixtures, TLS, search, snapshots.
import assert from "node:assert";
import { MongoClient } from "mongodb";

const [root, web, ca] = process.argv.slice(2);
const options = { tls: true, tlsCAFile: ca };
const client = await new MongoClient(web, options).connect();
const db = client.db("shop");
assert.deepEqual((await db.collection("users").find().sort({ _id: 1 }).toArray()).map((u) => u.name), ["Ada", "Grace"]);
assert.equal(String((await db.collection("products").findOne({ _id: 2 })).price), "4.20");
assert.ok((await db.collection("orders").indexes()).some((i) => i.name === "user_1_placed_-1"));
await assert.rejects(db.collection("users").insertOne({ name: 7 }), { code: 121 });
await assert.rejects(client.db("other").collection("c").insertOne({}), { code: 13 });
const notes = db.collection("notes of node");
await notes.insertMany([{ _id: 1, text: "running servers" }, { _id: 2, text: "the run of a server that ran" }, { _id: 3, text: "none" }]);
await notes.createSearchIndex({ name: "default", definition: { mappings: { dynamic: true, fields: { text: { type: "string", analyzer: "lucene.english" } } } } });
assert.deepEqual((await notes.listSearchIndexes().toArray()).map((i) => i.status), ["READY"]);
const found = await notes.aggregate([{ $search: { text: { query: "server", path: "text" } } }, { $project: { score: { $meta: "searchScore" } } }]).toArray();
assert.deepEqual(found.filter((f) => f.score > 0).map((f) => f._id), [1, 2]);
await notes.drop();
const admin = await new MongoClient(root, options).connect();
await admin.db("admin").command({ saveSnapshot: "node" });
await db.collection("users").deleteMany({});
await admin.db("admin").command({ restoreSnapshot: "node" });
assert.equal(await db.collection("users").countDocuments(), 2);
await client.close();
await admin.close();
console.log("done");
