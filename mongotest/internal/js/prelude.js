// The classes and helpers that programs on the server find, apart from those of the language. The function gets
// the natives and defines global variables.
(function (native) {
    var global = Function("return this")();
    var type = {objectId: 7, binary: 5, int: 16, long: 18, decimal: 19, timestamp: 17, minKey: 255, maxKey: 127, pointer: 12, code: 13, scoped: 15};

    function hidden(object, members) {
        Object.keys(members).forEach(function (name) {
            Object.defineProperty(object, name, {value: members[name], writable: true, configurable: true, enumerable: false});
        });
    }
    function define(name, value) { hidden(global, {[name]: value}); }
    // constructor makes a class whose objects hold a value of a BSON type.
    function constructor(name, types, make, members) {
        var f = function () { return make.apply(null, arguments); };
        Object.defineProperty(f, "name", {value: name});
        hidden(f.prototype, members);
        types.forEach(function (t) { native.class(t, f.prototype); });
        define(name, f);
        return f;
    }
    function quoted(object) { return JSON.stringify(native.text(object)); }

    // A call can be ended between two instructions only, so that one of them must not make too much: texts of 128 million
    // characters, lists of 32 million elements. size gets the arguments of the function and tells how much it makes.
    var longest = 1 << 27, most = 1 << 25, apply = Reflect.apply, construct = Reflect.construct, isArray = Array.isArray;
    function overflow() {
        var e = Error("allocation size overflow");
        e.name = "InternalError";
        throw e;
    }
    function bound(object, names, limit, size) {
        names.split(" ").forEach(function (name) {
            var f = object[name];
            if (!f) {
                return;
            }
            var g = function () {
                if (apply(size, this, arguments) > limit) overflow();
                return apply(f, this, arguments);
            };
            Object.defineProperty(g, "name", {value: name});
            Object.defineProperty(g, "length", {value: f.length});
            hidden(object, {[name]: g});
        });
    }
    function count(list) { return list === null || list === undefined ? 0 : +list.length || 0; }
    // written is how long the text of a value becomes; the walk ends once that is too much.
    function written(x, separator, depth) {
        if (typeof x === "string") return x.length;
        if (typeof x !== "object" || x === null || depth > maxDepth) return 1;
        var total = 0;
        if (isArray(x)) {
            total = x.length * separator;
            for (var i = 0; i < x.length && total <= longest; i++) total += written(x[i], separator, depth + 1);
            return total;
        }
        for (var key in x) {
            if ((total += key.length + written(x[key], separator, depth + 1)) > longest) break;
        }
        return total;
    }
    var maxDepth = 150;
    bound(String.prototype, "repeat", longest, function (n) { return count(this) * n; });
    bound(String.prototype, "padStart padEnd", longest, function (n) { return n; });
    bound(String.prototype, "split", most, function (by) { return count(this); });
    bound(String.prototype, "replace replaceAll", 4 * longest, function (from, to) { return typeof to === "string" ? count(this) * to.length : 0; });
    bound(Array.prototype, "fill map slice splice reverse copyWithin flat toReversed toSorted toSpliced with", most, function () { return count(this); });
    bound(Array.prototype, "concat", most, function () {
        for (var i = 0, n = count(this); i < arguments.length; i++) n += isArray(arguments[i]) ? arguments[i].length : 1;
        return n;
    });
    bound(Array.prototype, "join toLocaleString", longest, function (by) {
        return count(this) > longest ? Infinity : written(isArray(this) ? this : [], by === undefined ? 1 : ("" + by).length, 0);
    });
    bound(Array, "from", most, count);
    bound(JSON, "stringify", longest, function (x) { return written(x, 1, 0); });
    bound(Function.prototype, "apply", most, function (self, list) { return count(list); });
    bound(Reflect, "apply", most, function (f, self, list) { return count(list); });
    bound(Reflect, "construct", most, function (f, list) { return count(list); });
    ["ArrayBuffer", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array",
        "Float64Array", "BigInt64Array", "BigUint64Array"].forEach(function (name) {
        var f = global[name];
        if (!f) {
            return;
        }
        var g = function (n) {
            if (!new.target) throw TypeError("calling a builtin " + name + " constructor without new is forbidden");
            if ((typeof n === "number" ? n : count(n)) > most) overflow();
            return construct(f, arguments, new.target === g ? f : new.target);
        };
        Object.defineProperty(g, "name", {value: name});
        Object.defineProperty(g, "prototype", {value: f.prototype, writable: false});
        Object.setPrototypeOf(g, f); // for what the class itself has
        hidden(f.prototype, {constructor: g});
        if (f.from) {
            bound(g, "from", most, count);
        }
        define(name, g);
    });

    // A comparison that says "greater" or "not greater" sorts with the server's engine, which never asks for less.
    var sort = Array.prototype.sort;
    hidden(Array.prototype, {sort: function (compare) {
        if (typeof compare !== "function") return sort.call(this, compare);
        return sort.call(this, function (a, b) { return +compare(a, b) || 0 - compare(b, a); });
    }});

    constructor("ObjectId", [type.objectId], function (hex) { return native.make(type.objectId, hex); }, {
        toString: function () { return "ObjectId(" + quoted(this) + ")"; },
        tojson: function () { return this.toString(); },
        valueOf: function () { return native.text(this); },
        equals: function (other) { return native.equalBytes(this, other); },
        getTimestamp: function () { return new Date(native.seconds(this)); }
    });
    Object.defineProperty(ObjectId.prototype, "str", {get: function () { return native.text(this); }});

    var numbers = {
        toNumber: function () { return native.number(this); },
        valueOf: function () { return native.number(this); },
        tojson: function () { return this.toString(); }
    };
    function numeric(name, t, members) {
        constructor(name, [t], function () { return native.make.apply(null, [t].concat(Array.prototype.slice.call(arguments))); }, Object.assign({}, numbers, members));
    }
    numeric("NumberInt", type.int, {toString: function () { return "NumberInt(" + native.text(this) + ")"; }});
    numeric("NumberDecimal", type.decimal, {
        toString: function () { return "NumberDecimal(" + quoted(this) + ")"; },
        valueOf: undefined
    });
    delete NumberDecimal.prototype.valueOf;
    numeric("NumberLong", type.long, {
        toString: function () {
            var text = native.text(this);
            return Math.abs(native.number(this)) < 2147483648 ? "NumberLong(" + text + ")" : "NumberLong(\"" + text + "\")";
        },
        compare: function (other) { return native.compare(this, NumberLong(other)); }
    });
    Object.defineProperties(NumberLong.prototype, {
        floatApprox: {get: function () { return native.number(this); }},
        top: {get: function () { return native.word(this, 32); }},
        bottom: {get: function () { return native.word(this, 0); }},
        exactValueString: {get: function () { return native.text(this); }}
    });

    constructor("Timestamp", [type.timestamp], function (t, i) { return native.make(type.timestamp, t, i); }, {
        toString: function () { return "Timestamp(" + this.t + ", " + this.i + ")"; },
        tojson: function () { return this.toString(); },
        getTime: function () { return this.t; },
        getInc: function () { return this.i; }
    });

    function binary(subtype, base64) { return native.make(type.binary, subtype, base64); }
    constructor("BinData", [type.binary], binary, {
        base64: function () { return native.binary(this, "base64"); },
        hex: function () { return native.binary(this, "hex"); },
        length: function () { return native.binary(this, "length"); },
        subtype: function () { return native.binary(this, "subtype"); },
        toString: function () {
            if (this.type === 4 && this.len === 16) {
                return "UUID(\"" + this.hex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-") + "\")";
            }
            return "BinData(" + this.type + ",\"" + this.base64() + "\")";
        },
        tojson: function () { return this.toString(); }
    });
    Object.defineProperties(BinData.prototype, {
        len: {get: function () { return native.binary(this, "length"); }},
        type: {get: function () { return native.binary(this, "subtype"); }}
    });
    define("HexData", function (subtype, hex) { return native.make(type.binary, subtype, hex, true); });
    define("MD5", function (hex) { return native.make(type.binary, 5, hex, true); });
    define("UUID", function (hex) {
        if (hex === undefined) {
            hex = "";
            for (var i = 0; i < 32; i++) {
                hex += i === 12 ? "4" : i === 16 ? "89ab"[Math.floor(Math.random() * 4)] : "0123456789abcdef"[Math.floor(Math.random() * 16)];
            }
        }
        return native.make(type.binary, 4, String(hex).replace(/-/g, ""), true);
    });

    function extreme(name, t) {
        var f = constructor(name, [t], function () { return native.make(t); }, {
            toString: function () { return name; },
            tojson: function () { return "{ \"$" + name.charAt(0).toLowerCase() + name.slice(1) + "\" : 1 }"; }
        });
        hidden(f, {tojson: f.prototype.tojson, toString: f.prototype.toString});
        native.mark(f, t);
    }
    extreme("MinKey", type.minKey);
    extreme("MaxKey", type.maxKey);

    define("DBRef", function DBRef(ns, id, db) {
        var ref = this instanceof DBRef ? this : Object.create(DBRef.prototype);
        ref.$ref = ns;
        ref.$id = id;
        if (db !== undefined) {
            ref.$db = db;
        }
        return ref;
    });
    hidden(DBRef.prototype, {
        getCollection: function () { return this.$ref; },
        getRef: function () { return this.$ref; },
        getId: function () { return this.$id; },
        getDb: function () { return this.$db; },
        toString: function () { return "DBRef(" + JSON.stringify(this.$ref) + ", " + tojson(this.$id) + (this.$db === undefined ? "" : ", " + JSON.stringify(this.$db)) + ")"; },
        tojson: function () { return this.toString(); }
    });
    constructor("DBPointer", [type.pointer], function (ns, id) { return native.make(type.pointer, ns, id); }, {
        getCollection: function () { return this.ns; },
        getId: function () { return this.id; },
        toString: function () { return "DBPointer(" + JSON.stringify(this.ns) + ", " + tojson(this.id) + ")"; },
        tojson: function () { return this.toString(); }
    });
    constructor("Code", [type.code, type.scoped], function (code, scope) {
        return scope === undefined ? native.make(type.code, code) : native.make(type.scoped, code, scope);
    }, {
        toString: function () { return "Code(" + JSON.stringify(this.code) + (this.scope === undefined ? "" : "," + tojsononeline(this.scope)) + ")"; },
        tojson: function () { return this.toString(); }
    });

    define("ISODate", function (text) {
        if (text === undefined) {
            return new Date();
        }
        var m = /^(\d{4}|[+-]\d{6})-?(\d{2})-?(\d{2})(?:[T ](\d{2})(?::?(\d{2})(?::?(\d{2})(?:\.(\d+))?)?)?(Z|([+-])(\d{2}):?(\d{2})?)?)?$/.exec(text);
        if (!m) {
            throw Error("invalid ISO date: " + text);
        }
        var time = Date.UTC(+m[1], m[2] - 1, +m[3], +m[4] || 0, +m[5] || 0, +m[6] || 0, m[7] ? Math.round(("0." + m[7]) * 1000) : 0);
        if (m[8] && m[8] !== "Z") {
            time += (m[9] === "+" ? -1 : 1) * (m[10] * 60 + (+m[11] || 0)) * 60000;
        }
        return new Date(time);
    });
    hidden(Date.prototype, {
        tojson: function () {
            return "ISODate(\"" + this.toISOString().replace(/\.000Z$/, "Z") + "\")";
        }
    });

    define("emit", native.emit);
    define("sleep", native.sleep);
    define("version", native.version);
    define("hex_md5", native.md5);
    define("gc", function () {});
    define("bsonWoCompare", native.compare);
    define("bsonBinaryEqual", native.equalBytes);
    ["print", "printjson", "printjsononeline"].forEach(function (name) { define(name, function () {}); });
    define("isString", function (x) { return typeof x === "string"; });
    define("isNumber", function (x) { return typeof x === "number"; });
    define("isObject", function (x) { return typeof x === "object"; });
    define("doassert", function (message) { throw Error(typeof message === "object" ? tojson(message) : message); });
    define("assert", function (ok, message) {
        if (!ok) {
            doassert("assert failed" + (message === undefined ? "" : " : " + (typeof message === "function" ? message() : message)));
        }
    });

    // The texts of values as the server's own tojson writes them.
    var deepest = 100;
    function lines(open, close, items, indent, oneLine) {
        var end = oneLine ? " " : "\n";
        if (items.length === 0) {
            return null;
        }
        return open + end + items.map(function (item) { return indent + (oneLine ? "" : "\t") + item; }).join("," + end) + end + indent + close;
    }
    define("tojson", function tojson(x, indent, oneLine, depth) {
        indent = indent || "";
        switch (typeof x) {
        case "string":
            return JSON.stringify(x).replace(/[\u007f-\u009f]/g, function (c) { return "\\u00" + c.charCodeAt(0).toString(16); });
        case "object":
            var text = tojsonObject(x, indent, oneLine, depth);
            if ((oneLine === undefined || oneLine === null || oneLine === true) && text.length < 80 && indent.length === 0) {
                text = text.replace(/[\t\r\n]+/gm, " ");
            }
            return text;
        case "function":
            return x === MinKey || x === MaxKey ? x.tojson() : x.toString();
        }
        return "" + x;
    });
    define("tojsonObject", function (x, indent, oneLine, depth) {
        indent = indent || "";
        depth = depth || 0;
        if (x === null) {
            return "null";
        }
        if (typeof x.tojson === "function" && x.tojson !== tojson) {
            return x.tojson(indent, oneLine, depth);
        }
        if (x instanceof Error) {
            return "" + x;
        }
        if (depth > deepest) {
            return Array.isArray(x) ? "[Array]" : "[Object]";
        }
        var inner = oneLine ? "" : indent + "\t";
        if (Array.isArray(x)) {
            return lines("[", "]", x.map(function (item) { return tojson(item, inner, oneLine, depth + 1); }), oneLine ? "" : indent, oneLine) || "[ ]";
        }
        return lines("{", "}", Object.keys(x).map(function (key) {
            return JSON.stringify(key) + " : " + tojson(x[key], inner, oneLine, depth + 1);
        }), oneLine ? "" : indent, oneLine) || "{" + (oneLine ? " " : "\n" + indent) + "}";
    });
    define("tojsononeline", function (x) { return tojson(x, " ", true).replace(/^\s+/, ""); });

    hidden(Array, {
        contains: function (list, x) { return list.some(function (item) { return item == x; }); },
        unique: function (list) {
            return list.reduce(function (out, x) { return Array.contains(out, x) ? out : out.concat([x]); }, []);
        },
        shuffle: function (list) {
            for (var i = list.length - 1; i > 0; i--) {
                var j = Math.floor(Math.random() * (i + 1)), x = list[i];
                list[i] = list[j];
                list[j] = x;
            }
            return list;
        },
        sum: function (list) { return list.length === 0 ? null : list.reduce(function (a, b) { return a + b; }); },
        avg: function (list) { return list.length === 0 ? null : Array.sum(list) / list.length; },
        stdDev: function (list) {
            var mean = Array.avg(list);
            return Math.sqrt(list.reduce(function (s, x) { return s + (x - mean) * (x - mean); }, 0) / list.length);
        },
        tojson: function (list, indent, oneLine, depth) { return tojsonObject(list, indent, oneLine, depth); }
    });
    function copy(to, from, deep) {
        for (var key in from) {
            var v = from[key];
            if (deep && typeof v === "object" && v !== null && Object.getPrototypeOf(v) === Object.prototype) {
                v = copy({}, v, true);
            } else if (deep && Array.isArray(v)) {
                v = copy([], v, true);
            }
            to[key] = v;
        }
        return to;
    }
    hidden(Object, {
        extend: copy,
        merge: function (a, b, deep) { return copy(copy({}, a, deep), b, deep); },
        keySet: function (o) { var keys = []; for (var key in o) { keys.push(key); } return keys; }
    });
    hidden(String.prototype, {
        ltrim: function () { return this.replace(/^\s+/, ""); },
        rtrim: function () { return this.replace(/\s+$/, ""); },
        pad: function (length, right, c) {
            var text = String(this), fill = (c || " ").repeat(Math.max(0, length - text.length));
            return right ? text + fill : fill + text;
        }
    });
    hidden(Number.prototype, {
        toPercentStr: function () { return (this * 100).toFixed(2) + "%"; },
        zeroPad: function (width) { return ("" + this).pad(width, false, "0"); }
    });
    hidden(RegExp, {escape: function (s) { return s.replace(/[-\/\\^$*+?.()|[\]{}]/g, "\\$&"); }});
    hidden(RegExp.prototype, {tojson: function () { return this.toString().replace(/\\u002f/g, "\\/"); }});

    // A map whose keys may be any values.
    define("BSONAwareMap", function BSONAwareMap() { hidden(this, {_data: new Map()}); });
    function hash(key) { return typeof key + ":" + tojsononeline(key); }
    hidden(BSONAwareMap.prototype, {
        put: function (key, value) {
            var old = this._data.get(hash(key));
            this._data.set(hash(key), {key: key, value: value});
            return old === undefined ? null : old.value;
        },
        get: function (key) {
            var entry = this._data.get(hash(key));
            return entry === undefined ? null : entry.value;
        },
        remove: function (key) { return this._data.delete(hash(key)); },
        keys: function () { return Array.from(this._data.values(), function (e) { return e.key; }); },
        values: function () { return Array.from(this._data.values(), function (e) { return {key: e.key, value: e.value}; }); }
    });
})
