// Small programs by topic with mongoose: node mongoose.mjs URI TOPIC. Each fails by an exception and ends with "done".
import assert from "node:assert/strict";
import mongoose from "mongoose";

const [uri, topic] = process.argv.slice(2);
const person = new mongoose.Schema(
  { name: { type: String, required: true, unique: true, trim: true }, age: { type: Number, min: 0 }, tags: [String], boss: { type: mongoose.Schema.Types.ObjectId, ref: "Person" } },
  { timestamps: true, optimisticConcurrency: true },
);
person.virtual("old").get(function () { return this.age > 60; });
person.index({ age: -1 });

const topics = {
  async crud(Person) {
    const ada = await Person.create({ name: " Ada ", age: 36, tags: ["x"] });
    const bob = await Person.create({ name: "Bob", age: 70, boss: ada });
    assert.deepEqual([ada.name, bob.old, (await Person.findOne({ name: "Bob" }).populate("boss")).boss.name], ["Ada", true, "Ada"]);
    ada.tags.push("y");
    ada.age = 37;
    await ada.save();
    assert.deepEqual((await Person.findById(ada._id).lean()).tags, ["x", "y"]);
    await assert.rejects(Person.create({ name: "Eve", age: -1 }), { name: "ValidationError" });
    await assert.rejects(Person.create({ name: "Ada" }), { code: 11000 });
    const [one, two] = [await Person.findById(bob._id), await Person.findById(bob._id)];
    one.age = 71;
    await one.save();
    two.age = 72;
    await assert.rejects(two.save(), { name: "VersionError" });
    assert.equal((await Person.findOneAndUpdate({ name: "New" }, { $inc: { age: 1 } }, { upsert: true, returnDocument: "after" })).age, 1);
    assert.equal((await Person.deleteMany({ age: { $gt: 50 } })).deletedCount, 1);
    assert.deepEqual((await Person.listIndexes()).map((i) => i.name), ["_id_", "name_1", "age_-1"]);
  },
  async bulk(Person) {
    const r = await Person.bulkWrite([{ insertOne: { document: { name: "A" } } }, { updateOne: { filter: { name: "B" }, update: { age: 3 }, upsert: true } }]);
    assert.deepEqual([r.insertedCount, r.upsertedCount], [1, 1]);
    await Person.insertMany(Array.from({ length: 200 }, (_, i) => ({ name: "p" + i, age: i })));
    let n = 0;
    for await (const p of Person.find({ age: { $gte: 100 } }).cursor({ batchSize: 7 })) n += p.age >= 100;
    assert.equal(n, 100);
  },
  async aggregation(Person) {
    await Person.insertMany(Array.from({ length: 20 }, (_, i) => ({ name: "p" + i, age: i, tags: i % 2 ? ["odd"] : [] })));
    assert.deepEqual(await Person.aggregate().unwind("tags").group({ _id: "$tags", sum: { $sum: "$age" } }), [{ _id: "odd", sum: 100 }]);
  },
  async transactions(Person) {
    await mongoose.connection.transaction(async (session) => {
      await Person.create([{ name: "in" }], { session });
    });
    await assert.rejects(mongoose.connection.transaction(async (session) => {
      await Person.create([{ name: "out" }], { session });
      throw Error("no");
    }), { message: "no" });
    assert.deepEqual((await Person.find().lean()).map((p) => p.name), ["in"]);
  },
  async changestreams(Person) {
    const stream = Person.watch();
    const event = new Promise((resolve, reject) => stream.once("change", resolve).once("error", reject));
    await new Promise((resolve) => stream.once("ready", resolve));
    await stream.$driverChangeStreamPromise;
    const insert = setInterval(() => Person.create({ name: "w" + Date.now() }).catch(() => {}), 100); // until the stream is open
    assert.equal((await event).operationType, "insert");
    clearInterval(insert);
    await stream.close();
  },
};

await mongoose.connect(uri, { dbName: "mongoose_" + topic, serverSelectionTimeoutMS: 10000 });
const Person = mongoose.model("Person", person);
await Person.init();
await topics[topic](Person);
await mongoose.disconnect();
console.log("done");
