"""Small programs by topic with pymongo: python topics.py URI TOPIC. Each fails by an exception and ends with "done"."""

import sys

import bson
import gridfs
import pymongo
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

uri, topic = sys.argv[1:]
client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=10000)
db = client["pymongo_" + topic]
c = db["c"]


def crud():
    c.insert_many([{"_id": i, "n": i % 10} for i in range(100)])
    assert c.count_documents({"n": 3}) == 10
    assert list(c.find({"n": 1}, sort=[("_id", -1)], limit=1)) == [{"_id": 91, "n": 1}]
    assert c.update_many({"n": 3}, {"$inc": {"n": 100}}).modified_count == 10
    assert c.replace_one({"_id": "new"}, {"x": 1}, upsert=True).upserted_id == "new"
    assert c.find_one_and_update({"_id": 0}, {"$set": {"x": 1}}, return_document=pymongo.ReturnDocument.AFTER)["x"] == 1
    assert len(c.distinct("n")) == 10
    assert c.delete_many({"n": {"$gt": 100}}).deleted_count == 10
    assert len(list(c.find({"$where": "this.n == 5 && this._id > 50"}))) == 5
    try:
        c.insert_one({"_id": 0})
        raise AssertionError("a duplicate was inserted")
    except pymongo.errors.DuplicateKeyError:
        pass


def aggregation():
    c.insert_many([{"_id": i, "g": i % 5, "v": i} for i in range(50)])
    assert list(c.aggregate([{"$group": {"_id": "$g", "sum": {"$sum": "$v"}}}, {"$sort": {"_id": 1}}, {"$limit": 1}])) == [{"_id": 0, "sum": 225}]
    assert list(c.aggregate([{"$match": {"g": 1}}, {"$out": "out"}])) == [] and db["out"].count_documents({}) == 10
    reply = db.command("mapReduce", "c", map=bson.Code("function() { emit(this.g, this.v) }"), reduce=bson.Code("function(k, v) { return Array.sum(v) }"), out={"inline": 1})
    assert sorted((r["_id"], r["value"]) for r in reply["results"])[:1] == [(0, 225)]


def bulk():
    r = c.bulk_write([pymongo.InsertOne({"_id": 1, "n": 1}), pymongo.UpdateMany({}, {"$inc": {"n": 1}}), pymongo.ReplaceOne({"_id": 3}, {"n": 9}, upsert=True), pymongo.DeleteOne({"_id": 1})])
    assert (r.inserted_count, r.modified_count, r.upserted_ids, r.deleted_count) == (1, 1, {2: 3}, 1)
    try:
        c.insert_many([{"_id": 3}, {"_id": 4}], ordered=False)
        raise AssertionError("a duplicate was inserted")
    except pymongo.errors.BulkWriteError as e:
        assert e.details["nInserted"] == 1 and e.details["writeErrors"][0]["index"] == 0


def transactions():
    c.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 10}])

    def move(s):
        c.update_one({"_id": "a"}, {"$inc": {"n": -3}}, session=s)
        c.update_one({"_id": "b"}, {"$inc": {"n": 3}}, session=s)

    with client.start_session() as s:
        s.with_transaction(move, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))
        assert [d["n"] for d in c.find().sort("_id")] == [7, 13]
        s.start_transaction()
        move(s)
        assert c.find_one({"_id": "a"}, session=s)["n"] == 4 and c.find_one({"_id": "a"})["n"] == 7
        s.abort_transaction()
    assert c.find_one({"_id": "a"})["n"] == 7


def changestreams():
    db.create_collection("c")
    with c.watch(full_document="updateLookup") as stream:
        c.insert_one({"_id": 1, "n": 1})
        c.update_one({"_id": 1}, {"$set": {"n": 2}})
        first = stream.next()
        assert first["operationType"] == "insert" and stream.next()["updateDescription"]["updatedFields"] == {"n": 2}
    with c.watch(resume_after=first["_id"]) as stream:
        assert stream.next()["operationType"] == "update"


def gridfs_files():
    bucket = gridfs.GridFSBucket(db, chunk_size_bytes=1000)
    data = bytes(i % 251 for i in range(4321))
    id = bucket.upload_from_stream("f.bin", data, metadata={"a": 1})
    assert bucket.open_download_stream(id).read() == data and db["fs.chunks"].count_documents({}) == 5
    bucket.delete(id)
    assert db["fs.chunks"].count_documents({}) == 0


def sessions():
    with client.start_session(causal_consistency=True) as s:
        c.with_options(write_concern=WriteConcern("majority")).insert_one({"_id": 1}, session=s)
        assert s.operation_time and s.cluster_time
        secondary = c.with_options(read_preference=pymongo.ReadPreference.SECONDARY, read_concern=ReadConcern("majority"))
        assert secondary.find_one({"_id": 1}, session=s)


{"gridfs": gridfs_files}.get(topic, globals().get(topic))()
client.close()
print("done")
