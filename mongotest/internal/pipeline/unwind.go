package pipeline

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$unwind", shown: showUnwind, parse: one(parseUnwind), at: eachShard,
		names: "includeArrayIndex"})
}

// unwindStage is $unwind: a document per item of an array.
type unwindStage struct {
	rt            *runtime
	path, index   []string
	preserveEmpty bool
	holes, filled []*hole
}

func parseUnwind(p *parser, _ string, v bson.RawValue) (*unwindStage, error) {
	u := &unwindStage{rt: p.rt}
	path := ""
	switch v.Type {
	case bson.TypeString:
		path, _ = v.StringValue()
	case bson.TypeEmbeddedDocument:
		for key, item := range bson.Raw(v.Value).All() {
			switch key {
			case "path":
				s, ok := item.StringValue()
				if !ok {
					return nil,
						srverr.New(28808, "expected a string as the path for $unwind stage, got %s", typeName(item))
				}
				path = s
			case "preserveNullAndEmptyArrays":
				b, ok := item.Boolean()
				if !ok {
					return nil, srverr.New(
						28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s",
						typeName(item))
				}
				u.preserveEmpty = b
			case "includeArrayIndex":
				s, ok := item.StringValue()
				if !ok || s == "" {
					return nil, srverr.New(
						28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s",
						typeName(item))
				}
				if s[0] == '$' {
					return nil, srverr.New(28822,
						"includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", s)
				}
				if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
					return nil, err
				}
				u.index = strings.Split(s, ".")
			default:
				return nil, srverr.New(28811, "unrecognized option to $unwind stage: %s", key)
			}
		}
	default:
		return nil, srverr.New(
			15981, "expected either a string or an object as specification for $unwind stage, got %s", typeName(v))
	}
	switch {
	case path == "":
		return nil, srverr.New(28812, "no path specified to $unwind stage")
	case path[0] != '$':
		return nil, srverr.New(28818, "path option to $unwind stage should be prefixed with a '$': %s", path)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return nil, srverr.New(16419, "field path must not contain embedded null characters")
	}
	if err := expr.CheckPath(path[1:], p.rt.o.Version); err != nil {
		return nil, err
	}
	u.path = strings.Split(path[1:], ".")
	return u, nil
}

type unwindIterator struct {
	*unwindStage
	src  Iterator
	doc  bson.Raw // the input with null in the array's place: what every output has in common
	rest []byte   // the items to come
	next int      // the index of the first of them
}

func (u *unwindStage) open(src Iterator) (Iterator, error) {
	return &unwindIterator{unwindStage: u, src: src}, nil
}

func (u *unwindIterator) Close() { u.src.Close() }

func (u *unwindIterator) Next() (bson.Raw, error) {
	for {
		if len(u.rest) > 0 {
			if err := u.rt.interrupted(); err != nil {
				return nil, err
			}
			_, item, rest, err := bson.ReadElement(u.rest)
			if err != nil {
				return nil, err
			}
			u.rest = rest
			doc := bsondoc.SetPath(u.doc, u.path, item)
			if u.index != nil {
				doc = bsondoc.SetPath(doc, u.index,
					bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, int64(u.next))})
				doc = u.filling(doc)
			}
			u.next++
			return doc, nil
		}
		doc, err := u.src.Next()
		if doc == nil || err != nil {
			return nil, err
		}
		for _, h := range u.holes {
			h.before = nil
		}
		v := doc.Lookup(u.path[0])
		for _, part := range u.path[1:] {
			sub, ok := v.Document()
			if !ok {
				v = bson.RawValue{}
				break
			}
			v = sub.Lookup(part)
		}
		if v.Type == bson.TypeArray {
			if u.rest, u.next = bson.Raw(v.Value).Elements(), 0; len(u.rest) > 0 {
				u.doc = bsondoc.SetPath(doc, u.path, nullValue)
				u.doc = slices.Clip(slices.Clone(u.doc)) // SetPath makes room for the array
				continue
			}
			// else the index takes its place
			if u.preserveEmpty && !(len(u.path) == 1 && u.index != nil && u.index[0] == u.path[0]) {
				full := doc
				doc = bsondoc.SetPath(doc, u.path, bson.RawValue{})
				for _, h := range u.holes {
					h.find(full, doc, nil)
				}
			}
		}
		empty := v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined || v.Type == bson.TypeArray
		if empty && !u.preserveEmpty {
			continue
		}
		if u.index != nil {
			doc = u.filling(bsondoc.SetPath(doc, u.index, bson.RawValue{Type: bson.TypeNull}))
		}
		return doc, nil
	}
}

// filling fills the hole of the index. It stays one for the array's other items.
func (u *unwindStage) filling(doc bson.Raw) bson.Raw {
	for _, h := range u.filled {
		before := h.before
		doc = fillHoles(doc, []*hole{h})
		h.before = before
	}
	return doc
}
