// Runs once, when there is no data yet; db is the database of MONGO_INITDB_DATABASE.
db.createUser({user: "web", pwd: "apple", roles: [{role: "readWrite", db: db.getName()}]});
db.orders.createIndex({user: 1, placed: -1});
print(`${db.getName()} is ready`);
