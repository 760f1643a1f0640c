package main

import (
	"fmt"
	"slices"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A spoilt list of replies has a name that says what is wrong with it.
type spoilt struct {
	name    string
	replies []bson.D
}

// wrong are values of several types.
var wrong = []any{nil, "s", int32(2), 2.5, d("x", 1)}

// general are replies to any command.
var general = []spoilt{
	{"nothing", []bson.D{{}}},
	{"ok alone", []bson.D{d("ok", 1)}},
	{"no ok", []bson.D{d("x", 1)}},
	{"not ok alone", []bson.D{d("ok", 0)}},
	{"ok with an error", []bson.D{d("ok", 1, "errmsg", "m", "code", 3)}},
	{"error with a name", []bson.D{d("ok", 0, "errmsg", "m", "code", 59, "codeName", "CommandNotFound")}},
	{"error without a message", []bson.D{d("ok", 0, "code", 59, "codeName", "CommandNotFound")}},
	{"error without a code", []bson.D{d("ok", 0, "errmsg", "m", "codeName", "N")}},
	{"labels", []bson.D{d("ok", 0, "errmsg", "m", "code", 7, "errorLabels", bson.A{"A",
		"TransientTransactionError"})}},
	{"namespace not found", []bson.D{d("ok", 0, "errmsg", "ns not found", "code", 26, "codeName",
		"NamespaceNotFound")}},
	{"duplicate", []bson.D{d("ok", 0, "errmsg", "E11000 dup", "code", 11000)}},
	{"time is up", []bson.D{d("ok", 0, "errmsg", "m", "code", 50, "codeName", "MaxTimeMSExpired")}},
	{"retried", []bson.D{d("ok", 0, "errmsg", "m", "code", 11600)}},
	{"not primary", []bson.D{d("ok", 0, "errmsg", "not master", "code", 10107)}},
	{"write errors", []bson.D{d("ok", 1, "n", 1, "writeErrors", bson.A{d("index", 0, "code", 5, "errmsg", "w"),
		d("index", 1, "code", 11000, "errmsg", "E11000 dup", "errInfo", d("a", 1))})}},
	{"write error behind the last", []bson.D{d("ok", 1, "writeErrors", bson.A{d("index", 1, "code", 11000, "errmsg",
		"E11000 dup")})}},
	{"no write errors", []bson.D{d("ok", 1, "n", 1, "writeErrors", bson.A{})}},
	{"write errors, not ok", []bson.D{d("ok", 0, "errmsg", "m", "code", 7, "writeErrors", bson.A{
		d("index", 0, "code", 5, "errmsg", "w")})}},
	{"concern", []bson.D{d("ok", 1, "n", 1, "writeConcernError", d("code", 64, "codeName", "N", "errmsg", "c",
		"errInfo", d("a", 1)))}},
	{"concern with labels", []bson.D{d("ok", 1, "n", 1, "writeConcernError", d("code", 64, "errmsg", "c"),
		"errorLabels",
		bson.A{"A"})}},
	{"both", []bson.D{d("ok", 1, "n", 1, "writeErrors", bson.A{d("index", 0, "code", 5, "errmsg", "w")},
		"writeConcernError", d("code", 64, "errmsg", "c"))}},
	{"a cursor of nothing", []bson.D{d("ok", 1, "cursor", d())}},
	{"cursor", []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch", d("x", 1)))}},
	{"cursor without a namespace", []bson.D{d("ok", 1, "cursor", d("id", 0, "firstBatch", bson.A{}))}},
	{"n", []bson.D{d("ok", 1, "n", 5)}},
	{"value", []bson.D{d("ok", 1, "value", d("x", 1))}},
	{"values", []bson.D{d("ok", 1, "values", bson.A{1, "a"})}},
}

// odd are others, whose fields have values of other types, or say what cannot be.
var odd = []spoilt{
	{"ok int64", []bson.D{d("ok", int64(1))}},
	{"ok true", []bson.D{d("ok", true)}},
	{"ok string", []bson.D{d("ok", "1")}},
	{"not ok double", []bson.D{d("ok", 0.0, "errmsg", "m")}},
	{"ok false", []bson.D{d("ok", false, "errmsg", "m", "code", 3)}},
	{"ok 2", []bson.D{d("ok", 2)}},
	{"code int64", []bson.D{d("ok", 0, "errmsg", "m", "code", int64(7))}},
	{"code string", []bson.D{d("ok", 0, "errmsg", "m", "code", "7")}},
	{"message number", []bson.D{d("ok", 0, "errmsg", 5, "code", 7, "codeName", 8)}},
	{"labels of numbers", []bson.D{d("ok", 0, "errmsg", "m", "code", 7, "errorLabels", bson.A{1, "A"})}},
	{"label alone", []bson.D{d("ok", 0, "errmsg", "m", "code", 7, "errorLabels", "A")}},
	{"write error of wrong types", []bson.D{d("ok", 1, "writeErrors", bson.A{d("index", "0", "code", "5", "errmsg",
		1)})}},
	{"write error of other numbers", []bson.D{d("ok", 1, "writeErrors", bson.A{d("index", int64(0), "code", 5.0)})}},
	{"write error of nothing", []bson.D{d("ok", 1, "writeErrors", bson.A{bson.D{}})}},
	{"write errors of numbers", []bson.D{d("ok", 1, "writeErrors", bson.A{1})}},
	{"write errors far away", []bson.D{d("ok", 1, "writeErrors", bson.A{d("index", 9, "code", 5, "errmsg", "w")})}},
	{"write errors alone", []bson.D{d("ok", 1, "writeErrors", "x")}},
	{"concern of wrong types", []bson.D{d("ok", 1, "n", 1, "writeConcernError", d("code", "64", "codeName", 1,
		"errmsg", 2))}},
	{"concern of nothing", []bson.D{d("ok", 1, "n", 1, "writeConcernError", d())}},
	{"concern alone", []bson.D{d("ok", 1, "n", 1, "writeConcernError", "x")}},
}

// cursor is the field of a reply.
func cursor(id int64, batch string, docs ...any) bson.D {
	return d("id", id, "ns", "db.c", batch, append(bson.A{}, docs...))
}

// spoil returns variants of the good replies of a call: each with others in its place, or not
// there, and of those that have a say in it, each field without it, with another name or another
// value.
func spoil(c call) []spoilt {
	good := c.good
	out := []spoilt{{"good", good}}
	for i, reply := range good {
		with := func(name string, replies ...bson.D) {
			list := slices.Concat(good[:i], replies, good[i+1:])
			out = append(out, spoilt{fmt.Sprintf("reply %d, %s", i, name), list})
		}
		for _, g := range general {
			with(g.name, g.replies...)
		}
		if slices.Contains(oddly, c.name) {
			for _, o := range odd {
				with(o.name, o.replies...)
			}
		}
		if slices.Contains(thorough, c.name) {
			spoilFields(reply, "", func(name string, doc bson.D) { with(name, doc) })
		}
		out = append(out, spoilt{fmt.Sprintf("reply %d is not there", i), good[:i]})
	}
	return out
}

// spoilFields calls f with each document that has one field spoilt.
func spoilFields(doc bson.D, path string, f func(name string, doc bson.D)) {
	for i, e := range doc {
		with := func(more ...bson.E) bson.D {
			return append(append(append(bson.D{}, doc[:i]...), more...), doc[i+1:]...)
		}
		name := path + e.Key
		if e.Key == "ok" {
			continue // general has these
		}
		f(name+" missing", with())
		for _, v := range wrong {
			f(name+" is "+say.Dump(v), with(bson.E{Key: e.Key, Value: v}))
		}
		switch e.Key {
		case "firstBatch":
			f(name+" is the next", with(bson.E{Key: "nextBatch", Value: e.Value}))
		case "nextBatch":
			f(name+" is the first", with(bson.E{Key: "firstBatch", Value: e.Value}))
		}
		switch v := e.Value.(type) {
		case bson.D:
			spoilFields(v, name+".", func(name string, inner bson.D) {
				f(name, with(bson.E{Key: e.Key,
					Value: inner}))
			})
		case bson.A:
			for j, element := range v {
				inner, ok := element.(bson.D)
				if !ok || j > 0 || len(inner) == 1 && inner[0].Key == "_id" {
					continue
				}
				spoilFields(inner, name+".0.", func(name string, inner bson.D) {
					list := append(bson.A{inner}, v[1:]...)
					f(name, with(bson.E{Key: e.Key, Value: list}))
				})
			}
		}
	}
}
