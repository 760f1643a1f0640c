package qe

import (
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

const inFields = "create.encryptedFields.fields"

// checkShape refuses encryptedFields whose parts have not the types that they must have. Servers
// since 8.1 look at that first.
func checkShape(doc bson.Raw, server release.Version) error {
	list := doc.Lookup("fields")
	fields, ok := list.Array()
	switch {
	case args.IsNull(list) || list.IsZero():
		return args.MissingField(inFields)
	case !ok:
		return args.WrongType(inFields, list.Type, "array")
	}
	i := 0
	for v := range fields.Values() {
		field, ok := v.Document()
		if args.IsNull(v) {
			i++
			continue
		}
		if !ok {
			return args.WrongType(inFields+"."+strconv.Itoa(i), v.Type, "object")
		}
		if err := checkField(field, server); err != nil {
			return err
		}
		i++
	}
	return nil
}

func checkField(field bson.Raw, server release.Version) error {
	if b, ok := field.Lookup("keyId").Binary(); ok {
		switch {
		case b.Subtype != bson.BinaryUUID:
			return srverr.New(srverr.TypeMismatch,
				"BSON field '%s.keyId' is the wrong type 'binData', expected type 'UUID'", inFields)
		case len(b.Data) != 16:
			return srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
		}
	}
	queries := field.Lookup("queries")
	switch queries.Type {
	case 0, bson.TypeEmbeddedDocument, bson.TypeArray:
	default:
		return args.WrongTypes(inFields+".queries", queries.Type, "[array, object]'")
	}
	for _, query := range queriesOf(queries) {
		for _, n := range []struct {
			name  string
			least int64
		}{
			{"contention", 0}, {"trimFactor", 0}, {"sparsity", 1}, {"strMaxLength", 1}, {"strMinQueryLength", 1},
			{"strMaxQueryLength", 1},
		} {
			v := query.Lookup(n.name)
			if v.IsZero() || args.IsNull(v) {
				continue
			}
			if !v.IsNumber() {
				return args.WrongNumber(server, inFields+".queries", n.name, v)
			}
			got, err := args.ExactLong(n.name, v)
			if err != nil {
				return err
			}
			if got < n.least {
				return args.TooSmall(server, n.name, n.least, got)
			}
		}
		for _, name := range []string{"caseSensitive", "diacriticSensitive"} {
			if v := query.Lookup(name); !v.IsZero() && v.Type != bson.TypeBoolean {
				return args.WrongType(inFields+".queries."+name, v.Type, "bool")
			}
		}
	}
	return nil
}

// checkText checks the parameters of queries for parts of texts, as servers since 8.1 do.
func checkText(path, kind string, t bson.Type, query bson.Raw) error {
	if t != bson.TypeString {
		return srverr.New(9783400, "The type of the encrypted field '%s' must be string for %s queries", path, kind)
	}
	for _, need := range []struct {
		name string
		code int32
	}{
		{"strMinQueryLength", 9783402}, {"strMaxQueryLength", 9783403}, {"caseSensitive", 9783404},
		{"diacriticSensitive", 9783405},
	} {
		if query.Lookup(need.name).IsZero() {
			return srverr.New(need.code, "The field '%s' is missing for %s queries of the encrypted field '%s'",
				need.name, kind, path)
		}
	}
	least, _ := query.Lookup("strMinQueryLength").AsInt64()
	if most, _ := query.Lookup("strMaxQueryLength").AsInt64(); least > most {
		return srverr.New(9783406, "strMinQueryLength cannot be greater than strMaxQueryLength")
	}
	return nil
}

// checkCombination checks which queries stand together, as servers since 8.1 do.
func checkCombination(queries bson.RawValue) error {
	kinds := queryTypes(queries)
	if len(queriesOf(queries)) == 0 {
		return srverr.New(9783412, "At least one query type should be specified per field")
	}
	if len(kinds) > 2 {
		return srverr.New(9783413, "At most two query types should be specified per field")
	}
	if len(kinds) == 2 && (!paired[kinds[0]] || !paired[kinds[1]] || kinds[0] == kinds[1]) {
		return srverr.New(9783414, "Only prefix and suffix query types can be specified together")
	}
	return nil
}

// paired are the queries of which two may stand together.
var paired = map[string]bool{"prefix": true, "suffix": true, "prefixPreview": true, "suffixPreview": true}
