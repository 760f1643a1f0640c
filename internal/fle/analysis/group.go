package analysis

import (
	"strings"

	"allium/bson"
)

// plainAccumulators are those whose arguments must not be encrypted.
var plainAccumulators = words(
	`$avg $count $first $firstN $last $lastN $max $maxN $median $mergeObjects $min $minN $percentile $stdDevPop
	$stdDevSamp $sum $top $topN $bottom $bottomN $concatArrays $setUnion`)

// key analyses an expression by which documents are grouped.
func (s *stage) key(v bson.RawValue) (bson.RawValue, *node, error) {
	out, op, err := s.expression(v, &s.scope)
	if err != nil {
		return v, nil, err
	}
	if op.node != nil {
		if !op.node.deterministic() {
			return v, nil, s.refuse(
				op.path, "documents cannot be grouped by a field whose equal values have different ciphertexts",
				"encrypt it deterministically")
		}
		if err := s.comparing(op.path, s.name); err != nil {
			return v, nil, err
		}
	}
	return constant(out), op.node, nil
}

// constant writes a number or another value that is no expression as the servers' analysis does.
func constant(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeString:
		if text, _ := v.StringValue(); strings.HasPrefix(text, "$") {
			return v
		}
	case bson.TypeArray, bson.TypeEmbeddedDocument:
		return v
	}
	return document(pair("$const", v))
}

func (s *stage) group(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	var n *node
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch {
		case key == "_id":
			v, id, err := s.key(v)
			n = n.with(key, id)
			return v, err
		case strings.HasPrefix(key, "$"):
			return v, s.refuse("", "the stage has no field '"+key+"'", "")
		}
		v, sub, err := s.accumulator(v)
		n = n.with(key, sub)
		return v, err
	})
	return document(out), n, err
}

// accumulator analyses {$name: argument}.
func (s *stage) accumulator(v bson.RawValue) (bson.RawValue, *node, error) {
	doc, ok := v.Document()
	if !ok || count(doc) != 1 {
		return v, nil, s.refuse("", "a field of a group wants an accumulator", "")
	}
	name, arg := first(doc)
	switch name {
	case "$push", "$addToSet":
		out, op, err := s.expression(arg, &s.scope)
		if err != nil {
			return v, nil, err
		}
		if op.node == nil {
			return document(pair(name, constant(out))), nil, nil
		}
		if name == "$addToSet" {
			if err := s.comparing(op.path, name); err != nil {
				return v, nil, err
			}
			if !op.node.deterministic() {
				return v, nil, s.refuse(op.path, name+" on a field whose equal values have different ciphertexts",
					"use $push")
			}
		}
		return document(pair(name, out)), opaqueNode, nil
	case "$count":
		return v, nil, nil
	case "$top", "$topN", "$bottom", "$bottomN":
		if inner, ok := arg.Document(); ok {
			if err := s.sortKeys(inner.Lookup("sortBy"), s.in, name); err != nil {
				return v, nil, err
			}
		}
	}
	if !plainAccumulators[name] {
		return v, nil, s.analysis.refuse("", name, "Unsupported accumulator for encryption", "")
	}
	out, _, err := s.plainExpression(name, v, arg, &s.scope, nil)
	if err != nil {
		return v, nil, err
	}
	_, arg = first(out.Value)
	return document(pair(name, constant(arg))), nil, nil
}

func (s *stage) sortByCount(arg bson.RawValue) (bson.RawValue, *node, error) {
	out, id, err := s.key(arg)
	var n *node
	return out, n.with("_id", id), err
}

// bucket analyses $bucket and $bucketAuto.
func (s *stage) bucket(arg bson.RawValue) (bson.RawValue, *node, error) {
	doc, err := s.document(arg)
	if err != nil {
		return arg, nil, err
	}
	var n *node
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "groupBy":
			return s.plain(v)
		case "boundaries", "default", "buckets", "granularity":
			return v, nil
		case "output":
			fields, err := s.document(v)
			if err != nil {
				return v, err
			}
			fields, err = rewrite(fields, func(name string, v bson.RawValue) (bson.RawValue, error) {
				v, sub, err := s.accumulator(v)
				n = n.with(name, sub)
				return v, err
			})
			return document(fields), err
		}
		return v, s.refuse("", "the stage has no field '"+key+"'", "")
	})
	return document(out), n, err
}
