"""CRUD, a transaction and a change stream with pymongo against the deployment whose connection string is the only argument.
Prints a line per step. Standalone servers have the first only."""

import sys

import pymongo

client = pymongo.MongoClient(sys.argv[1], serverSelectionTimeoutMS=10000)
print("pymongo", pymongo.version, "server", client.server_info()["version"])
people = client["interop"]["pymongo"]
people.drop()

print("insert_one", people.insert_one({"_id": 1, "name": "Ada", "age": 36}).inserted_id)
print("insert_many", people.insert_many([{"_id": i, "name": "n%d" % i, "age": i} for i in range(2, 502)]).inserted_ids[-1])
print("find_one", people.find_one({"name": "Ada"}))
print("find", [d["_id"] for d in people.find({"age": {"$gte": 498}}).sort("_id", -1)])
print("batches", sum(1 for _ in people.find({}, batch_size=7)))
print("update_one", people.update_one({"_id": 1}, {"$inc": {"age": 1}}).modified_count, people.find_one({"_id": 1})["age"])
print("update_many", people.update_many({"age": {"$gt": 400}}, {"$set": {"old": True}}).modified_count)
print("upsert", people.update_one({"_id": "new"}, {"$set": {"x": 1}}, upsert=True).upserted_id)
try:
    people.insert_one({"_id": 1})
    sys.exit("a duplicate was inserted")
except pymongo.errors.DuplicateKeyError as e:
    print("duplicate", e.code)
print("delete_many", people.delete_many({"age": {"$lt": 100}}).deleted_count)
print("count", people.count_documents({}))

hello = client.admin.command("hello")
if "setName" in hello or hello.get("msg") == "isdbgrid":
    accounts = client["interop"]["accounts"]
    accounts.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 10}])
    with accounts.watch() as stream, client.start_session() as session:

        def move(session):
            accounts.update_one({"_id": "a"}, {"$inc": {"n": -3}}, session=session)
            accounts.update_one({"_id": "b"}, {"$inc": {"n": 3}}, session=session)

        session.with_transaction(move)
        print("committed", [d["n"] for d in accounts.find().sort("_id")])
        session.start_transaction()
        accounts.delete_many({}, session=session)
        print("inside", accounts.count_documents({}, session=session), "outside", accounts.count_documents({}))
        session.abort_transaction()
        print("aborted", accounts.count_documents({}))

        accounts.delete_one({"_id": "a"})
        for _ in range(3):
            e = stream.next()
            print("event", e["operationType"], e["documentKey"]["_id"], e.get("updateDescription", {}).get("updatedFields", {}))
client.close()
print("done")
