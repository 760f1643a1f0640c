package read

// $queryStats, and what hides names in what it tells.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
)

// queryStats are the documents of $queryStats.
func queryStats(r *server.Request, spec bson.Raw) []bson.Raw {
	secret, ok := spec.Lookup("transformIdentifiers", "hmacKey").Binary()
	if !ok {
		return r.Node.QueryStats(func(key bson.Raw) bson.Raw { return key })
	}
	h := hider{secret.Data}
	return r.Node.QueryStats(h.key)
}

// hider puts hashes in the place of the names of fields, collections and databases. What it gets
// has no values of users any more: their types stand in their places, with a question mark.
type hider struct{ secret []byte }

// name returns what stands for a name.
func (h hider) name(s string) string {
	mac := hmac.New(sha256.New, h.secret)
	mac.Write([]byte(s))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// path returns what stands for a path, of which each part is a name.
func (h hider) path(s string) string {
	parts := strings.Split(s, ".")
	for i, part := range parts {
		if part != "" && !strings.HasPrefix(part, "$") {
			parts[i] = h.name(part)
		}
	}
	return strings.Join(parts, ".")
}

// key hides the names in what statistics are kept by.
func (h hider) key(key bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range key.All() {
			switch doc, isDoc := v.Document(); {
			case k == "queryShape":
				v = bsondoc.DocumentValue(h.shape(doc))
			case k == "hint" && isDoc:
				v = h.object(v)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// shape hides the names in the shape of a command.
func (h hider) shape(shape bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range shape.All() {
			doc, _ := v.Document()
			switch k {
			case "cmdNs":
				for part, name := range doc.All() {
					s, _ := name.StringValue()
					if !strings.HasPrefix(s, "$cmd.") {
						s = h.name(s)
					}
					doc = bsondoc.SetPath(doc, []string{part}, bsondoc.StringValue(s))
				}
				v = bsondoc.DocumentValue(doc)
			case "filter", "query":
				v = bsondoc.DocumentValue(h.filter(doc))
			case "pipeline":
				v = arrayOf(h.stages(pipeline.StagesIn(v)))
			case "key":
				v = h.named(v)
			case "sort", "projection", "min", "max", "let":
				v = h.object(v)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// filter hides the names in the shape of a filter.
func (h hider) filter(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			sub, isDoc := v.Document()
			switch {
			case k == "$and" || k == "$or" || k == "$nor":
				var list []bson.Raw
				for _, item := range pipeline.StagesIn(v) {
					list = append(list, h.filter(item))
				}
				v = arrayOf(list)
			case k == "$expr":
				v = h.expression(v)
			case k == "$jsonSchema":
				v = bsondoc.StringValue("?object") // its keys are names at many places
			case !strings.HasPrefix(k, "$") && isDoc:
				k, v = h.path(k), bsondoc.DocumentValue(h.conditions(sub))
			case !strings.HasPrefix(k, "$"):
				k = h.path(k)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// conditions hides the names in what a filter says of one field.
func (h hider) conditions(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			if sub, ok := v.Document(); ok && (k == "$not" || k == "$elemMatch") {
				if first, _ := bsondoc.FirstElement(sub); strings.HasPrefix(first, "$") {
					sub = h.conditions(sub)
				} else {
					sub = h.filter(sub)
				}
				v = bsondoc.DocumentValue(sub)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// stages hides the names in the shape of a pipeline.
func (h hider) stages(list []bson.Raw) []bson.Raw {
	out := make([]bson.Raw, len(list))
	for i, doc := range list {
		s := pipeline.StageOf(pipeline.Namespace{}, doc)
		v, _ := s.Rewrite(pipeline.Parts{ // none of these fails
			Pipeline:   func(stages []bson.Raw) ([]bson.Raw, error) { return h.stages(stages), nil },
			Filter:     func(filter bson.Raw) (bson.Raw, error) { return h.filter(filter), nil },
			Expression: func(v bson.RawValue) (bson.RawValue, error) { return h.expression(v), nil },
			Name:       func(v bson.RawValue) (bson.RawValue, error) { return h.named(v), nil },
			Keyed:      func(v bson.RawValue) (bson.RawValue, error) { return h.object(v), nil },
			Key:        h.name,
		})
		out[i] = bsondoc.Single(s.Name, v)
	}
	return out
}

// named hides what is a name, or several of them: as items, as the values of {db, coll}, or as the
// keys of an order.
func (h hider) named(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeString:
		if s, _ := v.StringValue(); !strings.HasPrefix(s, "?") {
			return bsondoc.StringValue(h.path(s))
		}
	case bson.TypeArray:
		items := bsondoc.Items(v)
		for i := range items {
			items[i] = h.named(items[i])
		}
		return bsondoc.ArrayValue(items...)
	case bson.TypeEmbeddedDocument:
		return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			for k, item := range bson.Raw(v.Value).All() {
				if item.Type == bson.TypeString {
					item = h.named(item)
				} else {
					k = h.path(k)
				}
				d.B = bson.AppendRawValue(d.B, k, item)
			}
		}))
	}
	return v
}

// object hides the names in a document whose keys are paths, and its values expressions.
func (h hider) object(v bson.RawValue) bson.RawValue {
	doc, ok := v.Document()
	if first, _ := bsondoc.FirstElement(doc); !ok || strings.HasPrefix(first, "$") {
		return h.expression(v)
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, item := range doc.All() {
			if !strings.HasPrefix(k, "$") {
				k = h.path(k)
			}
			d.B = bson.AppendRawValue(d.B, k, h.expression(item))
		}
	}))
}

// expression hides the names in the shape of an expression, or in what a stage is told beside that.
func (h hider) expression(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeString:
		return bsondoc.StringValue(h.text(v))
	case bson.TypeArray:
		items := bsondoc.Items(v)
		for i := range items {
			items[i] = h.expression(items[i])
		}
		return bsondoc.ArrayValue(items...)
	case bson.TypeEmbeddedDocument:
		first, _ := bsondoc.FirstElement(v.Value)
		if !strings.HasPrefix(first, "$") {
			return h.object(v)
		}
		return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
			for k, item := range bson.Raw(v.Value).All() {
				if expr.NamesOperands(k) || !strings.HasPrefix(k, "$") {
					item = h.operands(item)
				} else {
					item = h.expression(item)
				}
				d.B = bson.AppendRawValue(d.B, k, item)
			}
		}))
	}
	return v
}

// operands hides the names in operands, but not those of the operands.
func (h hider) operands(v bson.RawValue) bson.RawValue {
	doc, ok := v.Document()
	if first, _ := bsondoc.FirstElement(doc); !ok || strings.HasPrefix(first, "$") {
		return h.expression(v)
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, item := range doc.All() {
			switch k {
			case "branches": // of $switch, each with operands again
				items := bsondoc.Items(item)
				for i := range items {
					items[i] = h.operands(items[i])
				}
				item = bsondoc.ArrayValue(items...)
			case "sortBy", "vars":
				item = h.object(item)
			default:
				item = h.expression(item)
			}
			d.B = bson.AppendRawValue(d.B, k, item)
		}
	}))
}

// builtin are the variables that are not named by whoever wrote the query.
const builtin = " CLUSTER_TIME CURRENT DESCEND IDX KEEP NOW PRUNE REMOVE ROOT SEARCH_META USER_ROLES this value "

// text hides the names in a string: a path, or a variable with a path. A type stays.
func (h hider) text(v bson.RawValue) string {
	s, _ := v.StringValue()
	if name, ok := strings.CutPrefix(s, "$$"); ok {
		name, path, has := strings.Cut(name, ".")
		if !strings.Contains(builtin, " "+name+" ") {
			name = h.name(name)
		}
		if has {
			name += "." + h.path(path)
		}
		return "$$" + name
	}
	if path, ok := strings.CutPrefix(s, "$"); ok {
		return "$" + h.path(path)
	}
	return s
}
