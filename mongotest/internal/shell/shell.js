// The part of mongosh's API that initialization scripts use, on top of the classes that programs on the server find
// (package js). The function gets the interpreter's natives and those of package shell:
//
//	host.run(db, command)       the reply, whether or not the command failed
//	host.auth(db, user, pass)   whether the user exists and has this password
//	host.print(text), host.read(path), host.env(), host.parse(text), host.stringify(value, relaxed, indent), host.exit(code)
(function (native, host, first) {
    var global = Function("return this")();
    function define(name, value) {
        Object.defineProperty(global, name, {value: value, writable: true, configurable: true, enumerable: false});
    }

    // Errors.
    function errorClass(name) {
        var f = function (message, fields) {
            var e = new Error(message);
            Object.setPrototypeOf(e, f.prototype);
            Object.assign(e, fields || {});
            return e;
        };
        f.prototype = Object.create(Error.prototype, {
            name: {value: name, writable: true, configurable: true},
            constructor: {value: f, writable: true, configurable: true}
        });
        Object.defineProperty(f, "name", {value: name});
        define(name, f);
        return f;
    }
    var ServerError = errorClass("MongoServerError"), BulkError = errorClass("MongoBulkWriteError");
    var InputError = errorClass("MongoshInvalidInputError"), MissingError = errorClass("MongoshUnimplementedError");
    function failure(reply) {
        return new ServerError(reply.errmsg || "the command failed", {code: reply.code, codeName: reply.codeName, errmsg: reply.errmsg, ok: 0, errorResponse: reply});
    }
    function missing(what) {
        return function () {
            throw new MissingError(what + " is not there in initialization scripts: docs/mongotest.md lists what is");
        };
    }
    function run(db, cmd) {
        var reply = host.run(db, cmd);
        if (!reply.ok) throw failure(reply);
        return reply;
    }
    function plain(x) { return typeof x === "object" && x !== null && !Array.isArray(x); }
    function want(ok, text) { if (!ok) throw new InputError(text); }
    function text(x, what) {
        want(typeof x === "string" && x !== "", what + ": want a text, and not " + tojson(x));
        return x;
    }
    // put copies those fields of options that are set, perhaps under other names.
    function put(to, options, names) {
        Object.keys(names).forEach(function (name) {
            if (options && options[name] !== undefined) to[names[name]] = options[name];
        });
        return to;
    }
    function same(names) { return names.split(" ").reduce(function (m, n) { m[n] = n; return m; }, {}); }

    // Cursors.
    function Cursor(db, ns, cmd) { this._db = db; this._ns = ns; this._cmd = cmd; this._batch = null; this._id = 0; }
    function option(name, field) {
        return function (x) {
            want(this._batch === null, name + ": want it before the first document is read");
            this._cmd[field || name] = x;
            return this;
        };
    }
    "sort skip projection hint collation comment max min allowDiskUse maxTimeMS showRecordId returnKey".split(" ").forEach(function (n) { Cursor.prototype[n] = option(n); });
    Object.assign(Cursor.prototype, {
        project: option("project", "projection"),
        limit: function (n) {
            if (n < 0) { this._cmd.singleBatch = true; n = -n; }
            if (n) this._cmd.limit = n;
            return this;
        },
        batchSize: function (n) {
            if (this._cmd.aggregate) this._cmd.cursor = {batchSize: n}; else this._cmd.batchSize = n;
            return this;
        },
        noCursorTimeout: function () { this._cmd.noCursorTimeout = true; return this; },
        readPref: function () { return this; },
        readConcern: function (level) { this._cmd.readConcern = {level: level}; return this; },
        pretty: function () { return this; },
        _take: function (cursor, batch) {
            this._batch = batch;
            this._at = 0;
            this._id = cursor.id;
            this._coll = cursor.ns.slice(cursor.ns.indexOf(".") + 1);
        },
        hasNext: function () {
            if (this._batch === null) {
                var c = run(this._db, this._cmd).cursor;
                this._take(c, c.firstBatch);
            }
            while (this._at >= this._batch.length && this._id != 0) {
                var more = run(this._db, {getMore: NumberLong(this._id), collection: this._coll}).cursor;
                this._take(more, more.nextBatch);
            }
            return this._at < this._batch.length;
        },
        next: function () {
            if (!this.hasNext()) throw new InputError("the cursor has no more documents");
            return this._change(this._batch[this._at++]);
        },
        tryNext: function () { return this.hasNext() ? this.next() : null; },
        _change: function (doc) { return this._map ? this._map(doc) : doc; },
        map: function (f) {
            var before = this._map;
            this._map = before ? function (d) { return f(before(d)); } : f;
            return this;
        },
        forEach: function (f) {
            for (var i = 0; this.hasNext(); i++) {
                if (f(this.next(), i) === false) return;
            }
        },
        toArray: function () { var all = []; while (this.hasNext()) all.push(this.next()); return all; },
        itcount: function () { var n = 0; for (; this.hasNext(); n++) this.next(); return n; },
        count: function () {
            return run(this._db, put({count: this._cmd.find, query: this._cmd.filter}, this._cmd, same("hint collation"))).n;
        },
        size: function () { return run(this._db, put({count: this._cmd.find, query: this._cmd.filter}, this._cmd, same("hint collation skip limit"))).n; },
        explain: function (verbosity) { return run(this._db, {explain: this._cmd, verbosity: verbosity || "queryPlanner"}); },
        isExhausted: function () { return !this.hasNext(); },
        isClosed: function () { return false; },
        objsLeftInBatch: function () { return this._batch === null ? 0 : this._batch.length - this._at; },
        close: function () {
            if (this._batch !== null && this._id != 0) host.run(this._db, {killCursors: this._coll, cursors: [NumberLong(this._id)]});
            this._batch = [];
            this._at = this._id = 0;
        },
        tojson: function () { return tojson(this.toArray()); }
    });
    Cursor.prototype[Symbol.iterator] = function () {
        var c = this;
        return {next: function () { return c.hasNext() ? {value: c.next(), done: false} : {value: undefined, done: true}; }};
    };

    // Writes.
    function withID(doc) {
        want(plain(doc), "want a document, and not " + tojson(doc));
        if (doc._id === undefined) {
            var id = ObjectId();
            try { doc._id = id; } catch (e) { }
            return Object.assign({_id: id}, doc, {_id: id});
        }
        return doc;
    }
    function writes(reply) {
        if (reply.writeErrors && reply.writeErrors.length > 0) {
            var first = reply.writeErrors[0];
            throw new ServerError(first.errmsg, {code: first.code, errmsg: first.errmsg, writeErrors: reply.writeErrors, keyPattern: first.keyPattern, keyValue: first.keyValue, errInfo: first.errInfo});
        }
        if (reply.writeConcernError) throw failure(reply.writeConcernError);
        return reply;
    }
    var writeOptions = same("writeConcern bypassDocumentValidation comment let");
    function write(db, cmd, options) { return writes(run(db, put(cmd, options, writeOptions))); }
    function updated(reply) {
        var up = reply.upserted && reply.upserted[0];
        return {acknowledged: true, insertedId: up ? up._id : null, matchedCount: reply.n - (up ? 1 : 0), modifiedCount: reply.nModified, upsertedCount: up ? 1 : 0};
    }
    var updateOptions = same("upsert collation arrayFilters hint sort");
    function isUpdate(u) {
        return Array.isArray(u) || plain(u) && Object.keys(u).length > 0 && Object.keys(u)[0].charAt(0) === "$";
    }
    function statement(filter, u, multi, options) { return put({q: filter, u: u, multi: multi}, options, updateOptions); }

    function Collection(db, name) { this._db = db; this._name = name; }
    Object.assign(Collection.prototype, {
        getName: function () { return this._name; },
        getFullName: function () { return this._db + "." + this._name; },
        getDB: function () { return database(this._db); },
        getMongo: function () { return mongo; },
        getCollection: function (name) { return collection(this._db, this._name + "." + text(name, "getCollection")); },
        toString: function () { return this.getFullName(); },
        tojson: function () { return this.getFullName(); },
        runCommand: function (cmd, options) {
            if (typeof cmd === "string") cmd = Object.assign({[cmd]: this._name}, options || {});
            return run(this._db, cmd);
        },

        insertOne: function (doc, options) {
            doc = withID(doc);
            write(this._db, {insert: this._name, documents: [doc]}, options);
            return {acknowledged: true, insertedId: doc._id};
        },
        insertMany: function (docs, options) {
            want(Array.isArray(docs) && docs.length > 0, "insertMany: want an array with documents, and not " + tojson(docs));
            docs = docs.map(withID);
            var ordered = !options || options.ordered !== false, ids = {}, errors = [];
            for (var at = 0; at < docs.length; at += 1000) {
                var some = docs.slice(at, at + 1000);
                var reply = run(this._db, put({insert: this._name, documents: some, ordered: ordered}, options, writeOptions));
                some.forEach(function (d, i) { ids[at + i] = d._id; });
                if (reply.writeErrors) {
                    reply.writeErrors.forEach(function (e) { e.index += at; errors.push(e); });
                    if (ordered) break;
                }
            }
            if (errors.length > 0) throw new BulkError(errors[0].errmsg, {code: errors[0].code, writeErrors: errors});
            return {acknowledged: true, insertedIds: ids};
        },
        insert: function (docs, options) {
            return this.insertMany(Array.isArray(docs) ? docs : [docs], options);
        },
        save: function (doc) {
            if (doc._id === undefined) return this.insertOne(doc);
            return this.replaceOne({_id: doc._id}, doc, {upsert: true});
        },
        updateOne: function (filter, u, options) {
            want(isUpdate(u), "updateOne: want update operators such as $set, and not " + tojson(u));
            return updated(write(this._db, {update: this._name, updates: [statement(filter, u, false, options)]}, options));
        },
        updateMany: function (filter, u, options) {
            want(isUpdate(u), "updateMany: want update operators such as $set, and not " + tojson(u));
            return updated(write(this._db, {update: this._name, updates: [statement(filter, u, true, options)]}, options));
        },
        replaceOne: function (filter, doc, options) {
            want(plain(doc) && !isUpdate(doc), "replaceOne: want a document without operators, and not " + tojson(doc));
            return updated(write(this._db, {update: this._name, updates: [statement(filter, doc, false, options)]}, options));
        },
        update: function (filter, u, options) {
            options = options || {};
            return updated(write(this._db, {update: this._name, updates: [statement(filter, u, !!options.multi, options)]}, options));
        },
        _remove: function (filter, limit, options) {
            want(plain(filter), "want a filter, and not " + tojson(filter));
            var reply = write(this._db, {delete: this._name, deletes: [put({q: filter, limit: limit}, options, same("collation hint"))]}, options);
            return {acknowledged: true, deletedCount: reply.n};
        },
        deleteOne: function (filter, options) { return this._remove(filter, 1, options); },
        deleteMany: function (filter, options) { return this._remove(filter, 0, options); },
        remove: function (filter, options) {
            return this._remove(filter, options === true || options && options.justOne ? 1 : 0, plain(options) ? options : undefined);
        },
        bulkWrite: function (ops, options) {
            want(Array.isArray(ops) && ops.length > 0, "bulkWrite: want an array of operations, and not " + tojson(ops));
            var out = {acknowledged: true, insertedCount: 0, insertedIds: {}, matchedCount: 0, modifiedCount: 0, deletedCount: 0, upsertedCount: 0, upsertedIds: {}};
            var ordered = !options || options.ordered !== false, errors = [], coll = this;
            ops.every(function (op, i) {
                var kind = Object.keys(op)[0], x = op[kind], r;
                try {
                    switch (kind) {
                    case "insertOne":
                        r = coll.insertOne(x.document === undefined ? x : x.document, options);
                        out.insertedCount++;
                        out.insertedIds[i] = r.insertedId;
                        break;
                    case "updateOne": case "updateMany": case "replaceOne":
                        r = coll[kind](x.filter, kind === "replaceOne" ? x.replacement : x.update, x);
                        out.matchedCount += r.matchedCount;
                        out.modifiedCount += r.modifiedCount;
                        if (r.upsertedCount) { out.upsertedCount++; out.upsertedIds[i] = r.insertedId; }
                        break;
                    case "deleteOne": case "deleteMany":
                        out.deletedCount += coll[kind](x.filter, x).deletedCount;
                        break;
                    default:
                        throw new InputError("bulkWrite: want insertOne, updateOne, updateMany, replaceOne, deleteOne or deleteMany, and not " + kind);
                    }
                } catch (e) {
                    if (!(e instanceof ServerError)) throw e;
                    errors.push({index: i, code: e.code, errmsg: e.message, op: op});
                    return !ordered;
                }
                return true;
            });
            if (errors.length > 0) throw new BulkError(errors[0].errmsg, {code: errors[0].code, writeErrors: errors, result: out});
            return out;
        },
        initializeOrderedBulkOp: function () { return new Bulk(this, true); },
        initializeUnorderedBulkOp: function () { return new Bulk(this, false); },

        find: function (filter, projection, options) {
            var cmd = {find: this._name, filter: filter || {}};
            if (projection) cmd.projection = projection;
            put(cmd, options, same("sort skip limit hint collation batchSize comment allowDiskUse maxTimeMS"));
            return new Cursor(this._db, this.getFullName(), cmd);
        },
        findOne: function (filter, projection, options) { return this.find(filter, projection, options).limit(-1).tryNext(); },
        aggregate: function (pipeline, options) {
            if (!Array.isArray(pipeline)) { pipeline = Array.prototype.slice.call(arguments); options = undefined; }
            return aggregate(this._db, this._name, pipeline, options);
        },
        countDocuments: function (filter, options) {
            var stages = [{$match: filter || {}}];
            if (options && options.skip) stages.push({$skip: options.skip});
            if (options && options.limit) stages.push({$limit: options.limit});
            stages.push({$group: {_id: 1, n: {$sum: 1}}});
            var all = aggregate(this._db, this._name, stages, put({}, options, same("collation hint maxTimeMS"))).toArray();
            return all.length ? all[0].n : 0;
        },
        estimatedDocumentCount: function () { return run(this._db, {count: this._name}).n; },
        count: function (filter, options) { return run(this._db, put({count: this._name, query: filter || {}}, options, same("limit skip hint collation"))).n; },
        distinct: function (key, filter, options) { return run(this._db, put({distinct: this._name, key: key, query: filter || {}}, options, same("collation"))).values; },
        _modify: function (filter, cmd, options) {
            options = options || {};
            put(cmd, options, same("sort upsert collation arrayFilters hint let maxTimeMS bypassDocumentValidation writeConcern comment"));
            if (options.projection) cmd.fields = options.projection;
            if (options.returnNewDocument || options.returnDocument === "after" || options.new) cmd.new = true;
            var reply = run(this._db, Object.assign({findAndModify: this._name, query: filter || {}}, cmd));
            return reply.value === undefined ? null : reply.value;
        },
        findOneAndUpdate: function (filter, u, options) {
            want(isUpdate(u), "findOneAndUpdate: want update operators such as $set, and not " + tojson(u));
            return this._modify(filter, {update: u}, options);
        },
        findOneAndReplace: function (filter, doc, options) { return this._modify(filter, {update: doc}, options); },
        findOneAndDelete: function (filter, options) { return this._modify(filter, {remove: true}, options); },
        findAndModify: function (options) {
            return this._modify(options.query, put({}, options, same("update remove")), Object.assign({projection: options.fields}, options));
        },
        mapReduce: function (map, reduce, options) {
            if (typeof options === "string") options = {out: options};
            return run(this._db, Object.assign({mapReduce: this._name, map: map, reduce: reduce}, options || {}));
        },

        createIndex: function (key, options) { return this.createIndexes([key], options)[0]; },
        createIndexes: function (keys, options) {
            want(Array.isArray(keys), "createIndexes: want an array of keys, and not " + tojson(keys));
            if (typeof options === "string") options = {name: options};
            var specs = keys.map(function (key) {
                want(plain(key) && Object.keys(key).length > 0, "createIndex: want a key such as {a: 1}, and not " + tojson(key));
                return Object.assign({key: key, name: indexName(key)}, options || {});
            });
            run(this._db, {createIndexes: this._name, indexes: specs});
            return specs.map(function (s) { return s.name; });
        },
        ensureIndex: function (key, options) { return this.createIndex(key, options); },
        dropIndex: function (index) { return run(this._db, {dropIndexes: this._name, index: index}); },
        dropIndexes: function (index) { return run(this._db, {dropIndexes: this._name, index: index === undefined ? "*" : index}); },
        getIndexes: function () { return new Cursor(this._db, "", {listIndexes: this._name}).toArray(); },
        getIndices: function () { return this.getIndexes(); },
        getIndexKeys: function () { return this.getIndexes().map(function (x) { return x.key; }); },
        hideIndex: function (index) { return this._hide(index, true); },
        unhideIndex: function (index) { return this._hide(index, false); },
        _hide: function (index, hidden) {
            var which = typeof index === "string" ? {name: index} : {keyPattern: index};
            return run(this._db, {collMod: this._name, index: Object.assign(which, {hidden: hidden})});
        },
        createSearchIndex: function (name, type, definition) {
            if (plain(name)) return run(this._db, {createSearchIndexes: this._name, indexes: [name]}).indexesCreated[0].name;
            if (plain(type)) { definition = type; type = "search"; }
            return run(this._db, {createSearchIndexes: this._name, indexes: [{name: name, type: type, definition: definition}]}).indexesCreated[0].name;
        },
        drop: function () {
            var reply = host.run(this._db, {drop: this._name});
            if (!reply.ok && reply.code !== 26) throw failure(reply);
            return true;
        },
        exists: function () {
            var all = database(this._db).getCollectionInfos({name: this._name});
            return all.length ? all[0] : null;
        },
        isCapped: function () { var x = this.exists(); return !!(x && x.options && x.options.capped); },
        convertToCapped: function (size) { return run(this._db, {convertToCapped: this._name, size: size}); },
        renameCollection: function (to, drop) {
            return run("admin", {renameCollection: this.getFullName(), to: this._db + "." + to, dropTarget: !!drop});
        },
        stats: function () { return run(this._db, {collStats: this._name}); },
        dataSize: function () { return this.stats().size; },
        validate: function (options) { return run(this._db, Object.assign({validate: this._name}, plain(options) ? options : {})); },
        explain: function () { return missing("explain")(); },
        watch: missing("watch")
    });
    function indexName(key) { return Object.keys(key).map(function (k) { return k + "_" + (plain(key[k]) ? key[k].valueOf() : key[k]); }).join("_"); }
    function aggregate(db, target, pipeline, options) {
        var cmd = put({aggregate: target, pipeline: pipeline, cursor: {}}, options, same("allowDiskUse collation hint let maxTimeMS comment bypassDocumentValidation"));
        var c = new Cursor(db, "", cmd), last = pipeline[pipeline.length - 1];
        if (last && (last.$out !== undefined || last.$merge !== undefined)) c.hasNext();
        return c;
    }

    function Bulk(coll, ordered) { this._coll = coll; this._ordered = ordered; this._ops = []; }
    Object.assign(Bulk.prototype, {
        insert: function (doc) { this._ops.push({insertOne: {document: doc}}); return this; },
        find: function (filter) {
            var b = this, options = {};
            function add(kind, fields) {
                b._ops.push({[kind]: Object.assign({filter: filter}, fields, options)});
                return b;
            }
            return {
                upsert: function () { options.upsert = true; return this; },
                collation: function (c) { options.collation = c; return this; },
                update: function (u) { return add("updateMany", {update: u}); },
                updateOne: function (u) { return add("updateOne", {update: u}); },
                replaceOne: function (doc) { return add("replaceOne", {replacement: doc}); },
                remove: function () { return add("deleteMany", {}); },
                delete: function () { return add("deleteMany", {}); },
                removeOne: function () { return add("deleteOne", {}); },
                deleteOne: function () { return add("deleteOne", {}); }
            };
        },
        execute: function () { return this._coll.bulkWrite(this._ops, {ordered: this._ordered}); }
    });

    // Databases.
    function named(method, argument) {
        return function (name) { return run(this._name, {[method]: text(name, argument)}); };
    }
    function granting(method, what) {
        return function (name, list) { return run(this._name, {[method]: text(name, method), [what]: list}); };
    }
    function Database(name) { this._name = name; }
    Object.assign(Database.prototype, {
        getName: function () { return this._name; },
        getMongo: function () { return mongo; },
        getSiblingDB: function (name) { return database(text(name, "getSiblingDB")); },
        getCollection: function (name) { return collection(this._name, text(name, "getCollection")); },
        toString: function () { return this._name; },
        tojson: function () { return this._name; },
        runCommand: function (cmd, options) {
            if (typeof cmd === "string") cmd = Object.assign({[cmd]: 1}, options || {});
            return run(this._name, cmd);
        },
        adminCommand: function (cmd) {
            if (typeof cmd === "string") cmd = {[cmd]: 1};
            return run("admin", cmd);
        },
        createCollection: function (name, options) { return run(this._name, Object.assign({create: text(name, "createCollection")}, options || {})); },
        createView: function (name, source, pipeline, options) {
            return run(this._name, Object.assign({create: text(name, "createView"), viewOn: source, pipeline: Array.isArray(pipeline) ? pipeline : [pipeline]}, options || {}));
        },
        getCollectionInfos: function (filter, options) {
            return new Cursor(this._name, "", Object.assign({listCollections: 1, filter: filter || {}}, options || {})).toArray();
        },
        getCollectionNames: function () { return this.getCollectionInfos({}, {nameOnly: true}).map(function (c) { return c.name; }).sort(); },
        aggregate: function (pipeline, options) { return aggregate(this._name, 1, pipeline, options); },
        dropDatabase: function () { return run(this._name, {dropDatabase: 1}); },
        auth: function (user, password) {
            var name = plain(user) ? user.user : user, secret = plain(user) ? user.pwd : password;
            if (!host.auth(this._name, text(name, "auth"), text(secret, "auth"))) {
                throw new ServerError("Authentication failed.", {code: 18, codeName: "AuthenticationFailed"});
            }
            return {ok: 1};
        },
        logout: function () { return {ok: 1}; },
        createUser: function (user, wc) {
            want(plain(user) && user.user !== undefined, "createUser: want {user, pwd, roles}, and not " + tojson(user));
            var cmd = {createUser: user.user};
            Object.keys(user).forEach(function (k) { if (k !== "user") cmd[k] = user[k]; });
            return run(this._name, put(cmd, {writeConcern: wc}, writeOptions));
        },
        updateUser: function (name, change) { return run(this._name, Object.assign({updateUser: name}, change)); },
        changeUserPassword: function (name, password) { return run(this._name, {updateUser: name, pwd: password}); },
        dropUser: named("dropUser", "dropUser"),
        dropAllUsers: function () { return run(this._name, {dropAllUsersFromDatabase: 1}); },
        getUser: function (name, options) {
            var all = run(this._name, Object.assign({usersInfo: {user: name, db: this._name}}, options || {})).users;
            return all.length ? all[0] : null;
        },
        getUsers: function (options) { return run(this._name, Object.assign({usersInfo: 1}, options || {})); },
        grantRolesToUser: granting("grantRolesToUser", "roles"),
        revokeRolesFromUser: granting("revokeRolesFromUser", "roles"),
        createRole: function (role) {
            want(plain(role) && role.role !== undefined, "createRole: want {role, privileges, roles}, and not " + tojson(role));
            var cmd = {createRole: role.role};
            Object.keys(role).forEach(function (k) { if (k !== "role") cmd[k] = role[k]; });
            return run(this._name, cmd);
        },
        updateRole: function (name, change) { return run(this._name, Object.assign({updateRole: name}, change)); },
        dropRole: named("dropRole", "dropRole"),
        getRole: function (name, options) {
            var all = run(this._name, Object.assign({rolesInfo: {role: name, db: this._name}}, options || {})).roles;
            return all.length ? all[0] : null;
        },
        getRoles: function (options) { return run(this._name, Object.assign({rolesInfo: 1}, options || {})); },
        grantRolesToRole: granting("grantRolesToRole", "roles"),
        revokeRolesFromRole: granting("revokeRolesFromRole", "roles"),
        grantPrivilegesToRole: granting("grantPrivilegesToRole", "privileges"),
        revokePrivilegesFromRole: granting("revokePrivilegesFromRole", "privileges"),
        version: function () { return run(this._name, {buildInfo: 1}).version; },
        serverBuildInfo: function () { return run("admin", {buildInfo: 1}); },
        serverStatus: function () { return run("admin", {serverStatus: 1}); },
        hello: function () { return run("admin", {hello: 1}); },
        isMaster: function () { return run("admin", {isMaster: 1}); },
        stats: function () { return run(this._name, {dbStats: 1}); },
        getProfilingStatus: function () { return run(this._name, {profile: -1}); },
        setProfilingLevel: function (level, options) {
            return run(this._name, Object.assign({profile: level}, typeof options === "number" ? {slowms: options} : options || {}));
        },
        currentOp: function () { return run("admin", {currentOp: 1}); },
        fsyncLock: function () { return run("admin", {fsync: 1, lock: true}); },
        fsyncUnlock: function () { return run("admin", {fsyncUnlock: 1}); },
        watch: missing("watch")
    });

    // Names that are no members of a database are its collections, and those of a collection are collections below it.
    function open(object, below) {
        return new Proxy(object, {
            get: function (target, name) {
                if (typeof name === "symbol" || name in target) return target[name];
                return below(name);
            }
        });
    }
    function collection(db, name) {
        return open(new Collection(db, name), function (more) { return collection(db, name + "." + more); });
    }
    function database(name) {
        return open(new Database(name), function (coll) { return collection(name, coll); });
    }
    var mongo = {
        getDB: function (name) { return database(text(name, "getDB")); },
        getDBs: function () { return run("admin", {listDatabases: 1}); },
        getDBNames: function () { return this.getDBs().databases.map(function (d) { return d.name; }); },
        setReadPref: function () { },
        setReadConcern: function () { },
        setWriteConcern: function () { },
        startSession: missing("startSession"),
        watch: missing("watch")
    };

    function shown(x) { return typeof x === "string" ? x : tojson(x); }
    function print() { host.print(Array.prototype.map.call(arguments, shown).join(" ")); }
    define("db", database(first));
    define("print", print);
    define("printjson", function (x) { host.print(tojson(x)); });
    define("console", ["log", "info", "warn", "error", "debug"].reduce(function (c, n) { c[n] = print; return c; }, {}));
    define("Mongo", function () { return mongo; });
    define("connect", function (uri) {
        var m = /^mongodb(?:\+srv)?:\/\/[^\/]*\/([^?]+)/.exec(String(uri)) || /^(?:[^\/]*\/)?([^\/?]+)$/.exec(String(uri));
        return database(m ? m[1] : "test");
    });
    define("load", function (path) {
        native.run(path, host.read(text(path, "load")));
        return true;
    });
    define("require", missing("require"));
    define("passwordPrompt", missing("passwordPrompt"));
    define("process", {
        env: host.env(),
        argv: ["mongosh"],
        exit: function (code) { host.exit(code === undefined ? 0 : code); }
    });
    define("_getEnv", function (name) { return process.env[name] === undefined ? "" : process.env[name]; });
    define("quit", process.exit);
    define("exit", process.exit);
    define("EJSON", {
        parse: function (s) { return host.parse(s); },
        stringify: function (x, replacer, indent, options) {
            if (plain(replacer)) options = replacer;
            var o = options || {};
            return host.stringify(x === undefined ? null : x, o.relaxed !== false, typeof indent === "number" ? " ".repeat(indent) : indent || "");
        }
    });
    native.class(1, Object.assign(function () { }, {}).prototype);
    define("Double", function (x) { return native.make(1, x); });
    define("Long", NumberLong);
    define("Int32", NumberInt);
    define("Decimal128", NumberDecimal);
    define("ObjectID", ObjectId);
    Object.assign(NumberLong, {fromNumber: NumberLong, fromString: NumberLong});
    Object.assign(NumberDecimal, {fromString: NumberDecimal});
    Object.assign(ObjectId, {createFromHexString: ObjectId});
    define("rs", {
        // The set is there: --replset has made it.
        initiate: function (config) {
            var reply = host.run("admin", {replSetInitiate: config || {}});
            if (!reply.ok && reply.code !== 23) throw failure(reply);
            return {ok: 1};
        },
        status: function () { return run("admin", {replSetGetStatus: 1}); },
        conf: function () { return run("admin", {replSetGetConfig: 1}).config; },
        config: function () { return run("admin", {replSetGetConfig: 1}).config; },
        reconfig: function (config, options) { return run("admin", Object.assign({replSetReconfig: config}, options || {})); },
        hello: function () { return run("admin", {hello: 1}); },
        isMaster: function () { return run("admin", {isMaster: 1}); },
        secondaryOk: function () { },
        slaveOk: function () { }
    });
    define("sh", {
        enableSharding: function (db) { return run("admin", {enableSharding: db}); },
        shardCollection: function (ns, key, unique, options) {
            return run("admin", Object.assign({shardCollection: ns, key: key, unique: !!unique}, options || {}));
        },
        addShardTag: function (shard, zone) { return run("admin", {addShardToZone: shard, zone: zone}); },
        addShardToZone: function (shard, zone) { return run("admin", {addShardToZone: shard, zone: zone}); },
        updateZoneKeyRange: function (ns, min, max, zone) { return run("admin", {updateZoneKeyRange: ns, min: min, max: max, zone: zone}); },
        status: function () { return run("admin", {listShards: 1}); }
    });
})
