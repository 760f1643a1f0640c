// CRUD, a transaction and a change stream with the npm driver against the deployment whose connection string is the only
// argument. Prints a line per step. Standalone servers have the first only.
import { MongoClient, MongoServerError } from "mongodb";

const client = new MongoClient(process.argv[2], { serverSelectionTimeoutMS: 10000 });
const print = (...args) => console.log(args.map((a) => (typeof a === "string" ? a : JSON.stringify(a))).join(" "));
const db = client.db("interop");
const people = db.collection("npm");
const build = await client.db("admin").command({ buildInfo: 1 });
print("server", build.version);

print("insertOne", (await people.insertOne({ _id: 1, name: "Ada", age: 36 })).insertedId);
print("insertMany", (await people.insertMany(Array.from({ length: 500 }, (_, i) => ({ _id: i + 2, name: `n${i + 2}`, age: i + 2 })))).insertedCount);
print("findOne", await people.findOne({ name: "Ada" }));
print("find", (await people.find({ age: { $gte: 498 } }).sort({ _id: -1 }).toArray()).map((d) => d._id));
let n = 0;
for await (const _ of people.find({}, { batchSize: 7 })) n++;
print("batches", n);
print("updateOne", (await people.updateOne({ _id: 1 }, { $inc: { age: 1 } })).modifiedCount, (await people.findOne({ _id: 1 })).age);
print("upsert", (await people.updateOne({ _id: "new" }, { $set: { x: 1 } }, { upsert: true })).upsertedId);
print("findOneAndUpdate", await people.findOneAndUpdate({ _id: 1 }, { $set: { seen: true } }, { returnDocument: "after" }));
try {
  await people.insertOne({ _id: 1 });
  print("a duplicate was inserted");
} catch (e) {
  print("duplicate", e instanceof MongoServerError ? e.code : e.message);
}
const bulk = await people.bulkWrite([
  { insertOne: { document: { _id: "bulk" } } },
  { updateMany: { filter: { age: { $gt: 400 } }, update: { $set: { old: true } } } },
  { deleteMany: { filter: { age: { $lt: 100 }, _id: { $ne: 1 } } } },
]);
print("bulkWrite", bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount);
print("aggregate", await people.aggregate([{ $match: { old: true } }, { $group: { _id: null, sum: { $sum: "$age" } } }]).toArray());
await people.createIndex({ name: 1 }, { unique: true, sparse: true });
print("indexes", (await people.indexes()).map((i) => i.name));
print("count", await people.countDocuments({}));

const hello = await client.db("admin").command({ hello: 1 });
if (hello.setName || hello.msg === "isdbgrid") {
  const accounts = db.collection("npmAccounts");
  await accounts.insertMany([{ _id: "a", n: 10 }, { _id: "b", n: 10 }]);
  const stream = accounts.watch();
  const events = stream[Symbol.asyncIterator]();
  const first = events.next(); // opens the stream
  await new Promise((resolve) => stream.once("init", resolve).once("resumeTokenChanged", resolve));

  const session = client.startSession();
  await session.withTransaction(async () => {
    await accounts.updateOne({ _id: "a" }, { $inc: { n: -3 } }, { session });
    await accounts.updateOne({ _id: "b" }, { $inc: { n: 3 } }, { session });
  });
  print("committed", (await accounts.find().sort({ _id: 1 }).toArray()).map((d) => d.n));
  session.startTransaction();
  await accounts.deleteMany({}, { session });
  print("inside", await accounts.countDocuments({}, { session }), "outside", await accounts.countDocuments({}));
  await session.abortTransaction();
  print("aborted", await accounts.countDocuments({}));
  await session.endSession();

  await accounts.deleteOne({ _id: "a" });
  for (let e = await first, i = 0; ; e = await events.next()) {
    print("event", e.value.operationType, e.value.documentKey._id, e.value.updateDescription?.updatedFields ?? {});
    if (++i === 3) break;
  }
  await stream.close();
}
await client.close();
print("done");
