"""Looks at a deployment that was started as a service: a user of a script, fixtures, TLS, search, snapshots."""
import sys

import pymongo
from pymongo.errors import OperationFailure

root, web, ca = sys.argv[1:4]
tls = {"tls": True, "tlsCAFile": ca}
db = pymongo.MongoClient(web, **tls)["shop"]
assert [u["name"] for u in db.users.find(sort=[("_id", 1)])] == ["Ada", "Grace"], list(db.users.find())
assert str(db.products.find_one({"_id": 2})["price"]) == "4.20", db.products.find_one({"_id": 2})
assert "user_1_placed_-1" in db.orders.index_information(), db.orders.index_information()
try:
    db.users.insert_one({"name": 7})
    raise AssertionError("the validator is not there")
except OperationFailure as e:
    assert e.code == 121, e
try:
    db.client["other"].c.insert_one({})
    raise AssertionError("the user may write everywhere")
except OperationFailure as e:
    assert e.code == 13, e
notes = db["notes of python"]
notes.insert_many([{"_id": 1, "text": "running servers"}, {"_id": 2, "text": "the run of a server that ran"}, {"_id": 3, "text": "none"}])
english = {"mappings": {"dynamic": True, "fields": {"text": {"type": "string", "analyzer": "lucene.english"}}}}
db.command("createSearchIndexes", notes.name, indexes=[{"name": "default", "definition": english}])
assert [i["status"] for i in notes.aggregate([{"$listSearchIndexes": {}}])] == ["READY"]
found = notes.aggregate([{"$search": {"text": {"query": "server", "path": "text"}}}, {"$project": {"score": {"$meta": "searchScore"}}}])
assert [f["_id"] for f in found if f["score"] > 0] == [1, 2]
notes.drop()
admin = pymongo.MongoClient(root, **tls).admin
admin.command("saveSnapshot", "python")
db.users.delete_many({})
admin.command("restoreSnapshot", "python")
assert db.users.count_documents({}) == 2
print("done")
