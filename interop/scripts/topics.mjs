// Small programs by topic with the npm driver: node topics.mjs URI TOPIC. Each fails by an exception and ends with "done".
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { GridFSBucket, Long, MongoBulkWriteError, MongoClient, ObjectId } from "mongodb";

const [uri, topic] = process.argv.slice(2);
const client = new MongoClient(uri, { serverSelectionTimeoutMS: 10000 });
const db = client.db("node_" + topic);

const topics = {
  async crud() {
    const c = db.collection("c");
    await c.insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i, n: i % 10, tags: ["a", "b"].slice(i % 2) })));
    assert.equal(await c.countDocuments({ n: 3 }), 10);
    assert.deepEqual(await c.find({ tags: "a" }, { projection: { n: 1 }, sort: { _id: -1 }, limit: 2 }).toArray(), [{ _id: 98, n: 8 }, { _id: 96, n: 6 }]);
    assert.deepEqual((await c.distinct("n")).length, 10);
    assert.equal((await c.updateMany({ n: 3 }, { $inc: { n: 100 }, $push: { tags: "c" } })).modifiedCount, 10);
    assert.equal((await c.replaceOne({ _id: "new" }, { x: 1 }, { upsert: true })).upsertedId, "new");
    assert.equal((await c.findOneAndUpdate({ _id: 0 }, { $set: { x: { $literal: 1 } } }, { returnDocument: "after" }))._id, 0);
    assert.equal((await c.findOneAndDelete({ _id: 1 })).n, 1);
    assert.equal((await c.deleteMany({ n: { $gt: 100 } })).deletedCount, 10);
    await assert.rejects(c.insertOne({ _id: 0 }), { code: 11000 });
    assert.equal((await c.find({ $where: "this.n == 5 && this._id > 50" }).toArray()).length, 5);
    assert.deepEqual(await c.findOne({ _id: (await c.insertOne({ l: Long.fromString("9007199254740993") })).insertedId }, { promoteLongs: false, projection: { _id: 0 } }), { l: Long.fromString("9007199254740993") });
  },
  async aggregation() {
    const c = db.collection("c");
    await c.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, g: i % 5, v: i })));
    assert.deepEqual(await c.aggregate([{ $group: { _id: "$g", sum: { $sum: "$v" } } }, { $sort: { _id: 1 } }, { $limit: 2 }]).toArray(), [{ _id: 0, sum: 225 }, { _id: 1, sum: 235 }]);
    const joined = await c.aggregate([{ $match: { _id: 3 } }, { $lookup: { from: "c", localField: "g", foreignField: "g", pipeline: [{ $count: "n" }], as: "same" } }]).next();
    assert.equal(joined.same[0].n, 10);
    const facets = await c.aggregate([{ $facet: { low: [{ $match: { v: { $lt: 5 } } }, { $count: "n" }], buckets: [{ $bucketAuto: { groupBy: "$v", buckets: 5 } }] } }]).next();
    assert.deepEqual([facets.low[0].n, facets.buckets.length], [5, 5]);
    await c.aggregate([{ $match: { g: 1 } }, { $merge: { into: "out" } }]).toArray();
    assert.equal(await db.collection("out").countDocuments(), 10);
    const running = await c.aggregate([{ $setWindowFields: { sortBy: { _id: 1 }, output: { total: { $sum: "$v", window: { documents: ["unbounded", "current"] } } } } }, { $match: { _id: 9 } }]).next();
    assert.equal(running.total, 45);
    const f = await c.aggregate([{ $match: { _id: 4 } }, { $project: { r: { $function: { body: "function(v) { return v * 2 }", args: ["$v"], lang: "js" } } } }]).next();
    assert.equal(f.r, 8);
  },
  async bulk() {
    const c = db.collection("c");
    const r = await c.bulkWrite([
      { insertOne: { document: { _id: 1, n: 1 } } }, { insertOne: { document: { _id: 2, n: 2 } } }, { updateMany: { filter: {}, update: { $inc: { n: 1 } } } },
      { replaceOne: { filter: { _id: 3 }, replacement: { n: 9 }, upsert: true } }, { deleteOne: { filter: { _id: 1 } } },
    ]);
    assert.deepEqual([r.insertedCount, r.modifiedCount, r.upsertedCount, r.deletedCount, r.upsertedIds], [2, 2, 1, 1, { 3: 3 }]);
    const failed = await c.insertMany([{ _id: 2 }, { _id: 4 }, { _id: 2 }], { ordered: false }).catch((e) => e);
    assert.ok(failed instanceof MongoBulkWriteError);
    assert.deepEqual([failed.insertedCount, failed.writeErrors.map((e) => e.index)], [1, [0, 2]]);
    const many = await client.bulkWrite([
      { namespace: db.databaseName + ".x", name: "insertOne", document: { a: 1 } }, { namespace: db.databaseName + ".y", name: "updateOne", filter: {}, update: { $set: { b: 1 } }, upsert: true },
    ]);
    assert.deepEqual([many.insertedCount, many.upsertedCount], [1, 1]);
  },
  async transactions() {
    const c = db.collection("c");
    await c.insertMany([{ _id: "a", n: 10 }, { _id: "b", n: 10 }]);
    const move = (session) => Promise.resolve(c.updateOne({ _id: "a" }, { $inc: { n: -3 } }, { session })).then(() => c.updateOne({ _id: "b" }, { $inc: { n: 3 } }, { session }));
    await client.withSession((s) => s.withTransaction(move, { readConcern: { level: "snapshot" }, writeConcern: { w: "majority" } }));
    assert.deepEqual((await c.find().sort({ _id: 1 }).toArray()).map((d) => d.n), [7, 13]);
    await client.withSession(async (s) => {
      s.startTransaction();
      await move(s);
      assert.equal((await c.findOne({ _id: "a" }, { session: s })).n, 4);
      assert.equal((await c.findOne({ _id: "a" })).n, 7);
      await s.abortTransaction();
    });
    assert.equal((await c.findOne({ _id: "a" })).n, 7);
    const [one, two] = [client.startSession(), client.startSession()];
    one.startTransaction();
    two.startTransaction();
    await c.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session: one });
    const conflict = await c.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session: two }).catch((e) => e);
    assert.ok(conflict.hasErrorLabel("TransientTransactionError"));
    await one.commitTransaction();
    await Promise.all([one.endSession(), two.endSession()]);
  },
  async changestreams() {
    const c = db.collection("c");
    await db.createCollection("c", { changeStreamPreAndPostImages: { enabled: true } });
    const stream = c.watch([{ $match: { operationType: { $ne: "insert" } } }], { fullDocument: "updateLookup", fullDocumentBeforeChange: "whenAvailable" });
    assert.equal(await stream.tryNext(), null); // opens the stream
    await c.insertOne({ _id: 1, n: 1 });
    await c.updateOne({ _id: 1 }, { $set: { n: 2 } });
    await c.deleteOne({ _id: 1 });
    const update = await stream.next();
    assert.deepEqual([update.operationType, update.fullDocumentBeforeChange.n], ["update", 1]);
    await stream.close();
    const again = c.watch([], { resumeAfter: update._id });
    assert.equal((await again.next()).operationType, "delete");
    await again.close();
  },
  async gridfs() {
    const bucket = new GridFSBucket(db, { chunkSizeBytes: 1000 });
    const data = Buffer.from(Array.from({ length: 4321 }, (_, i) => i % 251));
    const upload = bucket.openUploadStream("f.bin", { metadata: { a: 1 } });
    await pipeline(Readable.from([data.subarray(0, 2000), data.subarray(2000)]), upload);
    assert.deepEqual(await buffer(bucket.openDownloadStream(upload.id)), data);
    assert.deepEqual(await buffer(bucket.openDownloadStreamByName("f.bin", { start: 1500, end: 2500 })), data.subarray(1500, 2500));
    assert.equal(await db.collection("fs.chunks").countDocuments(), 5);
    await bucket.rename(upload.id, "g.bin");
    assert.equal((await bucket.find({ filename: "g.bin" }).next()).length, 4321);
    await bucket.delete(upload.id);
    assert.equal(await db.collection("fs.chunks").countDocuments(), 0);
  },
  async sessions() {
    const c = db.collection("c");
    await client.withSession({ causalConsistency: true }, async (s) => {
      await c.insertOne({ _id: 1 }, { session: s, writeConcern: { w: "majority" } });
      assert.ok(s.operationTime && s.clusterTime);
      assert.equal((await c.findOne({ _id: 1 }, { session: s, readPreference: "secondary", readConcern: { level: "majority" } }))._id, 1);
    });
    await client.withSession({ snapshot: true }, async (s) => {
      assert.equal(await c.countDocuments({}, { session: s }), 1);
      await c.insertOne({ _id: 2 });
      assert.equal(await c.countDocuments({}, { session: s }), 1);
    });
    const s = client.startSession();
    const cursor = c.find({}, { session: s, batchSize: 1 });
    assert.ok(await cursor.next());
    await cursor.close();
    await s.endSession();
    await assert.rejects(c.findOne({}, { session: s }));
    assert.ok(ObjectId.isValid(new ObjectId()));
  },
};

await client.connect();
await topics[topic]();
await client.close();
console.log("done");
