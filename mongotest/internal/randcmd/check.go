package randcmd

// What the rules compare: answers of commands, and the collections that they are about.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"allium/bson"
)

// setUp fills the collections anew.
func (c *Checker) setUp(cs Case) error {
	if _, err := c.run(d{e("dropDatabase", int32(1))}); err != nil {
		return err
	}
	create := d{e("create", "c")}
	if cs.Collation != nil {
		create = append(create, e("collation", cs.Collation))
	}
	if _, err := c.run(create); err != nil {
		return err
	}
	if c.sharded {
		if err := c.shard(); err != nil {
			return err
		}
	}
	for _, ix := range cs.Indexes {
		if _, err := c.run(d{e("createIndexes", "c"), e("indexes", a{ix})}); err != nil {
			return err
		}
	}
	for name, docs := range map[string]a{"c": cs.Docs, "o": cs.Other} {
		if len(docs) > 0 {
			if _, err := c.run(d{e("insert", name), e("documents", docs), e("ordered", false)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checker) shard() error {
	for _, cmd := range []d{{e("enableSharding", "t")},
		{e("shardCollection", "t.c"), e("key", d{e("_id", "hashed")}), e("collation", d{e("locale", "simple")})}} {
		r, err := c.run(append(cmd, e("$db", "admin")))
		if err != nil {
			return err
		}
		if x, failed := failure(r); failed {
			return fmt.Errorf("%s: %v", show(cmd), x)
		}
	}
	return nil
}

// answer is the documents that a command returned, or its error.
type answer struct {
	docs []bson.RawValue
	text string // of the error
	code int64
}

func (x answer) ok() bool { return x.text == "" }

func (x answer) String() string {
	if !x.ok() {
		return fmt.Sprintf("error %d %q", x.code, x.text)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range x.docs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v.String())
	}
	return b.String() + "]"
}

func failure(r bson.Raw) (x answer, failed bool) {
	doc := r
	if v, ok := r.Lookup("writeErrors", "0").Document(); ok {
		doc = v
	} else if r.Lookup("ok").AsBool() {
		return answer{}, false
	}
	x.text, _ = doc.Lookup("errmsg").StringValue()
	x.code, _ = doc.Lookup("code").AsInt64()
	return x, true
}

// all runs a command and reads its cursor to the end.
func (c *Checker) all(cmd d) (answer, error) {
	r, err := c.run(cmd)
	if err != nil {
		return answer{}, err
	}
	x, failed := failure(r)
	if failed {
		return x, nil
	}
	batch := r.Lookup("cursor", "firstBatch")
	for {
		for v := range bson.Raw(batch.Value).Values() {
			x.docs = append(x.docs, v)
		}
		id, _ := r.Lookup("cursor", "id").AsInt64()
		if id == 0 {
			return x, nil
		}
		if r, err = c.run(d{e("getMore", id), e("collection", cmd[0].Value)}); err != nil {
			return x, err
		}
		if bad, failed := failure(r); failed {
			return bad, nil
		}
		batch = r.Lookup("cursor", "nextBatch")
	}
}

// sorted is the answer as a set.
func (x answer) sorted() answer {
	x.docs = slices.Clone(x.docs)
	slices.SortFunc(x.docs, func(a, b bson.RawValue) int { return bytes.Compare(a.Value, b.Value) })
	return x
}

func (x answer) equal(y answer) bool {
	return x.ok() == y.ok() && slices.EqualFunc(x.docs, y.docs, bson.RawValue.Equal)
}

// same is the rule that two answers are equal. Commands with expressions fail or do not, depending
// on which documents they look at, so that one that fails says nothing about the other.
func same(rule string, cmd d, want, got answer) error {
	if !got.ok() && (!want.ok() || strings.Contains(show(cmd), "$expr") || cmd[0].Key == "aggregate") || !want.ok() {
		return nil
	}
	if want.equal(got) {
		return nil
	}
	return &brokenRule{rule, fmt.Sprintf("%s answers %v, want %v", show(cmd), got, want)}
}

// get returns an element of a document.
func get(doc d, key string) (any, bool) {
	for _, el := range doc {
		if el.Key == key {
			return el.Value, true
		}
	}
	return nil, false
}

// with returns a command with an element set or, for nil, left out.
func with(cmd d, key string, v any) d {
	out := d{}
	for _, el := range cmd {
		if el.Key != key {
			out = append(out, el)
		}
	}
	if v != nil {
		out = append(out, e(key, v))
	}
	return out
}

func filterOf(cmd d, key string) d {
	v, _ := get(cmd, key)
	f, ok := v.(d)
	if !ok {
		return d{}
	}
	return f
}

var natural = d{e("$natural", int32(1))}

// hints are the names of indexes that hold every document.
func (c *Checker) hints() ([]string, error) {
	list, err := c.all(d{e("listIndexes", "c")})
	var out []string
	for _, v := range list.docs {
		ix := bson.Raw(v.Value)
		text := ix.String()
		if strings.Contains(text, "sparse") || strings.Contains(text, "partialFilter") ||
			strings.Contains(text, "$**") {
			continue
		}
		name, _ := ix.Lookup("name").StringValue()
		out = append(out, name)
	}
	return out, err
}
