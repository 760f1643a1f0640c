package command

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"

	"allium/bson"
)

// Where a server reads a meaning into the order of keys, as in a sort order, a document whose keys
// come from a map must not be sent: it means something else each time. Every argument with such a
// document passes appendPlaced, which looks at what was encoded, whatever Go type it had.

// A place is where in a command a value stands, and says where in it the order of keys decides.
type place uint8

const (
	placeFree      place = iota // nowhere
	placeOrdered                // in it and in all that it holds: a sort order, the keys of an index
	placeCommand                // in it, since its first key is its name, and in fields by their names
	placeFields                 // in fields by their names
	placePipeline               // in the sort orders of its stages and expressions
	placeFilter                 // in the sort orders of the expressions of its $expr
	placeSearch                 // in the sort order of a search
	placeSorting                // an expression whose field sortBy is a sort order
	placeUpdate                 // in the $sort of a $push, or as in a pipeline
	placePush                   // the operand of $push: a document of fields
	placeModifiers              // what is pushed to one of them
)

// placedFields are the fields of commands, of statements and of the descriptions of indexes in
// which order decides.
var placedFields = map[string]place{
	"allowedIndexes": placeOrdered, "bounds": placeOrdered, "hint": placeOrdered, "index": placeOrdered,
	"key": placeOrdered, "keyPattern": placeOrdered, "max": placeOrdered,
	"middle": placeOrdered, "min": placeOrdered, "orderby": placeOrdered, "sort": placeOrdered,
	"clusteredIndex": placeFields, "definition": placeFields, "deletes": placeFields, "idIndex": placeFields,
	"indexes": placeFields, "indexHints": placeFields, "settings": placeFields, "updates": placeFields,
	"zones":   placeFields,
	"explain": placeCommand, "ops": placeCommand, "removeQuerySettings": placeCommand, "setQuerySettings": placeCommand,
	"fields": placePipeline, "let": placePipeline, "pipeline": placePipeline, "projection": placePipeline,
	"filter": placeFilter, "q": placeFilter, "query": placeFilter, "validator": placeFilter,
	"u": placeUpdate, "update": placeUpdate, "updateMods": placeUpdate,
}

// placedDocuments are the places of the documents that AppendDocument appends, by their names.
var placedDocuments = map[string]place{
	"definition": placeFields,
	"fields":     placePipeline, "let": placePipeline, "projection": placePipeline,
	"$match": placeFilter, "filter": placeFilter, "q": placeFilter, "query": placeFilter,
}

// placedStages are the stages in which it is not as in other parts of a pipeline.
var placedStages = map[string]place{"$documents": placeFree, "$literal": placeFree, "$match": placeFilter,
	"$search": placeSearch, "$sort": placeOrdered}

// sorting are the expressions and stages with a sortBy.
var sorting = map[string]bool{"$bottom": true, "$bottomN": true, "$fill": true, "$setWindowFields": true,
	"$sortArray": true, "$top": true, "$topN": true}

// below returns the place of what stands under a key of a document at p, of a command with a name.
func (p place) below(command, key string) place {
	switch p {
	case placeOrdered:
		return placeOrdered
	case placeCommand, placeFields:
		switch {
		case command == "collMod" && key == "index":
			return placeFields
		case command == "planCacheSetFilter" && key == "indexes":
			return placeOrdered
		}
		return placedFields[key]
	case placePipeline, placeSorting:
		if p == placeSorting && key == "sortBy" {
			return placeOrdered
		}
		if stage, ok := placedStages[key]; ok {
			return stage
		}
		if sorting[key] {
			return placeSorting
		}
		return placePipeline
	case placeFilter:
		switch key {
		case "$and", "$nor", "$or":
			return placeFilter
		case "$expr":
			return placePipeline
		}
	case placeSearch:
		if key == "sort" {
			return placeOrdered
		}
	case placeUpdate:
		if key == "$push" {
			return placePush
		}
	case placePush:
		return placeModifiers
	case placeModifiers:
		if key == "$sort" {
			return placeOrdered
		}
	}
	return placeFree
}

// ordered calls visit for the documents with several keys whose order decides, of the value of
// type t at dst[at:], until it returns false.
func (p place) ordered(dst []byte, at int, t bson.Type, command, path string,
	visit func(at, keys int, path string) bool) bool {
	if p == placeFree || t != bson.TypeEmbeddedDocument && t != bson.TypeArray {
		return true
	}
	if t == bson.TypeArray && p == placeUpdate {
		p = placePipeline
	}
	doc := bson.Raw(dst[at : at+int(binary.LittleEndian.Uint32(dst[at:]))])
	if p == placeCommand && t == bson.TypeEmbeddedDocument {
		command = firstKey(doc)
	}
	keys, pos, more := 0, at+4, true
	for key, v := range doc.All() {
		q := p
		if t == bson.TypeEmbeddedDocument {
			q = p.below(command, key)
		}
		pos += 1 + len(key) + 1
		keys++
		if q != placeFree && (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) {
			under := key
			if path != "" {
				under = path + "." + key
			}
			if more = q.ordered(dst, pos, v.Type, command, under, visit); !more {
				return false
			}
		}
		pos += len(v.Value)
	}
	if t == bson.TypeEmbeddedDocument && keys > 1 && (p == placeOrdered || p == placeCommand) {
		return visit(at, keys, path)
	}
	return true
}

// mayDecide reports at little cost whether a value that was encoded can have a document whose order
// decides.
func (p place) mayDecide(encoded []byte, v any) bool {
	switch p {
	case placeFree:
		return false
	case placePipeline:
		return bytes.Contains(encoded, []byte("sort\x00")) || bytes.Contains(encoded, []byte("sortBy\x00"))
	case placeFilter:
		return bytes.Contains(encoded, []byte("sortBy\x00"))
	case placeOrdered:
		return !plain(v)
	}
	return true
}

// plain reports whether v is a name, bytes, or a bson.D without anything in it that could be a map.
func plain(v any) bool {
	switch v := v.(type) {
	case string, bson.Raw, bson.RawValue:
		return true
	case bson.D:
		for i := range v {
			switch v[i].Value.(type) {
			case int, int32, int64, float64, string, bson.ObjectID:
			default:
				return false
			}
		}
		return true
	}
	return false
}

// appendPlaced appends v, which stands at a place of a command, under key. It is an error if the
// order of keys that come from a map with several of them decides.
func appendPlaced(o *bson.Options, dst []byte, key string, v any, p place, command string) ([]byte, error) {
	at := len(dst)
	dst, err := appendValue(o, dst, key, v)
	if err != nil {
		return dst, err
	}
	value := at + 1 + len(key) + 1
	if !p.mayDecide(dst[value:], v) {
		return dst, nil
	}
	decides := false
	p.ordered(dst, value, bson.Type(dst[at]), command, "", func(int, int, string) bool { decides = true; return false })
	if !decides {
		return dst, nil
	}
	if o == nil {
		o = &bson.Options{}
	}
	dst, maps, err := o.AppendValueMaps(dst[:at], key, v)
	if err != nil || len(maps) == 0 {
		return dst, err
	}
	random := make(map[int]bool, len(maps))
	for _, at := range maps {
		random[at] = true
	}
	p.ordered(dst, value, bson.Type(dst[at]), command, "", func(at, keys int, path string) bool {
		if random[at] {
			err = &orderError{value: v, path: path, keys: keys, command: p == placeCommand && path == ""}
		}
		return err == nil
	})
	return dst, err
}

// An orderError says that a map stands where order decides.
type orderError struct {
	value   any
	path    string // where in the value
	keys    int
	command bool // the value is a command
}

func (e *orderError) Error() string {
	if e.path != "" {
		return e.path + ": a map with " + strconv.Itoa(e.keys) + " keys has no order: use a bson.D"
	}
	because := ""
	if e.command {
		because = ", but the command's name must come first"
	}
	t := reflect.TypeOf(e.value)
	for range bson.DefaultMaxDepth {
		if t.Kind() != reflect.Pointer || t.Elem().Kind() == reflect.Interface {
			break
		}
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return fmt.Sprintf("the keys of a %s that come from a map have no order%s: use a bson.D", t, because)
	}
	return fmt.Sprintf("a %s with %d keys has no order%s: use a bson.D", t, e.keys, because)
}
